# SPDX-License-Identifier: Apache-2.0
"""Proves of every pipeline schedule on real processes: the losses and evaluations of one rank, and buffers that do not grow with the
number of micro-batches where the schedule promises that."""
import json
import os
import subprocess

import runs

SCHEDULES = ("gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-v")
ONE_RANK = ("lenet", "--batch", "64")
DATA = [*runs.IMAGE_DATA, "--eval-data", "x=randn:100x1x28x28", "--eval-data", "y=randint:10:100"]


def pipeline(schedule, mesh="pipe=2", microbatches=4):
    return (*ONE_RANK, "--mesh", mesh, "--microbatches", str(microbatches), "--schedule", schedule)


def slots_of(schedule, microbatches):
    """The most slots that a value has which is made in a step, on stages of 64 samples in so many micro-batches."""
    command = [runs.tool("dgc"), os.path.join(runs.EXAMPLES, "lenet.mlir"), *pipeline(schedule, microbatches=microbatches)[1:],
               "--emit", "plan"]
    plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return max(value.get("slots", 1) for value in plan["values"] if value["kind"] in ("activation", "gradient"))


class SchedulesTest(runs.JobTest):
    def train(self, plan):
        return self.run_job(self.job(*plan), *DATA, "--seed", "3", "--threads", "1", "--epochs", "1")

    def test_losses_of_one_rank(self):
        expected = self.train(ONE_RANK)
        for mesh in ("pipe=2", "data=2,pipe=2", "pipe=3"):
            for schedule in SCHEDULES[:2] if mesh == "pipe=3" else SCHEDULES:
                with self.subTest(schedule=schedule, mesh=mesh):
                    found = self.train(pipeline(schedule, mesh))
                    for kind in ("step", "eval"):
                        self.assertEqual(len(found.of(kind)), len(expected.of(kind)))
                        for ours, theirs in zip(found.of(kind), expected.of(kind)):
                            self.assertLess(abs(ours["loss"] / theirs["loss"] - 1), 1e-5, f"{ours}, one rank {theirs}")

    def test_buffers_are_bounded(self):
        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule):
                few, many = slots_of(schedule, 8), slots_of(schedule, 32)
                self.assertEqual((few, many), (8, 32) if schedule == "gpipe" else (few, few))
                self.assertLessEqual(few, 8)


if __name__ == "__main__":
    runs.main()
