# SPDX-License-Identifier: Apache-2.0
"""Measures how much of the communication of data-parallel training is hidden behind computation, between two hosts whose link carries 1 Gbit/s.

    DG_BIN=build/release/bin python3 tests/multirank/overlap.py [--steps N] [--job JOB.dgx]

Not a ctest: it wants a quiet machine. `compute` is the median step on one host, where gradients are summed in place in a few milliseconds;
`link` what the bytes of all all-reduces need at the rate of a bare exchange, both ways at once over one connection; `step` the median step over the link. Hidden is compute + link - step. What
can be hidden is compute + link - the shortest step, in which each gradient is on the link as soon as it exists (the trace of a run on one
host tells when) and the link has become free, and nothing is done after the last one has arrived. Ends with 1 where less than 70 % of that is hidden.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile

import hosts
import runs

MODEL = ["gpt:layers=4,hidden=384,heads=6,seq=256,vocab=8192", "--batch", "4", "--optimizer", "adamw:lr=0.0001", "--mesh", "data=2"]
DATA = ["--data", "x=randint:8192:40x256", "--data", "y=randint:8192:40x256"]
LINK_BITS = 1e9
EXCHANGED_BYTES = 50_000_000
# Sends so many bytes and receives as many at the same time; prints the seconds. Arguments: bytes, own address, peer's address or nothing.
EXCHANGE = """
import socket, sys, threading, time
size, own, peer = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if peer:
    end = time.monotonic() + 10
    while True:
        try:
            line = socket.create_connection((peer[0], 7700), timeout=10)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
else:
    line = socket.create_server((own, 7700)).accept()[0]
line.settimeout(30)
begin = time.monotonic()
sender = threading.Thread(target=line.sendall, args=(bytes(size),))
sender.start()
left, block = size, memoryview(bytearray(1 << 20))
while left:
    left -= line.recv_into(block, min(left, len(block))) or sys.exit("the other end is gone")
sender.join()
print(time.monotonic() - begin)
"""
WARM_UP = 2
MUST_HIDE = 0.70


def step_ms(finished):
    if finished.code:
        raise SystemExit(f"overlap: dgrun ended with {finished.code}: {finished.err}")
    return statistics.median([event["step_us"] for event in finished.of("step")][WARM_UP:]) / 1000


def exchange_rate(first, second):
    """Bytes a second that two hosts exchange, each sending and receiving."""
    commands = [first.inside(sys.executable, "-c", EXCHANGE, str(EXCHANGED_BYTES), first.address),
                second.inside(sys.executable, "-c", EXCHANGE, str(EXCHANGED_BYTES), second.address, first.address)]
    ends = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return EXCHANGED_BYTES / max(float(end.communicate(timeout=60)[0]) for end in ends)


def link_ms(job, rate):
    """What each all-reduce of a training step needs of the link, by task: with two ranks each sends half of every summand and half of every sum."""
    with zipfile.ZipFile(job) as package:
        plan = json.loads(package.read("plan.json"))
    train = {op for stage in plan["stages"] if stage["program"] == 0 for op in stage["ops"]}
    return {number: plan["values"][plan["ops"][number]["value"]]["bytes"] * 1e3 / rate for number in train
            if plan["ops"][number]["kind"] == "all_reduce"}


def ready_ms(trace, tasks):
    """When each task began in its step, by the trace: the median over steps of rank 0."""
    with open(trace, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and event["pid"] == 0 and event["args"]["program"] == "train"]
    begin, began = {}, {}
    for event in events:
        step = event["args"]["step"]
        begin[step] = min(begin.get(step, event["ts"]), event["ts"])
    for event in events:
        if event["args"]["op"] in tasks and not event["name"].endswith(" finish"):
            began.setdefault(event["args"]["op"], []).append((event["ts"] - begin[event["args"]["step"]]) / 1000)
    return {task: statistics.median(times[WARM_UP:]) for task, times in began.items()}


def shortest_ms(compute, ready, link):
    free = 0
    for task in sorted(link, key=ready.get):
        free = max(free, ready[task]) + link[task]
    return max(compute, free)


class Overlap(hosts.HostsTest):
    def measure(self, job, steps):
        flags = [*DATA, "--threads", "1", "--steps", str(steps)]
        compute = step_ms(self.run_job(job, *flags))
        trace = os.path.join(self.folder, "trace.json")
        step_ms(self.run_job(job, *flags, "--trace", trace))
        for host in self.hosts:
            host.run("tc", "qdisc", "add", "dev", "net0", "root", "tbf", "rate", f"{LINK_BITS:.0f}bit", "burst", "256kb", "latency", "100ms")
        rate = exchange_rate(*self.hosts)
        link = link_ms(job, rate)
        shortest = shortest_ms(compute, ready_ms(trace, link), link)
        with contextlib.ExitStack() as stack:
            step = step_ms([node.finish() for node in self.start_nodes(stack, job, *flags)][0])
        needed = sum(link.values())
        share = (compute + needed - step) / (compute + needed - shortest)
        print(f"{rate * 8e-6:.0f} Mbit/s, compute {compute:.0f} ms, link {needed:.0f} ms, step {step:.0f} ms, at the shortest {shortest:.0f} ms: "
              f"{compute + needed - step:.0f} ms hidden, {100 * share:.0f} % of what can be")
        return share


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--job", help="a job that was compiled before")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dg-overlap-") as folder:
        job = os.path.abspath(flags.job) if flags.job else os.path.join(folder, "gpt.dgx")
        if not os.path.exists(job):
            subprocess.run([runs.tool("dgc"), *MODEL, "-o", job], check=True)
        bench = Overlap("measure")
        try:
            bench.setUp()
            return 0 if bench.measure(job, flags.steps) >= MUST_HIDE else 1
        finally:
            bench.doCleanups()


if __name__ == "__main__":
    hosts.enter()
    sys.exit(main())
