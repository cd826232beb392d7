# SPDX-License-Identifier: Apache-2.0
"""Work of two ranks on one host, one thread each."""
import os
import statistics

from rows import Row

# Bytes of an all-reduce.
SIZES = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]
# Steps that are thrown away before the median: caches fill, workers start.
WARM_UP = 3
GPT = "gpt:layers=4,hidden=384,heads=6,seq=256,vocab=8192"
TOKENS = ["--data", "x=randint:8192:40x256", "--data", "y=randint:8192:40x256"]
# Name, what dgc compiles and how, data of dgrun, steps, name of the peer's model.
JOBS = {
    "LeNet": (["lenet", "--batch", "64", "--optimizer", "sgd:lr=0.01,momentum=0.5", "--mesh", "data=2"],
              ["--data", "x=randn:640x1x28x28", "--data", "y=randint:10:640"], 200, "lenet"),
    "wide MLP": (["mlp:784-1024-1024-10", "--batch", "256", "--optimizer", "adam:lr=0.001", "--mesh", "data=2"],
                 ["--data", "x=randn:2560x784", "--data", "y=randint:10:2560"], 40, "mlp"),
    "GPT": ([GPT, "--batch", "4", "--optimizer", "adamw:lr=0.0001", "--mesh", "data=2"], TOKENS, 10, "gpt"),
    "GPT pipeline": ([GPT, "--batch", "4", "--optimizer", "adamw:lr=0.0001", "--mesh", "pipe=2", "--microbatches", "4",
                      "--schedule", "1f1b"], TOKENS, 10, "gpt-pipeline"),
}


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


class AllReduce:
    """One way to join two processes, ours and theirs; each round measures one size."""

    def __init__(self, tools, way):
        self.tools, self.way = tools, way

    def ours(self, size):
        command = [self.tools.command("collectives_bench"), self.way, "2", str(size)]
        return self.tools.objects(command)[0]["median_us"]

    def openmpi(self, size):
        program = os.path.join(self.tools.scratch, "allreduce_mpi")
        if not os.path.exists(program):
            source = os.path.join(self.tools.peers, "allreduce_mpi.c")
            self.tools.run([self.tools.system_command("mpicc"), "-O3", "-march=native", source, "-o", program])
        network = "tcp,self" if self.way == "tcp" else "vader,self"
        command = [self.tools.system_command("mpirun"), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
                   "2", "--mca", "pml", "ob1", "--mca", "btl", network, program, str(size)]
        return self.tools.objects(command)[0]["median_us"]

    def gloo(self, size):
        command = self.tools.venv_command("torch.distributed.run") + [
            "--standalone", "--nproc-per-node", "2", os.path.join(self.tools.peers, "allreduce_gloo.py"), str(size)]
        return self.tools.objects(command, {"OMP_NUM_THREADS": "1"})[0]["median_us"]


def all_reduce_rows(tools):
    mapped, tcp = AllReduce(tools, "mapped"), AllReduce(tools, "tcp")
    for size in SIZES:
        text = f"all-reduce {size_text(size)}"
        yield Row(text, lambda s=size: mapped.ours(s), {"OpenMPI": lambda s=size: mapped.openmpi(s)}, 2, 5)
        yield Row(text + " by TCP", lambda s=size: tcp.ours(s), {"OpenMPI by TCP": lambda s=size: tcp.openmpi(s)}, 1, 1.3)
        yield Row(text, lambda s=size: mapped.ours(s), {"gloo": lambda s=size: mapped.gloo(s)}, 5, 8 if size >= 1 << 26 else 50)


class Training:
    """Steps of one model, compiled when first needed."""

    def __init__(self, tools, name):
        self.tools, self.name = tools, name
        self.compile, self.data, self.steps, self.model = JOBS[name]

    def ours(self):
        job = os.path.join(self.tools.scratch, self.model + ".dgx")
        if not os.path.exists(job):
            self.tools.run([self.tools.command("dgc"), *self.compile, "-o", job])
        events = self.tools.objects([self.tools.command("dgrun"), job, "--threads", "1", "--json", "--steps",
                                     str(self.steps), *self.data])
        return statistics.median([event["step_us"] for event in events if event["event"] == "step"][WARM_UP:])

    def theirs(self):
        command = self.tools.venv_command("torch.distributed.run") + [
            "--standalone", "--nproc-per-node", "2", os.path.join(self.tools.peers, "train.py"), self.model, str(self.steps)]
        return self.tools.objects(command, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})[0]["median_us"]


def rows(tools):
    """All rows, in the order of the report."""
    yield from all_reduce_rows(tools)
    for name, peer, must, aim in (("LeNet", "DDP", 3, 6), ("wide MLP", "DDP", 1.5, 2.2), ("GPT", "DDP", 1.25, 1.5),
                                  ("GPT pipeline", "PyTorch 1F1B", 1.4, 1.8)):
        training = Training(tools, name)
        yield Row(f"{name}, 2 ranks", training.ours, {peer: training.theirs}, must, aim)
