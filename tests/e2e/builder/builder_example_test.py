# SPDX-License-Identifier: Apache-2.0
"""Proves that the model that examples/builder.cpp prints is one that dgc compiles and dgrun trains."""
import json
import os
import subprocess
import tempfile

BIN = os.environ["DG_BIN"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory(prefix="dg-builder-") as folder:
    with open(f"{folder}/net.mlir", "w", encoding="utf-8") as file:
        file.write(run(f"{BIN}/builder_example"))
    run(f"{BIN}/dgc", f"{folder}/net.mlir", "--batch", "8", "--optimizer", "adam:lr=0.01", "-o", f"{folder}/net.dgx")
    lines = run(f"{BIN}/dgrun", f"{folder}/net.dgx", "--data", "x=randn:32x3x16x16", "--data", "y=randint:10:32", "--epochs", "8", "--json")
    losses = [event["loss"] for event in map(json.loads, lines.splitlines()) if event["event"] == "step"]
    first, last = sum(losses[:4]) / 4, sum(losses[-4:]) / 4
    print(f"{len(losses)} steps, loss {first:.3f} in the first epoch, {last:.3f} in the last")
    if len(losses) != 32 or not last < first:
        raise SystemExit(f"expected 32 losses that fall: {losses}")
