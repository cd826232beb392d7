# SPDX-License-Identifier: Apache-2.0
"""Proves what SIGTERM does before there is a step, and that SIGUSR1 saves and goes on and SIGUSR2 saves and ends, with one rank and over
two hosts."""
import contextlib
import os
import signal

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]


class SignalsTest(hosts.HostsTest):
    def saved_job(self):
        """A folder with a checkpoint, and the flags that continue from it."""
        folder = self.path("kept")
        self.run_job(self.job(*PLAN), *FLAGS, "--steps", "10", "--checkpoint", folder)
        return ["--checkpoint", folder, "--resume"]

    def test_asked_at_the_rendezvous(self):
        for flags, code, said in ([], 143, "nothing was begun"), (self.saved_job(), 75, "the same command continues"):
            with self.subTest(code=code):
                with self.start_node(0, self.hosts[0].address, self.job(*PLAN), *FLAGS, *runs.ENDLESS, *flags) as first:
                    first.wait_for_endpoint()
                    os.kill(first.launcher(), signal.SIGTERM)
                    end = first.finish()
                self.assertEqual(end.code, code, end.err)
                self.assertEqual(end.err.count(f"dgrun: SIGTERM came before the first step; "), 1, end.err)
                self.assertIn(said, end.err)
                self.assertEqual(len(end.of("failure")), code == 143)
                with self.start_node(1, self.hosts[0].address + ":9", self.job(*PLAN), *FLAGS, *flags) as second:
                    second.wait_for(lambda: self.is_held(second), "a launcher that waits")
                    os.kill(second.launcher(), signal.SIGTERM)
                    end = second.finish()
                self.assertEqual(end.code, code, end.err)
                self.assertIn(said, end.err)

    @staticmethod
    def is_held(run):
        """Whether the launcher keeps SIGTERM for later."""
        try:
            with open(f"/proc/{run.launcher()}/status") as file:
                blocked = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk:"))
        except (AssertionError, StopIteration, FileNotFoundError):
            return False
        return bool(blocked & 1 << (signal.SIGTERM - 1))

    def test_asked_before_the_first_step(self):
        # One that is suspended does not come to where ranks meet.
        for flags, code in ([], 143), (self.saved_job(), 75):
            with self.subTest(code=code), self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS, *flags) as run:
                run.wait_for_ranks(4)
                os.kill(run.ranks()[3], signal.SIGSTOP)
                if '"event":"start"' in run.text(0):
                    self.skipTest("all ranks had met already")
                os.kill(run.launcher(), signal.SIGTERM)
                end = run.finish()
                self.assertEqual(end.code, code, end.err)
                self.assertLess(end.seconds, 20)
                self.assertEqual(end.err.count("dgrun: SIGTERM came before the first step; "), 1, end.err)

    def check_save_and_end(self, nodes, whole_flags, folder):
        """SIGUSR1 to the last node, and later SIGUSR2: two checkpoints, of which the training goes on to the same bits."""
        nodes[0].wait_for_steps(20)
        os.kill(nodes[-1].launcher(), signal.SIGUSR1)
        nodes[0].wait_for_event("checkpoint")
        nodes[0].wait_for_steps(20)
        os.kill(nodes[-1].launcher(), signal.SIGUSR2)
        ends = [node.finish() for node in nodes]
        self.assertEqual({end.code for end in ends}, {75}, ends[0].err)
        saved = [event["step"] for event in ends[0].of("checkpoint")]
        self.assertEqual(len(saved), 2, saved)
        self.assertEqual(saved[1], ends[0].of("end")[0]["steps"])
        self.assertLess(saved[0], saved[1])
        last = saved[1] + 20
        again = self.run_job(self.job(*PLAN), *whole_flags, "--steps", str(last), "--resume", os.path.join(folder, f"step-{saved[0]:06}"))
        whole = self.run_job(self.job(*PLAN), *whole_flags, "--steps", str(last)).loss_texts()
        self.assertEqual({**{step: loss for step, loss in ends[0].loss_texts().items() if step <= saved[0]}, **again.loss_texts()}, whole)

    def test_save_and_go_on(self):
        folder = self.path("one")
        with self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS, "--checkpoint", folder) as run:
            self.check_save_and_end([run], FLAGS, folder)

    def test_save_and_go_on_over_two_hosts(self):
        folder = self.path("two")
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, *runs.ENDLESS, "--checkpoint", folder)
            self.check_save_and_end(nodes, FLAGS, folder)

    def test_many_saves_asked_of_anyone(self):
        # A batch system may signal every process, ranks too.
        folder, generator = self.path("many"), runs.seeded_random()
        with self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS, "--checkpoint", folder) as run:
            run.wait_for_steps(5)
            for _ in range(20):
                for pid in generator.sample(run.processes(), 2):
                    os.kill(pid, signal.SIGUSR1)
                run.wait_for_steps(generator.randrange(1, 4))
            os.kill(run.pid_of_rank(2), signal.SIGUSR2)
            end = run.finish()
        self.assertEqual(end.code, 75, end.err)
        self.assertGreater(len(end.of("checkpoint")), 3)
        self.check_losses(end, self.job(*PLAN), *FLAGS)

    def test_nothing_to_save_to(self):
        with self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS) as run:
            run.wait_for_steps(5)
            os.kill(run.launcher(), signal.SIGUSR1)
            run.wait_for_text("SIGUSR1 came, but this run saves nothing: give --checkpoint DIR")
            run.wait_for_steps(20)
            os.kill(run.launcher(), signal.SIGUSR2)
            end = run.finish()
        self.assertEqual(end.code, 143, end.err)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
