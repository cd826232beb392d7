# SPDX-License-Identifier: Apache-2.0
"""Proves that a model trained on one rank has the losses and gradients that PyTorch has from the same weights and data.

    python3 compare_pytorch.py BIN MODEL [STEPS]
"""
import json
import math
import sys
from pathlib import Path

import dg_job
import model_cases
from comparison import GRADIENT, Comparison, gradient_deviation, order, relative, scale_name

REFERENCES = Path(__file__).resolve().parent.parent / "pytorch" / "references"


def check_kept_gradients(comparison, subject, gradients, kept):
    """The elements that the reference keeps, the largest magnitude and the norm of each gradient."""
    comparison.expect(f"{subject}: gradients", sorted(gradients) == sorted(kept), True)
    deviations, norms = {}, {}
    for name in set(kept) & set(gradients):
        gradient, expected = gradients[name], kept[name]
        if len(gradient) != model_cases.count(expected["shape"]):
            comparison.expect(f"{subject}: elements of {name}", len(gradient), model_cases.count(expected["shape"]))
            continue
        found = [gradient[position] for position in expected["positions"]]
        scale = kept[scale_name(name)]["largest"]
        deviations[name] = gradient_deviation(found, expected["values"], scale)
        if scale_name(name) == name:
            norms[name] = relative(math.sqrt(math.fsum(value * value for value in gradient)), expected["norm"])
    for what, values in (("elements of gradients", deviations), ("norms of gradients", norms)):
        worst = max(values, key=lambda name: order(values[name]))
        comparison.check(f"{subject}: {what} of step 0", values[worst], GRADIENT, f"in {worst}")


def main(binaries, name, steps=""):
    case, comparison = model_cases.CASES[name], Comparison()
    steps = int(steps or case.steps)
    expected = json.loads((REFERENCES / f"{name}.json").read_text())
    comparison.expect(f"{name}: made for", (expected["model"], expected["batch"], expected["optimizer"]),
                      (case.source, case.batch, case.optimizer))
    with dg_job.Commands(binaries) as commands:
        data = model_cases.write_data(case, commands.folder)
        job = commands.compile(case.source, "--batch", case.batch)
        losses = commands.losses(job, data, "--steps", steps, *case.rate)
        gradients = dg_job.gradients_of(commands, case, data, [], job)
    subject = f"{name} against PyTorch {expected['pytorch']}"
    comparison.check_training(subject, losses, expected["losses"], steps)
    check_kept_gradients(comparison, subject, gradients, expected["gradients"])
    comparison.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
