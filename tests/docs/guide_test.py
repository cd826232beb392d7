# SPDX-License-Identifier: Apache-2.0
"""Proves that README.md and the pages of docs/guide are true: their console lines are typed as they are and print what the pages show.

usage: guide_test.py DOCS EXAMPLES BIN [PAGE…]
A block marked `console` holds lines that begin with "$ " and what they print; "…" stands for any lines. Numbers are compared by
their shape only. `console varies` means that the output depends on the machine: only exit codes are compared. A line ends with
"# exit code N" where that is not 0. "Save it as `FILE`" before a block gives the block to the commands as a file. Pages read the first
images of Fashion-MNIST, so that a page takes seconds.
"""
import glob
import gzip
import math
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile

DATASET = "/usr/share/datasets/fashion-mnist"
SMALL_NUMBERS = {"train": 1000, "t10k": 500}


def blocks(text):
    """(info string, lines, prose since the block before) of every fenced block."""
    prose, info, lines = [], None, []
    for line in text.splitlines():
        if line.startswith("```"):
            if info is None:
                info, lines = line[3:].strip(), []
            else:
                yield info, lines, "\n".join(prose)
                info, prose = None, []
        elif info is None:
            prose.append(line)
        else:
            lines.append(line)


def shape(line):
    """The line without what differs from machine to machine: numbers, host, number of threads."""
    line = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "vm", line)
    return re.sub(r"\d[\d.]*(?:e[+-]?\d+)?", "#", line).replace("threads each", "thread each").rstrip()


def matches(expected, found):
    """Whether the lines are those expected, where "…" is any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(shape(line)) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(shape(line) + "\n" for line in found)) is not None


def write_first_samples(folder):
    for name in os.listdir(DATASET):
        with gzip.open(os.path.join(DATASET, name)) as file:
            magic = file.read(4)
            total, *sizes = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
            number = min(total, SMALL_NUMBERS[name.split("-")[0]])
            content = file.read(number * math.prod(sizes))
        with gzip.open(os.path.join(folder, name), "wb", compresslevel=1) as file:
            file.write(magic + struct.pack(f">{magic[3]}I", number, *sizes) + content)


def python_with_torch():
    """The folder of a python3 that has PyTorch and its exporters; empty where there is none (tools/install.sh bench)."""
    venv = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/venv/bin")
    for folder in (os.environ.get("DG_TORCH_BIN", ""), venv, ""):
        python = os.path.join(folder, "python3")
        if (not folder or os.path.exists(python)) and subprocess.run([python, "-c", "import torch, onnx, onnxscript"], capture_output=True).returncode == 0:
            return folder or os.path.dirname(sys.executable)
    return ""


def check_page(path, examples, binaries):
    """What is wrong with a page, as text; nothing if it is true."""
    problems, assignments = [], ""
    with tempfile.TemporaryDirectory(prefix="dg-guide-") as folder:
        os.symlink(examples, os.path.join(folder, "examples"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if DATASET in text:
            os.mkdir(os.path.join(folder, "dataset"))
            write_first_samples(os.path.join(folder, "dataset"))
        torch = python_with_torch() if "$ dg-from-torch" in text else binaries
        if not torch:
            print(f"skipped: {os.path.basename(path)} needs PyTorch: tools/install.sh bench")
            return []
        environment = dict(os.environ, PATH=f"{binaries}:{torch}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for info, lines, prose in blocks(text):
            saved = re.findall(r"[Ss]ave (?:this|it) as\s+`([^`]+)`", prose)
            if saved:
                with open(os.path.join(folder, saved[-1]), "w", encoding="utf-8") as out:
                    out.write("\n".join(lines) + "\n")
            if info.split()[:1] != ["console"]:
                continue
            starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
            for start, end in zip(starts, starts[1:] + [len(lines)]):
                command, expected = lines[start][2:], lines[start + 1:end]
                code = re.search(r"# exit code (\d+)$", command)
                if re.fullmatch(r"\w+=\S+", command):
                    assignments += command + "\n"
                    continue
                line = (assignments + command).replace(DATASET, os.path.join(folder, "dataset"))
                run = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, timeout=200, stdin=subprocess.DEVNULL)
                where = f"{os.path.basename(path)}: $ {command}\n"
                if run.returncode != int(code.group(1) if code else 0):
                    problems.append(f"{where}found exit code {run.returncode}, expected {code.group(1) if code else 0}:\n{run.stdout}")
                elif "varies" not in info and not matches(expected or (["…"] if code else []), run.stdout.splitlines()):
                    problems.append(f"{where}found:\n{run.stdout}expected:\n" + "\n".join(expected))
    return problems


def main(docs, examples, binaries, *pages):
    assert matches(["a 1", "…", "b 2.5 s"], ["a 7", "x", "y", "b 3 s"]) and not matches(["a 1", "b"], ["a 1", "c"])
    problems, number = [], 0
    for path in [os.path.join(docs, "../README.md"), *sorted(glob.glob(os.path.join(docs, "guide", "*.md")))]:
        if not pages or os.path.basename(path) in pages:
            number += 1
            problems += check_page(path, os.path.abspath(examples), os.path.abspath(binaries))
    print("\n\n".join(problems) if problems else f"{number} pages are true")
    return 1 if problems or not number else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
