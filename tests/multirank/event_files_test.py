# SPDX-License-Identifier: Apache-2.0
"""Proves that TensorBoard's own reader finds in the files of --log-dir the numbers that --json printed: losses and rates at their
steps, epochs and evaluations. Skipped where build/venv has no TensorBoard (tools/install.sh bench)."""
import os
import struct
import subprocess
import sys

import runs

READER = """
import json, sys
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
for path in sys.argv[1:]:
    for event in EventFileLoader(path).Load():
        for value in event.summary.value:
            # The loader turns simple values into tensors, as TensorBoard's server does.
            number = value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value
            print(json.dumps([value.tag, event.step, number]))
"""


def find_python():
    python = os.environ.get("DG_TEST_TENSORBOARD", os.path.join(runs.SOURCE, "build", "venv", "bin", "python"))
    found = os.path.exists(python) and subprocess.run([python, "-c", "import tensorboard"], capture_output=True).returncode == 0
    return python if found else None


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


class EventFilesTest(runs.JobTest):
    def test_read_back(self):
        for mesh in ("data=1", "data=1,pipe=2"):
            with self.subTest(mesh):
                job, folder = self.job("lenet", "--batch", "64", "--mesh", mesh, "--optimizer", "sgd:lr=0.01,grad_norm=1"), self.path(mesh)
                run = self.run_job(job, *runs.IMAGE_DATA, "--validation", "0.2", "--epochs", "3", "--lr-schedule", "cosine:steps=12",
                                   "--log-dir", folder)
                files = [os.path.join(folder, name) for name in os.listdir(folder)]
                self.assertEqual(len(files), 1)
                self.assertIn("tfevents", files[0])
                read = subprocess.run([PYTHON, "-c", READER, *files], capture_output=True, text=True, check=True).stdout
                found = {}
                for tag, step, number in map(runs.json.loads, read.splitlines()):
                    self.assertNotIn((tag, step), found)
                    found[tag, step] = number
                steps = {event["step"]: event for event in run.of("step")}
                told = [step for tag, step in found if tag == "train/loss"]
                self.assertTrue(told)
                for step in told:
                    self.assertEqual(found["train/loss", step], f32(steps[step]["loss"]))
                    self.assertEqual(found["train/lr", step], f32(steps[step]["lr"]))
                    self.assertEqual(found["train/grad_norm", step], f32(steps[step]["grad_norm"]))
                for event in run.of("epoch"):
                    self.assertEqual(found["epoch/loss", event["epoch"]], f32(event["loss"]))
                self.assertEqual(len(run.of("eval")), 3)
                for event in run.of("eval"):
                    for metric in ("loss", "accuracy"):
                        self.assertEqual(found[f"eval/{metric}", event["step"]], f32(event[metric]))


if __name__ == "__main__":
    PYTHON = find_python()
    if not PYTHON:
        print("skipped: no TensorBoard in build/venv; tools/install.sh bench installs it")
        sys.exit(77)
    runs.main()
