# SPDX-License-Identifier: Apache-2.0
"""Measures how far PyTorch parts from itself: f32 against f64, and against the summed gradients of 2 and 4 parts of a batch.

A pre-activation within rounding of zero makes relu open or stay shut by chance, and from there two correct trainings part. This
is what no comparison in f32 can promise to undercut. No result of DG but its initial weights is looked at.

    build/venv/bin/python tests/e2e/pytorch/measure_chaos.py build/release/bin MODEL OPTIMIZER…
"""
import sys
from pathlib import Path

import torch

import reference

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))

import comparison  # noqa: E402
import dg_job  # noqa: E402
import model_cases  # noqa: E402


def train_in_parts(case, optimizer_text, weights, data, dtype, parts):
    """The loss of each step, each batch cut into that many parts."""
    loss_of, shapes, holds_ids = reference.MODELS[case.name]
    parameters = reference.load_parameters(weights, shapes, dtype)
    x = reference.load_inputs(data / "x.npy", dtype, holds_ids)
    y = reference.load_inputs(data / "y.npy", None if case.classes else dtype, False)
    optimizer = reference.parse_optimizer(optimizer_text, list(parameters.values()))
    losses = []
    for _, (bx, by) in zip(range(case.steps), reference.batches(x, y, case.batch)):
        optimizer.zero_grad()
        total = 0.0
        for px, py in zip(bx.chunk(parts), by.chunk(parts)):
            loss = loss_of(parameters, px, py) * (len(px) / len(bx))
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def main(binaries, name, *optimizers):
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    case = model_cases.CASES[name]
    with dg_job.Commands(binaries) as commands:
        data = model_cases.write_data(case, commands.folder)
        job = commands.compile(case.source, "--batch", case.batch)
        weights = commands.checkpoint_after_one_step(job, data, "--lr", 0)
        for optimizer in optimizers:
            whole, exact, halves, quarters = (
                train_in_parts(case, optimizer, weights, data, dtype, parts)
                for dtype, parts in ((torch.float32, 1), (torch.float64, 1), (torch.float32, 2), (torch.float32, 4))
            )
            print(f"{name} {optimizer}: loss {whole[0]:.4f} to {whole[-1]:.4f}", flush=True)
            result = comparison.Comparison()
            for what, losses in (("f64", exact), ("2 parts", halves), ("4 parts", quarters)):
                result.check_training(f"PyTorch f32 against {what}", losses, whole, case.steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
