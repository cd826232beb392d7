# SPDX-License-Identifier: Apache-2.0
"""Proves that a run which was stopped and resumed gives bit for bit the losses, epoch means, evaluations and final checkpoint of one
that was not, that two trainings never mix in one folder, and that a checkpoint without its optimizer state is refused by the tensor's
name."""
import json
import os
import signal
import subprocess

import runs
from checkpoint_files import drop_tensors

# Plans whose optimizer has state (momentum, Adam), with a last batch that is smaller.
PLANS = {
    "lenet on data=2": ("lenet", ["--batch", "64", "--mesh", "data=2"],
                        [*runs.IMAGE_DATA, "--eval-data", "x=randn:100x1x28x28", "--eval-data", "y=randint:10:100"]),
    "wide_mlp on pipe=2": ("wide_mlp", ["--batch", "64", "--mesh", "pipe=2"], [*runs.FLAT_DATA, "--shuffle-buffer", "100"]),
}
EPOCHS = 3
LENGTH = ["--epochs", str(EPOCHS), "--lr-schedule", f"cosine:epochs={EPOCHS}", "--seed", "3"]
KINDS = ("step", "epoch", "eval")


class ResumeTest(runs.JobTest):
    def check_equal(self, whole, whole_folder, parts, folder):
        """The parts, one after the other, are the whole, but for the evaluation with which --steps ends inside an epoch."""
        steps_per_epoch = whole.of("start")[0]["steps_per_epoch"]
        for part in parts:
            part.events = [e for e in part.events if e["event"] != "eval" or e["step"] % steps_per_epoch == 0]
        losses = {}
        for part in parts:
            self.assertFalse(losses.keys() & part.loss_texts().keys(), "a step ran twice")
            losses.update(part.loss_texts())
        self.assertEqual(losses, whole.loss_texts())
        self.assertEqual([line for part in parts for line in part.lines(*KINDS)], whole.lines(*KINDS))
        last = os.path.basename(self.latest(whole_folder))
        self.assertEqual(os.path.basename(self.latest(folder)), last)
        ended, resumed = self.checkpoint_files(whole_folder), self.checkpoint_files(folder)
        for name in ("model.safetensors", "manifest.json"):
            self.assertTrue(resumed[f"{last}/{name}"] == ended[f"{last}/{name}"], f"{last}/{name} differs")

    def test_stopped_after_a_number_of_steps(self):
        for name, (model, flags, data) in PLANS.items():
            job = self.job(model, *flags)
            whole = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path(model))
            # Inside an epoch, at its last step, and at the first step of the next.
            for steps in (3, 5, 6):
                with self.subTest(name, steps=steps):
                    folder = f"{model}-{steps}"
                    first = self.run_job(job, *data, *LENGTH[2:], "--steps", str(steps), "--checkpoint", self.path(folder))
                    second = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path(folder), "--resume")
                    self.assertEqual(second.of("start")[0]["step"], steps)
                    self.check_equal(whole, model, [first, second], folder)

    def test_stopped_by_sigterm(self):
        generator = runs.seeded_random()
        job = self.job("lenet", "--batch", "64", "--mesh", "data=2")
        data = ["--data", "x=randn:3000x1x28x28", "--data", "y=randint:10:3000"]
        whole = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path("whole"))
        for attempt in range(3):
            folder = f"stopped-{attempt}"
            with self.start(job, *data, *LENGTH, "--checkpoint", self.path(folder)) as run:
                run.wait_for_event("step")
                # Step lines are flushed every 100 ms: the signal comes at a random moment between two of them.
                seen, wanted = len(run.text(0)), generator.randrange(4000)
                run.wait_for(lambda: len(run.text(0)) >= seen + wanted, f"{wanted} more bytes of events")
                run.process.send_signal(signal.SIGTERM)
                first = run.finish()
                self.assertEqual(run.processes(), [])
            with self.subTest(attempt=attempt, steps=len(first.of("step"))):
                self.assertEqual(first.code, 75, first.err)
                self.assertTrue(first.of("end")[0]["resumable"])
                second = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path(folder), "--resume")
                print(f"SIGTERM took effect after step {len(first.of('step'))} of {len(whole.of('step'))}")
                self.assertGreater(len(second.of("step")), 0)
                self.check_equal(whole, "whole", [first, second], folder)

    def test_started_again_from_the_first_start_on(self):
        # One line for the first start and all others, as a batch script has it.
        job = self.job("lenet", "--batch", "64", "--mesh", "data=2")
        data = ["--data", "x=randn:3000x1x28x28", "--data", "y=randint:10:3000"]
        whole = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path("whole"))
        command = [*data, *LENGTH, "--checkpoint", self.path("fresh"), "--resume"]
        with self.start(job, *command) as run:
            run.wait_for_event("step")
            run.process.send_signal(signal.SIGTERM)
            first = run.finish()
        self.assertEqual(first.code, 75, first.err)
        self.assertIn(f"note: {self.path('fresh')} holds no checkpoint yet: this run begins at step 0", first.err)
        second = self.run_job(job, *command)
        self.assertNotIn("note:", second.err)
        self.check_equal(whole, "whole", [first, second], "fresh")

    def test_started_again_in_another_folder(self):
        # What a batch system does with a job that it requeues: the same command once more.
        job = self.job("lenet", "--batch", "64", "--mesh", "data=2")
        data = ["--data", "x=randn:3000x1x28x28", "--data", "y=randint:10:3000"]
        whole = self.run_job(job, *data, *LENGTH, "--checkpoint", self.path("whole"))
        first = self.run_job(job, *data, *LENGTH[2:], "--steps", "20", "--checkpoint", self.path("a"))
        before = self.checkpoint_files("a")
        command = [*data, *LENGTH, "--resume", self.path("a"), "--checkpoint", self.path("b")]
        with self.start(job, *command) as run:
            run.wait_for_event("step")
            run.process.send_signal(signal.SIGTERM)
            second = run.finish()
        self.assertEqual(second.code, 75, second.err)
        self.assertEqual(second.of("start")[0]["resumed_from"], self.latest("a"))
        stopped = self.latest("b")
        third = self.run_job(job, *command)
        self.assertEqual(third.of("start")[0]["resumed_from"], stopped)
        losses = {**first.loss_texts(), **second.loss_texts(), **third.loss_texts()}
        self.assertEqual(losses, whole.loss_texts())
        self.assertFalse(second.loss_texts().keys() & third.loss_texts().keys(), "a step ran twice")
        self.assertTrue(self.checkpoint_files("a") == before, "what was continued was altered")

    def test_going_back_is_refused(self):
        job = self.job("mlp", "--batch", "10")
        flags = [*runs.MLP_DATA, "--checkpoint-every", "10steps", "--checkpoint", self.path("saved")]
        self.run_job(job, *flags, "--steps", "30")
        self.run_job(job, *runs.MLP_DATA, "--steps", "5", "--checkpoint", self.path("other"))
        before = self.checkpoint_files("saved")
        for start in ("saved/step-000010", "other"):
            with self.subTest(start):
                refused = self.run_job(job, *flags, "--steps", "20", "--resume", self.path(start), code=2)
                self.assertIn(self.path(start), refused.err)
                self.assertEqual(len(refused.of("failure")), 1)
                self.assertTrue(self.checkpoint_files("saved") == before, "a whole checkpoint was altered")
        self.run_job(job, *flags, "--steps", "40", "--resume", self.path("saved", "step-000030"))

    def test_two_runs_never_share_a_folder(self):
        job = self.job("mlp", "--batch", "10")
        flags = [*runs.MLP_DATA, "--checkpoint-every", "10steps", "--checkpoint", self.path("one")]
        with self.start(job, *flags, *runs.ENDLESS, "--seed", "1") as first:
            first.wait_for_event("checkpoint")
            before = os.listdir(self.path("one"))
            for more in (["--seed", "2"], ["--seed", "2", "--resume"], ["--resume"]):
                with self.subTest(more):
                    second = self.run_job(job, *flags, "--steps", "1000000", *more, code=2)
                    self.assertEqual(second.of("step"), [])
                    self.assertIn(f"process {first.launcher()} on host {runs.HOST}", second.err)
            self.assertIn("run.lock", before)
            runs.signal_process(first.launcher(), signal.SIGKILL)
            first.process.wait(runs.DEADLINE_S)
        third = self.run_job(job, *flags, "--steps", str(int(sorted(os.listdir(self.path("one")))[-1][5:11]) + 10), "--resume")
        self.assertIn("ended without releasing", third.err)
        self.assertNotIn("run.lock", os.listdir(self.path("one")))

    def test_checkpoints_are_verified_without_a_run(self):
        job, other = self.job("mlp", "--batch", "10"), self.job("lenet", "--batch", "64", "--mesh", "data=2")
        self.run_job(job, *runs.MLP_DATA, "--checkpoint-every", "10steps", "--checkpoint", self.path("kept"), "--steps", "30")
        before = self.checkpoint_files("kept")

        def verify(*flags, code=0):
            done = subprocess.run([runs.tool("dgrun"), *flags], capture_output=True, text=True, timeout=runs.DEADLINE_S)
            self.assertEqual(done.returncode, code, done.stderr)
            return done

        whole = verify("--verify", self.path("kept")).stdout.splitlines()
        self.assertEqual([line.split(":")[:2] for line in whole], [[self.path("kept", f"step-0000{n}0"), " whole"] for n in (1, 2, 3)])
        self.assertEqual(verify("--verify", self.path("kept", "step-000020"), job).stdout.count("whole"), 1)
        self.assertIn("model 'lenet'", verify(other, "--verify", self.path("kept"), code=65).stderr)
        with open(self.path("kept", "step-000020", "model.safetensors"), "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"\x55")
        damaged = verify("--verify", self.path("kept"), "--json", code=65)
        events = [json.loads(line) for line in damaged.stdout.splitlines()]
        self.assertEqual([event["whole"] for event in events if event["event"] == "verified"], [True, False, True])
        self.assertIn("1 of 3 checkpoints cannot be used: " + self.path("kept", "step-000020", "model.safetensors"), damaged.stderr)
        self.assertIn("no checkpoint there", verify("--verify", self.path("none"), code=65).stderr)
        self.assertIn("--steps: --verify runs nothing", verify(job, "--verify", self.path("kept"), "--steps", "40", code=2).stderr)
        del before[os.path.join("step-000020", "model.safetensors")]
        self.assertTrue(before.items() <= self.checkpoint_files("kept").items(), "verification altered a checkpoint")

    def test_ranks_have_the_time_to_save_that_was_given(self):
        job = self.job("mlp", "--batch", "10", "--mesh", "data=2")
        with self.start(job, *runs.MLP_DATA, *runs.ENDLESS, "--checkpoint", self.path("held"), "--save-timeout", "1") as run:
            run.wait_for_steps(5)
            runs.signal_process(run.ranks()[1], signal.SIGSTOP)
            run.process.send_signal(signal.SIGTERM)
            ended = run.finish()
            self.assertEqual(ended.code, 143, ended.err)
            self.assertIn("had left 1 s later (--save-timeout)", ended.err)

    def test_what_a_killed_run_left_is_reclaimed(self):
        job = self.job("mlp", "--batch", "10")
        flags = [*runs.MLP_DATA, "--checkpoint", self.path("left")]
        self.run_job(job, *flags, "--steps", "10")
        os.mkdir(self.path("left", "step-000020.partial"))
        os.rename(self.path("left", "step-000010"), self.path("left", "step-000010.replaced"))  # and not yet another to its place
        resumed = self.run_job(job, *flags, "--steps", "15", "--resume")
        self.assertEqual(resumed.of("start")[0]["step"], 10)
        self.assertEqual(sorted(os.listdir(self.path("left"))), ["step-000010", "step-000015"])

    def test_a_damaged_latest_is_named(self):
        job = self.job("mlp", "--batch", "10")
        flags = [*runs.MLP_DATA, "--checkpoint-every", "10steps", "--checkpoint", self.path("cut")]
        self.run_job(job, *flags, "--steps", "30")
        damaged = self.path("cut", "step-000030", "manifest.json")
        os.truncate(damaged, 50)
        refused = self.run_job(job, *flags, "--steps", "40", "--resume", code=65)
        self.assertIn(damaged, refused.err)
        self.assertIn("--resume-older", refused.err)
        self.assertEqual(refused.of("step"), [])
        older = self.run_job(job, *flags, "--steps", "25", "--resume", "--resume-older", "--keep", "1")
        self.assertEqual(older.of("start")[0]["step"], 20)
        self.assertIn(damaged, older.err)
        self.assertIn("goes back from step 30 to step 20", older.err)
        self.assertEqual(sorted(os.listdir(self.path("cut"))), ["step-000025", "step-000030.damaged"])

    def test_incomplete_restore_is_refused(self):
        for name, (model, flags, data) in PLANS.items():
            with self.subTest(name):
                job = self.job(model, *flags)
                self.run_job(job, *data, "--steps", "3", "--checkpoint", self.path(model))
                dropped = drop_tensors(self.latest(model), lambda tensor: tensor.startswith("fc2.weight."))
                self.assertTrue(dropped, "the checkpoint holds optimizer state of fc2.weight")
                before = self.checkpoint_files(model)
                run = self.run_job(job, *data, "--epochs", "1", "--checkpoint", self.path(model), "--resume", code=65)
                self.assertTrue(any(tensor in run.err for tensor in dropped), run.err)
                self.assertIn(self.latest(model), run.err)
                self.assertEqual(run.of("step"), [])
                self.assertTrue(self.checkpoint_files(model) == before, "the refused checkpoint was altered")


if __name__ == "__main__":
    runs.main()
