#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that models mean what ONNX says they mean: the backend tests of the ONNX project, each compiled by dgc, run by dgrun, and
compared with the outputs that come with it.

Tests that dgc refuses stand in unsupported.txt with the reason. Everything else has to pass: a wrong answer, a crash, a refusal that is not
listed and a listed test that passes are failures. The counts are printed.

usage: backend_test.py --dgc DGC --dgrun DGRUN [--data FOLDER] [--every N] [--only REGEX] [--jobs N] [--update]
"""
import argparse
import collections
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import onnx_files

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "unsupported.txt")
# As the ONNX project's own runner compares.
RELATIVE, ABSOLUTE = 1e-3, 1e-7
SECONDS = 120
BAD_INPUT = 65
# Tests whose data contradict their model or the format; they are counted as not supported.
DAMAGED = {
    "node/test_cast_FLOAT_to_BFLOAT16": "its output is cut off where bfloat16 rounds to nearest",
    **{f"node/test_castlike_{which}{form}": "its input 'like' has one element, the model says 3x4"
       for which in ("BFLOAT16_to_FLOAT", "FLOAT_to_BFLOAT16") for form in ("", "_expanded")},
}
NEEDS_CONSTANT = re.compile(r"takes its (.+) from '.*: give it with --const (.+)=@FILE\.npy")
# Only what a shape depends on is bound. Regions, diagonals, how often a loop runs and which axis is summed along are asked of the running model.
SHAPES = {"shape", "sizes", "scales", "axes", "pads", "repeats", "starts", "ends", "steps", "split", "k", "depth", "start", "limit", "delta", "size",
          "frame_step", "frame_length", "dft_length"}
# Their outputs are draws of another generator: type and shape are compared.
RANDOM = re.compile(r"node/test_(bernoulli.*|training_dropout(_default)?(_mask)?)$")


@dataclass
class Outcome:
    name: str
    state: str  # passed, unsupported, wrong, crashed
    text: str = ""
    constants: int = 0


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"took more than {SECONDS} s"
    return done.returncode, done.stderr.strip()


def write_input(folder, index, tensor):
    """The file, as dgrun takes it."""
    path = os.path.join(folder, f"in{index}")
    if tensor.dtype == "bf16":
        onnx_files.write_bf16(path + ".safetensors", tensor)
        return path + ".safetensors:x"
    onnx_files.write_npy(path + ".npy", tensor)
    return path + ".npy"


def read_tensors(folder, what, values):
    """One tensor for each value of the model. The files hold the bits of bfloat16 as unsigned integers."""
    tensors = []
    for index, value in enumerate(values):
        with open(os.path.join(folder, f"{what}_{index}.pb"), "rb") as file:
            tensors.append(onnx_files.read_tensor(file.read()))
        if value.dtype == "bf16" and tensors[-1].dtype == "<u2":
            tensors[-1].dtype = "bf16"
    return tensors


def difference(found, expected, is_random):
    """What is wrong with a result; nothing if it is right."""
    if found.dtype != ("<u2" if expected.dtype == "bf16" else expected.dtype):
        return f"has type {found.dtype}, expected {expected.dtype}"
    if found.shape != expected.shape:
        return f"has shape {found.shape}, expected {expected.shape}"
    if is_random:
        return ""
    if expected.dtype == "bf16":
        found.dtype = "bf16"
    is_float = expected.dtype[1:2] == "f" or expected.dtype == "bf16"
    for place, (a, b) in enumerate(zip(found.values(), expected.values())):
        good = a == b or (is_float and (math.isnan(a) and math.isnan(b) or abs(a - b) <= ABSOLUTE + RELATIVE * abs(b)))
        if not good:
            return f"has {a} at element {place}, expected {b}"
    return ""


def compile_model(dgc, model, job, files):
    """(exit code, message, names made constants). Inputs that the model takes shapes from are bound, one by one as dgc asks for them."""
    constants = []
    while True:
        command = [dgc, model, "--infer", "--training-mode", "-o", job]
        for name in constants:
            command += ["--const", f"{name}=@{files[name]}"]
        code, message = run(command)
        asked = NEEDS_CONSTANT.search(message) if code == BAD_INPUT else None
        if not asked or asked.group(1) not in SHAPES or asked.group(2) in constants or asked.group(2) not in files:
            return code, message, constants
        constants.append(asked.group(2))


def run_test(options, name):
    if name in DAMAGED:
        return Outcome(name, "unsupported", "data of the test: " + DAMAGED[name])
    folder = os.path.join(options.data, name)
    model_path = os.path.join(folder, "model.onnx")
    model = onnx_files.read_model(model_path)
    if not all(value.is_tensor and value.dtype for value in model.inputs + model.outputs):
        code, message = run([options.dgc, model_path, "--infer", "--training-mode", "--emit", "dg"])
        if code != BAD_INPUT:
            return Outcome(name, "crashed", f"dgc took a model with inputs that are no tensors, exit code {code}: {message[-300:]}")
        return Outcome(name, "unsupported", reason(message, model_path))
    with tempfile.TemporaryDirectory(prefix="dg-onnx-") as scratch:
        job = os.path.join(scratch, "job.dgx")
        data = os.path.join(folder, "test_data_set_0")
        given = [file for file in os.listdir(data) if file.startswith("input_")]
        tensors = read_tensors(data, "input", model.inputs[: len(given)])
        files = {value.name: write_input(scratch, index, tensor)
                 for index, (value, tensor) in enumerate(zip(model.inputs, tensors))}
        code, message, constants = compile_model(options.dgc, model_path, job, files)
        if code == BAD_INPUT:
            return Outcome(name, "unsupported", reason(message, model_path))
        if code != 0:
            return Outcome(name, "crashed", f"dgc: exit code {code}: {message[-600:]}")
        command = [options.dgrun, job, "--threads", "1"]
        for input_name, file in files.items():
            if input_name not in constants:
                command += ["--input", f"{input_name}=@{file}"]
        for index, value in enumerate(model.outputs):
            command += ["--output", f"{value.name}=@{scratch}/out{index}.npy"]
        code, message = run(command)
        if code != 0:
            return Outcome(name, "crashed", f"dgrun: exit code {code}: {message[-600:]}")
        expected = read_tensors(data, "output", model.outputs)
        for index, value in enumerate(model.outputs):
            wrong = difference(onnx_files.read_npy(f"{scratch}/out{index}.npy"), expected[index], RANDOM.match(name))
            if wrong:
                return Outcome(name, "wrong", f"output '{value.name}' {wrong}")
        return Outcome(name, "passed", constants=len(constants))


def reason(message, model_path):
    """The first error of dgc, without the file."""
    line = next((line for line in message.splitlines() if "error:" in line), message.splitlines()[0] if message else "")
    line = line.replace(model_path + ": ", "").replace("error: ", "", 1)
    return re.sub(r"node (that makes )?'[^']*' ", "node ", line)[:240]


def read_list():
    listed = {}
    with open(LIST, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, why = line.strip().partition("  ")
                listed[name] = why
    return listed


def write_list(outcomes):
    refused = sorted((outcome.name, outcome.text) for outcome in outcomes if outcome.state == "unsupported")
    with open(LIST, "w", encoding="utf-8") as file:
        file.write("# Tests of libonnx-testdata that dgc refuses, with its message. `backend_test.py --update` writes this file again.\n")
        for name, why in refused:
            file.write(f"{name}  {why}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dgc", required=True)
    parser.add_argument("--dgrun", required=True)
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data")
    parser.add_argument("--every", type=int, default=1, help="run every N-th test")
    parser.add_argument("--only", default="", help="run tests whose name has this regular expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--update", action="store_true", help="write unsupported.txt instead of comparing with it")
    options = parser.parse_args()
    names = [f"{kind}/{test}" for kind in KINDS for test in sorted(os.listdir(os.path.join(options.data, kind)))]
    total = len(names)
    names = [name for name in names if re.search(options.only, name)][:: options.every]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda name: run_test(options, name), names))
    if options.update and len(names) == total:
        write_list(outcomes)
    listed = read_list()
    counts = collections.Counter(outcome.state for outcome in outcomes)
    failures = []
    for outcome in outcomes:
        if outcome.state in ("wrong", "crashed"):
            failures.append(f"{outcome.state}: {outcome.name}: {outcome.text}")
        elif outcome.state == "unsupported" and outcome.name not in listed:
            failures.append(f"refused, but not in unsupported.txt: {outcome.name}: {outcome.text}")
        elif outcome.state == "passed" and outcome.name in listed:
            failures.append(f"passes, but stands in unsupported.txt: {outcome.name}: take it out")
    for unknown in sorted(set(listed) - {f"{kind}/{test}" for kind in KINDS for test in os.listdir(os.path.join(options.data, kind))}):
        failures.append(f"stands in unsupported.txt, but is no test: {unknown}")
    for failure in failures:
        print(failure)
    bound = sum(1 for outcome in outcomes if outcome.constants)
    drawn = sum(1 for outcome in outcomes if outcome.state == "passed" and RANDOM.match(outcome.name))
    print(f"{counts['passed']} of {len(outcomes)} passed ({bound} of them with shapes bound by --const, {drawn} random ones by type and shape), {counts['unsupported']} not supported, "
          f"{counts['wrong']} wrong, {counts['crashed']} crashed; {total} tests in all")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
