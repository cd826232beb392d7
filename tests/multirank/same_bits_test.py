# SPDX-License-Identifier: Apache-2.0
"""Proves that the same plan and seed give the same bits twice, and with one or two threads in each rank."""
import runs

PLANS = {
    "mlp on data=4": ("mlp", ["--batch", "10", "--mesh", "data=4"], runs.MLP_DATA),
    "mlp on data=2,pipe=2": ("mlp", ["--batch", "16", "--mesh", "data=2,pipe=2"], runs.MLP_DATA),
    "lenet on data=2": ("lenet", ["--batch", "64", "--mesh", "data=2"], runs.IMAGE_DATA),
    "wide_mlp on tensor=2": ("wide_mlp", ["--batch", "64", "--mesh", "tensor=2"], runs.FLAT_DATA),
    "GPT on tensor=2,pipe=2": (runs.SMALL_GPT, ["--batch", "8", "--mesh", "tensor=2,pipe=2"], runs.TOKEN_DATA),
}


class SameBitsTest(runs.JobTest):
    def test_losses_and_checkpoints(self):
        for name, (model, flags, data) in PLANS.items():
            with self.subTest(name):
                job = self.job(model, *flags)
                reference = None
                for label, threads in (("first", "1"), ("second", "1"), ("two threads", "2")):
                    folder = f"{name} {label}".replace(" ", "-")
                    run = self.run_job(job, *data, "--epochs", "2", "--seed", "7", "--threads", threads,
                                       "--checkpoint", self.path(folder), "--checkpoint-every", "1epochs")
                    seen = (run.loss_texts(), run.lines("start", "step", "epoch"), self.checkpoint_files(folder))
                    self.assertEqual(run.of("start")[0]["threads"], int(threads))
                    self.assertEqual(len(seen[2]), 4, "two checkpoints of two files")
                    if reference is None:
                        reference = seen
                    self.assertEqual(seen[0], reference[0], f"{label}: losses differ")
                    self.assertEqual(seen[1], reference[1], f"{label}: events differ")
                    self.assertTrue(seen[2] == reference[2], f"{label}: checkpoints differ")

    def test_another_seed_gives_other_bits(self):
        job = self.job("mlp", "--batch", "10", "--mesh", "data=4")
        losses = [self.run_job(job, *runs.MLP_DATA, "--steps", "5", "--seed", seed).loss_texts() for seed in "12"]
        self.assertNotEqual(losses[0], losses[1])


if __name__ == "__main__":
    runs.main()
