# SPDX-License-Identifier: Apache-2.0
"""Trains for a long time and watches for growth: memory and descriptors of every process, and the time of a step.

    DG_BIN=build/release/bin python3 tests/multirank/soak.py --minutes 60

Not a ctest: it takes as long as it is told. It compares the second half with the end of the first tenth, prints both, and ends with 1 if
something grew.
"""
import argparse
import os
import signal
import statistics
import tempfile
import time

import runs

PLAN = ("lenet", "--batch", "64", "--mesh")
SAMPLES = 200
# The machine's noise; a leak of one buffer or descriptor in each step exceeds it by far.
ALLOWED_GROWTH = {"memory_kib": 1.05, "descriptors": 1.0, "step_us": 1.25}


def memory_kib(pid):
    """What this process alone holds, and its part of what it shares."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def sample(run, seen_steps):
    pids = run.processes()
    losses = run.text(0).splitlines()
    fresh = [line for line in losses[seen_steps:] if line.startswith('{"event":"step"')]
    step_us = [float(line.split('"step_us":')[1].split(",")[0]) for line in fresh]
    return {"memory_kib": sum(map(memory_kib, pids)), "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids),
            "step_us": statistics.median(step_us) if step_us else None}, len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--mesh", default="data=2,pipe=2")
    flags = parser.parse_args()
    minutes, job = flags.minutes, runs.JobTest.job(*PLAN, flags.mesh)
    with tempfile.TemporaryDirectory(prefix="dg-soak-") as folder:
        options = [*runs.IMAGE_DATA, *runs.ENDLESS, "--threads", "1", "--check-replicas", "100", "--checkpoint", os.path.join(folder, "kept")]
        with runs.Running(job, *options, folder=folder) as run:
            run.wait_for_event("step")
            samples, seen = [], 0
            for _ in range(SAMPLES):
                time.sleep(minutes * 60 / SAMPLES)
                taken, seen = sample(run, seen)
                samples.append(taken)
            os.kill(run.launcher(), signal.SIGTERM)
            finished = run.finish()
    begin, end = samples[SAMPLES // 20:SAMPLES // 10], samples[SAMPLES // 2:]
    is_bad = finished.code != 75
    print(f"{finished.of('end')[0]['steps'] if finished.of('end') else 0} steps in {minutes:g} min, exit code {finished.code}, expected 75")
    for name, allowed in ALLOWED_GROWTH.items():
        first, last = (statistics.median(s[name] for s in part if s[name] is not None) for part in (begin, end))
        is_grown = last > first * allowed
        is_bad = is_bad or is_grown
        print(f"{name}: {first:.0f} early, {last:.0f} in the second half{', GREW' if is_grown else ''}")
    return 1 if is_bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
