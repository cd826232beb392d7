# SPDX-License-Identifier: Apache-2.0
"""A peer that is ready to take training steps: serve_steps.py eager|autocast|compile|jax MODEL BATCH THREADS

Prints one JSON object when it is warm. For each line on stdin, a number of seconds, it takes steps for so long and prints
their median. autocast is PyTorch with products in bf16. MODEL gemm (eager) multiplies two matrices of BATCH x BATCH. The first object has how far the peak of resident memory rose
above what the process had before the model was made.
"""
import json
import os
import resource
import statistics
import sys
import time

WARM_UP = 3
FEWEST = 5


def torch_step(peer, name, batch, threads):
    import torch
    from torch_models import training

    torch.set_num_threads(threads)
    if name == "gemm":
        a, b, c = (torch.randn(batch, batch) for _ in range(3))
        return lambda: torch.mm(a, b, out=c)
    model, x, y, loss, optimizer = training(name, batch)

    def value():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=peer == "autocast"):
            return loss(model(x), y)

    forward = torch.compile(value) if peer == "compile" else value
    update = torch.compile(optimizer.step) if peer == "compile" else optimizer.step

    def step():
        optimizer.zero_grad(set_to_none=True)
        forward().backward()
        update()

    return step


def make_step(peer, name, batch, threads):
    if peer == "jax":
        from jax_models import step_of

        return step_of(name, batch)
    return torch_step(peer, name, batch, threads)


def resident_bytes():
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def warm_up(step):
    for _ in range(WARM_UP):
        step()


def main():
    peer, name, batch, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if peer != "jax":
        import torch

        torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    before = resident_bytes()
    step = make_step(peer, name, batch, threads)
    warm_up(step)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ready": True, "peak_bytes": peak - before}), flush=True)
    for line in sys.stdin:
        warm_up(step)
        times, end = [], time.perf_counter() + float(line)
        while time.perf_counter() < end or len(times) < FEWEST:
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e6)
        print(json.dumps({"median_us": statistics.median(times), "least_us": min(times)}), flush=True)


main()
