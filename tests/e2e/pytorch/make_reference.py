# SPDX-License-Identifier: Apache-2.0
"""Makes references/MODEL.json: what PyTorch gives from DG's initial weights and the data of ../models/model_cases.py.

Kept are the losses of all steps and, for each gradient of step 0, its largest magnitude, its norm and 64 elements: the 32
largest, and 32 at positions spread over all. Then it compares all elements with DG's and prints the deviations; with --check it does
only that and writes nothing.

    build/venv/bin/python tests/e2e/pytorch/make_reference.py build/release/bin [--check] [MODEL…]
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch

import reference

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "models"))

import comparison  # noqa: E402
import dg_job  # noqa: E402
import model_cases  # noqa: E402

KEPT_LARGEST = 32
KEPT_SPREAD = 32


def positions(gradient):
    """Fixed positions: the largest elements, and a walk by an odd stride that meets every row and column."""
    if gradient.size <= KEPT_LARGEST + KEPT_SPREAD:
        return list(range(gradient.size))
    largest = np.argsort(-np.abs(gradient), kind="stable")[:KEPT_LARGEST]
    spread = [i * 2654435761 % gradient.size for i in range(KEPT_SPREAD)]
    return sorted({int(p) for p in largest} | set(spread))


def describe(gradient):
    flat = gradient.numpy().reshape(-1)
    kept = positions(flat)
    return {
        "shape": list(gradient.shape),
        "largest": float(np.abs(flat).max()),
        "norm": float(np.linalg.norm(flat.astype(np.float64))),
        "positions": kept,
        "values": [float(flat[p]) for p in kept],
    }


def train(case, weights, data, dtype, steps):
    """Losses and gradients of PyTorch."""
    _, shapes, holds_ids = reference.MODELS[case.name]
    torch_type = reference.DTYPES[dtype]
    parameters = reference.load_parameters(weights, shapes, torch_type)
    x = reference.load_inputs(data / "x.npy", torch_type, holds_ids)
    y = reference.load_inputs(data / "y.npy", None if case.classes else torch_type, False)
    return reference.train(case.name, parameters, x, y, case.batch, steps, case.optimizer)


def compact(value):
    """Nine digits give an f32 back exactly."""
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [compact(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def write(case, losses, gradients):
    record = {
        "model": case.source,
        "batch": case.batch,
        "optimizer": case.optimizer,
        "pytorch": torch.__version__,
        "losses": losses,
        "gradients": {name: describe(g) for name, g in gradients.items()},
    }
    text = json.dumps(compact(record), separators=(",", ":")).replace('},"', '},\n"').replace('"losses"', '\n"losses"')
    (FOLDER / "references").mkdir(exist_ok=True)
    (FOLDER / "references" / f"{case.name}.json").write_text(text + "\n")


def compare(commands, case, is_kept):
    """Trains with both; keeps what PyTorch gives, or only compares."""
    data = model_cases.write_data(case, commands.folder)
    job = commands.compile(case.source, "--batch", case.batch)
    weights = commands.checkpoint_after_one_step(job, data, "--lr", 0)
    losses, gradients = train(case, weights, data, "f32", case.steps)
    exact_losses, exact_gradients = train(case, weights, data, "f64", 1)

    if is_kept:
        write(case, losses, gradients)
    found_losses = commands.losses(job, data, "--steps", case.steps, *case.rate)
    found_gradients = dg_job.gradients_of(commands, case, data, [], job)
    flat = {name: g.numpy().reshape(-1).tolist() for name, g in gradients.items()}
    exact = {name: g.numpy().reshape(-1).tolist() for name, g in exact_gradients.items()}
    result = comparison.Comparison()
    result.check_training(f"{case.name} DG against PyTorch f32", found_losses, losses, case.steps)
    result.check_gradients(f"{case.name} DG against PyTorch f32", found_gradients, flat)
    result.check_losses(f"{case.name} DG against PyTorch f64", found_losses, exact_losses, 1, comparison.FIRST_LOSS)
    result.check_gradients(f"{case.name} DG against PyTorch f64", found_gradients, exact)
    result.check_losses(f"{case.name} PyTorch f32 against its f64", losses, exact_losses, 1, comparison.FIRST_LOSS)
    result.check_gradients(f"{case.name} PyTorch f32 against its f64", flat, exact)
    return result.failures


def main(binaries, *arguments):
    is_kept, names = "--check" not in arguments, [name for name in arguments if name != "--check"]
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    failures = []
    for name in names or model_cases.CASES:
        with dg_job.Commands(binaries) as commands:
            failures += compare(commands, model_cases.CASES[name], is_kept)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
