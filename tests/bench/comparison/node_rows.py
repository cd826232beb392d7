# SPDX-License-Identifier: Apache-2.0
"""Training on one node: steps with 1 and 2 threads, what the second thread and bf16 gain, memory, compile times, cost of the executor."""
import json
import os
import re
import statistics
import time

from rows import Missing, Row, limit

# Steps that are thrown away before the median: caches fill, workers start.
WARM_UP = 3
PEERS = {"PyTorch": "eager", "torch.compile": "compile", "JAX": "jax"}
GPT = "gpt:layers=4,hidden=384,heads=6,seq=256,vocab=8192"
GPT2 = "gpt:layers=12,hidden=768,heads=12,seq=1024,vocab=50257"


class Model:
    """What dgc compiles, the data of dgrun, how many steps and seconds make a turn, the peers' name of it."""

    def __init__(self, name, batch, compile_arguments, data, steps, seconds):
        self.name, self.batch, self.data, self.steps, self.seconds = name, batch, data, steps, seconds
        self.arguments = [*compile_arguments, "--batch", str(batch)]


TOKENS = ["--data", "x=randint:8192:40x256", "--data", "y=randint:8192:40x256"]
MODELS = {
    "MLP 10-20-1": Model("small-mlp", 64, ["mlp:10-20-1", "--optimizer", "sgd:lr=0.01"],
                         ["--data", "x=randn:640x10", "--data", "y=randn:640x1"], 20000, 0.5),
    "wide MLP": Model("mlp", 256, ["mlp:784-1024-1024-10", "--optimizer", "adam:lr=0.001"],
                      ["--data", "x=randn:2560x784", "--data", "y=randint:10:2560"], 60, 2),
    "LeNet": Model("lenet", 64, ["lenet", "--optimizer", "sgd:lr=0.01,momentum=0.5"],
                   ["--data", "x=randn:640x1x28x28", "--data", "y=randint:10:640"], 400, 1),
    "GPT 4x384": Model("gpt", 4, [GPT, "--optimizer", "adamw:lr=0.0001"], TOKENS, 9, 3),
}
GPT_BF16 = Model("gpt", 4, [GPT, "--optimizer", "adamw:lr=0.0001", "--precision", "bf16"], TOKENS, 9, 3)


class Training:
    """One model on DG and on its peers."""

    def __init__(self, tools, model):
        self.tools, self.model = tools, model

    def job(self):
        path = os.path.join(self.tools.scratch, self.model.name + ("-bf16" if "bf16" in self.model.arguments else "") + ".dgx")
        if not os.path.exists(path):
            self.tools.run([self.tools.command("dgc"), *self.model.arguments, "-o", path])
        return path

    def events(self, threads, steps):
        return self.tools.objects([self.tools.command("dgrun"), self.job(), "--threads", str(threads), "--json", "--steps",
                                   str(steps), *self.model.data])

    def ours(self, threads):
        events = self.events(threads, self.model.steps)
        return statistics.median([event["step_us"] for event in events if event["event"] == "step"][WARM_UP:])

    def worker(self, peer, threads):
        return self.tools.worker(PEERS.get(peer, peer), self.model.name, str(self.model.batch), str(threads))

    def theirs(self, peer, threads):
        return self.worker(peer, threads).measure(self.model.seconds)["median_us"]

    def peers(self, threads):
        return {peer: lambda p=peer: self.theirs(p, threads) for peer in PEERS}

    def work(self):
        """Floating-point operations of a step."""
        plan = json.loads(self.tools.run([self.tools.command("dgc"), *self.model.arguments, "--emit", "plan"]))
        ops = [op for stage in plan["stages"] if stage["program"] == 0 for op in stage["ops"]]
        return sum(plan["ops"][op].get("flops", 0) for op in ops)

    def arena(self):
        plan = json.loads(self.tools.run([self.tools.command("dgc"), *self.model.arguments, "--emit", "plan"]))
        return sum(memory["arena_bytes"] for memory in plan["memory"])

    def peak_bytes(self):
        """How far the peak of resident memory of a training rises above that of the same command when it has loaded nothing yet."""
        figures = []
        for arguments in (["--version"], [self.job(), "--threads", "1", "--steps", "3", *self.model.data]):
            text = self.tools.run(["/usr/bin/env", "python3", os.path.join(self.tools.peers, "peak_memory.py"),
                                   self.tools.command("dgrun"), *arguments])
            figures.append(json.loads(text.splitlines()[-1])["peak_bytes"])
        return figures[1] - figures[0]


def step_rows(tools):
    small = Training(tools, MODELS["MLP 10-20-1"])
    peers = {f"{peer}, {threads} thread{'s' * (threads > 1)}": lambda p=peer, t=threads: small.theirs(p, t)
             for threads in (1, 2) for peer in PEERS}
    for threads in (1, 2):
        name = f"MLP 10-20-1, {threads} thread{'s' * (threads > 1)}"
        yield Row(name, lambda t=threads: small.ours(t), peers, 5, 5, work=small.work, threads=threads)
        yield Row(name + ", in itself", lambda t=threads: small.ours(t), limit(6), 1, 2)
    for name, must, aim in (("wide MLP", 1.1, 1.2), ("LeNet", 2.5, 5), ("GPT 4x384", 1.15, 1.3)):
        training = Training(tools, MODELS[name])
        for threads in (1, 2):
            yield Row(f"{name}, {threads} thread{'s' * (threads > 1)}", lambda t=threads, m=training: m.ours(t),
                      training.peers(threads), must, aim, work=training.work, threads=threads)
        if name != "LeNet":
            yield Row(f"{name}, 2 threads against 1", lambda m=training: m.ours(2),
                      {"DG, 1 thread": lambda m=training: m.ours(1)}, 1.8, 1.95)


def precision_rows(tools):
    """On a machine whose processor multiplies bf16."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512_bf16" not in file.read():
            return
    low, full = Training(tools, GPT_BF16), Training(tools, MODELS["GPT 4x384"])
    for threads in (1, 2):
        name = f"GPT 4x384 in bf16, {threads} thread{'s' * (threads > 1)}"
        yield Row(name + ", against f32", lambda t=threads: low.ours(t), {"DG, f32": lambda t=threads: full.ours(t)}, 1.6, 1.6)
        yield Row(name, lambda t=threads: low.ours(t), {"torch.autocast": lambda t=threads: low.theirs("autocast", t)}, 1, 1.3)


def memory_rows(tools):
    training = Training(tools, MODELS["GPT 4x384"])
    yield Row("GPT 4x384, peak memory", training.peak_bytes,
              {"PyTorch": lambda: training.worker("PyTorch", 1).ready["peak_bytes"]}, 1 / 0.7, 2, unit="bytes")
    yield Row("GPT 4x384, memory above the plan's", training.peak_bytes,
              {"arena, 5 % and 16 MiB": lambda: training.arena() * 1.05 + (16 << 20)}, 1, 1, unit="bytes")


def compile_rows(tools):
    for name, arguments, seconds in (("LeNet", ["lenet", "--batch", "64"], 2), ("GPT 4x384", [GPT, "--batch", "4"], 6),
                                     ("GPT-2 small", [GPT2, "--batch", "1"], 15)):
        def compile_us(arguments=arguments):
            begin = time.perf_counter()
            tools.run([tools.command("dgc"), *arguments, "-o", os.path.join(tools.scratch, "compiled.dgx")])
            return (time.perf_counter() - begin) * 1e6

        yield Row(f"compile {name}", compile_us, limit(seconds * 1e6), 1, 1)


def executor_rows(tools):
    def figure(pattern):
        match = re.search(pattern, tools.run([tools.command("executor_bench")]))
        if not match:
            raise Missing(f"executor_bench printed no '{pattern}'")
        return float(match[1]) / 1000

    yield Row("empty step", lambda: figure(r"empty step ([\d.]+) ns"), limit(0.5), 1, 1)
    yield Row("one more task", lambda: figure(r"task in a chain ([\d.]+) ns"), limit(0.1), 1, 1)


def peak(tools, threads):
    """Floating-point operations a second of a large matrix product of PyTorch."""
    size = 2048
    return 2 * size**3 / (tools.worker("eager", "gemm", str(size), str(threads)).measure(2)["least_us"] * 1e-6)


def rows(tools):
    """All rows, in the order of the report."""
    yield from step_rows(tools)
    yield from precision_rows(tools)
    yield from memory_rows(tools)
    yield from compile_rows(tools)
    yield from executor_rows(tools)
