# SPDX-License-Identifier: Apache-2.0
"""Proves that another user of the host gets nothing: links that he lays under names that dgc, dgrun and dgviz will use are not
followed, the page of dgviz --serve is not shown to who does not know its address, memory, sockets and lock are not his to open, and
no cache or temporary folder lets him choose code or data.
Runs as root, for it acts as two users; skips elsewhere."""
import functools
import http.server
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
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


def sockets_with_names(processes):
    """The unix sockets of these processes that have names, in the file system or without it: (type, name)."""
    with open("/proc/net/unix") as file:
        next(file)
        names = {fields[6]: (int(fields[4], 16), fields[7]) for fields in map(str.split, file) if len(fields) > 7}
    inodes = {os.readlink(f"/proc/{pid}/fd/{file}").removeprefix("socket:[").rstrip("]") for pid in processes for file in os.listdir(f"/proc/{pid}/fd")}
    return sorted(names[inode] for inode in inodes & names.keys())


def listening_of(user):
    """The TCP sockets of that user that listen."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as file:
            next(file)
            found += [fields[1] for fields in map(str.split, file) if fields[3] == "0A" and int(fields[7]) == user]
    return found


def numpy_file(path, rows, columns, value):
    """A file of equal numbers, in place: whoever owns it still does."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack("<f", value) * (rows * columns))


class Tagged(http.server.SimpleHTTPRequestHandler):
    """Files that never change, and say so."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.headers.get("If-None-Match") == '"one"':
            self.send_response(304)
            self.send_header("ETag", '"one"')
            self.end_headers()
            return
        super().do_GET()

    def end_headers(self):
        self.send_header("ETag", '"one"')
        super().end_headers()


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

    def test_nothing_of_two_ranks_is_open_to_others(self):
        job = self.job("mlp", "--batch", "10", "--mesh", "data=2")
        shutil.copy(job, self.path("two.dgx"))
        os.chmod(self.path("two.dgx"), 0o644)
        with self.start(self.path("two.dgx"), *runs.MLP_DATA, *runs.ENDLESS, prefix=as_user(VICTIM), environment={"HOME": self.folder}) as run:
            run.wait_for_event("step")
            self.assertEqual(listening_of(VICTIM), [], "a rank of one host listens to nobody")
            # UCX has one for datagrams in each rank, to be woken by. Nobody sleeps there: noise changes nothing.
            named = sockets_with_names(run.processes())
            self.assertEqual({kind for kind, _ in named}, {socket.SOCK_DGRAM}, "a socket to connect to")
            noise = ("import os, socket, sys\nfor name in sys.argv[1:]:\n  with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:\n"
                     "    s.setblocking(False)\n    for _ in range(1000):\n      try: s.sendto(os.urandom(64), '\\0' + name)\n      except OSError: break\n")
            subprocess.run([*as_user(ATTACKER), "/usr/bin/python3", "-c", noise, *(name[1:] for _, name in named)], check=True)
            run.wait_for_steps(100)
            with open("/proc/sysvipc/shm") as file:
                columns = file.readline().split()
                for line in file:
                    entry = dict(zip(columns, line.split()))
                    self.assertFalse(int(entry["uid"]) == VICTIM and int(entry["perms"], 8) & 0o077, line)
            for pid in run.processes():
                for tool in (["kill", "-0", str(pid)], ["cat", f"/proc/{pid}/mem"], ["ls", f"/proc/{pid}/map_files"]):
                    self.assertNotEqual(subprocess.run([*as_user(ATTACKER), *tool], capture_output=True).returncode, 0, tool)

    def test_checkpoints_have_the_modes_of_the_umask(self):
        job = self.public_job()
        os.mkdir(self.path("home"), 0o755)
        os.chown(self.path("home"), VICTIM, VICTIM)
        run = self.run_victim("sh", "-c", 'umask 077 && exec "$@"', "sh", runs.tool("dgrun"), job, *runs.MLP_DATA, "--steps", "2", "--checkpoint", "home/c",
                              "--trace", "home/trace.json", "--log-dir", "home/events")
        self.assertEqual(run.returncode, 0, run.stderr)
        found = [os.path.join(root, name) for root, folders, names in os.walk(self.path("home")) for name in folders + names]
        self.assertGreater(len(found), 4)
        for path in found:
            self.assertEqual(os.lstat(path).st_mode & 0o077, 0, path)

    def test_the_cache_of_kernels(self):
        source = os.path.join(runs.EXAMPLES, "mlp.mlir")
        os.mkdir(self.path("open"), 0o777)
        os.chmod(self.path("open"), 0o777)
        os.chown(self.path("open"), ATTACKER, ATTACKER)
        run = self.run_victim(runs.tool("dgc"), source, "--batch", "4", "--cache", "open", "-o", "a.dgx")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("nothing is cached: folder open can be written by others, who would choose the code of jobs", run.stderr)
        self.assertEqual(os.listdir(self.path("open")), [], "an attacker's folder is not used")
        run = self.run_victim("sh", "-c", 'umask 0 && exec "$@"', "sh", runs.tool("dgc"), source, "--batch", "4", "--cache", "mine", "-o", "a.dgx")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(os.listdir(self.path("mine")))
        self.assertEqual(os.lstat(self.path("mine")).st_mode & 0o077, 0, "a folder that dgc has made")

    def test_the_folder_of_the_linker(self):
        # Who could write there would choose the code of the job: not even the user's group, under an open umask.
        os.mkdir(self.path("tmp"))
        os.chmod(self.path("tmp"), 0o1777)
        seen = set()
        for batch in range(4, 24):
            command = [*as_user(VICTIM), "sh", "-c", 'umask 0 && exec "$@"', "sh", runs.tool("dgc"), os.path.join(runs.EXAMPLES, "mlp.mlir"),
                       "--batch", str(batch), "--cache", "off", "-o", self.path("out.dgx")]
            compiler = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=self.path("tmp")))
            while compiler.poll() is None:
                for entry in os.scandir(self.path("tmp")):
                    try:
                        seen.add(entry.stat(follow_symlinks=False).st_mode & 0o777)
                    except FileNotFoundError:
                        pass
            self.assertEqual(compiler.returncode, 0)
            if seen:
                break
        self.assertEqual(seen, {0o700})

    def test_the_cache_of_data(self):
        # The attacker fetches a file first, into a folder that both may write to, and then changes its copy.
        job, served = self.public_job(), self.path("served")
        os.mkdir(served)
        numpy_file(os.path.join(served, "x.npy"), 100, 10, 1.0)
        numpy_file(os.path.join(served, "y.npy"), 100, 1, 0.5)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Tagged, directory=served))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        os.mkdir(self.path("cache"))
        os.chmod(self.path("cache"), 0o777)

        def train(user, x, y):
            command = [*as_user(user), runs.tool("dgrun"), job, "--data", f"x={x}", "--data", f"y={y}", "--steps", "3", "--json", "--data-cache",
                       self.path("cache")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=runs.DEADLINE_S, cwd=self.folder,
                                  env=dict(os.environ, HOME=self.folder, no_proxy="*"))
            self.assertEqual(done.returncode, 0, done.stderr)
            return runs.Finished(0, done.stdout, done.stderr, 0).loss_texts()
        right = train(VICTIM, os.path.join(served, "x.npy"), os.path.join(served, "y.npy"))
        self.assertEqual(train(ATTACKER, f"{url}/x.npy", f"{url}/y.npy"), right)
        copies = [name for name in os.listdir(self.path("cache")) if name.endswith("x.npy")]
        self.assertEqual(len(copies), 1)
        numpy_file(self.path("cache", copies[0]), 100, 10, 7.0)
        self.assertNotEqual(train(ATTACKER, f"{url}/x.npy", f"{url}/y.npy"), right, "the attack itself works on its author")
        self.assertEqual(train(VICTIM, f"{url}/x.npy", f"{url}/y.npy"), right)

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
