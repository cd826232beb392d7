#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that a PyTorch module goes to DG and back by dg-from-torch, with both exporters: inference gives the results of eval mode (1e-5), the
gradients of step 0 and their norm are those of eager PyTorch in f64 (1e-4 of the largest), 20 training steps have the losses of eager PyTorch (1e-4),
and the trained weights are those of PyTorch (1e-3) and in a state_dict bit for bit. A comparison says something only where PyTorch in f32 agrees with
itself in f64, which is measured and printed: half of a limit, of losses 2e-5, or the test fails.

usage: from_torch_test.py --dgc DGC --dgrun DGRUN --script dg-from-torch [--venv build/venv] [--all] [--only REGEX] [--exporter NAME] [--keep FOLDER]
"""
import argparse
import glob
import json
import math
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
    from safetensors.torch import load_file

    import modules
except ImportError as missing:
    # The packages of the group bench are in a folder of their own.
    venv = sys.argv[sys.argv.index("--venv") + 1] + "/bin/python" if "--venv" in sys.argv else ""
    if os.path.exists(venv) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(venv))):
        os.execv(venv, [venv, "-B", *sys.argv])
    print(f"skipped: {missing}; run tools/install.sh bench")
    sys.exit(77)

STEPS, BATCH = 20, modules.BATCH
LIMITS = {"results": 1e-5, "gradients": 1e-4, "norm": 1e-4, "losses": 1e-4, "weights": 1e-3}
OWN_LIMITS = {"gradients": 5e-5, "losses": 2e-5, "weights": 5e-4}
MOMENTUM = 0.5  # the optimizer's state after one step is the gradient
SEED = int(os.environ.get("DG_TEST_SEED", "7"))


def build(name):
    """Module, example inputs, and data for all steps."""
    make = {**modules.SMALL, **modules.MODULES}[name]
    make()  # an import may draw random numbers
    torch.manual_seed(SEED)
    module, example = make()
    data = {}
    for key, value in example.items():
        rows = (STEPS * BATCH, *value.shape[1:])
        if key == "attention_mask":  # at least half of each sequence
            data[key] = (torch.arange(rows[1]) < torch.randint(rows[1] // 2, rows[1] + 1, (rows[0], 1))).long()
        else:
            data[key] = torch.randint(0, 99, rows) if value.dtype == torch.int64 else torch.randn(rows)
    return module, example, data


def rate(name):
    return modules.RATES.get(name, 1e-3)


def run(command, folder):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-800:]}")
    return done.stdout


def logits(result):
    return result if isinstance(result, torch.Tensor) else result.logits


class Eager:
    """What PyTorch gives: losses of the steps, gradients of the first, the module after the last."""

    def __init__(self, name, data, labels, dtype):
        self.module = build(name)[0].to(dtype).train()
        optimizer = torch.optim.SGD([p for p in self.module.parameters() if p.requires_grad], lr=rate(name), momentum=MOMENTUM)
        self.losses, self.gradients = [], None
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            inputs = {key: value[rows].to(dtype) if value.is_floating_point() else value[rows] for key, value in data.items()}
            loss = torch.nn.functional.cross_entropy(logits(self.module(**inputs)).flatten(0, -2), labels[rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            self.gradients = self.gradients or {key: value.grad.double().clone() for key, value in self.module.named_parameters() if value.grad is not None}
            optimizer.step()
            self.losses.append(float(loss.detach()))


def largest(values):
    return max((float(value.abs().max()) for value in values if value.numel()), default=0.0)


def weight_error(state, trained):
    """Of each tensor, relative to its largest element; of what is nearly 0, as key biases of attention, to 1e-3."""
    return max(largest([state[name].double() - value]) / max(largest([value]), 1e-3) for name, value in trained.items() if value.is_floating_point())


class Reference:
    """A module, its data and what PyTorch makes of them, once for both exporters."""

    def __init__(self, name):
        self.name = name
        self.module, self.example, self.data = build(name)
        self.module.eval()
        self.first = {key: value[:BATCH] for key, value in self.data.items()}
        with torch.no_grad():
            self.expected = logits(self.module(**self.first)).numpy()
        self.labels = torch.randint(0, self.expected.shape[-1], (STEPS * BATCH, *self.expected.shape[1:-1]))
        self.eager, self.exact = (Eager(name, self.data, self.labels, dtype) for dtype in (torch.float32, torch.float64))
        self.own = {"gradients": self.gradient_error(self.eager.gradients),
                    "losses": max(abs(a - b) for a, b in zip(self.eager.losses, self.exact.losses, strict=True)),
                    "weights": weight_error(self.eager.module.state_dict(), self.exact.module.state_dict())}

    def gradient_error(self, gradients):
        """Of each tensor against f64, relative to its largest element; one that is nearly 0 everywhere against a thousandth of the module's largest."""
        floor = 1e-3 * largest(self.exact.gradients.values())
        return max(largest([gradients[key] - value]) / max(largest([value]), floor) for key, value in self.exact.gradients.items())


def compare(options, folder, reference, exporter):
    """The largest differences, by name; raises where something fails or weights differ."""
    name, found = reference.name, {}
    script = [sys.executable, "-B", options.script, f"{os.path.join(folder, 'user.py')}:make"]
    with open(os.path.join(folder, "user.py"), "w", encoding="utf-8") as out:
        here = os.path.dirname(os.path.abspath(__file__))
        out.write(f"import sys\nsys.path.insert(0, {here!r})\nsys.argv = ['user']\nimport from_torch_test\n\n\ndef make():\n"
                  f"    return from_torch_test.build({name!r})[:2]\n")
    run([*script, "-o", "net.onnx", "--exporter", exporter], folder)
    for key, value in {**reference.data, "y": reference.labels}.items():
        numpy.save(os.path.join(folder, key + ".npy"), value.numpy())
    for key, value in reference.first.items():
        numpy.save(os.path.join(folder, f"first_{key}.npy"), value.numpy())
    inputs = list(reference.example)
    run([options.dgc, "net.onnx", "--infer", "--batch", str(BATCH), "-o", "infer.dgx"], folder)
    run([options.dgrun, "infer.dgx", *sum((["--input", f"{key}=@first_{key}.npy"] for key in inputs), []), "--output", "output=@out.npy"], folder)
    results = numpy.load(os.path.join(folder, "out.npy"))
    found["results"] = float(numpy.max(numpy.abs(results - reference.expected) / (1 + numpy.abs(reference.expected))))
    flags = ["--train", "--loss", "cross_entropy", "--optimizer", f"sgd:lr={rate(name):g},momentum={MOMENTUM},grad_norm=1", "--batch", str(BATCH)]
    run([options.dgc, "net.onnx", *flags, "-o", "train.dgx"], folder)
    train = [options.dgrun, "train.dgx", *sum((["--data", f"{key}={key}.npy"] for key in [*inputs, "y"]), []), "--no-shuffle", "--json"]
    told = run([*train, "--steps", "1", "--checkpoint", "first"], folder)
    norm = next(event["grad_norm"] for event in map(json.loads, told.splitlines()) if event["event"] == "step")
    exact = math.sqrt(sum(float((value * value).sum()) for value in reference.exact.gradients.values()))
    found["norm"] = abs(norm - exact) / exact
    first = load_file(glob.glob(os.path.join(folder, "first", "step-*", "model.safetensors"))[0])
    absent = [key for key in reference.exact.gradients if key + ".momentum" not in first]
    if absent:
        raise RuntimeError(f"DG does not train {absent[:5]}")
    found["gradients"] = reference.gradient_error({key: first[key + ".momentum"].double() for key in reference.exact.gradients})
    events = run([*train, "--epochs", "1", "--checkpoint", "weights"], folder)
    steps = [event["loss"] for event in map(json.loads, events.splitlines()) if event["event"] == "step"]
    differences = [abs(a - b) for a, b in zip(steps, reference.eager.losses, strict=True)]
    found["losses"] = max(differences)
    if found["losses"] > LIMITS["losses"]:
        print("  by step: " + " ".join(f"{each:.0e}" for each in differences))
    run([*script, "--load", "weights", "-o", "trained.pt"], folder)
    found["weights"] = check_weights(torch.load(os.path.join(folder, "trained.pt")), reference, folder)
    return found


def check_weights(state, reference, folder):
    """The state_dict holds the checkpoint's bits, all that PyTorch trained is among them, and it loads into the module. Returns how far its tensors
    are from those that PyTorch trained."""
    stored = load_file(glob.glob(os.path.join(folder, "weights", "step-*", "model.safetensors"))[0])
    shared = {name: value for name, value in state.items() if name in stored}
    for name, value in shared.items():
        if not torch.equal(value, stored[name]):
            raise RuntimeError(f"{name}: the state_dict does not have the bits of the checkpoint")
    absent = set(reference.eager.gradients) - set(shared)
    if absent:
        raise RuntimeError(f"the checkpoint lacks {sorted(absent)[:5]}")
    reference.module.load_state_dict(state)
    return weight_error(state, reference.eager.module.state_dict())


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
    print(f"seed {SEED}; limits: {LIMITS}; gradients are of step 0, losses of {STEPS} steps, weights after them; in brackets PyTorch in f32 against itself "
          f"in f64, limits: {OWN_LIMITS}")
    print(f"| module | exporter | {' | '.join(LIMITS)} | back | seconds |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    failed = []
    for name in (modules.MODULES if options.all else modules.SMALL):
        if not re.search(options.only, name):
            continue
        reference = Reference(name)
        failed += [f"{name}: {key} of PyTorch in f32 are {reference.own[key]:.1e} from its own in f64, expected {limit:g}: choose a smaller rate, or other data"
                   for key, limit in OWN_LIMITS.items() if not reference.own[key] <= limit]
        for exporter in ("dynamo", "torchscript"):
            if options.exporter not in ("", exporter):
                continue
            start = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="dg-from-torch-") as folder:
                try:
                    found = compare(options, options.keep or folder, reference, exporter)
                except (RuntimeError, ImportError, subprocess.TimeoutExpired) as error:
                    failed.append(f"{name}, {exporter}: {error}")
                    print(f"| {name} | {exporter} | failed: {str(error).strip().splitlines()[-1]} |", flush=True)
                    continue
            cells = [f"{found[key]:.1e}" + (f" ({reference.own[key]:.1e})" if key in reference.own else "") for key in LIMITS]
            print(f"| {name} | {exporter} | {' | '.join(cells)} | bit-equal | {time.monotonic() - start:.0f} |", flush=True)
            failed += [f"{name}, {exporter}: {key} differ by {found[key]:.1e}, limit {limit:g}" for key, limit in LIMITS.items() if not found[key] <= limit]
    print("\n".join([*failed, f"{len(failed)} failed"]) if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
