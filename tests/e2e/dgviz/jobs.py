# SPDX-License-Identifier: Apache-2.0
"""The jobs, traces and pages that the tests of this folder look at, made by the commands that users type."""
import decimal
import json
import os
import subprocess
import sys
import zipfile

BIN = os.environ.get("DG_BIN", "")
DEADLINE_S = 120
GPT = "gpt:layers=2,hidden=32,heads=2,seq=16,vocab=64"


def tool(name):
    path = os.path.join(BIN, name)
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not a command: set DG_BIN to the build's bin folder")
    return path


def run(name, *arguments, code=0, notes=True):
    """Runs a command and returns what it printed, with or without its notes; any other exit code is a failure."""
    done = subprocess.run([tool(name), *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == code, f"{name} {' '.join(arguments)}: exit {done.returncode}, expected {code}\n{done.stderr}"
    return done.stdout + (done.stderr if notes else "")


def entry(job, name):
    with zipfile.ZipFile(job) as package:
        return json.loads(package.read(name))


def plan_of(job):
    return entry(job, "plan.json")


def lenet(folder, name, *flags):
    path = os.path.join(folder, name)
    run("dgc", "lenet", "--batch", "64", *flags, "-o", path)
    return path


def gpt_with_trace(folder):
    """GPT over 2 × 2 × 2 ranks, and the trace of its first steps."""
    job, trace = os.path.join(folder, "gpt.dgx"), os.path.join(folder, "trace.json")
    run("dgc", GPT, "--batch", "8", "--mesh", "data=2,tensor=2,pipe=2", "--microbatches", "4", "--save-phases", "-o", job)
    run("dgrun", job, "--data", "x=randint:64:32x16", "--data", "y=randint:64:32x16", "--steps", "4", "--threads", "1", "--trace", trace)
    return job, trace


def page(folder, *files):
    path = os.path.join(folder, os.path.basename(files[-1]) + ".html")
    run("dgviz", *files, "-o", path)
    return path


# ---- Numbers as the page writes them ----
def fixed(value, digits):
    """As a browser rounds: a half goes up."""
    return str(decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP))


def scaled(value, step, units):
    unit = 0
    while abs(value) >= step and unit + 1 < len(units):
        value, unit = value / step, unit + 1
    return (str(int(value)) if unit == 0 and value == int(value) else fixed(value, 2)) + units[unit]


def bytes_text(number):
    return scaled(number, 1024, [" B", " KiB", " MiB", " GiB"])


def count_text(number):
    return scaled(number, 1000, ["", " k", " M", " G"])


def flop_text(number):
    return scaled(number, 1000, [" FLOP", " kFLOP", " MFLOP", " GFLOP"])


def time_text(us):
    return f"{fixed(us, 1)} µs" if abs(us) < 1000 else f"{fixed(us / 1e3, 2)} ms" if abs(us) < 1e6 else f"{fixed(us / 1e6, 2)} s"


def percent(share):
    return fixed(share * 100, 1) + " %"


def sample(folder, name):
    """A job that no compiler makes; see SampleJobs.cpp."""
    path = os.path.join(folder, name + ".dgx")
    run("dgviz_sample_jobs", name, path)
    return path


# ---- What must be shown, worked out from plan.json alone ----
def drawn_ops(plan, program):
    """The ops of a program that are drawn: without zeroing, a communication and its finish as one."""
    chunks = {chunk for actions in plan["schedule"][program] for chunk, _ in actions}
    return [op for chunk in chunks if plan["stages"][chunk]["phase"] != "begin" for op in plan["stages"][chunk]["ops"]
            if plan["ops"][op]["kind"] != "finish"]


def values_of(op):
    """The values that an op touches, in its order; none for a finish."""
    if op["kind"] == "kernel":
        return [value for value, _ in op["buffers"]]
    return [op[key] for key in ("value", "from", "to") if key in op]


def traffic(plan, program):
    """(from, to) → bytes of a step, over all pairs of ranks."""
    mesh, found = plan["mesh"], {}
    size = {"data": mesh["data"], "tensor": mesh["tensor"]}
    place = lambda pipe, data, tensor: (pipe * mesh["data"] + data) * mesh["tensor"] + tensor
    for stage, actions in enumerate(plan["schedule"][program]):
        for chunk, _ in actions:
            for number in plan["stages"][chunk]["ops"]:
                op = plan["ops"][number]
                if op["kind"] not in ("send", "all_reduce", "all_gather", "reduce_scatter"):
                    continue
                moved = plan["values"][values_of(op)[1 if op["kind"] == "all_gather" else 0]]["bytes"]
                for data in range(mesh["data"]):
                    for tensor in range(mesh["tensor"]):
                        here = place(stage, data, tensor)
                        if op["kind"] == "send":
                            there = place(op.get("peer_stage", 0), data, tensor)
                            found[here, there] = found.get((here, there), 0) + moved
                            continue
                        for other in range(size[op["axis"]]):
                            there = place(stage, other, tensor) if op["axis"] == "data" else place(stage, data, other)
                            if there != here:
                                share = (2 if op["kind"] == "all_reduce" else 1) / size[op["axis"]]
                                found[here, there] = found.get((here, there), 0) + moved * share
    return found
