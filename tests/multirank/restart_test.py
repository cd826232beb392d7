# SPDX-License-Identifier: Apache-2.0
"""Proves that a training whose ranks are killed at random moments goes on by itself with the bits of one that nothing happens to: every
loss, every evaluation, the weights; that no step is told twice, no more is repeated than snapshots allow, the next step comes soon,
and nothing stays behind. DG_TEST_KILLS: how many."""
import json
import os
import re
import signal
import statistics
import subprocess
import time

import runs

SHARED_MEMORY = "/dev/shm"
PLAN = ("mlp:784-256-256-10", "--batch", "64", "--mesh", "data=2,pipe=2", "--microbatches", "2")
NUMBER = 4
FLAGS = [*runs.FLAT_DATA, "--eval-data", "x=randn:150x784", "--eval-data", "y=randint:10:150", "--seed", "7", "--threads", "1",
         "--eval-every", "30steps"]
SAVES = ["--checkpoint-every", "70steps", "--keep", "2", "--keep-best", "eval.loss", "--checkpoint"]
SNAPSHOT_STEPS = 20
RESTARTS = ["--max-restarts", "1000", "--snapshot-every", f"{SNAPSHOT_STEPS}steps"]
MEDIAN_S, WORST_S = 2, 5


class Restarting(runs.JobTest):
    def check_events(self, finished):
        """Every step and evaluation is told once, in order; what is told again says so, and is the same."""
        for kind, key in ("step", "step"), ("eval", "step"), ("epoch", "epoch"):
            told, last = {}, 0
            for event in finished.of(kind):
                is_repeated = event.pop("repeated", False)
                text = json.dumps({name: value for name, value in event.items() if name not in runs.MEASURED})
                if is_repeated and event[key] in told:
                    self.assertEqual(told[event[key]], text)
                else:
                    self.assertGreater(event[key], last, f"{kind} told twice")
                    told[event[key]], last = text, event[key]
            if kind == "step":
                self.assertEqual(list(told), list(range(1, last + 1)))
        self.assertEqual(len(finished.of("start")), 1)

    def steps_lost(self, finished):
        """How many of the steps that were told each restart goes back."""
        lost, told = [], 0
        for event in finished.events:
            if event["event"] == "step":
                told = event["step"]
            elif event["event"] == "restart":
                lost.append(max(told - event["from_step"], 0))
        return lost

    def once(self, finished, *kinds):
        """What Finished.lines gives, without what is told again."""
        return list(dict.fromkeys(re.sub(r', "repeated": true', "", line) for line in finished.lines(*kinds)))

    def undisturbed(self, steps):
        return self.run_job(self.job(*PLAN), *FLAGS, "--steps", str(steps), *SAVES, self.path("undisturbed"))

    def weights(self, folder, step):
        return self.checkpoint_files(folder)[f"step-{step:06}/model.safetensors"]

    def check_nothing_stays(self, run, folder):
        self.assertEqual(run.processes(), [])
        self.assertEqual(os.listdir(SHARED_MEMORY), [])
        self.assertEqual([name for name in os.listdir(folder) if not re.fullmatch(r"step-\d{6}|best", name)], [])


class RandomKillsTest(Restarting):
    number = 10

    def kill_some(self, run, generator, number):
        """Kills ranks at random moments, some while they connect; mostly one, sometimes several at once."""
        numbers = []
        for kill in range(number):
            run.wait_for_ranks(NUMBER)
            time.sleep(generator.choice([0.02, 0.3, 0.8]) * generator.random())  # the random moment
            victims = generator.sample(range(NUMBER), generator.choice([1, 1, 1, 2, 4]))
            before, killed = run.text(0).count('"event":"restart"'), time.time()
            pids = run.ranks()
            for victim in victims:
                if victim in pids:
                    runs.signal_process(pids[victim], signal.SIGKILL)
            run.wait_for(lambda: run.text(0).count('"event":"restart"') > before, "a restart")
            if generator.random() < 0.7:
                goes_on = f'"event":"recovered"'
                seen = run.text(0).count(goes_on)
                run.wait_for(lambda: run.text(0).count(goes_on) > seen or run.text(0).rfind(goes_on) > run.text(0).rfind('"event":"restart"'),
                             "the next step")
                numbers.append(time.time() - killed)
        return numbers

    def test_random_kills(self):
        generator, number = runs.seeded_random(), int(os.environ.get("DG_TEST_KILLS", self.number))
        folder = self.path("kept")
        with self.start(self.job(*PLAN), *FLAGS, *RESTARTS, *runs.ENDLESS, *SAVES, folder) as run:
            run.wait_for_event("step")
            seconds = self.kill_some(run, generator, number)
            run.wait_for_steps(2 * SNAPSHOT_STEPS)
            os.kill(run.launcher(), signal.SIGTERM)
            finished = run.finish()
            self.check_nothing_stays(run, folder)
        self.assertEqual(finished.code, 75, finished.err)
        if max(seconds) > WORST_S:
            open("/tmp/restart-out.json", "w").write(finished.out); open("/tmp/restart-err.txt", "w").write(finished.err)
        self.check_events(finished)
        last = finished.of("step")[-1]["step"]
        restarts = finished.of("restart")
        lost = self.steps_lost(finished)
        print(f"{number} kills in {last} steps, {len(restarts)} restarts; {sum(lost)} steps repeated, at most {max(lost, default=0)}; to the "
              f"next step {statistics.median(seconds):.2f} s (median), {max(seconds):.2f} s (worst)", flush=True)
        same = self.undisturbed(last)
        self.assertEqual(finished.loss_texts(), same.loss_texts())
        evaluations = self.once(finished, "eval")
        self.assertEqual(evaluations, self.once(same, "eval")[:len(evaluations)])
        self.assertEqual(self.once(finished, "epoch"), self.once(same, "epoch")[:len(finished.of("epoch"))])
        self.assertEqual(self.weights("kept", last), self.weights("undisturbed", last))
        # A snapshot waits for the checkpoint before it.
        self.assertLessEqual(max(lost, default=0), 2 * SNAPSHOT_STEPS)
        self.assertLess(statistics.median(seconds), MEDIAN_S)
        self.assertLess(max(seconds), WORST_S)


class RestartTest(Restarting):
    def kill_in_step(self, run, rank=1):
        run.wait_for_steps(3)
        runs.signal_process(run.ranks()[rank], signal.SIGKILL)

    def test_without_snapshots(self):
        """From the newest checkpoint, and where there is none from the beginning."""
        for folder in None, self.path("kept"):
            saves = ["--checkpoint", folder, "--checkpoint-every", "40steps"] if folder else []
            with self.subTest(folder=folder), self.start(self.job(*PLAN), *FLAGS, *saves, "--max-restarts", "1", "--steps", "400") as run:
                if folder:
                    run.wait_for_event("checkpoint")
                self.kill_in_step(run)
                finished = run.finish()
                self.assertEqual(run.processes(), [])
                self.assertEqual(finished.code, 0, finished.err)
                self.check_events(finished)
                self.assertEqual(finished.loss_texts(), self.run_job(self.job(*PLAN), *FLAGS, "--steps", "400").loss_texts())
                restart, = finished.of("restart")
                self.assertIn("goes on from the checkpoint of step" if folder else "goes on from where this run began", restart["message"])
                self.assertEqual(restart["from_step"] > 0, bool(folder))

    def test_a_loop_ends_with_its_first_cause(self):
        with self.start(self.job(*PLAN), *FLAGS, "--max-restarts", "2", *runs.ENDLESS,
                        "--on-failure", "echo told of rank $DG_FAILURE_RANK, restart $DG_RESTART") as run:
            for number, rank in enumerate([1, 0, 2]):
                run.wait_for(lambda: run.text(0).count('"event":"restart"') == number, f"{number} restarts")
                run.wait_for_ranks(NUMBER)
                time.sleep(0.2)  # any moment
                runs.signal_process(run.ranks()[rank], signal.SIGKILL)
            finished = run.finish()
            self.assertEqual(run.processes(), [])
        self.assertEqual(finished.code, 69, finished.err)
        self.assertRegex(finished.err, r"2 restarts \(--max-restarts\) did not come to another snapshot or checkpoint; the first failure since "
                                       r"then: rank 1 ")
        for rank, restart in (1, 1), (0, 2), (2, 0):
            self.assertIn(f"told of rank {rank}, restart {restart}\n", finished.err)
        self.assertEqual(len(finished.of("failure")), 1)

    def test_a_defect_ends_it(self):
        finished = self.run_job(self.job(*PLAN), *FLAGS, *RESTARTS, "--lr", "1e30", "--steps", "50", code=70)
        self.assertEqual(finished.of("restart"), [])

    def test_asked_to_save_during_a_restart(self):
        for number in signal.SIGTERM, signal.SIGUSR2, signal.SIGINT, signal.SIGUSR1:
            folder = self.path(f"kept-{number}")
            with self.subTest(signal=number), self.start(self.job(*PLAN), *FLAGS, *RESTARTS, *runs.ENDLESS, *SAVES, folder) as run:
                run.wait_for_event("snapshot")
                self.kill_in_step(run)
                os.kill(run.launcher(), number)
                if number == signal.SIGUSR1:
                    run.wait_for_event("restart")
                    run.wait_for_steps(100)
                    os.kill(run.launcher(), signal.SIGTERM)
                finished = run.finish()
                self.check_nothing_stays(run, folder)
                self.assertEqual(finished.code, 75, finished.err)
                self.check_events(finished)
                end, = finished.of("end")
                self.assertTrue(end["stopped"] and end["resumable"])
                self.assertIn(f"step-{end['steps']:06}", os.listdir(folder))

    def test_people_are_told_once(self):
        command = [runs.tool("dgrun"), self.job(*PLAN), *FLAGS, *RESTARTS, "--log-every", "10steps", "--epochs", "60"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder) as run:
            lines = [run.stdout.readline() for _ in range(60)]
            with open(f"/proc/{run.pid}/task/{run.pid}/children") as file:
                runs.signal_process(int(file.read().split()[2]), signal.SIGKILL)
            rest, errors = run.communicate(timeout=runs.DEADLINE_S)
        self.assertEqual(run.returncode, 0, errors)
        text = "".join(lines) + rest
        self.assertEqual(re.findall(r"^epoch (\d+)/60", text, re.M), [str(epoch) for epoch in range(1, 61)])
        self.assertEqual(len(re.findall(r" parameters, 4 ranks", text)), 1)
        self.assertRegex(errors, r"dgrun: rank 2 .* was killed by signal 9 .*; restart 1 of 1000 goes on from the snapshot of step \d+\n")

    def test_what_is_refused(self):
        job = self.job(*PLAN)
        for flags, message in ((["--snapshot-every", "50steps"], "give --max-restarts 3 too"),
                               (["--max-restarts", "1", "--snapshot-every", "50"], "--snapshot-every '50': expected a number and a unit"),
                               (["--max-restarts", "-1"], "--max-restarts")):
            with self.subTest(flags=flags):
                finished = self.run_job(job, *FLAGS, *flags, code=2)
                self.assertIn(message, finished.err)
                self.assertEqual(len(finished.err.strip().splitlines()), 1, finished.err)
        finished = self.run_job(job, "--evaluate", "--eval-data", "x=randn:150x784", "--eval-data", "y=randint:10:150", "--max-restarts", "1", code=2)
        self.assertIn("--max-restarts: --evaluate trains nothing", finished.err)


if __name__ == "__main__":
    runs.isolated(SHARED_MEMORY)
    runs.main()
