# SPDX-License-Identifier: Apache-2.0
"""Proves what --weights, --weights-rename and --weights-skip give a model that is tuned further: the bits of the trained tensors under
their new names, the initial values of the model for what is skipped or lacking, over any mesh."""
import os
import subprocess

import checkpoint_files
import runs

MODEL = """module attributes {dg.optimizer = "sgd:lr=0.1"} {
  dg.graph @loss(%%x: tensor<?x6xf32>, %%y: tensor<?x%(out)dxf32>) {
    %%w = dg.parameter "%(body)s.weight" tensor<4x6xf32> uniform 0.5
    %%b = dg.parameter "%(body)s.bias" tensor<4xf32> uniform 0.5
    %%h = dg.linear %%x, %%w, %%b
    %%v = dg.parameter "head.weight" tensor<%(out)dx4xf32> uniform 0.5
    %%p = dg.linear %%h, %%v
    %%loss = dg.mse %%p, %%y
    dg.return %%loss
  }
}
"""
RENAME = ("--weights-rename", "trunk.*=features.*")


class WeightsTest(runs.JobTest):
    def setUp(self):
        super().setUp()
        for name, body, out in (("old", "trunk", 3), ("new", "features", 2)):
            with open(self.path(f"{name}.mlir"), "w") as file:
                file.write(MODEL % {"body": body, "out": out})
        self.parameters("old")
        self.trained = self.path("old-1", "step-000005", "model.safetensors")

    def dgc(self, model, *flags):
        return subprocess.run([runs.tool("dgc"), self.path(f"{model}.mlir"), "--batch", "8", *flags, "-o", self.path("job.dgx")],
                              capture_output=True, text=True, timeout=runs.DEADLINE_S)

    def parameters(self, model, *flags, lr="0.1", steps="5"):
        """The parameters after training so; all that dgc said."""
        self.count = getattr(self, "count", 0) + 1
        compiled = self.dgc(model, *flags)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        folder = self.path(f"{model}-{self.count}")
        self.run_job(self.path("job.dgx"), "--data", "x=randn:16x6", "--data", f"y=randn:16x{3 if model == 'old' else 2}", "--lr", lr,
                     "--steps", steps, "--checkpoint", folder)
        return checkpoint_files.read_tensors(f"{folder}/step-{int(steps):06}/model.safetensors")[0], compiled.stderr

    def test_an_exported_copy(self):
        # Parameters only, of the size that was told; read by dgc --weights it is as good as the checkpoint.
        compiled = self.dgc("old", "--optimizer", "adam:lr=0.1")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        job, folder, copy = self.path("adam.dgx"), self.path("adam"), self.path("copy.safetensors")
        os.rename(self.path("job.dgx"), job)
        self.run_job(job, "--data", "x=randn:16x6", "--data", "y=randn:16x3", "--steps", "5", "--checkpoint", folder)
        whole = checkpoint_files.read_tensors(f"{folder}/step-000005/model.safetensors")[0]
        told = self.run_job(job, "--resume", folder, "--export", copy).of("exported")[0]
        found = checkpoint_files.read_tensors(copy)[0]
        self.assertEqual(sorted(found), ["head.weight", "trunk.bias", "trunk.weight"])
        self.assertGreater(len(whole), 2 * len(found), "there is no state of an optimizer to leave out")
        self.assertEqual(found, {name: whole[name] for name in found})
        self.assertEqual(told["bytes"], os.path.getsize(copy))
        self.assertEqual(told["checkpoint_bytes"], os.path.getsize(f"{folder}/step-000005/model.safetensors"))
        loaded, _ = self.parameters("old", "--weights", copy, lr="0", steps="1")
        self.assertEqual(loaded, found)
        for flags, code in ((["--export", copy], 2), (["--export", job, "--resume", folder], 2), (["--export", copy, "--resume", folder, "--steps", "3"], 2),
                            (["--export", copy, "--resume", self.path("nowhere")], 65), (["--export", self.path("no", "copy"), "--resume", folder], 74),
                            (["--export", f"{folder}/step-000005/model.safetensors", "--resume", folder], 2)):
            self.assertEqual(len(self.run_job(job, *flags, code=code).err.splitlines()), 1, flags)
        self.assertEqual(checkpoint_files.read_tensors(copy)[0], found)

    def test_tensors_come_under_their_new_names(self):
        old = checkpoint_files.read_tensors(self.trained)[0]
        fresh, _ = self.parameters("new", lr="0", steps="1")
        for mesh in ((), ("--mesh", "data=2"), ("--mesh", "tensor=2")):
            with self.subTest(mesh=mesh):
                found, said = self.parameters("new", "--weights", self.trained, *RENAME, "--weights-skip", "head.*", *mesh, lr="0", steps="1")
                for part in ("weight", "bias"):
                    self.assertEqual(found[f"features.{part}"], old[f"trunk.{part}"])
                    self.assertNotEqual(found[f"features.{part}"], fresh[f"features.{part}"])
                self.assertEqual(found["head.weight"], fresh["head.weight"])
                self.assertIn(f"{self.trained}: 2 parameters loaded, 2 of them renamed (trunk.weight as features.weight, trunk.bias as "
                              "features.bias), 1 skipped (head.weight)\n", said)

    def test_what_the_file_lacks_is_said(self):
        # The folder of a checkpoint is as good as its file.
        found, said = self.parameters("new", "--weights", os.path.dirname(self.trained), "--weights-rename", "trunk.weight=features.weight",
                                      "--weights-skip", "head.*", lr="0", steps="1")
        fresh, _ = self.parameters("new", lr="0", steps="1")
        self.assertEqual(found["features.bias"], fresh["features.bias"])
        self.assertIn("1 that it lacks left at their initial values (features.bias), 1 of its tensors not used (trunk.bias)", said)

    def test_what_cannot_be_meant_is_refused(self):
        given = ["--weights", self.trained]
        for flags, code, texts in ((given + [*RENAME], 65, ["'head.weight'", "[3, 4]", "--weights-skip 'head.weight'"]),
                                   (given + ["--weights-skip", "head.*"], 65, ["features.weight", "trunk.weight", "--weights-rename"]),
                                   (given + ["--weights-skip", "tail.*"], 2, ["--weights-skip 'tail.*'", "no tensor"]),
                                   (given + ["--weights-rename", "body.*=features.*"], 2, ["'body.*=features.*'", "no tensor"]),
                                   (given + ["--weights-rename", "trunk.*"], 2, ["OLD=NEW"]),
                                   (["--weights-skip", "head.*"], 2, ["--weights-skip", "--weights FILE"]),
                                   ([*RENAME], 2, ["--weights-rename", "--weights FILE"])):
            with self.subTest(flags=flags):
                refused = self.dgc("new", *flags)
                self.assertEqual(refused.returncode, code, refused.stderr)
                for text in texts:
                    self.assertIn(text, refused.stderr)


if __name__ == "__main__":
    runs.main()
