# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch over two ranks, under torch.distributed.run: train.py lenet|mlp|gpt|gpt-pipeline STEPS

Data-parallel models see half of the batch on each rank (DDP); the pipeline has two stages and four micro-batches (1F1B).
"""
import json
import statistics
import sys
import time

import torch
import torch.distributed
from torch import nn
from torch_models import LAYERS, LENGTH, VOCABULARY, Back, Front, token_loss, training

WARM_UP = 3
# Samples of a batch on each of the two ranks.
BATCH = {"lenet": 32, "mlp": 128, "gpt": 2}


def data_parallel_step(name):
    model, x, y, loss, optimizer = training(name, BATCH[name])
    parallel = nn.parallel.DistributedDataParallel(model)

    def step():
        optimizer.zero_grad()
        loss(parallel(x), y).backward()
        optimizer.step()

    return step


def pipeline_step():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank = torch.distributed.get_rank()
    stage = Front(LAYERS // 2) if rank == 0 else Back(LAYERS // 2)
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-4)
    schedule = Schedule1F1B(PipelineStage(stage, rank, 2, torch.device("cpu")), 4, loss_fn=token_loss)
    x, y = torch.randint(VOCABULARY, (4, LENGTH)), torch.randint(VOCABULARY, (4, LENGTH))

    def step():
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=[])
        optimizer.step()
        torch.distributed.barrier()

    return step


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    name, steps = sys.argv[1], int(sys.argv[2])
    step = pipeline_step() if name == "gpt-pipeline" else data_parallel_step(name)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e6)
    if torch.distributed.get_rank() == 0:
        print(json.dumps({"model": name, "median_us": statistics.median(times[WARM_UP:])}), flush=True)
    torch.distributed.destroy_process_group()


main()
