# SPDX-License-Identifier: Apache-2.0
"""Proves of `dgc --zero 1|2|3` on real processes: the losses of one rank, checkpoints that any other plan resumes, and memory of a rank
that falls as what is cut says."""
import json
import os
import subprocess

import runs

ONE_RANK = ("wide_mlp", "--batch", "64")
# Twelve bytes a parameter: its value and two of Adam's, of which ZeRO cuts the last two, from 3 on all.
KEPT_OF_TWO_RANKS = {0: 12, 1: 8, 2: 8, 3: 6}
STEPS = 8


def zero_plan(zero, mesh="data=2", microbatches=2):
    return (*ONE_RANK, "--mesh", mesh, "--microbatches", str(microbatches), "--zero", str(zero))


class ZeroTest(runs.JobTest):
    def train(self, plan, steps, *flags):
        return self.run_job(self.job(*plan), *runs.FLAT_DATA, "--seed", "3", "--threads", "1", "--steps", str(steps), *flags)

    def check_losses(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for step, loss in expected.items():
            self.assertLess(abs(float(found[step]) / float(loss) - 1), 1e-5, f"step {step}: {found[step]}, one rank {loss}")

    def test_losses_of_one_rank(self):
        expected = self.train(ONE_RANK, STEPS).loss_texts()
        for zero in (1, 2, 3):
            for mesh, microbatches in (("data=2", 1), ("data=2", 2), ("data=2,pipe=2", 2)):
                with self.subTest(zero=zero, mesh=mesh, microbatches=microbatches):
                    self.check_losses(self.train(zero_plan(zero, mesh, microbatches), STEPS).loss_texts(), expected)

    def test_checkpoints_fit_any_plan(self):
        expected = self.train(ONE_RANK, STEPS).loss_texts()
        for first, second in ((zero_plan(3), ONE_RANK), (ONE_RANK, zero_plan(3)), (zero_plan(1), zero_plan(2, "data=2,pipe=2"))):
            with self.subTest(first=first, second=second):
                folder = self.path(f"kept-{len(os.listdir(self.folder))}")
                losses = self.train(first, STEPS // 2, "--checkpoint", folder).loss_texts()
                losses |= self.train(second, STEPS, "--checkpoint", folder, "--resume").loss_texts()
                self.check_losses(losses, expected)

    def test_memory_falls(self):
        arenas = {}
        for zero, bytes_of_parameter in KEPT_OF_TWO_RANKS.items():
            command = [runs.tool("dgc"), os.path.join(runs.EXAMPLES, "wide_mlp.mlir"), *zero_plan(zero)[1:], "--emit", "plan"]
            plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            kept = plan["memory"][0]["persistent_bytes"] / plan["model"]["parameters"]
            self.assertAlmostEqual(kept, bytes_of_parameter, delta=0.05, msg=f"bytes kept of a parameter with --zero {zero}")
            arenas[zero] = plan["memory"][0]["arena_bytes"]
        # Gradients that are cut shorten the sums over micro-batches.
        self.assertTrue(arenas[0] > arenas[1] > arenas[2] > arenas[3], arenas)


if __name__ == "__main__":
    runs.main()
