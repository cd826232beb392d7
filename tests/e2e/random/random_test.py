# SPDX-License-Identifier: Apache-2.0
"""Proves that random numbers do not depend on the plan: dropout and noise over meshes, micro-batches, uneven and accumulated batches give the
losses of one rank; that they depend on seed and step; and that evaluation draws none."""
import json
import os
import subprocess
import tempfile
import unittest

BIN = os.environ["DG_BIN"]
MODEL = """dg.graph @loss(%x: tensor<?x6x4xf32>, %y: tensor<?x6x2xf32>) {
  %w1 = dg.parameter "fc1.weight" tensor<8x4xf32> uniform 0.5
  %w2 = dg.parameter "fc2.weight" tensor<2x8xf32> uniform 0.35
  NOISE
  %h = dg.linear %in, %w1
  %g = dg.gelu %h
  DROP
  %p = dg.linear %d, %w2
  %loss = dg.mse %p, %y
  dg.return %loss
}
"""
NOISE = ("%n = dg.random_normal %x {deviation = 0.1}\n  %in = dg.add %x, %n", "%in = dg.scale %x {factor = 1.0}")
DROP = ("%d = dg.dropout %g {rate = 0.5}", "%d = dg.scale %g {factor = 1.0}")


class Random(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dg-random-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_tool(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def events(self, dgc_flags=(), dgrun_flags=(), noise=NOISE[1], drop=DROP[0], batch=8, samples=20):
        with open(self.path("model.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL.replace("NOISE", noise).replace("DROP", drop))
        self.run_tool(f"{BIN}/dgc", self.path("model.mlir"), "--batch", str(batch), "--optimizer", "sgd:lr=0.1", *dgc_flags, "-o", self.path("job.dgx"))
        lines = self.run_tool(f"{BIN}/dgrun", self.path("job.dgx"), "--data", f"x=randn:{samples}x6x4", "--data", f"y=randn:{samples}x6x2", "--epochs",
                              "2", "--no-shuffle", "--json", *dgrun_flags)
        return [json.loads(line) for line in lines.splitlines()]

    def losses(self, *arguments, **named):
        return [event["loss"] for event in self.events(*arguments, **named) if event["event"] == "step"]

    def assert_close(self, found, expected, subject):
        worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
        print(f"{subject}: {len(found)} losses, largest difference {worst:.1e}")
        self.assertLess(worst, 1e-6, f"{subject}: {found}, expected {expected}")

    def test_every_plan_draws_the_same_numbers(self):
        for name, noise, drop in (("dropout", NOISE[1], DROP[0]), ("noise", NOISE[0], DROP[1]), ("both", NOISE[0], DROP[0])):
            expected = self.losses(noise=noise, drop=drop)
            for flags in (["--mesh", "data=2"], ["--mesh", "data=4"], ["--mesh", "tensor=2"], ["--mesh", "pipe=2"], ["--microbatches", "2"],
                          ["--mesh", "data=2,pipe=2", "--microbatches", "4"], ["--mesh", "data=3"]):
                self.assert_close(self.losses(flags, noise=noise, drop=drop), expected, f"{name}, {' '.join(flags)}")

    def test_accumulated_batches_are_one_step(self):
        expected = self.losses(batch=16, samples=32)
        self.assert_close(self.losses(["--accumulate", "4"], batch=4, samples=32), expected, "--accumulate 4")

    def test_seed_and_step_change_the_numbers(self):
        first, second = self.losses(dgrun_flags=["--lr", "0", "--seed", "1"]), self.losses(dgrun_flags=["--lr", "0", "--seed", "2"])
        self.assertEqual(first, self.losses(dgrun_flags=["--lr", "0", "--seed", "1"]))
        self.assertNotEqual(first[0], second[0])
        # The same samples in two epochs, nothing learned: only the numbers differ.
        self.assertNotEqual(first[0], first[3])

    def test_evaluation_drops_nothing(self):
        evaluation = ["--lr", "0", "--eval-data", "x=randn:20x6x4", "--eval-data", "y=randn:20x6x2"]
        with_drop, without = (next(event["loss"] for event in self.events(dgrun_flags=evaluation, drop=drop) if event["event"] == "eval")
                              for drop in DROP)
        self.assertAlmostEqual(with_drop, without, delta=1e-6)


if __name__ == "__main__":
    unittest.main()
