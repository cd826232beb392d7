#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that models exported by PyTorch give what ONNX Runtime gives: ResNet-50, BERT-base and GPT-2 with random weights, by both
exporters, through dgc and dgrun, within 1e-4; and that a model with batch norm, exported and trained by dgc --loss, has PyTorch's losses.

usage: exported_test.py --dgc DGC --dgrun DGRUN [--venv build/venv] [--only REGEX] [--small] [--keep FOLDER]
"""
import argparse
import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy
    import onnxruntime
    import torch
    from torch import nn

    import pytorch_models
except ImportError as missing:
    # The packages of the group bench are in a folder of their own.
    venv = sys.argv[sys.argv.index("--venv") + 1] + "/bin/python" if "--venv" in sys.argv else ""
    if os.path.exists(venv) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(venv))):
        os.execv(venv, [venv, "-B", *sys.argv])
    print(f"skipped: {missing}; run tools/install.sh bench")
    sys.exit(77)

LIMIT = 1e-4
SEED = int(os.environ.get("DG_TEST_SEED", "7"))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def export(module, inputs, path, names, dynamo, **flags):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, path, input_names=names, dynamo=dynamo, **flags)


def image_case(small):
    sizes = dict(blocks=(1, 1, 1, 1), width=16, classes=10) if small else {}
    return pytorch_models.ResNet(**sizes), ["x"], (torch.randn(2, 3, 64 if small else 224, 64 if small else 224),)


def text_sizes(small):
    return dict(layers=2, width=64, heads=4, vocabulary=101, positions=64) if small else {}


def bert_case(fused):
    def make(small):
        tokens, sizes = (24, text_sizes(True)) if small else (128, {})
        mask = torch.ones(2, tokens, dtype=torch.int64)
        mask[1, tokens // 2 :] = 0
        ids, types = torch.randint(0, 101, (2, tokens)), torch.randint(0, 2, (2, tokens))
        return pytorch_models.Bert(fused=fused, **sizes), ["input_ids", "attention_mask", "token_type_ids"], (ids, mask, types)

    return make


def gpt_case(fused):
    def make(small):
        tokens, sizes = (24, text_sizes(True)) if small else (128, {})
        return pytorch_models.Gpt2(fused=fused, **sizes), ["input_ids"], (torch.randint(0, 101, (2, tokens)),)

    return make


# Heads by hand in the first, by scaled_dot_product_attention in the second form.
CASES = {"resnet50": image_case, "bert": bert_case(False), "bert-fused": bert_case(True), "gpt2": gpt_case(False), "gpt2-fused": gpt_case(True)}


def compare_inference(options, folder, name, dynamo):
    torch.manual_seed(SEED)
    module, names, inputs = CASES[name](options.small)
    pytorch_models.randomize(module.eval())
    path = os.path.join(folder, f"{name}-{'dynamo' if dynamo else 'script'}.onnx")
    start = time.monotonic()
    # Folding would melt batch norm into the convolutions, and hide it.
    export(module, inputs, path, names, dynamo, **({} if dynamo else {"do_constant_folding": name != "resnet50"}))
    exported = time.monotonic()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {key: value.numpy() for key, value in zip(names, inputs, strict=True)})
    outputs = [value.name for value in session.get_outputs()]
    del session
    job = path.replace(".onnx", ".dgx")
    middle = time.monotonic()
    run([options.dgc, path, "--infer", "-o", job])
    compiled = time.monotonic()
    command = [options.dgrun, job]
    for key, value in zip(names, inputs, strict=True):
        numpy.save(os.path.join(folder, f"{key}.npy"), value.numpy())
        command += ["--input", f"{key}=@{folder}/{key}.npy"]
    for index, key in enumerate(outputs):
        command += ["--output", f"{key}=@{folder}/out{index}.npy"]
    run(command)
    worst = 0.0
    for index, right in enumerate(expected):
        found = numpy.load(os.path.join(folder, f"out{index}.npy"))
        if found.shape != right.shape or found.dtype != right.dtype:
            raise SystemExit(f"{name}: output {outputs[index]} is {found.dtype}{found.shape}, expected {right.dtype}{right.shape}")
        worst = max(worst, float(numpy.max(numpy.abs(found - right) / (1 + numpy.abs(right)))))
    print(f"{name}, {'torch.export' if dynamo else 'TorchScript'}: largest difference {worst:.1e} (limit {LIMIT:g}), results up to "
          f"{max(float(numpy.abs(right).max()) for right in expected):.3g}; export {exported - start:.0f} s, dgc {compiled - middle:.0f} s, "
          f"dgrun {time.monotonic() - compiled:.0f} s", flush=True)
    for file in os.listdir(folder) if not options.keep else []:
        os.unlink(os.path.join(folder, file))
    return worst <= LIMIT


def compare_training(options, folder, dynamo, mode):
    """`mode`: how the model was exported, for inference or for training; both train alike."""
    torch.manual_seed(SEED)
    module = pytorch_models.randomize(pytorch_models.ResNet(blocks=(1, 1, 0, 0), width=4, classes=5))
    module.fc = nn.Linear(module.body[-1].conv3.out_channels, 5)
    x, y = torch.randn(24, 3, 32, 32), torch.randint(0, 5, (24,))
    path = os.path.join(folder, "train.onnx")
    module.train(mode == "training")
    if dynamo:
        # The optimizer would melt batch norm into the convolutions.
        flags = {"dynamic_shapes": ({0: torch.export.Dim("batch")},), "optimize": False}
    else:
        flags = {"training": torch.onnx.TrainingMode.TRAINING if mode == "training" else torch.onnx.TrainingMode.EVAL, "do_constant_folding": False,
                 "dynamic_axes": {"x": {0: "batch"}}}
    export(module, (x[:8],), path, ["x"], dynamo, **flags)
    numpy.save(os.path.join(folder, "x.npy"), x.numpy())
    numpy.save(os.path.join(folder, "y.npy"), y.numpy())
    reference = pytorch_models.randomize(pytorch_models.ResNet(blocks=(1, 1, 0, 0), width=4, classes=5))
    reference.fc = nn.Linear(module.body[-1].conv3.out_channels, 5)
    reference.load_state_dict(module.state_dict())
    reference.train()
    # Slow steps: where a sum of another order puts one element on the other side of a relu's kink, losses part by what a step moves.
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.002, momentum=0.9)
    expected = []
    for step in range(6):
        rows = slice(8 * (step % 3), 8 * (step % 3) + 8)
        loss = nn.functional.cross_entropy(reference(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(float(loss.detach()))
    reference.eval()
    with torch.no_grad():
        evaluated = float(nn.functional.cross_entropy(reference(x[:8]), y[:8]))
    good = True
    for mesh in ([], ["--mesh", "data=2"]):
        job = os.path.join(folder, "train.dgx")
        run([options.dgc, path, "--train", "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.002,momentum=0.9", "--batch", "8", "-o", job, *mesh])
        # The last evaluation is on the first 8 rows, which the running statistics must serve.
        numpy.save(os.path.join(folder, "ex.npy"), x[:8].numpy())
        numpy.save(os.path.join(folder, "ey.npy"), y[:8].numpy())
        events = [json.loads(line) for line in run(
            [options.dgrun, job, "--data", f"x={folder}/x.npy", "--data", f"y={folder}/y.npy", "--eval-data", f"x={folder}/ex.npy",
             "--eval-data", f"y={folder}/ey.npy", "--epochs", "2", "--no-shuffle", "--json"]).splitlines()]
        losses = [event["loss"] for event in events if event["event"] == "step"]
        last = [event["loss"] for event in events if event["event"] == "eval"][-1]
        worst = max(abs(a - b) for a, b in zip(losses + [last], expected + [evaluated], strict=True))
        print(f"training with batch norm, exported for {mode} by {'torch.export' if dynamo else 'TorchScript'}{' over data=2' if mesh else ''}: "
              f"6 losses and an evaluation, largest difference to PyTorch {worst:.1e} (limit {LIMIT:g})", flush=True)
        good = good and worst <= LIMIT
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dgc", required=True)
    parser.add_argument("--dgrun", required=True)
    parser.add_argument("--venv", help="folder of the Python that has PyTorch and ONNX Runtime, where this one does not")
    parser.add_argument("--only", default="", help="cases whose name has this regular expression")
    parser.add_argument("--small", action="store_true", help="a few layers instead of the real size")
    parser.add_argument("--keep", help="leaves models and jobs in this folder")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"seed {SEED}")
    good = True
    with tempfile.TemporaryDirectory(prefix="dg-exported-") as folder:
        folder = options.keep or folder
        for dynamo in (False, True):
            for name in CASES:
                if re.search(options.only, name):
                    good = compare_inference(options, folder, name, dynamo) and good
            for mode in ("inference", "training"):
                if re.search(options.only, f"train-{mode}"):
                    good = compare_training(options, folder, dynamo, mode) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
