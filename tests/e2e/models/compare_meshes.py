# SPDX-License-Identifier: Apache-2.0
"""Proves that a model trains alike on one rank and split over real processes by data, tensor, pipe and combinations.

    python3 compare_meshes.py BIN MODEL [MESH…]
"""
import sys

import dg_job
import model_cases
from comparison import Comparison


def train(commands, case, data, mesh):
    """Losses and gradients of step 0 with one plan."""
    flags = ["--mesh", mesh, *case.numbers_of_microbatches(mesh)]
    job = commands.compile(case.source, "--batch", case.batch, *flags)
    losses = commands.losses(job, data, "--steps", case.steps, *case.rate)
    return losses, dg_job.gradients_of(commands, case, data, flags, job)


def main(binaries, name, *meshes):
    case, comparison = model_cases.CASES[name], Comparison()
    with dg_job.Commands(binaries) as commands:
        data = model_cases.write_data(case, commands.folder)
        expected_losses, expected_gradients = train(commands, case, data, "data=1")
        for mesh in meshes or model_cases.MESHES:
            losses, gradients = train(commands, case, data, mesh)
            comparison.check_training(f"{name} {mesh} against 1 rank", losses, expected_losses, case.steps)
            comparison.check_gradients(f"{name} {mesh} against 1 rank", gradients, expected_gradients)
    comparison.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
