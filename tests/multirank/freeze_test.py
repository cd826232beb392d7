# SPDX-License-Identifier: Apache-2.0
"""Proves what --freeze and --freeze-statistics hold of a batch norm, and that over frozen statistics a training computes as evaluation
does: with a learning rate of 0 the losses of its steps are those of its evaluations."""
import subprocess

import checkpoint_files
import runs

MODEL = """module attributes {dg.optimizer = "sgd:lr=0.1"} {
  dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?x1xf32>) {
    %g = dg.parameter "bn.weight" tensor<6xf32> constant 1.0
    %b = dg.parameter "bn.bias" tensor<6xf32> constant 0.0
    %m = dg.parameter "bn.running_mean" tensor<6xf32> constant 0.5 {state}
    %v = dg.parameter "bn.running_var" tensor<6xf32> constant 4.0 {state}
    %n = dg.batch_norm %x, %g, %b, %m, %v
    %w = dg.parameter "w" tensor<1x6xf32> uniform 0.5
    %p = dg.linear %n, %w
    %loss = dg.mse %p, %y
    dg.return %loss
  }
}
"""
WEIGHTS, STATISTICS = ("bn.bias", "bn.weight"), ("bn.running_mean", "bn.running_var")
DATA = ["--data", "x=randn:12x6", "--data", "y=randn:12x1", "--no-shuffle"]


class FreezeTest(runs.JobTest):
    def compile(self, name, *flags):
        with open(self.path("bn.mlir"), "w") as file:
            file.write(MODEL)
        run = subprocess.run([runs.tool("dgc"), self.path("bn.mlir"), "--batch", "12", *flags, "-o", self.path(name)],
                             capture_output=True, text=True, timeout=runs.DEADLINE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.path(name)

    def changed(self, job, folder):
        """Which tensors a step changes."""
        for steps, resume in (("1", []), ("3", ["--resume"])):
            self.run_job(job, *DATA, "--steps", steps, "--checkpoint", self.path(folder), *resume)
        first, last = (checkpoint_files.read_tensors(self.path(folder, step, "model.safetensors"))[0]
                       for step in ("step-000001", "step-000003"))
        return {name for name in first if first[name] != last[name]}

    def test_weights_and_statistics_are_held_apart(self):
        for at, (flags, held) in enumerate(((("--freeze", "bn.*"), WEIGHTS), (("--freeze-statistics", "bn.*"), STATISTICS),
                                            (("--freeze", "bn.*", "--freeze-statistics", "bn.*"), WEIGHTS + STATISTICS), ((), ()))):
            for mesh in ((), ("--mesh", "data=2")):
                with self.subTest(flags=flags, mesh=mesh):
                    job = self.compile("job.dgx", *flags, *mesh)
                    self.assertEqual(self.changed(job, f"{at}{len(mesh)}"), {"w", *WEIGHTS, *STATISTICS} - set(held))

    def test_frozen_statistics_are_evaluation(self):
        evaluated = ["--eval-data", "x=randn:12x6", "--eval-data", "y=randn:12x1", "--lr", "0", "--steps", "1"]
        for flags, is_same in ((("--freeze-statistics", "bn.*"), True), ((), False)):
            finished = self.run_job(self.compile("job.dgx", *flags), *DATA, *evaluated)
            trained, found = finished.of("step")[0]["loss"], finished.of("eval")[0]["loss"]
            self.assertEqual(abs(trained - found) < 1e-6, is_same, (flags, trained, found))


if __name__ == "__main__":
    runs.main()
