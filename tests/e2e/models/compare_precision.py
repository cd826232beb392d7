# SPDX-License-Identifier: Apache-2.0
"""Proves that jobs in mixed precision train as in f32 and cost what they promise.

usage: compare_precision.py BIN_DIR gpt|lenet

gpt: English text, 500 steps, losses within 1 % of f32; half the bytes of gradients, at most 0.6 of those of activations; a
scale of the loss that is far too large is brought down by skipped steps; checkpoints hold f32 and the scale.
lenet: Fashion-MNIST, mean accuracy of five seeds within 0.3 points of f32.
"""
import json
import struct
import sys
from array import array
from pathlib import Path

from dg_job import Commands

TEXTS = Path("/usr/share/common-licenses")
IMAGES = "/usr/share/datasets/fashion-mnist"
GPT, TOKENS = "gpt:layers=2,hidden=64,heads=2,seq=32,vocab=128", 32


def write_npy(path, rows):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header = header.ljust((len(header) + 10) // 64 * 64 + 64 - 11) + "\n"
    data = array("i", [token for row in rows for token in row]).tobytes()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def write_text(folder):
    text = b"".join(file.read_bytes() for file in sorted(TEXTS.iterdir()) if file.is_file())
    tokens = [byte for byte in text if byte < 128]
    starts = range(0, len(tokens) - TOKENS - 1, TOKENS)
    if len(starts) < 1000:
        raise SystemExit(f"{TEXTS} has {len(tokens)} characters of text, expected at least {1000 * TOKENS}")
    write_npy(folder / "x.npy", [tokens[start : start + TOKENS] for start in starts])
    write_npy(folder / "y.npy", [tokens[start + 1 : start + TOKENS + 1] for start in starts])


def check(what, found, is_good, expected):
    print(f"{what}: {found}, expected {expected}")
    if not is_good:
        raise SystemExit(1)


def plan_bytes(commands, precision):
    """Bytes of activations, and of what data ranks reduce, in the plan of a larger GPT over two ranks."""
    plan = json.loads(commands.run("dgc", "gpt:layers=4,hidden=128,heads=4,seq=64,vocab=512", "--batch", 8, "--mesh", "data=2", "--precision", precision, "--emit", "plan"))
    activations = sum(value["bytes"] for value in plan["values"] if value["kind"] == "activation")
    written = [op.get("to", op.get("value")) for op in plan["ops"] if op["kind"] in ("all_reduce", "all_gather", "reduce_scatter")]
    return activations, sum(plan["values"][value]["bytes"] for value in written)


def checkpoint_types(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: tensor["dtype"] for name, tensor in header.items() if name != "__metadata__"}


def compare_gpt(commands):
    data = commands.folder
    write_text(data)
    flags = ["--batch", 16, "--optimizer", "adamw:lr=0.002"]
    steps = ["--threads", 1, "--steps", 500, "--seed", 3]
    ends = {}
    for precision in ["f32", "bf16", "f16"]:
        losses = commands.losses(commands.compile(GPT, *flags, "--precision", precision), data, *steps)
        ends[precision] = sum(losses[-20:]) / 20
    for precision in ["bf16", "f16"]:
        ratio = ends[precision] / ends["f32"]
        check(f"{precision}, mean loss of steps 481 to 500", ends[precision], abs(ratio - 1) < 0.01, f"{ends['f32']} within 1 %")
    two = commands.losses(commands.compile(GPT, *flags, "--precision", "bf16", "--mesh", "data=2"), data, *steps)
    check("bf16 on two ranks", sum(two[-20:]) / 20, abs(sum(two[-20:]) / 20 / ends["f32"] - 1) < 0.01, f"{ends['f32']} within 1 %")

    job = commands.compile(GPT, *flags, "--precision", "f16", "--loss-scale", "1e12")
    losses = commands.losses(job, data, *steps)
    check("f16 with a loss scale of 1e12", sum(losses[-20:]) / 20, abs(sum(losses[-20:]) / 20 / ends["f32"] - 1) < 0.05, "steps are skipped until it fits")
    types = checkpoint_types(commands.checkpoint_after_one_step(job, data, "--seed", 3))
    check("types in the checkpoint", sorted(set(types.values())), set(types.values()) == {"F32"} and "loss_scale" in types, "F32, and a loss_scale")

    wide, narrow = plan_bytes(commands, "f32"), plan_bytes(commands, "bf16")
    check("bytes of activations", narrow[0] / wide[0], narrow[0] <= 0.6 * wide[0], "at most 0.6 of f32")
    check("bytes of gradients between ranks", narrow[1] / wide[1], abs(narrow[1] / wide[1] - 0.5) < 0.01, "half of f32")


def compare_lenet(commands, seeds=5):
    def files(flag, part):
        return [flag, f"x={IMAGES}/{part}-images-idx3-ubyte.gz", flag, f"y={IMAGES}/{part}-labels-idx1-ubyte.gz"]

    means = {}
    for precision in ["f32", "bf16", "f16"]:
        job = commands.compile("lenet.mlir", "--batch", 64, "--precision", precision)
        accuracies = []
        for seed in range(1, seeds + 1):
            lines = commands.run("dgrun", job, *files("--data", "train"), *files("--eval-data", "t10k"), "--epochs", 2, "--seed", seed, "--json").splitlines()
            accuracies.append([event["accuracy"] for event in map(json.loads, lines) if event["event"] == "eval"][-1])
        means[precision] = 100 * sum(accuracies) / seeds
    for precision in ["bf16", "f16"]:
        check(f"{precision}, mean accuracy", means[precision], abs(means[precision] - means["f32"]) < 0.3, f"{means['f32']} within 0.3 points")


if __name__ == "__main__":
    with Commands(sys.argv[1]) as commands:
        {"gpt": compare_gpt, "lenet": compare_lenet}[sys.argv[2]](commands)
