#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small files of every form that the fuzz targets read, as their first corpus.

usage: make_seeds.py BIN OUT [TARGET...]
BIN is a folder with dgc; OUT/<target>/ gets the files. Nothing is random: the same tree gives the same seeds.
"""
import gzip
import io
import json
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONNX_TESTS = pathlib.Path("/usr/share/libonnx-testdata/data")


def safetensors_file(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, width, shape) in tensors.items():
        size = width
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += b"\x01" * size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_seeds():
    yield "empty", safetensors_file({})
    yield "scalar", safetensors_file({"x": ("F32", 4, [])})
    yield "mixed", safetensors_file({"w": ("F64", 8, [2, 3]), "b": ("BF16", 2, [3]), "none": ("I64", 8, [0, 4])},
                                    {"format": "pt"})
    yield "bytes", safetensors_file({"m": ("BOOL", 1, [4]), "e": ("F8_E4M3", 1, [2, 2])})


def npy_file(descr, shape, data, version=1):
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def npz_file(arrays, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def npy_seeds():
    for version in (1, 2, 3):
        yield f"version{version}", npy_file("<f4", (2, 3), b"\0" * 24, version)
    yield "big-endian", npy_file(">i2", (4,), b"\0\1" * 4)
    yield "scalar", npy_file("|b1", (), b"\1")
    one = npy_file("<f4", (2,), b"\0" * 8)
    yield "stored", npz_file({"x.npy": one}, zipfile.ZIP_STORED)
    yield "deflated", npz_file({"x.npy": one, "y.npy": npy_file("<i8", (9,), b"\0" * 72)}, zipfile.ZIP_DEFLATED)


def idx_seeds():
    for code, width in ((0x08, 1), (0x09, 1), (0x0B, 2), (0x0C, 4), (0x0D, 4), (0x0E, 8)):
        data = bytes([0, 0, code, 2]) + struct.pack(">II", 2, 3) + b"\x01" * (6 * width)
        yield f"type{code}", data
        yield f"type{code}.gz", gzip.compress(data, mtime=0)


def tar_seeds():
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as archive:
            for path in ("a/0.cls", "b" * 120 + "/0.txt" if form != tarfile.USTAR_FORMAT else "a/0.txt"):
                entry = tarfile.TarInfo(path)
                entry.size = 3
                archive.addfile(entry, io.BytesIO(b"1 2"))
        yield name, out.getvalue()[:4096]


def csv_seeds():
    yield "named", b"a,b\r\n1,2.5\r\n\"3\",-4e1\r\n"
    yield "numbers", b"1,2\n3,4\n"


def image_seeds():
    for path in sorted((ROOT / "tests/unit/data/images").glob("*.jpg")):
        yield path.name, path.read_bytes()
    for kind, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        rows = b"".join(b"\0" + bytes(range(7 * channels)) for _ in range(5))
        chunks = ((b"IHDR", struct.pack(">IIBBBBB", 7, 5, 8, kind, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        yield f"png{kind}", b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)


def package_seeds():
    """Zip archives with a manifest of the right form; the mutator makes the hashes right."""
    for number, names in enumerate((["plan.json"], ["plan.json", "train.x86-64-v3.so", "init.safetensors"])):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), "content of " + name)
            archive.writestr(zipfile.ZipInfo("manifest.json"), '{"version": 1, "tool": "dg", "entries": {}}')
        yield f"package{number}", out.getvalue()


def without_program(plan, gone):
    """The plan without its last program, `gone`, and what only that has."""
    if len(plan["programs"]) != gone + 1:
        return plan
    plan["schedule"].pop(plan["programs"].pop()["name"])
    kept = [chunk for chunk in plan["stages"] if chunk["program"] != gone]
    assert plan["stages"][:len(kept)] == kept, "the chunks of the last program come last"
    plan["stages"] = kept
    ops = sorted(op for chunk in kept for op in chunk["ops"])
    number = {op: index for index, op in enumerate(ops)}
    plan["ops"] = [plan["ops"][op] for op in ops]
    for op in plan["ops"]:
        if "deps" in op:
            op["deps"] = [number[dep] for dep in op["deps"]]
        if "finishes" in op:
            op["finishes"] = number[op["finishes"]]
    return plan


def smaller(plan):
    """The plan without what only people read, and with short names: inputs are tried the faster."""
    for key in ("search", "predicted"):
        plan[key] = {name: [] if isinstance(value, list) and key == "search" else value for name, value in plan[key].items()}
    for number, op in enumerate(plan["ops"]):
        op["name"] = f"t{number}"
        for key in ("op", "source", "flops", "bytes"):
            op.pop(key, None)
    for number, value in enumerate(plan["values"]):
        value["name"] = f"v{number}"
    return json.dumps(plan, separators=(",", ":")).encode()


# Models of as few tasks as show a kind of plan: the time that a plan takes goes with its length.
PLANNED = {
    "kernel": """
dg.graph @forward(%x: tensor<?x2xf32>) {
  %y = dg.relu %x
  dg.return %y
}""",
    "loop": """
dg.graph @forward(%x: tensor<2x?x2xf32>) {
  %y = dg.scan over(%slice = %x) {
    %t = dg.tanh %slice
    dg.return %t
  }
  dg.return %y
}""",
    "products": """
dg.graph @forward(%x: tensor<?x2xf32>) {
  %w = dg.parameter "w" tensor<2x2xf32> uniform 0.5
  %a = dg.matmul %x, %w
  %v = dg.parameter "v" tensor<2x2xf32> uniform 0.5
  %b = dg.matmul %a, %v
  dg.return %b
}""",
    "training": """
module attributes {dg.optimizer = "sgd:lr=0.01"} {
  dg.graph @loss(%x: tensor<?x1xf32>) {
    %w = dg.parameter "w" tensor<1x1xf32> uniform 0.5
    %p = dg.matmul %x, %w
    %loss = dg.mse %p, %x
    dg.return %loss
  }
}""",
}


def plan_seeds(bin_folder):
    for number, (model, *flags) in enumerate((
            ["kernel"],
            ["loop"],
            ["products", "--mesh", "tensor=2"],
            ["products", "--mesh", "pipe=2", "--microbatches", "2"],
            ["training"],
            ["training", "--mesh", "data=2"],
            ["training", "--mesh", "data=2", "--zero", "3"],
            ["training", "--accumulate", "2"])):
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(PLANNED[model])
            file.flush()
            text = subprocess.run([bin_folder / "dgc", file.name, "--batch", "2", *flags, "--emit", "plan"], check=True,
                                  stdout=subprocess.PIPE).stdout
        plan = json.loads(text)
        if model == "training":  # evaluation would be as long again
            plan = without_program(plan, 1)
        yield f"plan{number}-{model}", smaller(plan)


def http_seeds():
    path = "/0123456789abcdef/"
    for number, head in enumerate((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8080", f"GET {path} HTTP/1.0\r\nhOST:localhost:8080",
                                   "GET / HTTP/1.1\r\nAccept: */*\r\nHost: 127.0.0.1:8080", f"POST {path} HTTP/1.1\r\nHost: evil.example")):
        yield f"request{number}", (head + "\r\n\r\nbody").encode()


def link_seeds():
    def parts(*texts):
        return b"".join(struct.pack("<Q", len(text)) + text for text in texts)
    def message(kind, text, rank=0, number=0):
        return struct.pack("<BqqH", kind, rank, number, len(text)) + text
    progress = struct.pack("<qqQQIIIiI4x", 1, 1234, 7, 9, 3, 1, 3, 2, 0)
    yield "join", b"\0" + b"\0\0\0" + message(0, parts(b"2", b"host", b"id", b"print")) + message(6, progress * 2)
    yield "assign", b"\0" + b"\7\0\1" + message(8, parts(b"2", b"2", b"4", b"0", b"1", b"run"))
    yield "gathered", b"\0" + b"\0\0\0" + message(10, parts(b"", b"address")) + message(15, b"why", number=65)
    yield "stranger", b"\1" + struct.pack("<QQqq", 24, 8, 0, 0) + bytes(32)
    yield "server", b"\2" + bytes(72)
    yield "client", b"\3DGRDZV2\n" + bytes(64)
    yield "rank", b"\4" + struct.pack("<IIQQ", 0, 0, 1, 12) + parts(b"part") + struct.pack("<IIQQ", 1, 1, 65, 4) + b"died"


def manifest_seeds():
    """Without the right hash, which the mutator adds."""
    plain = {"epoch": 1, "evaluated_step": -1, "file": "model.safetensors", "file_bytes": 4096, "file_xxh3": "00112233445566778899aabbccddeeff",
             "format": "dg-checkpoint", "learning_rate": 0.01, "loss_sum": 3.25, "lr_schedule": "constant", "manifest_xxh3": "", "mean_loss": 0.5,
             "model": "m", "position": 6, "rng": "philox4x32-10", "samples": 60, "seed": 7, "shuffle": "whole", "step": 3, "version": 1}
    best = {"metric": "loss", "since": 1, "step": 2, "value": 0.5}
    more = {"best": best, "stopping": best, "validation": 0.1, "plateau": {"bad": 1, "best": 0.5, "cooldown": 0, "factor": 0.1},
            "origin_xxh3": "ffeeddccbbaa99887766554433221100", "loss_sum": "0x7ff8000000000000"}
    for name, manifest in (("plain", plain), ("all", {**plain, **more})):
        yield name, (json.dumps(dict(sorted(manifest.items())), indent=2) + "\n").encode()


def token_seeds():
    for name, head, length in (("u16", 0, 4), ("u16-shifted", 2, 4), ("u32", 1, 2), ("u32-shifted", 3, 1)):
        yield name, struct.pack("<BQ", head, length) + bytes(range(40))


def cluster_seeds():
    device = {"name": "cpu", "flops_per_second": {"f32": 97e9, "bf16": 1e12}, "memory_bytes": 1 << 34, "memory_bytes_per_second": 13.8e9,
              "efficiency": 0.9, "launch_us": 0.1}
    link = {"bytes_per_second": 6e9, "latency_us": 6}
    plain = {"version": 1, "name": "c", "nodes": 2, "devices_per_node": 2, "device": device, "links": {"intra_node": link, "inter_node": link}}
    curves = {"matmul": [[1, 2], [10, 15]], "relu": [[5, 6]]}
    yield "plain", json.dumps(plain).encode()
    yield "all", json.dumps({**plain, "device": {**device, "stores_scores": 1, "kernels": curves, "busy_kernels": curves}, "device_speeds": [1, 1, 0.5, 2],
                             "cores_per_node": 2, "turn_us": 10, "slice_us": 3000}).encode()


def trace_seeds():
    def event(task, step, rank, at, length=5, microbatch=0):
        return {"ph": "X", "name": f"t{task}", "ts": at, "dur": length, "pid": rank, "tid": 0,
                "args": {"op": task, "microbatch": microbatch, "step": step, "program": "train"}}
    yield "empty", json.dumps({"traceEvents": []}).encode()
    yield "one", json.dumps({"traceEvents": [{"ph": "M", "name": "process_name"}, event(0, 1, 0, 0)]}).encode()
    yield "steps", json.dumps({"displayTimeUnit": "ms", "traceEvents": [
        event(task, step, rank, 100 * step + 10 * task) for step in (1, 2, 3) for rank in (0, 3) for task in (0, 1, 2)]}).encode()


def fact_seeds():
    yield "parameters", json.dumps({"parameters": [{"name": "w", "type": "tensor<2x2xf32>", "role": "trained", "readers": ["a", "b"]}]}).encode()
    op = {"name": "fc", "choice": "cut", "runner_up": "whole", "bound_by": "memory", "cost_us": 3.5, "runner_up_us": 1}
    yield "explain", json.dumps({"binding": "memory", "largest_costs": [{"what": "fc", "advice": "more", "step_us": 2}], "blocks": [{"ops": [op]}]}).encode()
    phase = {"pass": "dg-fuse", "summary": "s", "added": {"dg.add": 1}, "removed": {},
             "ops": [["a", "dg.add", "train", "forward", 0], ["b", "dg.relu", "train", "backward", 1], ["c", "dg.relu", "eval", "forward", 0]],
             "flow": [[0, 1], [1, 2]]}
    yield "phases", json.dumps({"version": 1, "phases": [phase, phase]}).encode()


def object_seeds(bin_folder):
    """The objects of a small job."""
    for model in ("kernel", "training"):
        with tempfile.TemporaryDirectory() as folder:
            source, job = pathlib.Path(folder, "m.mlir"), pathlib.Path(folder, "m.dgx")
            source.write_text(PLANNED[model])
            subprocess.run([bin_folder / "dgc", source, "--batch", "2", "--target", "x86-64-v3", "-o", job], check=True, stdout=subprocess.DEVNULL)
            with zipfile.ZipFile(job) as archive:
                for name in archive.namelist():
                    if name.endswith(".so"):
                        yield f"{model}-{name}", archive.read(name)


def bytecode_seeds(bin_folder):
    """What dg-opt writes of small models, and what once ended MLIR's reader."""
    for name, model in PLANNED.items():
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(model)
            file.flush()
            yield name, subprocess.run([bin_folder / "dg-opt", file.name, "--emit-bytecode"], check=True, stdout=subprocess.PIPE).stdout
    for path in sorted((ROOT / "tests/e2e/bad_input/bytecode").glob("*.mlirbc")):
        yield path.stem, path.read_bytes()


def frame_seeds():
    """Rows of commands, see targets/FramesTarget.cpp."""
    message, question, answer, part, blocks = (kind * 8 for kind in range(5))
    receive, send, advance = b"\3", b"\4", b"\x45"
    yield "early", bytes([0, message, 0, 1, 2, 0]) + advance + receive + b"\1\2" + advance
    yield "posted", b"\0" + receive + b"\1\4" + bytes([message, 0, 1, 4, 0]) + advance
    yield "large", b"\0" + receive + b"\1\x0a" + bytes([question, 0, 1, 10, 0]) + advance + bytes([part, 0, 0, 8, 0]) + advance
    yield "sent", b"\0" + send + b"\1\x0a" + advance + bytes([answer, 0, 0, 0, 0, blocks, 1, 0, 0, 0]) + advance
    yield "told", b"\3" + struct.pack("<II", 8, 256) + send + b"\1\2" + advance


def flag_seeds():
    for number, texts in enumerate((
            ("warmup:steps=500+cosine:steps=10000", "step:every=2,gamma=0.5", "step:every=5steps,steps=9", "plateau:factor=0.1,patience=10,min=0",
             "one-cycle:epochs=3,rise=0.3", "polynomial:steps=9,power=2,to=0.1", "constant:epochs=2+linear:epochs=2"),
            ("a.npy,b{0..9}.tar:jpg", "{000..099}.tar", "x{a,b}{08..11}.u16:+1"),
            ("10epochs", "500steps", "2.5s"),
            ("0.5,0.25", "0.485,0.456,0.406/0.229,0.224,0.225", "x=0,1"),
            ("eval.loss", "eval.accuracy:patience=5,min_delta=0.001", "eval.top3:patience=2"),
            ("1f1b", "interleaved:3", "nodes=4,devices=2"))):
        for place, text in enumerate(texts):
            yield f"flag{number}-{place}", bytes([number]) + text.encode()


def text_seeds(_most=2500):
    for path in sorted((ROOT / "tests/lit/ir").glob("*.mlir")) + sorted((ROOT / "examples").glob("*.mlir")):
        parts = re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE)
        for number, part in enumerate(parts):
            text = re.sub(r"^\s*//.*\n", "", part, flags=re.MULTILINE).strip() + "\n"
            if 10 < len(text) <= _most:
                yield f"{path.stem}{number}", text.encode()


def onnx_seeds(_most=700):
    """The ONNX project's own tests, one of each operator, and all small ones of its simple set."""
    seen = set()
    for path in sorted(ONNX_TESTS.glob("*/*/model.onnx")):
        data = path.read_bytes()
        operator = re.sub(r"(_[0-9]+d|_example|_expanded.*|_default.*|_cpu)", "", path.parent.name).split("_")[1:3]
        if len(data) > _most or (path.parts[-3] == "node" and tuple(operator) in seen):
            continue
        seen.add(tuple(operator))
        yield path.parent.name, data


def main():
    bin_folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    makers = {"safetensors": safetensors_seeds, "npy": npy_seeds, "idx": idx_seeds, "tar": tar_seeds,
              "csv": csv_seeds, "image": image_seeds, "package": package_seeds,
              "http": http_seeds,
              "link": link_seeds, "manifest": manifest_seeds, "tokens": token_seeds, "cluster": cluster_seeds, "trace": trace_seeds,
              "facts": fact_seeds, "object": lambda: object_seeds(bin_folder), "bytecode": lambda: bytecode_seeds(bin_folder), "frames": frame_seeds, "flags": flag_seeds,
              "plan": lambda: plan_seeds(bin_folder), "text": text_seeds, "onnx": onnx_seeds}
    for target in sys.argv[3:] or makers:
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in makers[target]():
            (folder / name).write_bytes(data)
        print(f"{target}: {sum(1 for _ in folder.iterdir())} seeds")


if __name__ == "__main__":
    main()
