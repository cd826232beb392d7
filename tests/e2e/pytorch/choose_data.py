# SPDX-License-Identifier: Apache-2.0
"""Finds data on which f32 training can be compared at all, with PyTorch alone: f32 against f64 and against parts of batches.

A pre-activation within rounding of zero makes relu open or stay shut by chance, and from there two correct trainings part.
Data number 0, 1, 2, … is tried until PyTorch in f32 agrees, within the tolerances of the comparisons, with itself in f64 and
with the summed gradients of 2 and of 4 equal parts of each batch. No result of DG but its initial weights is looked at.

    build/venv/bin/python tests/e2e/pytorch/choose_data.py build/release/bin MODEL [NUMBER]
"""
import dataclasses
import sys
from pathlib import Path

import torch

import reference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))

import comparison  # noqa: E402
import dg_job  # noqa: E402
import model_cases  # noqa: E402


def train_in_parts(case, weights, data, dtype, parts):
    """Yields the loss of each step, each batch cut into that many parts."""
    loss_of, shapes, holds_ids = reference.MODELS[case.name]
    parameters = reference.load_parameters(weights, shapes, dtype)
    x = reference.load_inputs(data / "x.npy", dtype, holds_ids)
    y = reference.load_inputs(data / "y.npy", None if case.classes else dtype, False)
    optimizer = reference.parse_optimizer(case.optimizer, list(parameters.values()))
    for _, (bx, by) in zip(range(case.steps), reference.batches(x, y, case.batch)):
        optimizer.zero_grad()
        total = 0.0
        for px, py in zip(bx.chunk(parts), by.chunk(parts)):
            loss = loss_of(parameters, px, py) * (len(px) / len(bx))
            loss.backward()
            total += loss.item()
        optimizer.step()
        yield total


def is_comparable(commands, case, weights):
    """Steps all trainings together and stops at the first step that leaves its tolerance."""
    data = model_cases.write_data(case, commands.folder)
    variants = [(torch.float32, 1), (torch.float64, 1), (torch.float32, 2), (torch.float32, 4)]
    runs = [train_in_parts(case, weights, data, dtype, parts) for dtype, parts in variants]
    worst = 0.0
    for step, (whole, *others) in enumerate(zip(*runs)):
        deviation = max(comparison.relative(other, whole) for other in others)
        worst = max(worst, deviation)
        if deviation > comparison.tolerance_of_step(step):
            print(f"{case.name} data {case.data_number}: PyTorch parts from itself by {deviation:.1e} at step {step}", flush=True)
            return False
    print(f"{case.name} data {case.data_number}: PyTorch agrees with itself within {worst:.1e}")
    return True


def main(binaries, name, number=0):
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    case = dataclasses.replace(model_cases.CASES[name], data_number=int(number))
    with dg_job.Commands(binaries) as commands:
        data = model_cases.write_data(case, commands.folder)
        job = commands.compile(case.source, "--batch", case.batch)
        weights = commands.checkpoint_after_one_step(job, data, "--lr", 0)
        while not is_comparable(commands, case, weights):
            case = dataclasses.replace(case, data_number=case.data_number + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
