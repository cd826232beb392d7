# SPDX-License-Identifier: Apache-2.0
"""Proves that uneven work is right: batches that ranks cannot share equally, last smaller batches, accumulated batches.

    python3 compare_uneven.py BIN
"""
import dataclasses
import sys

import dg_job
import model_cases
from comparison import TEN_STEPS, Comparison, relative

MLP, LENET, GPT = (model_cases.CASES[name] for name in ("mlp", "lenet", "gpt_small"))
EPOCHS = 2


def data_of(commands, case, samples):
    folder = commands.folder / f"{case.name}-{samples}"
    folder.mkdir(exist_ok=True)
    return model_cases.write_data(case, folder, samples)


def samples_of(events):
    return [event["samples"] for event in events if event["event"] == "step"]


def check_last_batches(comparison, commands, case, batch, samples, meshes):
    """Losses and sample counts of whole epochs against one rank."""
    data = data_of(commands, case, samples)

    def train(*flags):
        return commands.train(commands.compile(case.source, "--batch", batch, *flags), data, "--epochs", EPOCHS)

    expected = train()
    sizes = [min(batch, samples - start) for start in range(0, samples, batch)]
    for mesh, *flags in meshes:
        subject = f"{case.name} batch {batch} of {samples} samples, {mesh}"
        events = train("--mesh", mesh, *flags)
        found, wanted = dg_job.losses_of(events), dg_job.losses_of(expected)
        comparison.check_losses(subject, found, wanted, EPOCHS * len(sizes), TEN_STEPS)
        comparison.expect(f"{subject}: samples of steps as cut", samples_of(events) == EPOCHS * sizes, True)


# Logarithms and row norms, of which a row of zeros would make NaN.
NORMED_LOGS = """module attributes {dg.optimizer = "sgd:lr=0.01"} {
  dg.graph @loss(%x: tensor<?x10xf32>, %y: tensor<?x1xf32>) {
    %square = dg.mul %x, %x
    %log = dg.log %square
    %sum = dg.reduce_sum %square {dims = array<i64: 1>, keep}
    %norm = dg.sqrt %sum
    %unit = dg.div %log, %norm
    %w = dg.parameter "weight" tensor<1x10xf32> uniform 0.3
    %p = dg.linear %unit, %w
    %loss = dg.mse %p, %y
    dg.return %loss
  }
}
"""


def check_padding_poisons_nothing(comparison, commands):
    source = commands.folder / "normed_logs.mlir"
    source.write_text(NORMED_LOGS)
    case = dataclasses.replace(MLP, name="normed_logs", source=str(source))
    check_last_batches(comparison, commands, case, 10, 23, [("data=4",), ("data=1", "--microbatches", 3)])


def check_each_sample_counts_once(comparison, commands, samples=103):
    """Without learning, the losses of a shuffled epoch weighted by their samples are the loss of all samples at once."""
    data = data_of(commands, MLP, samples)
    (whole,) = commands.losses(commands.compile(MLP.source, "--batch", samples), data, "--lr", 0, "--steps", 1)
    for mesh in ("data=1", "data=4"):
        job = commands.compile(MLP.source, "--batch", 10, "--mesh", mesh)
        events = commands.train(job, data, "--lr", 0, "--epochs", 1, "--shuffle-buffer", samples)
        total = sum(loss * count for loss, count in zip(dg_job.losses_of(events), samples_of(events)))
        comparison.check(f"mlp {samples} samples shuffled, {mesh}: loss of an epoch", relative(total / samples, whole), TEN_STEPS)
    dropped = commands.train(job, data, "--lr", 0, "--epochs", 1, "--drop-last")
    comparison.expect(f"mlp {samples} samples with --drop-last", sum(samples_of(dropped)), samples - samples % 10)


def check_accumulation(comparison, commands, case, batch, steps, meshes):
    """--accumulate 10 against one step on the ten batches together."""
    data = data_of(commands, case, 10 * batch * steps)
    whole = commands.losses(commands.compile(case.source, "--batch", 10 * batch), data, "--steps", steps)
    for mesh, *flags in meshes:
        job = commands.compile(case.source, "--batch", batch, "--accumulate", 10, "--mesh", mesh, *flags)
        subject = f"{case.name} accumulates 10 x {batch}, {mesh}"
        comparison.check_losses(subject, commands.losses(job, data, "--steps", steps), whole, steps, TEN_STEPS)


def main(binaries):
    comparison = Comparison()
    pipe = ("pipe=2", "--microbatches", 4)
    with dg_job.Commands(binaries) as commands:
        # 103 = 10 x 10 + 3: the last batch leaves one of four ranks without a sample.
        check_last_batches(comparison, commands, MLP, 10, 103, [("data=4",), ("data=2",), pipe, ("data=2,pipe=2",)])
        check_last_batches(comparison, commands, MLP, 10, 101, [("data=4",)])
        check_last_batches(comparison, commands, LENET, 10, 27, [("data=2",), pipe])
        check_last_batches(comparison, commands, GPT, 4, 11, [("data=2",), pipe])
        check_padding_poisons_nothing(comparison, commands)
        check_each_sample_counts_once(comparison, commands)
        check_accumulation(comparison, commands, MLP, 8, 10, [("data=1",), ("data=2",), pipe])
        check_accumulation(comparison, commands, GPT, 4, 3, [("data=1",), ("data=2",), pipe])
    comparison.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
