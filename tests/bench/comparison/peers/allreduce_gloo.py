# SPDX-License-Identifier: Apache-2.0
"""All-reduce of f32 in place by gloo, under torch.distributed.run: the median of rounds, as collectives_bench measures it."""
import json
import statistics
import sys
import time

import torch
import torch.distributed

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
size = int(sys.argv[1])
data = torch.zeros(size // 4)
per_round = min(max((1 << 20) // size, 1), 20)
rounds = 20 if size > 1 << 22 else 40
times = []
for _ in range(rounds + 5):
    begin = time.perf_counter()
    for _ in range(per_round):
        torch.distributed.all_reduce(data)
    times.append((time.perf_counter() - begin) * 1e6 / per_round)
if torch.distributed.get_rank() == 0:
    print(json.dumps({"bytes": size, "median_us": statistics.median(times[5:])}), flush=True)
torch.distributed.destroy_process_group()
