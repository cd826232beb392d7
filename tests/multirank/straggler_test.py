# SPDX-License-Identifier: Apache-2.0
"""Proves that a suspended rank is named while others wait for it, continues when it is let go, and ends the run when it is not; and that a
killed launcher leaves nothing."""
import os
import signal
import time

import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]


class StragglerTest(runs.JobTest):
    def test_suspended_and_let_go(self):
        job = self.job(*PLAN)
        with self.start(job, *FLAGS, *runs.ENDLESS) as run:
            run.wait_for_steps(50)
            pid = run.pid_of_rank(2)
            os.kill(pid, signal.SIGSTOP)
            run.wait_for_text(f"rank 2 (host {runs.HOST}, pid {pid}) holds up the others: no progress for")
            run.wait_for_text("it is suspended (SIGSTOP)")
            os.kill(pid, signal.SIGCONT)
            run.wait_for_text(f"rank 2 (host {runs.HOST}, pid {pid}) continues")
            run.wait_for_steps(50)
            os.kill(run.launcher(), signal.SIGTERM)
            finished = run.finish()
        self.assertEqual(finished.code, 143, finished.err)  # stopped without a checkpoint
        self.check_losses(finished, job, *FLAGS)

    def test_suspended_for_good(self):
        with self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS, "--timeout", "3") as run:
            run.wait_for_steps(50)
            pid, stopped = run.pid_of_rank(1), time.monotonic()
            os.kill(pid, signal.SIGSTOP)
            finished = run.finish()
            seconds = time.monotonic() - stopped
            self.assertEqual(run.processes(), [])
        print(f"{seconds:.3f} s: {finished.err.strip()}", flush=True)
        self.assertEqual(finished.code, 69, finished.err)
        self.assertLess(seconds, 3 + 7)
        self.assertRegex(finished.err, rf"dgrun: rank 1 \(host {runs.HOST}, pid {pid}\) made no progress for \d+ s while "
                         r"training, step \d+, in task '.*' \(.*mlp.mlir:\d+:\d+\).*: it is suspended \(SIGSTOP\)")
        self.assertEqual([failure["rank"] for failure in finished.of("failure")], [1])

    def test_all_suspended_longer_than_the_time_out(self):
        # As Ctrl-Z does: time in which nobody ran is nobody's silence.
        job = self.job(*PLAN)
        with self.start(job, *FLAGS, *runs.ENDLESS, "--timeout", "4") as run:
            run.wait_for_steps(50)
            pids = run.processes()
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(6)  # the time is what is tested
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            run.wait_for_steps(50)
            os.kill(run.launcher(), signal.SIGTERM)
            finished = run.finish()
        self.assertEqual(finished.code, 143, finished.err)
        self.check_losses(finished, job, *FLAGS)

    def test_killed_launcher(self):
        with self.start(self.job(*PLAN), *FLAGS, *runs.ENDLESS) as run:
            run.wait_for_steps(1)
            os.kill(run.launcher(), signal.SIGKILL)
            killed = time.monotonic()
            while run.processes():
                self.assertLess(time.monotonic() - killed, 5, "no process is left after 5 s")
            print(f"gone after {time.monotonic() - killed:.3f} s", flush=True)


class ManyRanksTest(runs.JobTest):
    def test_64_ranks(self):
        flags = ["--data", "x=randn:128x10", "--data", "y=randn:128x1", "--no-shuffle", "--steps", "3"]
        alone = self.run_job(self.job("mlp", "--batch", "64"), *flags)
        with self.start(self.job("mlp", "--batch", "64", "--mesh", "data=64"), *flags) as run:
            run.wait_for_event("start")
            seconds = time.monotonic() - run.started
            finished = run.finish()
            self.assertEqual(run.processes(), [])
        print(f"64 ranks started after {seconds:.2f} s, ended after {finished.seconds:.2f} s", flush=True)
        self.assertEqual(finished.code, 0, finished.err)
        self.assertLess(seconds, 15)
        for one, many in zip(alone.of("step"), finished.of("step")):
            self.assertAlmostEqual(one["loss"], many["loss"], delta=1e-5 * abs(one["loss"]))
        self.assertEqual(len(finished.of("step")), 3)


if __name__ == "__main__":
    runs.main()
