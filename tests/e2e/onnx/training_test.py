#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that an ONNX model trains as the same model written by hand does: `dgc model.onnx --train --loss mse` against the text form with the
weights of `--weights FILE.safetensors`, step by step, also where a search chose the micro-batches; and that results of inference are the same.

usage: training_test.py --dgc DGC --dgrun DGRUN
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import onnx_files

TEXT = """module {
  dg.graph @%s(%%x: tensor<?x3xf32>%s) {
    %%w1 = dg.parameter "w1" tensor<4x3xf32> uniform 0.5
    %%b1 = dg.parameter "b1" tensor<4xf32> uniform 0.5
    %%w2 = dg.parameter "w2" tensor<2x4xf32> uniform 0.5
    %%h = dg.linear %%x, %%w1, %%b1
    %%r = dg.relu %%h
    %%p = dg.linear %%r, %%w2
%s
  }
}
"""


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, value):
    """One field of a protobuf message: a number, a text or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, shape, values):
    return b"".join(field(1, size) for size in shape) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def value_info(name, dims):
    shape = b"".join(field(1, field(1, dim) if isinstance(dim, int) else field(2, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def node(op, inputs, output, attributes=()):
    made = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
    return made + b"".join(field(5, field(1, name) + field(3, value) + field(20, 2)) for name, value in attributes)


def onnx_model(weights):
    graph = field(1, node("Gemm", ["x", "w1", "b1"], "h", [("transB", 1)])) + field(1, node("Relu", ["h"], "r"))
    graph += field(1, node("Gemm", ["r", "w2"], "p", [("transB", 1)])) + field(2, "mlp")
    graph += b"".join(field(5, tensor(name, shape, values)) for name, (shape, values) in weights.items())
    graph += field(11, value_info("x", ["N", 3])) + field(12, value_info("p", ["N", 2]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def safetensors(weights):
    header, offset = {}, 0
    for name, (shape, values) in weights.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * len(values)]}
        offset += 4 * len(values)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(struct.pack(f"<{len(values)}f", *values) for _, values in weights.values())


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dgc", required=True)
    parser.add_argument("--dgrun", required=True)
    options = parser.parse_args()
    seed = int(os.environ.get("DG_TEST_SEED", "7"))
    print(f"seed {seed}")
    rng = random.Random(seed)

    def numbers(count):
        return [struct.unpack("<f", struct.pack("<f", rng.uniform(-1, 1)))[0] for _ in range(count)]

    weights = {"w1": ([4, 3], numbers(12)), "b1": ([4], numbers(4)), "w2": ([2, 4], numbers(8))}
    with tempfile.TemporaryDirectory(prefix="dg-onnx-") as folder:
        def path(name):
            return os.path.join(folder, name)

        def write(name, content):
            with open(path(name), "wb") as file:
                file.write(content)

        write("mlp.onnx", onnx_model(weights))
        write("mlp.safetensors", safetensors(weights))
        write("loss.mlir", (TEXT % ("loss", ", %y: tensor<?x2xf32>", "    %loss = dg.mse %p, %y\n    dg.return %loss")).encode())
        write("forward.mlir", (TEXT % ("forward", "", "    dg.return %p")).encode())
        onnx_files.write_npy(path("x.npy"), onnx_files.Tensor("x", "<f4", [32, 3], struct.pack("<96f", *numbers(96))))
        onnx_files.write_npy(path("y.npy"), onnx_files.Tensor("y", "<f4", [32, 2], struct.pack("<64f", *numbers(64))))
        by_name = ["--weights", path("mlp.safetensors")]
        model = [path("mlp.onnx"), "--loss", "mse"]
        # A search for two stages takes micro-batches, and so other rows than the file was first read with.
        cases = {"text": (8, [path("loss.mlir")] + by_name), "onnx": (8, model), "onnx over two": (8, model + ["--mesh", "data=2"]),
                 "text, large batch": (4096, [path("loss.mlir")] + by_name),
                 "onnx searched": (4096, model + ["--ranks", "2", "--forbid", "data", "--forbid", "tensor"])}
        losses = {}
        for name, (batch, flags) in cases.items():
            run([options.dgc, *flags, "--train", "--optimizer", "sgd:lr=0.1", "--batch", str(batch), "-o", path("job.dgx")])
            lines = run([options.dgrun, path("job.dgx"), "--threads", "1", "--data", f"x={path('x.npy')}", "--data", f"y={path('y.npy')}",
                         "--epochs", "3", "--json"]).splitlines()
            losses[name] = [event["loss"] for event in map(json.loads, lines) if event["event"] == "step"]
        for name, count in {"text": 12, "text, large batch": 3}.items():
            if len(losses[name]) != count or not losses[name][-1] < losses[name][0]:
                raise SystemExit(f"{name}: the model does not train: {losses[name]}")
        for name, text in {"onnx": "text", "onnx over two": "text", "onnx searched": "text, large batch"}.items():
            worst = max(abs(a - b) for a, b in zip(losses[name], losses[text], strict=True))
            print(f"{name}: {len(losses[name])} losses, largest difference to the text form {worst:.2e}")
            if worst > 1e-6:
                raise SystemExit(f"{name}: {losses[name]}\n{text}: {losses[text]}")
        results = []
        for name, flags in {"onnx": [path("mlp.onnx")], "text": [path("forward.mlir")] + by_name}.items():
            run([options.dgc, *flags, "--infer", "--batch", "8", "-o", path("job.dgx")])
            run([options.dgrun, path("job.dgx"), "--threads", "1", "--input", f"x=@{path('x.npy')}", "--output", f"p=@{path(name)}.npy"])
            results.append(onnx_files.read_npy(path(name) + ".npy").values())
        worst = max(abs(a - b) for a, b in zip(*results, strict=True))
        print(f"inference: largest difference {worst:.2e}")
        return 1 if worst > 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
