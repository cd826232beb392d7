# SPDX-License-Identifier: Apache-2.0
"""Proves that another user of the host gets nothing: links that he lays under names that dgc, dgrun and dgviz will use are not
followed, the page of dgviz --serve is not shown to who does not know its address, and memory, sockets and lock are not his to open.
Runs as root, for it acts as two users; skips elsewhere."""
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import runs

VICTIM, ATTACKER = 64001, 64002  # numbers without an account


def as_user(number):
    """What starts a command as that user, with nothing of root's left."""
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs", "--inh-caps=-all"]


def copy_for_all(holder):
    """The commands and a model where both users can read them: a build folder may be its owner's only."""
    os.chmod(holder, 0o755)
    for path in (*(os.path.join(runs.BIN, name) for name in ("dgc", "dgrun", "dgviz")), os.path.join(runs.EXAMPLES, "mlp.mlir")):
        shutil.copy(path, holder)
        os.chmod(os.path.join(holder, os.path.basename(path)), 0o755)
    runs.BIN = runs.EXAMPLES = holder


class UsersTest(runs.JobTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)  # and without the sticky bit, by which the kernel would guard links
        self.precious = self.path("precious")
        with open(self.precious, "w") as file:
            file.write("the victim's")
        os.chown(self.precious, VICTIM, VICTIM)

    def lay_link(self, name):
        """The attacker's link under a name of the victim's."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.chmod(os.path.dirname(self.path(name)), 0o777)
        subprocess.run([*as_user(ATTACKER), "ln", "-s", self.precious, self.path(name)], check=True)

    def check_precious(self):
        with open(self.precious) as file:
            self.assertEqual(file.read(), "the victim's", "was written through a link")

    def public_job(self):
        """A package that both users can read."""
        path = self.job("mlp", "--batch", "10")
        copy = self.path("job.dgx")
        with open(path, "rb") as source, open(copy, "wb") as target:
            target.write(source.read())
        os.chmod(copy, 0o644)
        return copy

    def run_victim(self, *command):
        environment = dict(os.environ, HOME=self.folder, DG_CACHE="off")
        return subprocess.run([*as_user(VICTIM), *command], capture_output=True, text=True, timeout=runs.DEADLINE_S, cwd=self.folder,
                              env=environment)

    def test_links_are_not_followed(self):
        job = self.public_job()
        for name in ("ckpt/probe.partial", "ckpt/step-000005.partial", "ckpt/best.partial", "trace.json.partial",
                     "trace.json.rank0.partial"):
            self.lay_link(name)
        run = self.run_victim(runs.tool("dgrun"), job, *runs.MLP_DATA, "--steps", "5", "--checkpoint", "ckpt", "--trace", "trace.json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_precious()
        self.assertEqual([name for name in os.listdir(self.path("ckpt")) if name.startswith("step")], ["step-000005"])
        self.assertFalse(os.path.islink(self.path("trace.json")))
        self.lay_link("page.html.partial")
        run = self.run_victim(runs.tool("dgviz"), job, "-o", "page.html")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.lay_link("new.dgx.partial")
        run = self.run_victim(runs.tool("dgc"), os.path.join(runs.EXAMPLES, "mlp.mlir"), "--infer", "--batch", "4", "-o", "new.dgx")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_precious()

    def test_results_of_inference(self):
        run = self.run_victim(runs.tool("dgc"), os.path.join(runs.EXAMPLES, "mlp.mlir"), "--infer", "--batch", "4", "-o", "infer.dgx")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.lay_link("y.npy.partial")
        run = self.run_victim(runs.tool("dgrun"), "infer.dgx", "--input", "x=randn:8x10", "--output", "fc2=@y.npy")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_precious()

    def test_what_a_run_has_open(self):
        job = self.public_job()
        with self.start(job, *runs.MLP_DATA, *runs.ENDLESS, "--checkpoint", self.path("mine"), prefix=as_user(VICTIM),
                        environment={"HOME": self.folder}) as run:
            run.wait_for_event("step")
            for pid in run.processes():
                for what in ("mem", "environ", "maps", "fd"):
                    read = subprocess.run([*as_user(ATTACKER), "ls" if what == "fd" else "cat", f"/proc/{pid}/{what}"], capture_output=True)
                    self.assertNotEqual(read.returncode, 0, f"/proc/{pid}/{what}")
            for folder in ("/dev/shm", "/tmp"):
                for name in os.listdir(folder):
                    status = os.lstat(os.path.join(folder, name))
                    if status.st_uid == VICTIM:
                        self.assertEqual(status.st_mode & 0o077, 0, os.path.join(folder, name))
            removed = subprocess.run([*as_user(ATTACKER), "rm", "-rf", self.path("mine")], capture_output=True)
            self.assertNotEqual(removed.returncode, 0)
            self.assertTrue(os.path.exists(self.path("mine", "run.lock")))

    def test_the_page_of_another_user(self):
        server = subprocess.Popen([*as_user(VICTIM), runs.tool("dgviz"), self.public_job(), "--serve"], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            with urllib.request.urlopen(address, timeout=runs.DEADLINE_S) as answer:
                self.assertEqual(answer.status, 200)
            root = "/".join(address.split("/")[:3]) + "/"
            with self.assertRaises(urllib.error.HTTPError) as refusal:
                urllib.request.urlopen(root, timeout=runs.DEADLINE_S)
            self.assertEqual(refusal.exception.code, 404)
            refusal.exception.close()
        finally:
            server.kill()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: acting as two users needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dg-users-") as folder:
        copy_for_all(folder)
        runs.main()
