# SPDX-License-Identifier: Apache-2.0
"""Proves that a job does not end while bytes flow, however long one all-reduce takes: a network of 20 million parameters over a link of
10 Mbit/s, whose gradients need more than a minute where --timeout gives 10 s."""
import contextlib
import time

import hosts
import runs

PLAN = ("mlp:784-4096-4096-10", "--batch", "8", "--mesh", "data=2")
FLAGS = ["--data", "x=randn:16x784", "--data", "y=randint:10:16", "--seed", "7", "--threads", "1", "--steps", "2"]
TIMEOUT_S = 10


class SlowLinkTest(hosts.HostsTest):
    def train_slowly(self, *flags):
        job = self.job(*PLAN)
        undisturbed = self.run_job(job, *FLAGS).loss_texts()
        for host in self.hosts:
            host.limit_rate("10mbit")
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, job, *FLAGS, "--timeout", str(TIMEOUT_S), *flags)
            nodes[0].wait_for_event("start")
            began = time.monotonic()
            ends = [node.process.wait(600) for node in nodes]
            seconds, texts = time.monotonic() - began, [node.text(1) for node in nodes]
            losses = runs.Finished(0, nodes[0].text(0), "", 0).loss_texts()
        print(f"{flags}: {seconds:.0f} s for {len(losses)} steps", flush=True)
        self.assertEqual(ends, [0, 0], "".join(texts))
        self.assertEqual(losses, undisturbed)
        self.assertGreater(seconds, 2 * TIMEOUT_S * len(losses), "the link was not slow")

    def test_authenticated(self):
        self.train_slowly()

    def test_in_the_clear(self):
        self.train_slowly("--trust-fabric")


if __name__ == "__main__":
    hosts.enter()
    runs.main()
