# SPDX-License-Identifier: Apache-2.0
"""Proves what an operator reads: each event says when, where and of which job; nothing of a training is missing after kills; a failure has
rank and step on every node; a slow rank, a reader that has stopped and a limit of descriptors are named."""
import contextlib
import os
import signal
import subprocess
import threading
import time

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]
EXIT_LOST = 69


class LogsTest(runs.JobTest):
    def test_when_where_and_of_which_job(self):
        for environment, job in ({"SLURM_JOB_ID": "4711"}, "4711"), ({}, None):
            before = time.time()
            with self.start(self.job(*PLAN), *FLAGS, "--steps", "20", "--checkpoint", self.path(f"of-{job}"), environment=environment) as run:
                end = run.finish()
            self.assertEqual(end.code, 0, end.err)
            self.assertEqual({event["host"] for event in end.events}, {runs.HOST})
            self.assertEqual(len({event["job"] for event in end.events}), 1)
            self.assertTrue(end.events[0]["job"])
            if job:
                self.assertEqual(end.events[0]["job"], job)
            times = [event["time"] for event in end.events]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[0], before - 1)
            self.assertLess(times[-1], time.time() + 1)

    def test_nothing_is_missing_after_kills(self):
        # What rank 0 had not yet written when it was killed belongs to steps that a checkpoint has left behind, or not at all.
        generator, folder, told, last = runs.seeded_random(), self.path("kept"), {}, 0
        flags = [*FLAGS, *runs.ENDLESS, "--checkpoint", folder, "--checkpoint-every", "3steps", "--keep", "3", "--resume"]
        for _ in range(12):
            with self.start(self.job(*PLAN), *flags) as run:
                run.wait_for_event("checkpoint")
                time.sleep(0.3 * generator.random())  # the random moment
                os.kill(run.pid_of_rank(0), signal.SIGKILL)
                end = run.finish()
            self.assertEqual(end.code, EXIT_LOST, end.err)
            told.update(end.loss_texts())
            last = max([last, *(event["step"] for event in end.of("checkpoint"))])
        with self.start(self.job(*PLAN), *flags) as run:
            run.wait_for_event("start")
            resumed_at = run.finish_after(signal.SIGTERM).of("start")[0]["step"]
        missing = [step for step in range(1, resumed_at + 1) if step not in told]
        print(f"12 kills, resumed at step {resumed_at}, {len(missing)} steps are missing", flush=True)
        self.assertGreaterEqual(resumed_at, last)
        self.assertEqual(missing, [])

    def test_slow_rank_is_named(self):
        # Of a hundred milliseconds it may run twenty-five.
        job = self.job("lenet", "--batch", "64", "--mesh", "data=2")
        with self.start(job, *runs.IMAGE_DATA, *runs.ENDLESS, "--threads", "1") as run:
            run.wait_for_steps(5)
            pid, over = run.pid_of_rank(1), threading.Event()

            def slow_down():
                while not over.is_set():
                    runs.signal_process(pid, signal.SIGSTOP)
                    time.sleep(0.075)
                    runs.signal_process(pid, signal.SIGCONT)
                    time.sleep(0.025)

            thread = threading.Thread(target=slow_down)
            thread.start()
            try:
                run.wait_for_text("is slow: it needs")
            finally:
                over.set()
                thread.join()
            os.kill(run.launcher(), signal.SIGTERM)
            end = run.finish()
        print(end.err.strip(), flush=True)
        named = end.of("straggler")
        self.assertEqual({event["rank"] for event in named}, {1}, end.err)

    def test_descriptors(self):
        job, flags = self.job("mlp", "--batch", "24", "--mesh", "data=24"), [*runs.MLP_DATA, "--threads", "1", "--steps", "2"]
        with self.start(job, *flags, prefix=["prlimit", "--nofile=64:4096"]) as run:
            end = run.finish()
            self.assertEqual(end.code, 0, end.err)
        with self.start(job, *flags, prefix=["prlimit", "--nofile=64:100"]) as run:
            end = run.finish()
        self.assertEqual(end.code, 2, end.err)
        self.assertRegex(end.err, r"dgrun: cannot \w.*: Too many open files; 24 ranks of 24 need up to 160 of them on this host, and the limit is 100: raise it")
        self.assertEqual(len(end.of("failure")), 1)

    def test_nobody_reads(self):
        command = [runs.tool("dgrun"), self.job(*PLAN), "--json", *FLAGS, *runs.ENDLESS, "--timeout", "5"]
        begun = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder) as process:
            said = process.stderr.read()  # stdout is a pipe that fills
            process.wait(runs.DEADLINE_S)
        self.assertEqual(process.returncode, EXIT_LOST, said)
        self.assertLess(time.monotonic() - begun, 60)
        self.assertRegex(said, r"rank 0 \(.*\) made no progress for .*: it waits for someone to read the standard output of the run")


class NodesLogTest(hosts.HostsTest):
    def test_failure_on_every_node(self):
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, *runs.ENDLESS)
            nodes[0].wait_for_steps(20)
            os.kill(nodes[1].pid_of_rank(3), signal.SIGKILL)
            ends = [node.finish() for node in nodes]
        told = [end.of("failure") for end in ends]
        self.assertEqual([len(failures) for failures in told], [1, 1])
        for failures, host in zip(told, ("host0", "host1")):
            self.assertEqual((failures[0]["rank"], failures[0]["host"]), (3, host))
            self.assertGreater(failures[0]["step"], 10)
        self.assertEqual(told[0][0]["job"], told[1][0]["job"])
        self.assertEqual({event["job"] for event in ends[0].events}, {told[0][0]["job"]})


if __name__ == "__main__":
    hosts.enter()
    runs.main()
