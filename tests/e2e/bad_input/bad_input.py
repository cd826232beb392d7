#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that wrong files and flags end dgc and dgrun with the right exit code and one clear message.

Every row of the tables (rows_dgc.py, rows_dgrun.py) is one command. It must end within 20 seconds, without a signal, with the row's exit
code; stderr must hold exactly one message, with every text that the row names; no file may be left that was not there before, and
none that was there may change.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder of the sources stays as it is
import rows_dgc  # noqa: E402
import rows_dgrun  # noqa: E402

TIMEOUT_SECONDS = 20
MESSAGE = re.compile(r"^(dgc: error: |dgrun: (?!note: )|\S.*?: error: )", re.MULTILINE)
LONGEST_OUTPUT = 4000  # a message, and the line that it quotes


def files_under(folder):
    """Path → when and how its contents last changed."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(at, name))
            found[os.path.join(at, name)] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def run(command, folder):
    """Exit code (None: it did not end), output."""
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stderr.decode(errors="replace")


def faults_of(row, folder, binaries):
    before = files_under(folder)
    command = [os.path.join(binaries, row.command[0])] + row.command[1:]
    code, output = run(command, folder)
    faults = []
    if code is None:
        return [f"did not end within {TIMEOUT_SECONDS} s"], output
    if code < 0 or code > 128:
        faults.append(f"ended by a signal (exit code {code})")
    elif code != row.exit_code:
        faults.append(f"exit code {code}, expected {row.exit_code}")
    messages = MESSAGE.findall(output)
    if len(messages) != 1:
        faults.append(f"{len(messages)} messages, expected 1")
    if len(output) > LONGEST_OUTPUT:
        faults.append(f"{len(output)} characters of output, expected at most {LONGEST_OUTPUT}")
    faults += [f"the message lacks {text!r}" for text in row.says if text not in output]
    after = files_under(folder)
    changed = sorted(path for path in before if after.get(path) != before[path])
    if changed:
        faults.append(f"changed {', '.join(changed)}")
    left = sorted(set(after) - set(before))
    if left:
        faults.append(f"left {', '.join(left)}")
        for path in left:
            os.unlink(path)
    return faults, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=["dgc", "dgrun"])
    parser.add_argument("--bin", required=True, help="folder of dgc and dgrun")
    parser.add_argument("--examples", required=True, help="folder of the example models")
    parser.add_argument("--seed", type=int, default=None, help="of the flipped bits; default: drawn, and printed")
    parser.add_argument("--show", action="store_true", help="print every message")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    binaries, examples = os.path.abspath(arguments.bin), os.path.abspath(arguments.examples)
    begin, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="dg-bad-input-") as folder:
        table = rows_dgc if arguments.tool == "dgc" else rows_dgrun
        rows = table.make_rows(folder, binaries, examples, random.Random(seed))
        for row in rows:
            faults, output = faults_of(row, folder, binaries)
            if arguments.show or faults:
                print(f"{'FAILED' if faults else 'ok'}: {row.name}: {' '.join(row.command)}")
                print("".join(f"    {line}\n" for line in output[:LONGEST_OUTPUT].splitlines()), end="")
            for fault in faults:
                print(f"  {fault}")
            failed += bool(faults)
    print(f"{len(rows)} rows, {failed} failed, {time.monotonic() - begin:.1f} s")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
