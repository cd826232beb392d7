# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs jobs with dgc and dgrun, and reads what they leave: losses and checkpoints."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
from array import array
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


class Commands:
    """The two commands under test, and a folder for what they write, which is removed at the end."""

    def __init__(self, binaries):
        self.binaries = Path(binaries)
        self.folder = Path(tempfile.mkdtemp(prefix="dg-models-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, tool, *arguments):
        command = [str(self.binaries / tool), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}; expected 0:\n{done.stdout}{done.stderr}")
        return done.stdout

    def compile(self, source, *flags):
        """Returns the path of the job. Every call makes a new one."""
        model = EXAMPLES / source if source.endswith(".mlir") else source
        job = self.folder / f"{len(list(self.folder.glob('*.dgx')))}.dgx"
        self.run("dgc", model, "-o", job, *flags)
        return job

    def train(self, job, data, *flags):
        """Runs a job on x.npy and y.npy of a folder, without shuffling, and returns the events of --json."""
        order = [] if "--shuffle-buffer" in flags else ["--no-shuffle"]
        lines = self.run("dgrun", job, "--data", f"x={data}/x.npy", "--data", f"y={data}/y.npy", "--json", *order, *flags)
        return [json.loads(line) for line in lines.splitlines()]

    def losses(self, job, data, *flags):
        return losses_of(self.train(job, data, *flags))

    def checkpoint_after_one_step(self, job, data, *flags):
        """The tensors of the checkpoint, by name."""
        folder = Path(tempfile.mkdtemp(prefix="checkpoint-", dir=self.folder))
        self.train(job, data, "--steps", 1, "--checkpoint", folder, *flags)
        return folder / "step-000001" / "model.safetensors"


def losses_of(events):
    return [event["loss"] for event in events if event["event"] == "step"]


def read_safetensors(path):
    """The f32 tensors of a file as flat arrays, by name."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, tensor in json.loads(content[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        if tensor["dtype"] != "F32":
            raise SystemExit(f"{path}: tensor '{name}' is {tensor['dtype']}; expected F32")
        begin, end = tensor["data_offsets"]
        tensors[name] = array("f", content[8 + length + begin : 8 + length + end])
    return tensors


def gradients_of(commands, case, data, mesh_flags, job=None):
    """The gradients of step 0 by parameter, read from the optimizer's state after one step."""
    if case.gradient_optimizer:
        job = commands.compile(case.source, "--batch", case.batch, "--optimizer", case.gradient_optimizer, *mesh_flags)
    tensors = read_safetensors(commands.checkpoint_after_one_step(job, data))
    suffix = "." + case.state
    states = {name: tensor for name, tensor in tensors.items() if name.endswith(suffix)}
    return {name.removesuffix(suffix): array("f", (v * case.state_scale for v in g)) for name, g in states.items()}
