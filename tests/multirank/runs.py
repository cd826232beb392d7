# SPDX-License-Identifier: Apache-2.0
"""Jobs compiled by dgc and run by dgrun as real processes: what the drivers of this folder share.

The folder of the commands comes from DG_BIN, the checkout from DG_SOURCE; ctest sets both. DG_TEST_DGRUN: another dgrun, as one
that is linked with the device that these drivers are to run on.
"""
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

BIN = os.environ.get("DG_BIN", "")
SOURCE = os.environ.get("DG_SOURCE", os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))
EXAMPLES = os.path.join(SOURCE, "examples")
HOST = socket.gethostname()
# No single run here takes more than a few seconds; a sanitizer makes it ten times that.
DEADLINE_S = 120
# What each run measures anew; everything else in an event must be the same bits.
MEASURED = ("step_us", "seconds", "stall_seconds", "data_wait_seconds", "samples_per_second", "best_seconds",
            "path", "resumed_from", "threads", "peak_rss_bytes", "time", "host", "job")

MLP_DATA = ["--data", "x=randn:1000x10", "--data", "y=randn:1000x1"]
IMAGE_DATA = ["--data", "x=randn:300x1x28x28", "--data", "y=randint:10:300"]
FLAT_DATA = ["--data", "x=randn:300x784", "--data", "y=randint:10:300"]
SMALL_GPT = "gpt:layers=2,hidden=64,heads=2,seq=32,vocab=160"
TOKEN_DATA = ["--data", "x=randint:160:20x32", "--data", "y=randint:160:20x32"]
ENDLESS = ["--epochs", "1000000"]


def seeded_random():
    """A generator whose seed is printed, and taken from DG_TEST_SEED to repeat a run."""
    seed = int(os.environ.get("DG_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed} (repeat with DG_TEST_SEED={seed})", flush=True)
    return random.Random(seed)


def tool(name):
    path = os.environ.get("DG_TEST_DGRUN") if name == "dgrun" else None
    path = path or os.path.join(BIN, name)
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not a command: set DG_BIN to the build's bin folder")
    return path


class Finished:
    """A run that ended: exit code, events of --json, the text of stderr, seconds."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    def lines(self, *kinds):
        """The events of these kinds as text without what is measured: equal bits are equal text."""
        kept = [{k: v for k, v in e.items() if k not in MEASURED} for e in self.events if e["event"] in kinds]
        return [json.dumps(event) for event in kept]

    def loss_texts(self):
        """step → loss exactly as it was printed."""
        texts = {}
        for line in self.out.splitlines():
            if line.startswith('{"event":"step",'):
                texts[json.loads(line)["step"]] = line.split('"loss":')[1].split(",")[0]
        return texts


class Running:
    """dgrun as a child, with a mark in its environment by which all of its processes are found."""

    def __init__(self, job, *flags, folder, own_group=False, limit_file_bytes=None, prefix=(), environment=None):
        """`prefix`: a command that starts dgrun, as mpirun or nsenter."""
        self.mark = "DG_TEST_MARK=" + uuid.uuid4().hex
        environment = dict(os.environ, **(environment or {}), DG_TEST_MARK=self.mark.split("=")[1])
        command = [*prefix, tool("dgrun"), job, "--json", *flags]
        if limit_file_bytes:
            command = [shutil.which("prlimit"), f"--fsize={limit_file_bytes}", *command]
        self.files = [tempfile.TemporaryFile("w+", dir=folder) for _ in range(2)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1],
                                        env=environment, cwd=folder, start_new_session=own_group)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            signal_process(pid, signal.SIGKILL)
        self.process.wait()
        for file in self.files:
            file.close()

    def processes(self):
        """Every living process of this run, the launcher too, wherever it was moved in the process tree."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0") and state_of(pid) != "Z":
                        found.append(int(pid))
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue
        return found

    def ranks(self):
        """rank → pid of the launcher's children; ranks are forked in their order."""
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                return dict(enumerate(map(int, file.read().split())))
        except FileNotFoundError:
            return {}

    def pid_of_rank(self, number):
        """The process that runs that rank, whoever has started it: it bears its name."""
        for pid in self.processes():
            with open(f"/proc/{pid}/comm") as file:
                is_rank = file.read().strip() == f"dgrun:{number}"
            if is_rank:
                return pid
        raise AssertionError(f"there is no rank {number}")

    def launcher(self):
        """The process of dgrun itself, whatever has started it."""
        for pid in self.processes():
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() == "dgrun":
                    return pid
        raise AssertionError("there is no launcher")

    def wait_for(self, condition, what):
        """Polls until the condition holds; the run must not end before."""
        end = time.monotonic() + DEADLINE_S
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"dgrun ended with {self.process.returncode} before {what}:\n{self.text(1)}")
            if time.monotonic() > end:
                raise AssertionError(f"{what} was not seen within {DEADLINE_S} s")
            time.sleep(0.001)

    def wait_for_ranks(self, number):
        self.wait_for(lambda: len(self.ranks()) == number, f"{number} ranks")

    def wait_for_event(self, kind):
        self.wait_for(lambda: f'"event":"{kind}"' in self.text(0), f"an event {kind}")

    def wait_for_text(self, text):
        self.wait_for(lambda: text in self.text(1), f"'{text}' on stderr")

    def wait_for_steps(self, number):
        """Waits until that many more steps are reported."""
        goal = self.text(0).count('"event":"step"') + number
        self.wait_for(lambda: self.text(0).count('"event":"step"') >= goal, f"{number} more steps")

    def wait_for_endpoint(self):
        """Where node 0 says that it listens."""
        self.wait_for(lambda: "--rdzv-endpoint " in self.text(1), "the endpoint")
        return self.text(1).split("--rdzv-endpoint ")[1].split()[0]

    def text(self, which):
        fd = self.files[which].fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode()

    def finish_after(self, number):
        """Sends the launcher that signal, and waits for its end."""
        signal_process(self.launcher(), number)
        return self.finish()

    def finish(self):
        """Waits for the launcher's end, and only for it."""
        code = self.process.wait(DEADLINE_S)
        return Finished(code, self.text(0), self.text(1), time.monotonic() - self.started)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def inner_pid(pid):
    """The number of a process in its own namespace."""
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("NSpid:")).split()[-1])


def signal_process(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def isolated(folder_to_cover):
    """Runs this driver again in a mount namespace of its own, with an empty tmpfs over the folder: what other programs do there
    is not seen, and nothing has to be cleaned up. Returns in the new process; skips the driver where that is not allowed."""
    if os.environ.get("DG_TEST_ISOLATED") == folder_to_cover:
        return
    flags = "-m" if os.geteuid() == 0 else "-rm"
    probe = ["unshare", flags, "mount", "-t", "tmpfs", "dg-test", folder_to_cover]
    refusal = subprocess.run(probe, capture_output=True, text=True)
    if refusal.returncode:
        print(f"SKIPPED: no mount namespace on this machine: {refusal.stderr.strip()}")
        sys.exit(77)
    script = 'mount -t tmpfs dg-test "$0" && exec "$@"'
    os.environ["DG_TEST_ISOLATED"] = folder_to_cover
    os.execvp("unshare", ["unshare", flags, "sh", "-c", script, folder_to_cover, sys.executable, *sys.argv])


class JobTest(unittest.TestCase):
    """A folder that goes away with the test, and jobs that are compiled once for a driver."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="dg-multirank-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    @staticmethod
    @functools.lru_cache(None)
    def _jobs():
        holder = tempfile.TemporaryDirectory(prefix="dg-jobs-")
        unittest.addModuleCleanup(holder.cleanup)
        return holder.name

    @staticmethod
    @functools.lru_cache(None)
    def job(model, *flags):
        """The package of examples/<model>.mlir, or of a family, compiled with these flags."""
        name = "-".join([model.partition(":")[0], *(flag.strip("-").replace("=", "").replace(",", "-").replace("/", "-") for flag in flags)]) + ".dgx"
        path = os.path.join(JobTest._jobs(), name)
        source = model if ":" in model else os.path.join(EXAMPLES, model + ".mlir")
        command = [tool("dgc"), source, *flags, "-o", path]
        run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        if run.returncode:
            raise AssertionError(f"{' '.join(command)} ended with {run.returncode}:\n{run.stderr}")
        return path

    def start(self, job, *flags, **options):
        return Running(job, *flags, folder=self.folder, **options)

    def run_job(self, job, *flags, code=0, **options):
        """Runs to the end, expects this exit code and that no process stays."""
        with self.start(job, *flags, **options) as run:
            finished = run.finish()
            self.assertEqual(finished.code, code, finished.err)
            self.assertEqual(run.processes(), [])
        return finished

    def check_losses(self, finished, job, *flags):
        """The losses of a run, whatever happened to it, are those of a run on one host that nothing happened to."""
        losses = finished.loss_texts()
        self.assertTrue(losses, finished.err)
        undisturbed = self.run_job(job, *flags, "--steps", str(max(losses))).loss_texts()
        self.assertEqual(losses, {step: undisturbed[step] for step in losses})

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def checkpoint_files(self, folder):
        """name below the folder → bytes, of every file of every checkpoint."""
        found = {}
        for root, _, names in os.walk(self.path(folder)):
            for name in names:
                full = os.path.join(root, name)
                with open(full, "rb") as file:
                    found[os.path.relpath(full, self.path(folder))] = file.read()
        return found

    def latest(self, folder):
        return self.path(folder, sorted(os.listdir(self.path(folder)))[-1])


def main():
    unittest.main(verbosity=2)
