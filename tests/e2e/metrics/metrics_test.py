# SPDX-License-Identifier: Apache-2.0
"""Proves that the metrics of `dgc --metrics` are those of their formulas (as scikit-learn has them), on every mesh and
with partial batches, and that --keep-best and --stop-when take them. The models multiply their input by 1, so that the
predictions are known; many scores are equal.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

BIN = os.environ["DG_BIN"]
SEED = 7
SAMPLES = 101
MESHES = ["data=1", "data=2", "tensor=2", "pipe=2"]


def model(shape, target, loss, extra=""):
    width = shape.split("x")[-1]
    return f"""module attributes {{dg.optimizer = "sgd:lr=0"}} {{
  dg.graph @loss(%x: tensor<?x{shape}xf32>, %y: tensor<?x{target}>) {{
    %one = dg.parameter "one" tensor<{width}xf32> constant 1.0
    %two = dg.parameter "two" tensor<{width}xf32> constant 1.0
    %a = dg.mul %x, %one
    %b = dg.mul %a, %two
    %loss = {loss} %b, %y{extra}
    dg.return %loss
  }}
}}
"""


def write_npy(path, code, shape, values):
    header = f"{{'descr': '<{code}4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def area(scores, target):
    """How often a sample of class 1 is above one of class 0; equal ones count half."""
    ones = [s for s, t in zip(scores, target) if t == 1]
    zeros = [s for s, t in zip(scores, target) if t == 0]
    return mean((a > b) + 0.5 * (a == b) for a in ones for b in zeros)


def of_classes(rows, target):
    """`rows`: scores of the classes for each position; a target below 0 does not count."""
    rows, target = zip(*[(row, t) for row, t in zip(rows, target) if t >= 0])
    orders = [sorted(range(len(row)), key=lambda c, row=row: -row[c]) for row in rows]  # stable: the first of equal ones
    predicted = [order[0] for order in orders]
    both = {c: sum(t == c == p for t, p in zip(target, predicted)) for c in range(len(rows[0]))}
    f1 = [2 * both[c] / (target.count(c) + predicted.count(c)) for c in both if c in target or c in predicted]
    last = max(max(target), max(predicted))
    found = {"f1": mean(f1), "class_accuracy": [both[c] / target.count(c) if c in target else None for c in range(last + 1)]}
    if len(rows[0]) > 5:
        found["top5"] = mean(t in order[:5] for t, order in zip(target, orders))
    if len(rows[0]) == 2:
        found["auc"] = area([row[1] - row[0] for row in rows], target)
    return found


def run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def is_same(key, found, value):
    if found is None or value is None:
        return found is value
    if isinstance(value, list):
        return len(found) == len(value) and all(is_same(key, a, b) for a, b in zip(found, value))
    return abs(found - value) <= 1e-12 + (1e-6 * abs(value) if key in ("mse", "mae") else 0)


def check(name, text, expected, meshes=MESHES):
    """On x.npy and y.npy."""
    with open(name + ".mlir", "w") as file:
        file.write(text)
    for mesh in meshes:
        for microbatches in ("1", "2"):
            run(f"{BIN}/dgc", name + ".mlir", "--batch", "16", "--mesh", mesh, "--microbatches", microbatches, "--metrics", "-o", "job.dgx")
            out = run(f"{BIN}/dgrun", "job.dgx", "--evaluate", "--eval-data", "x=x.npy", "--eval-data", "y=y.npy", "--json").stdout
            event = next(e for e in map(json.loads, out.splitlines()) if e["event"] == "eval")
            for key, value in expected.items():
                assert is_same(key, event.get(key), value), (
                    f"{name} on {mesh}, {microbatches} micro-batches, seed {SEED}: {key} is {event.get(key)}, expected {value}")
    print(f"{name}: {', '.join(expected)}")


def main():
    draw = random.Random(SEED)
    print("seed", SEED)
    os.chdir(tempfile.mkdtemp())

    def scores(count, classes):
        return [[round(2 * draw.gauss(0, 1)) / 2 for _ in range(classes)] for _ in range(count)]  # many are equal

    def write(shape, rows, code, target_shape, target):
        write_npy("x.npy", "f", shape, [score for row in rows for score in row])
        write_npy("y.npy", code, target_shape, target)

    rows, target = scores(SAMPLES * 4, 8), [draw.randrange(8) if draw.random() < 0.7 else -100 for _ in range(SAMPLES * 4)]
    write((SAMPLES, 4, 8), rows, "i", (SAMPLES, 4), target)
    check("positions", model("4x8", "4xi32", "dg.cross_entropy", " {ignore_index = -100}"), of_classes(rows, target))
    rows, target = scores(SAMPLES, 2), [draw.randrange(2) for _ in range(SAMPLES)]
    write((SAMPLES, 2), rows, "i", (SAMPLES,), target)
    check("two", model("2", "i32", "dg.cross_entropy"), of_classes(rows, target))
    rows = scores(SAMPLES, 1)
    write((SAMPLES, 1), rows, "f", (SAMPLES, 1), target)
    check("yes", model("1", "1xf32", "dg.bce_with_logits"), of_classes([[0, row[0]] for row in rows], target),
          [mesh for mesh in MESHES if mesh != "tensor=2"])  # one output cannot be cut
    rows, numbers = scores(SAMPLES, 6), [draw.randrange(-8, 9) / 4 for _ in range(SAMPLES * 6)]
    write((SAMPLES, 6), rows, "f", (SAMPLES, 6), numbers)
    off = [a - b for a, b in zip((score for row in rows for score in row), numbers)]
    check("regression", model("6", "6xf32", "dg.huber"), {"mse": mean(d * d for d in off), "mae": mean(abs(d) for d in off)})
    rows, target = scores(SAMPLES, 8), [draw.randrange(7) for _ in range(SAMPLES)]  # class 7 never comes
    write((SAMPLES, 8), rows, "i", (SAMPLES,), target)
    check("classes", model("8", "i32", "dg.cross_entropy"), of_classes(rows, target))

    # What they decide.
    train = [f"{BIN}/dgrun", "job.dgx", "--epochs", "9"]
    for flag in ("--data", "--eval-data"):
        train += [flag, "x=x.npy", flag, "y=y.npy"]
    run(f"{BIN}/dgc", "classes.mlir", "--batch", "16", "--metrics", "-o", "job.dgx")
    done = run(*train, "--checkpoint", "kept", "--keep-best", "eval.top3", "--stop-when", "eval.f1:patience=2")
    assert "eval.f1 has not risen for 2 evaluations" in done.stdout and "the best so far" in done.stdout, done.stdout
    assert "accuracy by class  0: " in done.stdout, done.stdout
    assert "does not compute it" in run(*train, "--stop-when", "eval.auc:patience=2", code=2).stderr
    run(f"{BIN}/dgc", "classes.mlir", "--batch", "16", "-o", "job.dgx")
    assert "--metrics" in run(*train, "--stop-when", "eval.f1:patience=2", code=2).stderr


if __name__ == "__main__":
    sys.exit(main())
