#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LeNet on Fashion-MNIST, trained by PyTorch and by DG with the same settings: do both reach the same test accuracy?

usage: accuracy.py BIN_DIR [--seeds 5] [--epochs 3]      (needs torch and numpy, and Debian's dataset-fashion-mnist)

Both start from the same distributions, shuffle by their own seed, batch 64, SGD 0.01 with momentum 0.5, cosine over the epochs, inputs
normalised by (0.5, 0.5). Exits 1 where the means over the seeds are more than half a point apart.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional

DATA = "/usr/share/datasets/fashion-mnist"
TOLERANCE_POINTS = 0.5


def read_idx(name):
    with gzip.open(os.path.join(DATA, name)) as file:
        data = file.read()
    rank = data[3]
    shape = numpy.frombuffer(data, ">i4", rank, 4)
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * rank).reshape(shape)


def images(name):
    return torch.tensor((read_idx(name).astype("f4") / 255 - 0.5) / 0.5).unsqueeze(1)


def labels(name):
    return torch.tensor(read_idx(name).astype("i8"))


def train_pytorch(seed, epochs, train, test):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                          nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    x, y = train
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            functional.nll_loss(model(x[batch]), y[batch]).backward()
            optimizer.step()
        schedule.step()
    with torch.no_grad():
        return 100 * (model(test[0]).argmax(1) == test[1]).float().mean().item()


def train_dg(bin_dir, job, seed, epochs):
    command = [os.path.join(bin_dir, "dgrun"), job, "--json", "--seed", str(seed), "--epochs", str(epochs),
               "--lr-schedule", f"cosine:epochs={epochs}", "--normalize", "x=0.5,0.5"]
    for flag, part in (("--data", "train"), ("--eval-data", "t10k")):
        command += [flag, f"x={DATA}/{part}-images-idx3-ubyte.gz", flag, f"y={DATA}/{part}-labels-idx1-ubyte.gz"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    events = [json.loads(line) for line in output.splitlines()]
    return 100 * [event["accuracy"] for event in events if event["event"] == "eval"][-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
    train = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
    test = images("t10k-images-idx3-ubyte.gz"), labels("t10k-labels-idx1-ubyte.gz")
    results = {"dg": [], "pytorch": []}
    with tempfile.TemporaryDirectory() as folder:
        job = os.path.join(folder, "lenet.dgx")
        subprocess.run([os.path.join(arguments.bin_dir, "dgc"), os.path.join(root, "examples/lenet.mlir"), "--batch", "64",
                        "-o", job], check=True)
        for seed in range(arguments.seeds):
            results["dg"].append(train_dg(arguments.bin_dir, job, seed, arguments.epochs))
            results["pytorch"].append(train_pytorch(seed, arguments.epochs, train, test))
            print(f"seed {seed}: dg {results['dg'][-1]:.2f} %, pytorch {results['pytorch'][-1]:.2f} %", flush=True)
    means = {name: statistics.mean(values) for name, values in results.items()}
    difference = means["dg"] - means["pytorch"]
    print(f"mean of {arguments.seeds} seeds: dg {means['dg']:.2f} %, pytorch {means['pytorch']:.2f} %, difference {difference:+.2f} points")
    return 0 if abs(difference) <= TOLERANCE_POINTS else 1


if __name__ == "__main__":
    sys.exit(main())
