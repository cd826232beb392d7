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
import torch.nn.functional as functional
from torch import nn

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 4, 384, 6, 256, 8192
WARM_UP = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Front(nn.Module):
    """Embeddings and the first blocks."""

    def __init__(self, blocks):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))

    def forward(self, tokens):
        return self.blocks(self.tokens(tokens) + self.places)


class Back(nn.Module):
    """The last blocks and the logits."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(x)))


def token_loss(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def data_parallel_step(name):
    if name == "lenet":
        model = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2),
                              nn.ReLU(), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(1))
        x, y, loss = torch.randn(32, 1, 28, 28), torch.randint(10, (32,)), functional.nll_loss
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    elif name == "mlp":
        model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
        x, y, loss = torch.randn(128, 784), torch.randint(10, (128,)), functional.cross_entropy
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    else:
        model = nn.Sequential(Front(LAYERS // 2), Back(LAYERS // 2))
        x, y = torch.randint(VOCABULARY, (2, LENGTH)), torch.randint(VOCABULARY, (2, LENGTH))
        loss = token_loss
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
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
