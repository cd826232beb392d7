# SPDX-License-Identifier: Apache-2.0
"""Proves that a killed rank ends its run with one message, and that neither it nor Ctrl-C leaves a process or shared memory."""
import os
import re
import signal
import time

import runs

SHARED_MEMORY = "/dev/shm"
GONE_WITHIN_S = 10
PLANS = [
    ("mlp", ["--batch", "10", "--mesh", "data=4"], runs.MLP_DATA, 4),
    ("mlp", ["--batch", "16", "--mesh", "tensor=2,pipe=2"], runs.MLP_DATA, 4),
    ("lenet", ["--batch", "64", "--mesh", "data=2"], runs.IMAGE_DATA, 2),
]


class FailureTest(runs.JobTest):
    attempts = 5

    def check_nothing_stays(self, run):
        self.assertEqual(run.processes(), [])
        self.assertEqual(os.listdir(SHARED_MEMORY), [])

    def test_killed_rank(self):
        generator = runs.seeded_random()
        for attempt in range(self.attempts):
            model, flags, data, number = PLANS[attempt % len(PLANS)]
            job, victim, delay = self.job(model, *flags), generator.randrange(number), 0.8 * generator.random() ** 4
            with self.subTest(model=model, rank=victim, delay=delay), self.start(job, *data, *runs.ENDLESS) as run:
                run.wait_for_ranks(number)
                time.sleep(delay)  # the random moment: as often before the ranks meet as in training
                pid, killed = run.ranks()[victim], time.monotonic()
                os.kill(pid, signal.SIGKILL)
                finished = run.finish()
                seconds = time.monotonic() - killed
                self.check_nothing_stays(run)
                print(f"{seconds:.3f} s: {finished.err.strip()}", flush=True)
                self.assertEqual(finished.code, 69, finished.err)
                self.assertLess(seconds, GONE_WITHIN_S)
                blame = f"rank {victim} (host {runs.HOST}, pid {pid}) was killed by signal 9"
                self.assertIn(blame, finished.err)
                self.assertRegex(finished.err, re.escape(blame) + r" \(SIGKILL\) while \w+")
                lines = finished.err.splitlines()
                self.assertEqual(len(lines), number, "one line for each rank and nothing else")
                for rank, line in zip([rank for rank in range(number) if rank != victim], lines[1:]):
                    self.assertRegex(line, rf"^  rank {rank} \(host {runs.HOST}, pid \d+\): stopped by dgrun while ")
                failures = finished.of("failure")
                self.assertEqual([failure["rank"] for failure in failures], [victim])
                self.assertEqual("dgrun: " + failures[0]["message"], finished.err.strip())

    def test_interrupt(self):
        # Ctrl-C on a terminal reaches the whole group; `kill -INT` only the launcher.
        for to_group in (False, True):
            for model, flags, data, number in PLANS:
                job = self.job(model, *flags)
                with self.subTest(model=model, to_group=to_group), self.start(job, *data, *runs.ENDLESS, own_group=True) as run:
                    run.wait_for_ranks(number)
                    run.wait_for_event("step")
                    sent = time.monotonic()
                    (os.killpg if to_group else os.kill)(run.process.pid, signal.SIGINT)
                    finished = run.finish()
                    print(f"SIGINT: gone after {time.monotonic() - sent:.3f} s", flush=True)
                    self.check_nothing_stays(run)
                    self.assertEqual(finished.code, 130, finished.err)
                    self.assertNotIn("was killed", finished.err)
                    told = [(failure["rank"], "dgrun: " + failure["message"]) for failure in finished.of("failure")]
                    why, *saved = finished.err.splitlines()
                    self.assertEqual(told, [(-1, why)])
                    self.assertEqual(saved, ["dgrun: nothing of this training was saved; --checkpoint DIR saves it"])


if __name__ == "__main__":
    runs.isolated(SHARED_MEMORY)
    runs.main()
