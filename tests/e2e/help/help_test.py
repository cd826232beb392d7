# SPDX-License-Identifier: Apache-2.0
"""Proves that --help of every command says of each flag what holds without it: a default, or that it is needed.

    python3 help_test.py BIN TOOL…
"""
import re
import subprocess
import sys

ENTRY = re.compile(r"^ {2,4}-\S")  # CLI11 indents the first line of a flag by two or, in a group, four, what follows by more
KNOWN = ("--help", "--version")


def entries(text):
    """The text of every flag, its continuation lines joined."""
    found = []
    for line in text.splitlines():
        if ENTRY.match(line):
            found.append(line.strip())
        elif found and line.startswith("      "):
            found[-1] += " " + line.strip()
    return found


def main(binaries, *tools):
    faults = 0
    for tool in tools:
        done = subprocess.run([f"{binaries}/{tool}", "--help"], capture_output=True, text=True, timeout=20, check=True)
        flags = [entry for entry in entries(done.stdout) if not any(name in entry for name in KNOWN)]
        silent = [flag for flag in flags if "default" not in flag and "needed" not in flag]
        print(f"{tool}: {len(flags)} flags, {len(silent)} without a default")
        for flag in silent:
            print(f"  {flag}")
        faults += len(silent) + (len(flags) < 5)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
