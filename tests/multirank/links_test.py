# SPDX-License-Identifier: Apache-2.0
"""Proves that faults of the network are named as such within the time-out, on both sides, and never give other numbers: a dead link, one that
loses what goes in one direction or what ranks send, bytes that change on the way, a name service that does not answer."""
import contextlib
import os
import subprocess
import sys
import time

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]
MIDDLE = os.path.join(runs.SOURCE, "tests", "security", "middle.py")
EXIT_LOST, TIMEOUT_S = 69, 6
NODE_1, NODE_0 = r"node 1 \(host host1, ranks 2 to 3\)", r"the coordinator \(node 0, [\d.:]+\)"


class LinksTest(hosts.HostsTest):
    def start_endless(self, stack, *flags):
        nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, *runs.ENDLESS, "--timeout", str(TIMEOUT_S), *flags)
        nodes[0].wait_for_steps(20)
        return nodes

    def finish(self, nodes, since):
        """Both ends, in time, with the numbers of one host."""
        ends = [node.finish() for node in nodes]
        seconds = time.monotonic() - since
        print(f"{seconds:.1f} s\n{ends[0].err.strip()}\n{ends[1].err.strip()}", flush=True)
        self.assertEqual([end.code for end in ends], [EXIT_LOST, EXIT_LOST])
        self.assertEqual([len(end.of("failure")) for end in ends], [1, 1])
        self.assertLess(seconds, 3 * TIMEOUT_S)
        self.check_losses(ends[0], self.job(*PLAN), *FLAGS)
        return ends

    def test_dead_link(self):
        for flags in [], ["--trust-fabric"]:
            with self.subTest(flags), contextlib.ExitStack() as stack:
                nodes = self.start_endless(stack, *flags)
                self.hosts[1].set_link(False)
                ends = self.finish(nodes, time.monotonic())
                self.hosts[1].set_link(True)
            for end, other in zip(ends, (NODE_1, NODE_0)):  # a line before the limit strikes
                self.assertRegex(end.err, rf"{other} has been silent for \d s; the run ends after {TIMEOUT_S} s of silence \(--timeout\)")
                self.assertRegex(end.of("failure")[0]["message"], rf"^{other} has been silent for {TIMEOUT_S} s: the link to it is down")
                self.assertTrue(end.of("silence"))

    def test_one_way(self):
        for deaf in range(2):
            with self.subTest(deaf=deaf), contextlib.ExitStack() as stack:
                nodes = self.start_endless(stack)
                self.hosts[deaf].run("nft", "add table inet deaf; add chain inet deaf input { type filter hook input priority 0; }; "
                                            "add rule inet deaf input iif net0 drop")
                ends = self.finish(nodes, time.monotonic())
                self.hosts[deaf].run("nft", "delete table inet deaf")
            for end, other in zip(ends, (NODE_1, NODE_0)):
                self.assertRegex(end.of("failure")[0]["message"], rf"^({NODE_1}|{other}) has been silent for {TIMEOUT_S} s: the link to it is down")

    def test_what_ranks_send_is_lost(self):
        # The launchers still hear each other.
        for flags in [], ["--trust-fabric"]:
            with self.subTest(flags), contextlib.ExitStack() as stack:
                nodes = self.start_endless(stack, *flags)
                port = nodes[0].wait_for_endpoint().rsplit(":", 1)[1]
                self.hosts[0].run("nft", "add table inet wall; add chain inet wall input { type filter hook input priority 0; }; "
                                         f"add rule inet wall input tcp dport {port} accept; add rule inet wall input iif net0 drop")
                ends = self.finish(nodes, time.monotonic())
                self.hosts[0].run("nft", "delete table inet wall")
            for end in ends:
                self.assertRegex(end.of("failure")[0]["message"],
                                 r"^the link between host host\d and host host\d loses what is sent: rank \d \(.*\) and rank \d \(.*\) both run")
            self.assertRegex(ends[0].err, r"rank \d \(.*\) has waited \d s while training, step \d+, .*waiting for rank \d; a wait in which "
                                          rf"nothing moves ends the run after {TIMEOUT_S} s \(--timeout\)")
            self.assertTrue(ends[0].of("waiting"))

    def test_changed_on_the_way(self):
        with contextlib.ExitStack() as stack:
            middle = stack.enter_context(subprocess.Popen(self.hosts[1].inside(sys.executable, MIDDLE, "line"), stdin=subprocess.PIPE,
                                                          stdout=subprocess.PIPE, text=True))
            port = int(middle.stdout.readline())
            flags = [*FLAGS, *runs.ENDLESS]
            first = stack.enter_context(self.start_node(0, self.hosts[0].address, self.job(*PLAN), *flags))
            endpoint = first.wait_for_endpoint()
            self.hosts[1].run("nft", "add table ip middle; add chain ip middle output { type nat hook output priority -100; }; "
                                     f"add rule ip middle output ip daddr {self.hosts[0].address} tcp dport {endpoint.rsplit(':', 1)[1]} "
                                     f"meta mark != 7 redirect to :{port}")
            second = stack.enter_context(self.start_node(1, endpoint, self.job(*PLAN), *flags))
            first.wait_for_steps(20)
            middle.stdin.write("now\n")
            middle.stdin.flush()
            self.assertEqual(middle.stdout.readline(), "acted: line\n")
            ends = self.finish([first, second], time.monotonic())
            self.hosts[1].run("nft", "delete table ip middle")
        for end in ends:
            self.assertRegex(end.of("failure")[0]["message"], rf"^{NODE_1} cannot be understood: what it sent was changed on the way")

    def test_no_name_service(self):
        self.hosts[1].run("sh", "-c", "echo 'nameserver 10.77.0.77\noptions timeout:1 attempts:1' > /dev/shm/resolv && mount --bind /dev/shm/resolv /etc/resolv.conf")
        with self.start_node(1, "node0.example.org:29400", self.job(*PLAN), *FLAGS, "--rdzv-timeout", "4") as second:
            end = second.finish()
        print(f"{end.seconds:.1f} s: {end.err.strip()}", flush=True)
        self.assertEqual(end.code, EXIT_LOST, end.err)
        self.assertLess(end.seconds, 20)
        self.assertIn("--rdzv-endpoint 'node0.example.org:29400': the host 'node0.example.org' cannot be found", end.err)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
