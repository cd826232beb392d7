# SPDX-License-Identifier: Apache-2.0
"""Proves that the commands are built so that a memory error is hard to use: position independent, nothing writable and executable, symbols bound
and read-only before main, stack protector, checked string functions, and on x86 targets of jumps and a shadow stack marked."""
import platform
import re
import subprocess
import sys
import unittest

import runs

COMMANDS = "dgc", "dgrun", "dgviz"


def read(path, *flags):
    return subprocess.run(["readelf", "-W", *flags, path], capture_output=True, text=True, check=True).stdout


class HardeningTest(unittest.TestCase):
    def test_commands(self):
        for name in COMMANDS:
            with self.subTest(name):
                self.check(runs.tool(name))

    def check(self, path):
        self.assertRegex(read(path, "-h"), r"Type:\s+DYN", "position independent")
        segments = read(path, "-l")
        self.assertIn("GNU_RELRO", segments)
        self.assertRegex(segments, r"GNU_STACK .* RW +0", "a stack that holds no code")
        self.assertNotRegex(segments, r"LOAD .* RWE ", "no memory that is written and run")
        self.assertRegex(read(path, "-d"), r"BIND_NOW|FLAGS_1\).*NOW", "full RELRO")
        symbols = read(path, "--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__(mem|str|v?s?n?printf|read|poll|f\w+)\w*_chk@", "_FORTIFY_SOURCE")
        if platform.machine() == "x86_64":
            self.assertRegex(read(path, "-n"), "x86 feature:.*SHSTK")
            code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=main", path], capture_output=True, text=True).stdout
            self.assertRegex(code, r"<main>:\n.*\bendbr64", "targets of indirect jumps are marked")


if __name__ == "__main__":
    runs.main()
