# SPDX-License-Identifier: Apache-2.0
"""Proves that a training fed from tars, folders of images and tables has the losses of one that is fed the same samples
from .npy files, bit by bit and over several ranks, and that broken sources end it with one message."""
import json
import os
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
        end = [json.loads(line) for line in self.dgrun("one", "x.npy", "y.npy").stdout.splitlines()][-1]
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

    def test_classes_are_listed(self):
        self.assertIn("images:class: 3 classes: 0 a, 1 b, 2 c", self.dgrun("one", "images", "images:class").stderr)

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
        self.refused("t.parquet:p", "t.csv:label", 2, "Parquet", "pyarrow")
        self.refused("images", "t.csv:p0", 65, "t.csv: row 2", "'p0'", "whole number")
        self.refused("none-*.tar:png", "y.npy", 65, "none-*.tar")
        self.refused("images:rgb", "images:class", 2, ":rgb gives 3 channels, argument 'x' has 1")


if __name__ == "__main__":
    unittest.main()
