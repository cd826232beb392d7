# SPDX-License-Identifier: Apache-2.0
"""A row of the comparison, and the commands that its two sides are made of."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile

# No single measurement takes longer; a busy machine may need most of it.
DEADLINE_S = 600


class Missing(Exception):
    """A peer or a command that is not installed."""


class Row:
    """One piece of work: `ours` and `theirs` do it once each and return the microseconds of a repetition, as a median.

    `must` and `aim` are ratios theirs / ours.
    """

    def __init__(self, name, peer, ours, theirs, must, aim):
        self.name, self.peer, self.ours, self.theirs, self.must, self.aim = name, peer, ours, theirs, must, aim

    def measure(self, rounds):
        """Both sides in turns, so that what else the machine does falls on both."""
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(self.ours())
            theirs.append(self.theirs())
        ours_us, theirs_us = statistics.median(ours), statistics.median(theirs)
        return {
            "name": self.name, "peer": self.peer, "ours_us": ours_us, "theirs_us": theirs_us,
            "ratio": theirs_us / ours_us, "must": self.must, "aim": self.aim, "all_ours_us": ours, "all_theirs_us": theirs,
        }


class Tools:
    """DG's commands, the venv of the peers, and a folder for what is made on the way."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.python = os.path.join(root, "build", "venv", "bin", "python")
        self.peers = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix="dg-compare-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch)

    def command(self, name):
        path = os.path.join(self.folder, name)
        if not os.access(path, os.X_OK):
            raise Missing(f"{path} is not a command: build it, or say where it is with --bin")
        return path

    def system_command(self, name):
        path = shutil.which(name)
        if not path:
            raise Missing(f"there is no {name}: tools/install.sh bench")
        return path

    def venv_command(self, module):
        """The beginning of a command that runs a module of the venv."""
        if not os.access(self.python, os.X_OK):
            raise Missing(f"there is no {self.python}: tools/install.sh bench")
        return [self.python, "-m", module]

    def run(self, command, environment=None):
        """stdout of a command that must succeed."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                              env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def objects(self, command, environment=None):
        """The JSON objects that a command prints, one a line."""
        lines = self.run(command, environment).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]
