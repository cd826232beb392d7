#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that a PyTorch module goes to DG and back by dg-from-torch, with both exporters: 20 training steps have the losses of eager PyTorch
(1e-4), inference gives the results of eval mode (1e-5), and the trained weights are in a state_dict bit for bit.

usage: from_torch_test.py --dgc DGC --dgrun DGRUN --script dg-from-torch [--venv build/venv] [--all] [--only REGEX] [--exporter NAME] [--keep FOLDER]
"""
import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import torch
    import onnxscript  # noqa: F401

    import modules
except ImportError as missing:
    # The packages of the group bench are in a folder of their own.
    venv = sys.argv[sys.argv.index("--venv") + 1] + "/bin/python" if "--venv" in sys.argv else ""
    if os.path.exists(venv) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(venv))):
        os.execv(venv, [venv, "-B", *sys.argv])
    print(f"skipped: {missing}; run tools/install.sh bench")
    sys.exit(77)

STEPS, BATCH = 20, 4
LOSS_LIMIT, RESULT_LIMIT = 1e-4, 1e-5
SEED = int(os.environ.get("DG_TEST_SEED", "7"))


def build(name):
    """Module, example inputs, and data for all steps."""
    if name in modules.MODULES:  # an import may draw random numbers
        for package in ("torchvision", "transformers"):
            importlib.import_module(package)
    torch.manual_seed(SEED)
    module, example = {**modules.SMALL, **modules.MODULES}[name]()
    data = {}
    for key, value in example.items():
        rows = (STEPS * BATCH, *value.shape[1:])
        data[key] = torch.randint(0, 99, rows) if value.dtype == torch.int64 else torch.randn(rows)
    return module, example, data


def rate(data):
    """Of images a small one: with batch norm over a few samples, rounding errors grow tenfold with each larger step, in PyTorch too."""
    return 1e-5 if any(value.dim() == 4 for value in data.values()) else 1e-3


def run(command, folder):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-800:]}")
    return done.stdout


def logits(result):
    return result if isinstance(result, torch.Tensor) else result.logits


def eager(module, data, labels):
    """Losses of the steps by PyTorch; the module is trained."""
    module.train()
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=rate(data))
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        result = logits(module(**{key: value[rows] for key, value in data.items()}))
        loss = torch.nn.functional.cross_entropy(result.flatten(0, -2), labels[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def compare(options, folder, name, exporter):
    """The largest differences of losses and of results; raises where something fails or weights differ."""
    module, example, data = build(name)
    key_of = dict(zip(example, example))
    script = [sys.executable, "-B", options.script, f"{os.path.join(folder, 'user.py')}:make"]
    with open(os.path.join(folder, "user.py"), "w", encoding="utf-8") as out:
        here = os.path.dirname(os.path.abspath(__file__))
        out.write(f"import sys\nsys.path.insert(0, {here!r})\nsys.argv = ['user']\nimport from_torch_test\n\n\ndef make():\n"
                  f"    return from_torch_test.build({name!r})[:2]\n")
    run([*script, "-o", "net.onnx", "--exporter", exporter], folder)
    module.eval()
    with torch.no_grad():
        first = {key: value[:BATCH] for key, value in data.items()}
        expected = logits(module(**first)).numpy()
    classes = expected.shape[-1]
    labels = torch.randint(0, classes, (STEPS * BATCH, *expected.shape[1:-1]))
    for key, value in {**data, "y": labels}.items():
        numpy.save(os.path.join(folder, key + ".npy"), value.numpy())
    for key, value in first.items():
        numpy.save(os.path.join(folder, f"first_{key}.npy"), value.numpy())
    run([options.dgc, "net.onnx", "--infer", "--batch", str(BATCH), "-o", "infer.dgx"], folder)
    run([options.dgrun, "infer.dgx", *sum((["--input", f"{key}=@first_{key}.npy"] for key in key_of), []), "--output", "output=@out.npy"], folder)
    found = numpy.load(os.path.join(folder, "out.npy"))
    results = float(numpy.max(numpy.abs(found - expected) / (1 + numpy.abs(expected))))
    flags = ["--train", "--loss", "cross_entropy", "--optimizer", f"sgd:lr={rate(data):g}", "--batch", str(BATCH)]
    run([options.dgc, "net.onnx", *flags, "-o", "train.dgx"], folder)
    events = run([options.dgrun, "train.dgx", *sum((["--data", f"{key}={key}.npy"] for key in [*key_of, "y"]), []), "--no-shuffle", "--epochs", "1", "--json",
                  "--checkpoint", "weights"], folder)
    steps = [event["loss"] for event in map(json.loads, events.splitlines()) if event["event"] == "step"]
    reference = build(name)[0]
    differences = [abs(a - b) for a, b in zip(steps, eager(reference, data, labels), strict=True)]
    if max(differences) > LOSS_LIMIT:
        print("  by step: " + " ".join(f"{each:.0e}" for each in differences))
    losses = max(differences)
    run([*script, "--load", "weights", "-o", "trained.pt"], folder)
    state = torch.load(os.path.join(folder, "trained.pt"))
    check_weights(state, reference, module, folder)
    return losses, results


def check_weights(state, reference, before, folder):
    """The state_dict holds the checkpoint's bits, all that PyTorch trained is among them, and it loads into the module."""
    import glob

    from safetensors.torch import load_file

    stored = load_file(glob.glob(os.path.join(folder, "weights", "step-*", "model.safetensors"))[0])
    shared = {name: value for name, value in state.items() if name in stored}
    if not shared:
        raise RuntimeError("the checkpoint has no tensor of the state_dict")
    for name, value in shared.items():
        if not torch.equal(value, stored[name]):
            raise RuntimeError(f"{name}: the state_dict does not have the bits of the checkpoint")
    trained = {name for name, value in before.named_parameters() if value.requires_grad}
    gradients = {name for name, value in reference.named_parameters() if value.grad is not None}
    absent = (trained & gradients) - set(stored)
    if absent:
        raise RuntimeError(f"the checkpoint lacks {sorted(absent)[:5]}")
    before.load_state_dict(state)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--dgc", "--dgrun", "--script"):
        parser.add_argument(name, required=True)
    parser.add_argument("--venv", help="folder of the Python that has PyTorch, where this one does not")
    parser.add_argument("--all", action="store_true", help="the 20 modules of torchvision and transformers instead of three small ones")
    parser.add_argument("--only", default="", help="modules whose name has this regular expression")
    parser.add_argument("--exporter", default="", help="one of the two only")
    parser.add_argument("--keep", help="leaves the files in this folder")
    options = parser.parse_args()
    for name in ("dgc", "dgrun", "script"):
        setattr(options, name, os.path.abspath(getattr(options, name)))
    torch.set_num_threads(1)
    print(f"seed {SEED}")
    failed = []
    for name in (modules.MODULES if options.all else modules.SMALL):
        for exporter in ("dynamo", "torchscript"):
            if not re.search(options.only, name) or options.exporter not in ("", exporter):
                continue
            start = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="dg-from-torch-") as folder:
                try:
                    losses, results = compare(options, options.keep or folder, name, exporter)
                except (RuntimeError, ImportError, subprocess.TimeoutExpired) as error:
                    failed.append(f"{name}, {exporter}: {error}")
                    print(f"{name}, {exporter}: {error}", flush=True)
                    continue
            print(f"{name}, {exporter}: losses of {STEPS} steps differ by {losses:.1e} (limit {LOSS_LIMIT:g}), results by {results:.1e} (limit {RESULT_LIMIT:g}), "
                  f"weights are back; {time.monotonic() - start:.0f} s", flush=True)
            if not losses <= LOSS_LIMIT or not results <= RESULT_LIMIT:
                failed.append(f"{name}, {exporter}: losses {losses:.1e}, results {results:.1e}")
    print(f"{len(failed)} failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
