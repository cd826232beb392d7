#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that dg-from-torch says what is wrong with its inputs, with the exit codes of the other commands.

usage: usage_test.py DG_FROM_TORCH [VENV]
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

SOURCE = """import torch

def good():
    return torch.nn.Linear(2, 3), (torch.zeros(2, 2),)

def alone():
    return torch.nn.Linear(2, 3)

def number():
    return 7, (torch.zeros(2, 2),)

def texts():
    return torch.nn.Linear(2, 3), ("x",)

class Sorted(torch.nn.Module):
    def forward(self, x):
        return x if float(x.sum()) > 0 else -x

class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Embedding(5, 3, padding_idx=0), torch.nn.Embedding(5, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.a(x) + self.b(x)

def padded():
    return Padded(), (torch.zeros(2, 2, dtype=torch.int64),)

def branching():
    return Sorted(), (torch.zeros(2, 2),)
"""
# arguments, exit code, what the message has
CASES = [
    (["--help"], 0, "--exporter"),
    (["net.py:good"], 2, "-o"),
    (["net.py", "-o", "a.onnx"], 2, "expected FILE.py:NAME"),
    (["none.py:good", "-o", "a.onnx"], 65, "there is no such file"),
    (["net.py:none", "-o", "a.onnx"], 65, "has no none"),
    (["net.py:alone", "-o", "a.onnx"], 65, "gives Linear, expected a pair"),
    (["net.py:number", "-o", "a.onnx"], 65, "gives int first, expected a torch.nn.Module"),
    (["net.py:texts", "-o", "a.onnx"], 65, "is str, expected a tensor"),
    (["net.py:branching", "-o", "a.onnx"], 1, "torch.onnx.export (dynamo) failed"),
    (["net.py:padded", "-o", "b.onnx"], 65, "a.weight: embeddings that share it have padding_idx 0 and None, expected one row"),
    (["net.py:good", "-o", "nowhere/a.onnx"], 2, "there is no folder"),
    (["net.py:good", "-o", "a.pt", "--load", "empty"], 65, "holds no checkpoint"),
    (["net.py:good", "-o", "a.pt", "--load", "noise.safetensors"], 65, "is no safetensors file"),
    (["net.py:good", "-o", "a.pt", "--load", "other.safetensors"], 65, "has no tensor of the module"),
    (["net.py:good", "-o", "a.pt", "--load", "shape.safetensors"], 65, "has 'bias' as F32 [2], but the module has it as torch.float32 [3]"),
    (["net.py:good", "-o", "a.pt", "--load", "short.safetensors"], 65, "has 8 bytes for 'bias', expected 12"),
    (["net.py:good", "-o", "a.pt", "--load", "whole"], 0, "1 tensors from whole/step-000001/model.safetensors"),
    (["net.py:good", "-o", "a.pt", "--load", "altered"], 65, "damaged: its hash is "),
    (["net.py:good", "-o", "a.pt", "--load", "cut"], 65, "bytes, its manifest says "),
    (["net.py:good", "-o", "a.pt", "--load", "unreadable"], 65, "is not the manifest of a checkpoint"),
    (["net.py:good", "-o", "empty", "--load", "whole"], 1, "empty: cannot be written: Is a directory"),
]


def safetensors(name, shape, data):
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return len(header).to_bytes(8, "little") + header + data


def manifest_of(content):
    """What dgrun writes beside the tensors, as far as it is read here."""
    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    hash_of = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    hash_of.restype, hash_of.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    found = hash_of(content, len(content))
    return json.dumps({"file_bytes": len(content), "file_xxh3": f"{found.high:016x}{found.low:016x}"}).encode()


def main(script, venv=""):
    python = next((path for path in (os.path.join(venv, "bin/python"), sys.executable)
                   if os.path.exists(path) and subprocess.run([path, "-c", "import torch, onnx, onnxscript"], capture_output=True).returncode == 0), None)
    if not python:
        print("skipped: there is no PyTorch; run tools/install.sh bench")
        return 77
    problems = []
    with tempfile.TemporaryDirectory(prefix="dg-from-torch-") as folder:
        def write(name, content):
            with open(os.path.join(folder, name), "wb") as out:
                out.write(content)

        os.mkdir(os.path.join(folder, "empty"))
        write("net.py", SOURCE.encode())
        write("noise.safetensors", b"noise")
        for name, tensor, shape in (("other", "w", [2]), ("shape", "bias", [2]), ("short", "bias", [3])):
            write(name + ".safetensors", safetensors(tensor, shape, bytes(8)))
        content = safetensors("bias", [3], bytes(12))
        for name, tensors, manifest in (("whole", content, manifest_of(content)), ("altered", content[:-1] + b"\1", manifest_of(content)),
                                        ("cut", content[:-1], manifest_of(content)), ("unreadable", content, b"{}")):
            os.makedirs(os.path.join(folder, name, "step-000001"))
            write(name + "/step-000001/model.safetensors", tensors)
            write(name + "/step-000001/manifest.json", manifest)
        for arguments, code, words in CASES:
            run = subprocess.run([python, "-B", os.path.abspath(script), *arguments], cwd=folder, capture_output=True, text=True, timeout=100)
            if run.returncode != code or words not in run.stdout + run.stderr or "Traceback" in run.stderr:
                problems.append(f"{arguments}: found exit code {run.returncode} and {run.stdout}{run.stderr}, expected {code} and '{words}'")
        problems += [f"{name} is left behind" for name in os.listdir(folder) if name.endswith(".partial")]
    print("\n".join(problems) or f"{len(CASES)} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
