# SPDX-License-Identifier: Apache-2.0
"""Proves that of two hosts the killed rank or launcher is named and nobody else, at random moments of a training, over fast and slow links,
through TLS and UCX. DG_TEST_KILLS: how many."""
import contextlib
import os
import re
import signal
import time

import hosts
import runs

# Large enough that messages are cut in the middle.
PLAN = ("mlp:784-256-256-10", "--batch", "64", "--mesh", "data=4")
FLAGS = [*runs.FLAT_DATA, "--seed", "7", "--threads", "1", *runs.ENDLESS]
EXIT_LOST = 69


class KillStormTest(hosts.HostsTest):
    def test_the_killed_is_named(self):
        generator, job = runs.seeded_random(), self.job(*PLAN)
        number, misnamed = int(os.environ.get("DG_TEST_KILLS", "24")), []
        for rate in "1000mbit", "20mbit":
            for host in self.hosts:
                host.limit_rate(rate)
            for kill in range(number // 2):
                fabric = ["--trust-fabric"] if kill % 2 else []
                victim = generator.choice(["rank 0", "rank 1", "rank 2", "rank 3", "rank 2", "rank 3", "launcher 1"])
                with contextlib.ExitStack() as stack:
                    nodes = self.start_nodes(stack, job, *FLAGS, *fabric)
                    nodes[0].wait_for_steps(1)
                    time.sleep(0.4 * generator.random())  # the random moment
                    kind, which = victim.split()
                    node = int(which) if kind == "launcher" else int(which) // 2
                    os.kill(nodes[node].launcher() if kind == "launcher" else nodes[node].pid_of_rank(int(which)), signal.SIGKILL)
                    ends = [run.finish() for run in nodes]
                expected = rf"{victim} \(host host{node}, pid \d+\) was killed by signal 9" if kind == "rank" else r"node 1 \(host host1, .*\) is gone"
                for run, end in enumerate(ends):
                    if kind == "launcher" and run == node:
                        continue
                    told = [failure["message"] for failure in end.of("failure")]
                    if end.code != EXIT_LOST or len(told) != 1 or not re.match(expected, told[0]):
                        misnamed.append((rate, fabric, victim, run, end.code, told or end.err))
                        print("MISNAMED", misnamed[-1], flush=True)
            for host in self.hosts:
                host.run("tc", "qdisc", "delete", "dev", "net0", "root")
        print(f"{number} kills, {len(misnamed)} misnamed causes", flush=True)
        self.assertEqual(misnamed, [])


if __name__ == "__main__":
    hosts.enter()
    runs.main()
