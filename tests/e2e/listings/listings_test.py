# SPDX-License-Identifier: Apache-2.0
"""Proves that the four listings of examples/README.md do what the page says: the lines are taken from the page and run.

usage: listings_test.py [--full]
By default the lines read the first images of Fashion-MNIST; with --full they are run exactly as they stand.
"""
import gzip
import json
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import zipfile

import runs

DATASET = "/usr/share/datasets/fashion-mnist"
FULL = "--full" in sys.argv
SMALL_NUMBERS = {"train": 1000, "t10k": 500}
TITLES = ["A perceptron on four ranks", "The same weights, another plan", "Two replicas with a shuffle buffer", "The MNIST net"]
# What each listing is there to show, and would run without: the optimizer of its model, and flags.
SHOWN = {
    TITLES[0]: ("sgd", "--batch 10", "--mesh data=4", "--epochs 10"),
    TITLES[1]: ("sgd", "--mesh tensor=2,pipe=2", "--epochs 20", "--resume"),
    TITLES[2]: ("adam", "--mesh data=2", "--shuffle-buffer 10000"),
    TITLES[3]: ("sgd", "--mesh data=2", "--normalize x=0.5,0.5", "--lr-schedule cosine:epochs=15", "--epochs 15", "--checkpoint-every 10epochs"),
}


def listings():
    """title → (dgc line, dgrun line) of every section of the page that has commands."""
    found = {}
    with open(os.path.join(runs.EXAMPLES, "README.md")) as file:
        sections = re.split(r"^## ", file.read(), flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, body = section.partition("\n")
        lines = re.findall(r"^    (.+)$", body, flags=re.MULTILINE)
        if len(lines) != 2 or not lines[0].startswith("dgc ") or not lines[1].startswith("dgrun "):
            raise AssertionError(f'examples/README.md, "{title}": found {lines}, expected one dgc and one dgrun line')
        found[title] = lines
    return found


def write_first_samples(folder):
    """The dataset's four files with only their first samples."""
    for name in os.listdir(DATASET):
        with gzip.open(os.path.join(DATASET, name)) as file:
            magic = file.read(4)
            total, *shape = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
            number = min(total, SMALL_NUMBERS[name.split("-")[0]])
            content = file.read(number * math.prod(shape))
        with gzip.open(os.path.join(folder, name), "wb", compresslevel=1) as file:
            file.write(magic + struct.pack(f">{magic[3]}I", number, *shape) + content)


class ListingsTest(runs.JobTest):
    def setUp(self):
        super().setUp()
        self.dataset = DATASET
        os.symlink(runs.EXAMPLES, self.path("examples"))

    def use_small_dataset(self):
        if not FULL:
            self.dataset = self.path("dataset")
            os.mkdir(self.dataset)
            write_first_samples(self.dataset)

    def run_lines(self, title):
        """Types both lines in a folder that has examples/; dgrun's events are asked for with --json."""
        compile_line, run_line = listings()[title]
        environment = dict(os.environ, PATH=f"{runs.BIN}:{os.environ['PATH']}")
        for line in (compile_line, run_line.replace(DATASET, self.dataset) + " --json"):
            run = subprocess.run(["sh", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""), line)
        finished = runs.Finished(run.returncode, run.stdout, run.stderr, 0)
        with zipfile.ZipFile(os.path.join(self.folder, shlex.split(run_line)[1])) as job:
            optimizer = json.loads(job.read("plan.json"))["model"]["optimizer"]
        self.assertEqual(optimizer.partition(":")[0], SHOWN[title][0])
        print(f"{title}: {finished.of('end')[0]}", flush=True)
        return finished

    def one_rank_losses(self, epochs):
        """Means of the epochs of the perceptron on one rank, never stopped: the oracle of the first two listings."""
        run = self.run_job(self.job("mlp", "--batch", "10"), *runs.MLP_DATA, "--epochs", str(epochs))
        return [epoch["loss"] for epoch in run.of("epoch")]

    def check_close(self, epochs, expected, first):
        self.assertEqual([epoch["epoch"] for epoch in epochs], list(range(first, first + len(expected))))
        for epoch, loss in zip(epochs, expected):
            self.assertEqual(epoch["samples"], 1000)
            self.assertLess(abs(epoch["loss"] - loss), 1e-5 * loss, f"epoch {epoch['epoch']}")

    def test_page_has_the_listings(self):
        self.assertEqual(list(listings()), TITLES)
        for title, lines in listings().items():
            for line in lines:
                self.assertNotRegex(line, r"[;&|<>$`]", f"{title}: one plain command a line")
                shlex.split(line)
            for flag in SHOWN[title][1:]:
                self.assertIn(f" {flag} ", " ".join(lines) + " ", title)

    def test_perceptron_continued_by_another_plan(self):
        expected = self.one_rank_losses(20)
        run = self.run_lines(TITLES[0])
        start = run.of("start")[0]
        self.assertEqual((start["ranks"], start["mesh"], start["batch"]), (4, "pipe=1,data=4,tensor=1", 10))
        self.assertEqual(len(run.of("step")), 1000)
        self.check_close(run.of("epoch"), expected[:10], first=1)
        self.assertEqual([event["step"] for event in run.of("checkpoint")], [1000])

        run = self.run_lines(TITLES[1])
        start = run.of("start")[0]
        self.assertEqual((start["ranks"], start["mesh"], start["step"]), (4, "pipe=2,data=1,tensor=2", 1000))
        self.assertEqual([event["step"] for event in run.of("step")], list(range(1001, 2001)))
        self.check_close(run.of("epoch"), expected[10:], first=11)
        self.assertEqual(sorted(os.listdir(self.path("mlp-weights"))), ["step-001000", "step-002000"])

    def test_replicas_with_shuffle_buffer(self):
        self.use_small_dataset()
        run = self.run_lines(TITLES[2])
        start = run.of("start")[0]
        self.assertEqual((start["ranks"], start["mesh"]), (2, "pipe=1,data=2,tensor=1"))
        losses = [epoch["loss"] for epoch in run.of("epoch")]
        self.assertEqual(losses, sorted(losses, reverse=True), "the loss falls")
        self.check_evaluations(run, 3, 0.85 if FULL else 0.6)

    def test_mnist_net(self):
        self.use_small_dataset()
        run = self.run_lines(TITLES[3])
        epochs = 15
        start = run.of("start")[0]
        self.assertEqual((start["ranks"], start["mesh"], start["batch"]), (2, "pipe=1,data=2,tensor=1", 64))
        for index, epoch in enumerate(run.of("epoch")):
            expected = 0.01 * 0.5 * (1 + math.cos(math.pi * index / epochs))
            self.assertLess(abs(epoch["lr"] - expected), 1e-6 * expected)
        # 15 epochs of the small set are 240 steps, which take this net only off its starting point.
        self.check_evaluations(run, epochs, 0.85 if FULL else 0.3)
        steps = run.of("start")[0]["steps_per_epoch"]
        self.assertEqual([event["step"] for event in run.of("checkpoint")], [10 * steps, epochs * steps])
        with open(self.path("lenet-weights", f"step-{epochs * steps:06}", "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual((manifest["epoch"], manifest["lr_schedule"]), (epochs, f"cosine:epochs={epochs}"))

    def check_evaluations(self, run, epochs, accuracy):
        """One evaluation an epoch, over every sample, and the last at least so good."""
        numbers = {"train": 60000, "t10k": 10000} if FULL else SMALL_NUMBERS
        self.assertEqual([event["samples"] for event in run.of("epoch")], [numbers["train"]] * epochs)
        evaluations = run.of("eval")
        self.assertEqual([event["epoch"] for event in evaluations], list(range(1, epochs + 1)))
        self.assertEqual({event["samples"] for event in evaluations}, {numbers["t10k"]})
        print(f"accuracy {evaluations[-1]['accuracy']:.4f}", flush=True)
        self.assertGreater(evaluations[-1]["accuracy"], accuracy)


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--full"]
    runs.main()
