# SPDX-License-Identifier: Apache-2.0
"""Proves that a training fed from tars, folders of images and tables has the losses of one that is fed the same samples
from .npy files, bit by bit and over several ranks, and that broken sources end it with one message."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import sample_files

BIN = os.environ["DG_BIN"]

MODEL = """module attributes {dg.optimizer = "sgd:lr=0.1"} {
  dg.graph @loss(%x: tensor<?x1x6x6xf32>, %y: tensor<?xi64>) {
    %k = dg.parameter "conv.weight" tensor<4x1x3x3xf32> uniform 0.3
    %c = dg.conv2d %x, %k
    %h = dg.relu %c
    %f = dg.flatten %h
    %w = dg.parameter "fc.weight" tensor<3x64xf32> uniform 0.1
    %z = dg.linear %f, %w
    %loss = dg.cross_entropy %z, %y
    dg.return %loss
  }
}
"""


class Sources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.held.cleanup)
        cls.folder = cls.held.name
        samples = sample_files.make_samples()
        sample_files.write_npy(cls.folder, samples)
        sample_files.write_tars(cls.folder, samples, 5)
        sample_files.write_folder(cls.folder, samples)
        sample_files.write_table(cls.folder, samples)
        with open(os.path.join(cls.folder, "net.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL)
        for name, mesh in (("one", []), ("four", ["--mesh", "pipe=2,data=2"])):
            subprocess.run([os.path.join(BIN, "dgc"), "net.mlir", "--batch", "10", *mesh, "-o", name + ".dgx"],
                           cwd=cls.folder, check=True, timeout=120)
        cls.expected = cls.losses("one", "x.npy", "y.npy")
        cls.expected_of_four = cls.losses("four", "x.npy", "y.npy")

    @classmethod
    def dgrun(cls, job, x, y, *flags):
        ranks = ["-n", "4"] if job == "four" else []
        return subprocess.run([os.path.join(BIN, "dgrun"), job + ".dgx", "--data", "x=" + x, "--data", "y=" + y, "--json",
                               *ranks, "--threads", "1", "--epochs", "3", *flags],
                              cwd=cls.folder, capture_output=True, text=True, timeout=120)

    @classmethod
    def losses(cls, *run):
        done = cls.dgrun(*run)
        assert done.returncode == 0, done.stderr
        steps = [json.loads(line) for line in done.stdout.splitlines()]
        return [step["loss"] for step in steps if step["event"] == "step"]

    def refused(self, x, y, code, *words):
        done = self.dgrun("one", x, y)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_every_source_trains_alike(self):
        self.assertEqual(len(self.expected), 15)
        for x, y in (("part-{00..04}.tar:png", "part-{00..04}.tar:cls"),
                     ("part-*.tar:npy", "part-*.tar:json:label"),
                     ("images", "images:class"),
                     ("t.csv:p0..p35:reshape", "t.csv:label")):
            with self.subTest(x):
                self.assertEqual(self.losses("one", x, y), self.expected)
                self.assertEqual(self.losses("four", x, y), self.expected_of_four)

    def test_reading_ahead_changes_no_bit(self):
        tars = ("part-{00..04}.tar:png", "part-{00..04}.tar:cls")
        for flags in (["--prefetch", "0"], ["--prefetch", "1"], ["--prefetch", "3", "--readers", "1"],
                      ["--prefetch", "5", "--readers", "8"]):
            with self.subTest(flags):
                self.assertEqual(self.losses("one", *tars, *flags), self.expected)
                self.assertEqual(self.losses("four", *tars, *flags), self.expected_of_four)
        self.assertEqual(self.losses("one", "x.npy", "y.npy", "--prefetch", "2", "--readers", "2"), self.expected)

    def test_a_run_tells_how_long_it_waited(self):
        end = [json.loads(line) for line in self.dgrun("one", "images", "images:class").stdout.splitlines()][-1]
        self.assertEqual((end["event"], end["samples"], end["prefetch_steps"]), ("end", 3 * sample_files.SAMPLES, 2))
        self.assertGreaterEqual(end["readers"], 1)
        self.assertGreater(end["data_read_seconds"], 0)
        self.assertEqual(end["prefetch_bytes"], 2 * 10 * (36 * 4 + 8))
        events = [json.loads(line) for line in self.dgrun("one", "x.npy", "y.npy", "--validation", "0.5").stdout.splitlines()]
        end, evaluations = events[-1], [event for event in events if event["event"] == "eval"]
        best = min(evaluations, key=lambda event: event["loss"])
        self.assertEqual((len(evaluations), end["best_step"], end["best_loss"]), (3, best["step"], best["loss"]))
        self.assertLessEqual(end["best_seconds"], end["seconds"])
        self.assertAlmostEqual(end["samples_per_second"], end["samples"] / end["seconds"], delta=1)
        self.assertNotIn("readers", end)
        self.assertGreater(end["data_wait_seconds"], 0)

    def test_a_resumed_run_reads_on_in_the_middle_of_an_epoch(self):
        folder, tars = os.path.join(self.folder, "saved"), ("part-{00..04}.tar:png", "part-{00..04}.tar:cls")
        def run(*flags):
            done = subprocess.run([os.path.join(BIN, "dgrun"), "one.dgx", "--data", "x=" + tars[0], "--data", "y=" + tars[1],
                                   "--json", "--threads", "1", "--checkpoint", folder, *flags],
                                  cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [event["loss"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "step"]
        first = run("--steps", "7")
        self.assertEqual(first + run("--epochs", "3", "--resume"), self.expected)

    def test_bad_samples_are_skipped_with_a_count(self):
        samples = sample_files.make_samples()
        kept = [sample for number, sample in enumerate(samples) if number not in (3, 40)]
        good, bad = os.path.join(self.folder, "good"), os.path.join(self.folder, "bad")
        for folder in (good, bad):
            os.makedirs(folder, exist_ok=True)
        sample_files.write_npy(good, kept)
        sample_files.tar(os.path.join(bad, "s.tar"), [
            (f"{number}.{part}", data) for number, (image, label) in enumerate(samples)
            for part, data in (("png", b"broken" if number == 3 else sample_files.png(6, 6, image)),
                               ("cls", b"9" if number == 40 else str(label).encode()))])
        expected = self.losses("one", "good/x.npy", "good/y.npy")
        done = self.dgrun("one", "bad/s.tar:png", "bad/s.tar:cls", "--skip-bad", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("left out: bad/s.tar:png: sample 3 (3.png): not an image", "bad/s.tar:cls: sample 40 (40.cls) holds 9",
                      "2 of 48 samples were left out"):
            self.assertIn(words, done.stderr)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([event["loss"] for event in found if event["event"] == "step"], expected)
        for flags, words in ((["--skip-bad", "1"], "more than 1 samples cannot be read (--skip-bad), as bad/s.tar"),
                             ([], "sample 40 (40.cls) holds 9")):
            done = self.dgrun("one", "bad/s.tar:png", "bad/s.tar:cls", *flags)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn(words, done.stderr)

    def test_flags_without_an_effect_are_noted(self):
        for flags, words in ((["--readers", "2"], "--readers 2: nothing is read ahead, for all samples lie in memory"),
                             (["--readers", "2", "--prefetch", "0"], "--readers 2: nothing is read ahead\n"),
                             (["--data-cache", "kept"], "--data-cache kept: no data are on another machine")):
            self.assertIn(words, self.dgrun("one", "x.npy", "y.npy", *flags).stderr)
        self.assertEqual(self.dgrun("one", "x.npy", "y.npy", "--prefetch", "1", "--readers", "2").stderr, "")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "kept")))

    def test_classes_are_listed(self):
        self.assertIn("images:class: 3 classes: 0 a, 1 b, 2 c", self.dgrun("one", "images", "images:class").stderr)

    def test_classes_of_another_folder(self):
        """Without its first class, the others of a folder have other numbers."""
        shutil.copytree(os.path.join(self.folder, "images"), os.path.join(self.folder, "fewer"))
        shutil.rmtree(os.path.join(self.folder, "fewer", "a"))
        flags = lambda folder: ["--eval-data", f"x={folder}", "--eval-data", f"y={folder}:class"]
        done = self.dgrun("one", "images", "images:class", *flags("images"))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.dgrun("one", "images", "images:class", *flags("fewer"))
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("fewer:class: class 0 is 'b', but of images:class it is 'a'", done.stderr)

    def test_what_is_broken_is_named(self):
        with open(os.path.join(self.folder, "part-01.tar"), "rb") as file:
            whole = file.read()
        for name, data in (("cut.tar", whole[:len(whole) // 2]), ("bad.tar", whole.replace(b"IDAT", b"IDAX", 1))):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(data)
        self.refused("cut.tar:png", "cut.tar:cls", 65, "cut.tar", "cut off")
        self.refused("bad.tar:png", "bad.tar:cls", 65, "bad.tar:png: sample 0 (some/folder/00010.png)", "damaged PNG")
        self.refused("part-01.tar:jpg", "part-01.tar:cls", 65, "part-01.tar:jpg", "has no .jpg; it has .png, .cls")
        self.refused("t.csv:p0..p36", "t.csv:label", 65, "t.csv", "no column 'p36'")
        with open(os.path.join(self.folder, "twice.csv"), "w", encoding="utf-8") as file:
            file.write("label,p,label\n1,2,3\n")
        self.refused("x.npy", "twice.csv:label", 65, "twice.csv: has 2 columns 'label'")
        self.refused("t.parquet:p", "t.csv:label", 2, "Parquet", "pyarrow")
        self.refused("images", "t.csv:p0", 65, "t.csv: row 2", "'p0'", "whole number")
        self.refused("none-*.tar:png", "y.npy", 65, "none-*.tar")
        self.refused("images:rgb", "images:class", 2, ":rgb gives 3 channels, argument 'x' has 1")


if __name__ == "__main__":
    unittest.main()
