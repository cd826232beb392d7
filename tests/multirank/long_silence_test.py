# SPDX-License-Identifier: Apache-2.0
"""Proves that a link between two hosts may be down for 14 s, and that both sides end with the reason when it stays down."""
import contextlib
import time

import hosts
import node_faults_test
import runs


class LongSilenceTest(hosts.HostsTest):
    start_endless = node_faults_test.NodeFaultsTest.start_endless
    stop_and_check = node_faults_test.NodeFaultsTest.stop_and_check

    def test_survived(self):
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack)
            self.hosts[1].set_link(False)
            time.sleep(14)  # the silence is what is tested
            self.hosts[1].set_link(True)
            nodes[0].wait_for_steps(50)
            self.stop_and_check(nodes)

    def test_given_up(self):
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack)
            self.hosts[1].set_link(False)
            cut = time.monotonic()
            ends = [node.finish() for node in nodes]
            seconds = time.monotonic() - cut
            left = [node.processes() for node in nodes]
        print(f"{seconds:.1f} s: {ends[0].err.strip()}\n{ends[1].err.strip()}", flush=True)
        self.assertEqual(left, [[], []])
        self.assertEqual([end.code for end in ends], [69, 69])
        self.assertGreater(seconds, 28)
        self.assertLess(seconds, 40)
        self.assertIn("dgrun: node 1 (host host1, ranks 2 to 3) has been silent for 30 s", ends[0].err)
        for rank in 2, 3:
            self.assertRegex(ends[0].err, rf"\n  rank {rank} \(host host1, pid \d+\): last heard of while ")
        self.assertRegex(ends[1].err, r"dgrun: the coordinator \(node 0, [\d.:]+\) has been silent for 30 s")


if __name__ == "__main__":
    hosts.enter()
    runs.main()
