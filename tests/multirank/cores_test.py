# SPDX-License-Identifier: Apache-2.0
"""Proves that ranks which share the cores of a host evenly are dealt out over them and stay there, and that others may use all."""
import os

import runs


class CoresTest(runs.JobTest):
    def cores_of_ranks(self, ranks, *flags):
        job = self.job("mlp", "--batch", str(16 * ranks), "--mesh", f"data={ranks}")
        with self.start(job, *runs.MLP_DATA, *runs.ENDLESS, *flags) as run:
            run.wait_for_steps(1)
            return [os.sched_getaffinity(pid) for _, pid in sorted(run.ranks().items())]

    def test_two_ranks_to_a_core(self):
        cores = sorted(os.sched_getaffinity(0))
        self.assertEqual(self.cores_of_ranks(2 * len(cores)), [{core} for core in cores * 2])

    def test_a_core_for_each_or_several_threads(self):
        cores = os.sched_getaffinity(0)
        self.assertEqual(self.cores_of_ranks(max(2, len(cores))), [cores] * max(2, len(cores)))
        self.assertEqual(self.cores_of_ranks(2 * len(cores), "--threads", "2"), [cores] * 2 * len(cores))


if __name__ == "__main__":
    runs.main()
