# SPDX-License-Identifier: Apache-2.0
"""Proves that a clock which jumps by days changes nothing of a run over two hosts, and that a PMIx server which does not answer ends one in
time. ODD_HOST: the library that makes such hosts."""
import contextlib
import os
import shutil

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]
EXIT_LOST = 69


class OddHostTest(hosts.HostsTest):
    def test_clock_that_jumps(self):
        job, library = self.job(*PLAN), {"LD_PRELOAD": os.environ["ODD_HOST"], "DG_TEST_CLOCK": "1"}
        flags = ["--steps", "2000", "--timeout", "6", "--checkpoint-every", "100steps"]
        alone = self.run_job(job, *FLAGS, *flags, "--checkpoint", self.path("alone"))
        with contextlib.ExitStack() as stack:
            nodes = []
            for node in range(2):
                endpoint = nodes[0].wait_for_endpoint() if node else self.hosts[0].address
                nodes.append(stack.enter_context(self.start(
                    job, *FLAGS, *flags, "--checkpoint", self.path("odd"), "--nnodes", "2", "--node-rank", str(node), "--rdzv-endpoint",
                    endpoint, prefix=[*self.hosts[node].inside(), "env", *(f"{k}={v}" for k, v in library.items())],
                    environment={"DG_SECRET_FILE": self.secret})))
            ends = [node.finish() for node in nodes]
        self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
        self.assertEqual(ends[0].lines("step", "epoch"), alone.lines("step", "epoch"))
        self.assertEqual(sorted(os.listdir(self.path("odd"))), sorted(os.listdir(self.path("alone"))))
        times = [event["time"] for event in ends[0].events]
        self.assertGreater(max(times) - min(times), 86400 / 2, "the clock has jumped")

    def test_silent_process_manager(self):
        odd = ["env", "LD_PRELOAD=" + os.environ["ODD_HOST"]]
        alone = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "nobody", "OMPI_COMM_WORLD_SIZE": "4"}
        with self.start(self.job(*PLAN), *FLAGS, "--rdzv-timeout", "2", prefix=[*odd, "DG_TEST_PMIX=PMIx_Init"], environment=alone) as run:
            end = run.finish()
        self.assertEqual(end.code, EXIT_LOST, end.err)
        self.assertIn("the PMIx server of mpirun does not answer: is the daemon on this host alive?", end.err)
        self.assertLess(end.seconds, 30)
        if not shutil.which("mpirun"):
            self.skipTest("there is no mpirun")
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", *odd, "DG_TEST_PMIX=PMIx_Fence"]
        with self.start(self.job(*PLAN), *FLAGS, "--rdzv-timeout", "2", prefix=mpirun) as run:
            end = run.finish()
        self.assertEqual(end.code, EXIT_LOST, end.err)
        self.assertIn("PMIx could not bring all processes together", end.err)
        self.assertLess(end.seconds, 60)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
