# SPDX-License-Identifier: Apache-2.0
"""Proves that what is allowed, but is probably not what the user means, is noted: flags that change nothing, schedules that
outlast the run, rates that a checkpoint decides, tokens that are their own targets; and that no note comes where all is well."""
import os
import struct
import subprocess
import tempfile
import unittest

BIN = os.environ["DG_BIN"]
MLP = ["mlp:8-8-8", "--batch", "8", "--optimizer", "sgd:lr=0.1"]
DATA = ["--data", "x=randn:80x8", "--data", "y=randint:8:80"]


class Notes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.held.cleanup)
        cls.folder = cls.held.name
        cls.run_in("dgc", *MLP, "-o", "mlp.dgx")
        cls.run_in("dgc", "gpt:layers=1,hidden=16,heads=2,seq=8,vocab=16", "--batch", "4", "-o", "gpt.dgx")
        with open(os.path.join(cls.folder, "t.u16"), "wb") as file:
            file.write(struct.pack("<161H", *(index % 16 for index in range(161))))

    @classmethod
    def run_in(cls, tool, *arguments):
        done = subprocess.run([os.path.join(BIN, tool), *arguments], cwd=cls.folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done

    def check(self, noted, *command):
        """Notes are what the words are in; none where there are no words."""
        said = self.run_in(*command).stderr
        if noted:
            self.assertIn(noted, said)
        else:
            self.assertNotIn("note:", said)

    def test_flags_of_dgc_that_change_nothing(self):
        for noted, flags in {"": [],
                             "--schedule gpipe changes nothing: the plan has one stage": ["--schedule", "gpipe"],
                             "--zero 2 changes nothing: there is one data rank": ["--zero", "2"],
                             "--reduce-precision f32 changes nothing": ["--reduce-precision", "f32"],
                             "--save-phases changes nothing: no job is written": ["--emit", "plan", "--save-phases"]}.items():
            with self.subTest(flags):
                self.check(noted, "dgc", *MLP, *([] if "--emit" in flags else ["-o", "job.dgx"]), *flags)
        self.check("the learning rate of 'sgd:lr=0' is 0", "dgc", *MLP[:3], "--optimizer", "sgd:lr=0", "-o", "job.dgx")

    def test_schedules_that_outlast_the_run(self):
        for noted, flags in {"": ["--steps", "10", "--lr-schedule", "warmup:steps=5+constant"],
                             "--lr-schedule warmup:steps=500 lasts 500 steps, but this training ends with step 10":
                                 ["--steps", "10", "--lr-schedule", "warmup:steps=500"],
                             "lasts 5000 steps, but this training ends with step 20": ["--epochs", "2", "--lr-schedule", "cosine:steps=5000"],
                             "comes to its last part after step 50": ["--steps", "10", "--lr-schedule", "warmup:steps=50+cosine:steps=10"],
                             "--lr 0: no parameter is changed": ["--lr", "0"],
                             "--threads 999: this host has": ["--threads", "999"]}.items():
            with self.subTest(flags):
                self.check(noted, "dgrun", "mlp.dgx", *DATA, *flags)

    def test_what_a_checkpoint_decides(self):
        self.check("", "dgrun", "mlp.dgx", *DATA, "--checkpoint", "saved", "--lr", "0.5")
        again = ["--resume", "saved", "--epochs", "2"]
        self.check("the learning rate 0.5 is the checkpoint's; the job's own is 0.1, which --lr 0.1 takes", "dgrun", "mlp.dgx", *DATA, *again)
        self.check("", "dgrun", "mlp.dgx", *DATA, *again, "--lr", "0.1")
        self.check("had 80 samples until this checkpoint, and goes on with 160", "dgrun", "mlp.dgx", "--data", "x=randn:160x8",
                   "--data", "y=randint:8:160", *again, "--lr", "0.1")

    def test_tokens_that_are_their_own_targets(self):
        for x, y, noted in (("t.u16", "t.u16:+1", ""),
                            ("t.u16", "t.u16", "'x' and 'y' are the same tokens of t.u16; where a model predicts the tokens that follow, its targets are y=t.u16:+1"),
                            ("t.u16:+1", "t.u16:+1", "'x' and 'y' are the same tokens"),
                            ("t.u16:+1", "t.u16", "'x' are the tokens that follow those of 'y'")):
            with self.subTest(x=x, y=y):
                self.check(noted, "dgrun", "gpt.dgx", "--data", "x=" + x, "--data", "y=" + y, "--steps", "1")

    def test_epochs_of_a_run(self):
        for flags, words in (["--steps", "3"], "3 steps (less than an epoch)"), (["--steps", "10"], "10 steps (1 epoch)"), (["--epochs", "2"], "20 steps (2 epochs)"):
            self.assertIn("done after " + words, self.run_in("dgrun", "mlp.dgx", *DATA, *flags).stdout)


if __name__ == "__main__":
    unittest.main()
