# SPDX-License-Identifier: Apache-2.0
"""One line of the tables: a command that must fail, and how."""
from dataclasses import dataclass

USAGE, BAD_FILE, RUN_FAILED = 2, 65, 1


@dataclass
class Row:
    name: str
    command: list  # the tool, then its arguments; paths are relative to the test's folder
    exit_code: int
    says: list  # texts that the message must hold: what was found, what was expected, where
