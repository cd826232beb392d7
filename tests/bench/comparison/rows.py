# SPDX-License-Identifier: Apache-2.0
"""A row of the comparison, and the commands that its two sides are made of."""
import json
import math
import os
import select
import shutil
import signal
import statistics
import subprocess
import tempfile

# No single measurement takes longer; a busy machine may need most of it.
DEADLINE_S = 600


# Student's t for 95 %, two-sided, by degrees of freedom from 1.
T95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09]


class Missing(Exception):
    """A peer or a command that is not installed."""


class Row:
    """One piece of work: `ours` and each of `peers`, by name, do it once and return the figure of a repetition, as a median.

    The figure is microseconds, or bytes where `unit` says so: less is better. `must` and `aim` are ratios of the best peer's figure to ours.
    `work` is the floating-point operations of a repetition and `threads` how many threads share them, where that makes sense.
    """

    def __init__(self, name, ours, peers, must, aim, unit="us", work=None, threads=1):
        self.name, self.ours, self.peers, self.must, self.aim = name, ours, peers, must, aim
        self.unit, self.work, self.threads = unit, work, threads

    def measure(self, rounds):
        """All sides in turns, so that what else the machine does falls on all."""
        ours, theirs = [], {peer: [] for peer in self.peers}
        for _ in range(rounds):
            ours.append(self.ours())
            for peer, figure in self.peers.items():
                theirs[peer].append(figure())
        best = min(theirs, key=lambda peer: statistics.median(theirs[peer]))
        low, ratio, high = interval([b / a for a, b in zip(ours, theirs[best])])
        result = {
            "name": self.name, "unit": self.unit, "ours": statistics.median(ours), "peer": best,
            "theirs": statistics.median(theirs[best]), "ratio": ratio, "low": low, "high": high, "must": self.must,
            "aim": self.aim, "threads": self.threads, "all_ours": ours, "all_theirs": theirs,
        }
        if self.work:
            result["work"] = self.work() if callable(self.work) else self.work
        return result


def interval(ratios):
    """Ends and middle of the 95 % interval of the mean ratio, which is computed on logarithms (Student's t)."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.mean(logs)
    if len(logs) == 1:
        return ratios[0], ratios[0], ratios[0]
    half = T95[min(len(logs) - 1, len(T95)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - half), math.exp(middle), math.exp(middle + half)


def limit(figure):
    """A peer that always gives the same figure: what is asked for, where there is nobody to compare with."""
    return {"limit": lambda: figure}


class Tools:
    """DG's commands, the venv of the peers, and a folder for what is made on the way."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.python = os.path.join(root, "build", "venv", "bin", "python")
        self.peers = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix="dg-compare-")
        self.workers = {}
        return self

    def __exit__(self, *_):
        self.end_workers()
        shutil.rmtree(self.scratch)

    def worker(self, *arguments):
        """The peer `serve_steps.py ARGUMENTS`, started when first asked for."""
        if arguments not in self.workers:
            self.workers[arguments] = Worker(self.venv_python() + [os.path.join(self.peers, "serve_steps.py"), *arguments])
        return self.workers[arguments]

    def end_workers(self):
        for worker in self.workers.values():
            worker.end()
        self.workers = {}

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

    def venv_python(self):
        """The beginning of a command that runs a script in the venv."""
        if not os.access(self.python, os.X_OK):
            raise Missing(f"there is no {self.python}: tools/install.sh bench")
        return [self.python]

    def venv_command(self, module):
        """The beginning of a command that runs a module of the venv."""
        return self.venv_python() + ["-m", module]

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


class Worker:
    """A peer that stays: it starts once, compiles once, and sleeps (SIGSTOP) while it is not measured."""

    def __init__(self, command):
        threads = command[-1]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "JAX_PLATFORMS": "cpu"})
        self.ready = self.answer()

    def answer(self):
        """The next object that the peer prints; it sleeps afterwards."""
        readable, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        line = self.process.stdout.readline() if readable else ""
        if not line:
            self.process.kill()
            self.process.wait()
            self.errors.seek(0)
            raise Missing(f"{' '.join(self.process.args[1:])} gave no answer: "
                          f"{self.errors.read().decode(errors='replace').strip()[-300:] or 'nothing on stderr'}")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def measure(self, seconds):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()
