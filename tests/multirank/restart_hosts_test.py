# SPDX-License-Identifier: Apache-2.0
"""Proves that ranks of two hosts start anew when some of them are killed, over TLS and in the clear, with the bits of one host; and so do
those that mpirun has started."""
import contextlib
import os
import shutil
import signal
import time
import unittest

import hosts
import launchers_test
import restart_test
import runs

PLAN, FLAGS, RESTARTS = restart_test.PLAN, restart_test.FLAGS, restart_test.RESTARTS


class RestartHostsTest(hosts.HostsTest, restart_test.Restarting):
    def kill(self, nodes, generator):
        before = nodes[0].text(0).count('"event":"restart"')
        for victim in generator.sample(range(4), generator.choice([1, 1, 2])):
            with contextlib.suppress(AssertionError):
                runs.signal_process(nodes[victim // 2].pid_of_rank(victim), signal.SIGKILL)
        nodes[0].wait_for(lambda: nodes[0].text(0).count('"event":"restart"') > before, "a restart")

    def test_killed_ranks(self):
        generator, job = runs.seeded_random(), self.job(*PLAN)
        for fabric in [], ["--trust-fabric"]:
            with self.subTest(fabric=fabric), contextlib.ExitStack() as stack:
                nodes = self.start_nodes(stack, job, *FLAGS, *RESTARTS, *fabric, *runs.ENDLESS)
                nodes[0].wait_for_event("snapshot")
                for _ in range(4):
                    time.sleep(generator.random())  # the random moment
                    self.kill(nodes, generator)
                nodes[0].wait_for_steps(2 * restart_test.SNAPSHOT_STEPS)
                os.kill(nodes[1].launcher(), signal.SIGTERM)
                ends = [node.finish() for node in nodes]
                self.assertEqual([node.processes() for node in nodes], [[], []])
                self.assertEqual([end.code for end in ends], [143, 143], ends[0].err + ends[1].err)
                self.check_events(ends[0])
                self.check_losses(ends[0], job, *FLAGS)
                self.assertEqual(len(ends[0].of("restart")), 4)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_mpirun(self):
        generator, job = runs.seeded_random(), self.job(*PLAN)
        with self.start(job, *FLAGS, *RESTARTS, *runs.ENDLESS, prefix=[*launchers_test.MPIRUN, "4"]) as run:
            run.wait_for_event("snapshot")
            for number in range(3):
                run.wait_for_steps(5)
                runs.signal_process(run.pid_of_rank(generator.randrange(4)), signal.SIGKILL)
                run.wait_for(lambda: run.text(0).count('"event":"restart"') > number, "a restart")
            run.wait_for_steps(5)
            os.kill(run.pid_of_rank(0), signal.SIGTERM)
            finished = run.finish()
            self.assertEqual(run.processes(), [])
        self.check_events(finished)
        self.check_losses(finished, job, *FLAGS)
        self.assertEqual(len(finished.of("restart")), 3)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
