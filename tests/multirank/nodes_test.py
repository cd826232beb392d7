# SPDX-License-Identifier: Apache-2.0
"""Proves that hosts joined by hand train as one host does, to the bit, and that what does not fit together is refused."""
import contextlib
import os

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--epochs", "3", "--seed", "7", "--threads", "1"]


class NodesTest(hosts.HostsTest):
    def test_same_losses_as_on_one_host(self):
        job = self.job(*PLAN)
        alone = self.run_job(job, *FLAGS)
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, job, *FLAGS)
            ends = [node.finish() for node in nodes]
        self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
        self.assertEqual(ends[0].lines("step", "epoch"), alone.lines("step", "epoch"))
        self.assertEqual(ends[1].out, "", "only rank 0 reports")

    def test_replicas_over_hosts(self):
        job = self.job("mlp", "--batch", "16", "--microbatches", "8", "--mesh", "pipe=2")
        alone = self.run_job(job, *FLAGS, "-n", "6")
        with contextlib.ExitStack() as stack:  # the ranks of the second replica lie on both hosts
            ends = [node.finish() for node in self.start_nodes(stack, job, *FLAGS, "-n", "3")]
        self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
        self.assertEqual(ends[0].lines("start", "step", "epoch"), alone.lines("start", "step", "epoch"))
        for shares, says in ((("2", "4"), "replicas need the same -n on all nodes"), (("1", "3"), "started with another job or other flags"),
                             (("1", "4"), "started with another job or other flags")):
            with self.subTest(shares), self.start_node(0, self.hosts[0].address, job, *FLAGS, "-n", shares[0]) as first:
                with self.start_node(1, first.wait_for_endpoint(), job, *FLAGS, "-n", shares[1]) as second:
                    for end in (first.finish(), second.finish()):
                        self.assertEqual(end.code, 2, end.err)
                        self.assertIn(says, end.err)

    def test_dry_run_says_how_hosts_talk(self):
        job = self.job(*PLAN)
        for flags, transport, why in ([], "tls", "joined by hand"), (["--secure"], "tls", "--secure"), (["--trust-fabric"], "tcp", "--trust-fabric"):
            with self.subTest(flags), contextlib.ExitStack() as stack:
                ends = [node.finish() for node in self.start_nodes(stack, job, *FLAGS, "--dry-run", *flags)]
                self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
                links = ends[0].of("link")
                self.assertEqual({link["transport"] for link in links}, {"shared memory", transport})
                for link in links:
                    if link["transport"] == transport:
                        self.assertIn(why, link["why"])
        with self.start_node(0, self.hosts[0].address, job, *FLAGS) as first:  # one trusts, the other does not
            with self.start_node(1, first.wait_for_endpoint(), job, *FLAGS, "--trust-fabric") as second:
                ends = [first.finish(), second.finish()]
        for end in ends:
            self.assertEqual(end.code, 2, end.err)
            self.assertIn("between hosts: trusted", end.err)

    def test_wrong_secret(self):
        job, other = self.job(*PLAN), self.path("other")
        with open(os.open(other, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("another secret altogether")
        with self.start_node(0, self.hosts[0].address, job, *FLAGS) as first:
            endpoint = first.wait_for_endpoint()
            with self.start_node(1, endpoint, job, *FLAGS, secret=other) as stranger:
                refused = stranger.finish()
            self.assertEqual(refused.code, 2, refused.err)
            self.assertEqual(["dgrun: " + failure["message"] for failure in refused.of("failure")], [refused.err.strip()])
            self.assertIn("does not know this secret", refused.err)
            with self.start_node(1, endpoint, job, *FLAGS) as second:  # the right one still comes in
                self.assertEqual(second.finish().code, 0, second.text(1))
            self.assertEqual(first.finish().code, 0, first.text(1))

    def test_other_flags(self):
        job = self.job(*PLAN)
        with self.start_node(0, self.hosts[0].address, job, *FLAGS) as first:
            flags = [*FLAGS[:-3], "8", *FLAGS[-2:]]
            with self.start_node(1, first.wait_for_endpoint(), job, *flags) as second:
                ends = [first.finish(), second.finish()]
        for end in ends:
            self.assertEqual(end.code, 2, end.err)
            self.assertIn("node 1 (host host1) was started with another job or other flags", end.err)
            self.assertIn("seed 8", end.err)

    def test_other_data(self):
        # Each would train on its own numbers, or meet the other where it does not come.
        job = self.job(*PLAN)
        others = {"--normalize": [*FLAGS, "--normalize", "x=0.5,0.25"], "--checkpoint": [*FLAGS, "--checkpoint", self.path("ckpt")],
                  "another source": ["--data", "x=randn:1000x10", "--data", "y=randint:2:1000", *FLAGS[4:]]}
        for name, flags in others.items():
            with self.subTest(name), self.start_node(0, self.hosts[0].address, job, *FLAGS) as first:
                with self.start_node(1, first.wait_for_endpoint(), job, *flags) as second:
                    ends = [first.finish(), second.finish()]
                for end in ends:
                    self.assertEqual(end.code, 2, end.err)
                    self.assertIn("node 1 (host host1) was started with another job or other flags", end.err)

    def test_nobody_comes(self):
        with self.start_node(0, self.hosts[0].address, self.job(*PLAN), *FLAGS, "--rdzv-timeout", "1") as first:
            end = first.finish()
        self.assertEqual(end.code, 69, end.err)
        self.assertIn("node 1 did not come to the rendezvous", end.err)
        self.assertEqual(len(end.of("failure")), 1)
        with self.start_node(1, self.hosts[0].address + ":9", self.job(*PLAN), *FLAGS, "--rdzv-timeout", "1") as second:
            end = second.finish()
        self.assertEqual(end.code, 69, end.err)
        self.assertIn("nobody answers at the rendezvous", end.err)

    def test_checkpoints_that_are_not_shared(self):
        # The same path on both hosts, but each has its own disk there.
        folder = self.path("saved")
        os.mkdir(folder)
        self.hosts[1].run("mount", "-t", "tmpfs", "dg-test", folder)
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, "--checkpoint", folder)
            ends = [node.finish() for node in nodes]
        for end in ends:
            self.assertEqual(end.code, 2, end.err)
            self.assertIn(f"--checkpoint {folder}: host host1 does not see what rank 0 writes there", end.err)
            self.assertEqual(len(end.of("failure")), 1)
        self.assertEqual(ends[0].of("step"), [])
        self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    hosts.enter()
    runs.main()
