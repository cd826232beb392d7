# SPDX-License-Identifier: Apache-2.0
"""Proves that whichever single call on a file fails while a checkpoint is read and the next ones are saved, while results are written
or while a package is made, the command ends with the old or the new state intact, with the exit code of what happened and one message.

    faults_test.py [every N]    one call of N, beginning at a random one; default: every call
"""
import collections
import errno
import os
import random
import shutil
import struct
import subprocess
import sys
import time
import unittest

import runs

# Half of the bytes: a call that does less than it was asked is no failure.
SHORT, HANGS = 0, -1
READS = {"read": (errno.EIO, errno.EINTR, SHORT), "pread": (errno.EIO, SHORT)}
WRITES = dict.fromkeys(("write", "pwrite", "fwrite"), (errno.EIO, errno.ENOSPC, errno.EINTR, SHORT))
OPENS = dict.fromkeys(("open", "openat", "fopen", "opendir", "mkstemp"), (errno.EIO, errno.EMFILE, errno.EINTR, errno.ENOSPC))
ROOM = dict.fromkeys(("posix_fallocate", "fsync", "fdatasync", "fflush", "fclose", "mkdir", "rename", "renameat2", "link", "symlink"),
                     (errno.EIO, errno.ENOSPC))
ERRORS = collections.defaultdict(lambda: (errno.EIO,), {**READS, **WRITES, **OPENS, **ROOM, "mmap": (errno.ENOMEM,)})
EVERY = int(sys.argv.pop()) if len(sys.argv) > 2 and sys.argv[-2] == "every" else 1
if EVERY > 1:
    sys.argv.remove("every")
LIBRARY = os.environ["DG_FAIL_CALL"]
DATA = ["--data", "x=randn:60x10", "--data", "y=randn:60x1"]


class FaultsTest(runs.JobTest):
    def setUp(self):
        super().setUp()
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", flush=True)
        self.random = random.Random(seed)
        self.state, self.log = self.path("state"), self.path("log")

    def run_with_fault(self, command, at, error):
        with open(self.state, "wb") as file:
            file.write(struct.pack("Q", 0))
        open(self.log, "w").close()
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, DG_FAULT_FOLDER=self.path("files"), DG_FAULT_STATE=self.state,
                           DG_FAULT_AT=str(at), DG_FAULT_ERROR=str(error), DG_FAULT_LOG=self.log)
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=runs.DEADLINE_S)
        with open(self.log) as file:
            return done, file.read().split()

    def fail_each(self, what, command, old, check):
        """`old` is copied to the folder before each run; `check` judges the folder and the exit code after it."""

        def fresh():
            shutil.rmtree(self.path("files"), ignore_errors=True)
            shutil.copytree(old, self.path("files"), symlinks=True)

        fresh()
        done, calls = self.run_with_fault(command, 0, 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        check(0)
        points = [(at, error) for at, name in enumerate(calls, 1) for error in ERRORS[name]]
        codes = collections.Counter()
        for at, error in points[self.random.randrange(EVERY)::EVERY]:
            fresh()
            done, made = self.run_with_fault(command, at, error)
            name = made[at - 1] if at <= len(made) else "none"
            label = f"{what}: call {at}, {name}: {errno.errorcode.get(error, 'short')}"
            with self.subTest(label):
                codes[done.returncode] += 1
                messages = [line for line in done.stderr.splitlines() if not line.startswith((" ", "dgrun: note:", "dgrun: warning:"))]
                told = [line for line in messages if " holds checkpoints up to " not in line and " nothing was saved " not in line]
                self.assertIn(done.returncode, (0, 1, 2, 65, 74), done.stderr)
                self.assertEqual(len(told), int(done.returncode != 0), done.stderr)
                if error == SHORT and name != "fwrite":  # which writes less only where it fails
                    self.assertEqual(done.returncode, 0, done.stderr)
                check(done.returncode)
        print(f"{what}: {len(calls)} calls, {len(points)} points, {sum(codes.values())} run, exit codes {dict(codes)}", flush=True)

    def test_saves_and_resumes(self):
        job = self.job("mlp", "--batch", "10")
        old = self.path("old")
        self.run_job(job, *DATA, "--steps", "2", "--checkpoint", old)

        def check(code):
            verified = subprocess.run([runs.tool("dgrun"), "--verify", self.path("files")], capture_output=True, text=True, timeout=runs.DEADLINE_S)
            self.assertEqual(verified.returncode, 0, verified.stderr)
            steps = sorted(name for name in os.listdir(self.path("files")) if name.startswith("step-"))
            # What --keep could not remove has lost its name; the next run removes it.
            left = [name for name in steps if not name[5:].isdigit() and name != "step-000002.partial"]
            self.assertEqual(left, [], "something half-written is left")
            steps = [name for name in steps if name[5:].isdigit()]
            if code == 0:
                self.assertEqual(steps[-1], "step-000006")

        command = [runs.tool("dgrun"), job, *DATA, "--steps", "6", "--checkpoint-every", "2steps", "--keep", "2", "--checkpoint", self.path("files"),
                   "--resume", "--threads", "1"]
        self.fail_each("save and resume", command, old, check)

    def test_a_disk_that_hangs(self):
        # Whichever call of a save does not come back, the run ends soon, names what hangs, and the checkpoint before is as it was.
        job = self.job("mlp", "--batch", "10")
        old, patience = self.path("old"), 1
        self.run_job(job, *DATA, "--steps", "2", "--checkpoint", old)
        for when, every in ("behind steps", "3steps"), ("at the end", "100steps"):
            command = [runs.tool("dgrun"), job, *DATA, "--steps", "4", "--checkpoint-every", every, "--checkpoint", self.path("files"), "--resume",
                       "--threads", "1", "--save-timeout", str(patience)]
            shutil.rmtree(self.path("files"), ignore_errors=True)
            shutil.copytree(old, self.path("files"), symlinks=True)
            calls = self.run_with_fault(command, 0, 0)[1]
            first = calls.index("posix_fallocate")
            for name in ("posix_fallocate", "pwrite", "fdatasync", "fsync", "pread", "renameat2"):
                with self.subTest(f"{when}: {name} hangs"):
                    shutil.rmtree(self.path("files"))
                    shutil.copytree(old, self.path("files"), symlinks=True)
                    began = time.monotonic()
                    done = self.run_with_fault(command, calls.index(name, first) + 1, HANGS)[0]
                    self.assertLess(time.monotonic() - began, 10 * patience + 20)
                    self.assertEqual(done.returncode, 74, done.stderr)
                    self.assertIn("nothing of it has moved for 1 s (--save-timeout)", done.stderr)
                    verified = subprocess.run([runs.tool("dgrun"), "--verify", self.path("files")], capture_output=True, text=True, timeout=runs.DEADLINE_S)
                    self.assertEqual(verified.returncode, 0, verified.stderr)

    def check_file(self, name, old, new):
        def check(code):
            with open(self.path("files", name), "rb") as file:
                found = file.read()
            self.assertTrue(found == (new if code == 0 else old) or found == new, "neither the old nor the new file")
            self.assertEqual(os.listdir(self.path("files")), [name])
        return check

    def test_results(self):
        job = self.job("mlp", "--batch", "10", "--infer")
        command = [runs.tool("dgrun"), job, "--input", "x=randn:20x10", "--threads", "1", "--output"]
        refused = subprocess.run([*command, "?=@x.npy"], capture_output=True, text=True, timeout=runs.DEADLINE_S)
        output = refused.stderr.split("it has ")[1].split(",")[0].split()[0].strip("'")
        subprocess.run([*command, f"{output}=@{self.path('new.npy')}"], check=True, capture_output=True, timeout=runs.DEADLINE_S)
        self.write_old("out.npy")
        with open(self.path("new.npy"), "rb") as file:
            new = file.read()
        self.fail_each("results", [*command, f"{output}=@{self.path('files', 'out.npy')}"], self.path("old"), self.check_file("out.npy", b"old", new))

    def test_packages(self):
        job = self.job("mlp", "--batch", "10")
        with open(job, "rb") as file:
            new = file.read()
        self.write_old("job.dgx")
        command = [runs.tool("dgc"), os.path.join(runs.EXAMPLES, "mlp.mlir"), "--batch", "10", "-o", self.path("files", "job.dgx")]
        self.fail_each("packages", command, self.path("old"), self.check_file("job.dgx", b"old", new))

    def write_old(self, name):
        os.mkdir(self.path("old"))
        with open(self.path("old", name), "wb") as file:
            file.write(b"old")


if __name__ == "__main__":
    runs.main()
