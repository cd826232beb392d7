#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares dgc --simulate with the measurements of table 1 of arXiv 2104.04473 (Megatron-LM on A100).

usage: megatron_rows.py DGC
Each row is a GPT with sequences of 2048 and a vocabulary of 51200, full recomputation, 16-bit; micro-batch sizes and schedules are those
of the scripts that Megatron-LM published for the table. TFLOP/s are those of the flops that are executed. Megatron runs the whole forward
pass again, as the paper's formula counts; a plan of dgc keeps what ends each half of a block, so that the products before it run once.
Proves: TFLOP/s per GPU within 7 % on every row, and the rows in the right order (Spearman's rank correlation at least 0.85), with the six
constants of docs/decisions/2026-11-16-prediction.md.
"""
import json
import subprocess
import sys

# name, heads, hidden, layers, tensor, pipe, GPUs, batch, samples of a micro-batch, schedule, measured TFLOP/s per GPU
ROWS = [
    ("1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, "1f1b", 137),
    ("3.6B", 32, 3072, 30, 2, 1, 64, 512, 16, "1f1b", 138),
    ("7.5B", 32, 4096, 36, 4, 1, 128, 512, 16, "1f1b", 142),
    ("18.4B", 48, 6144, 40, 8, 1, 256, 1024, 8, "1f1b", 135),
    ("39.1B", 64, 8192, 48, 8, 2, 512, 1536, 4, "1f1b", 138),
    ("76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 2, "interleaved:3", 140),
    ("145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 2, "interleaved:2", 148),
    ("310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 1, "interleaved:2", 155),
    ("529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 1, "interleaved:3", 163),
    ("1008.0B", 160, 25600, 128, 8, 64, 3072, 3072, 1, "1f1b", 163),
]
FIVE = ["1.7B", "7.5B", "39.1B", "145.6B", "1008.0B"]
SEQUENCE, VOCABULARY = 2048, 51200


def simulate(dgc, heads, hidden, layers, tensor, pipe, gpus, batch, samples, schedule):
    data = gpus // tensor // pipe
    command = [dgc, f"gpt:layers={layers},hidden={hidden},heads={heads},seq={SEQUENCE},vocab={VOCABULARY}", "--batch", str(batch),
               "--mesh", f"data={data},tensor={tensor},pipe={pipe}", "--cluster", f"a100x8:nodes={gpus // 8}",
               "--microbatches", str(batch // data // samples), "--schedule", schedule, "--recompute", "full", "--simulate=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def executed_flops(hidden, layers, batch):
    """The paper's formula, without what does not run again: the last product of the attention (2 h²) and of the perceptron (8 h²)."""
    paper = 96 * batch * SEQUENCE * layers * hidden**2 * (1 + SEQUENCE / (6 * hidden) + VOCABULARY / (16 * layers * hidden))
    return paper - 10 * batch * SEQUENCE * layers * hidden**2


def ranks(values):
    ordered = sorted(values)
    return [(ordered.index(v) + len(ordered) - 1 - ordered[::-1].index(v)) / 2 for v in values]


def correlation(xs, ys):
    xs, ys = ranks(xs), ranks(ys)
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
    return covariance / (sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys)) ** 0.5


def main():
    dgc, faults, predicted, measured = sys.argv[1], [], {}, {}
    for name, heads, hidden, layers, tensor, pipe, gpus, batch, samples, schedule, tflops in ROWS:
        result = simulate(dgc, heads, hidden, layers, tensor, pipe, gpus, batch, samples, schedule)
        predicted[name], measured[name] = result["tflops_per_device"], tflops
        counted = executed_flops(hidden, layers, batch) / gpus / result["step_us"] / 1e6
        error = counted / tflops - 1
        print(f"{name:>8}: measured {tflops}, predicted {counted:.1f} ({100 * error:+.1f} %), step {result['step_us'] / 1e6:.2f} s, "
              f"bubble {100 * result['bubble']:.1f} %")
        if abs(error) > 0.07:
            faults.append(f"{name} is {100 * error:+.1f} % off, expected within 7 %")
        if abs(counted / result["tflops_per_device"] - 1) > 0.02:
            faults.append(f"{name}: dgc counts {result['tflops_per_device']:.1f} TFLOP/s, expected {counted:.1f}")
    for names in (FIVE, list(measured)):
        rho = correlation([measured[n] for n in names], [predicted[n] for n in names])
        print(f"rank correlation of {len(names)} rows: {rho:.3f}")
        if rho < 0.85:
            faults.append(f"the rank correlation of {len(names)} rows is {rho:.3f}, expected at least 0.85")
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
