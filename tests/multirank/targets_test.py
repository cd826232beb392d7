# SPDX-License-Identifier: Apache-2.0
"""Proves that a package for several processors runs the best one that all ranks can, with the bits of a package for that one
alone, and that a processor that is missing is named."""
import unittest

import hosts
import runs

PLAN = ("lenet", "--batch", "64", "--mesh", "data=2", "--target")
FLAGS = [*runs.IMAGE_DATA, "--epochs", "2", "--seed", "7"]
OLD, NEW = "x86-64-v3", "x86-64-v4"


def host_has(flag):
    with open("/proc/cpuinfo") as file:
        return flag in next(line for line in file if line.startswith("flags")).split()


class TargetsTest(hosts.HostsTest):
    def both_nodes(self, *flags_of_nodes):
        job = self.job(*PLAN, f"{OLD},{NEW}")
        with self.start_node(0, self.hosts[0].address, job, *FLAGS, *flags_of_nodes[0]) as first:
            with self.start_node(1, first.wait_for_endpoint(), job, *FLAGS, *flags_of_nodes[1]) as second:
                return first.finish(), second.finish()

    def test_best_of_the_host_with_its_own_grid(self):
        several = self.job(*PLAN, f"{OLD},{NEW}")
        best = NEW if host_has("avx512vl") else OLD
        for flags, target in ([], best), (["--target", OLD], OLD):
            run = self.run_job(several, *FLAGS, *flags)
            self.assertEqual(run.of("start")[0]["target"], target)
            alone = self.run_job(self.job(*PLAN, target), *FLAGS)
            self.assertEqual(run.lines("step", "epoch"), alone.lines("step", "epoch"), target)

    @unittest.skipUnless(host_has("avx512vl"), "needs a processor with AVX-512")
    def test_ranks_agree_on_what_all_can_run(self):
        ends = self.both_nodes([], ["--target", OLD])
        self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
        self.assertEqual(ends[0].of("start")[0]["target"], OLD)
        alone = self.run_job(self.job(*PLAN, OLD), *FLAGS)
        self.assertEqual(ends[0].lines("step", "epoch"), alone.lines("step", "epoch"))

    @unittest.skipUnless(host_has("avx512vl"), "needs a processor with AVX-512")
    def test_nothing_in_common(self):
        ends = self.both_nodes(["--target", NEW], ["--target", OLD])
        self.assertEqual([end.code for end in ends], [65, 65], ends[0].err + ends[1].err)
        self.assertIn("there is no target that every rank can run", ends[0].err)
        self.assertIn(f"rank 0 runs {NEW}, rank 1 only {OLD};", ends[0].err)

    @unittest.skipIf(host_has("amx_tile"), "needs a processor without AMX")
    def test_a_feature_that_the_host_lacks(self):
        run = self.run_job(self.job(*PLAN, "sapphirerapids"), *FLAGS, code=65)
        self.assertIn("compiled for sapphirerapids (this host lacks", run.err)
        self.assertIn("amx-tile, amx-bf16", run.err)
        self.assertEqual(run.err.count("this host lacks"), 1, "one message, before there are ranks")

    def test_a_target_that_the_package_lacks(self):
        run = self.run_job(self.job(*PLAN, f"{OLD},{NEW}"), *FLAGS, "--target", "znver3", code=2)
        self.assertIn(f"was compiled for {OLD}, {NEW}", run.err)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
