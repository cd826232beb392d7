# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: network namespaces joined by a bridge, each with its own name, processes and shared memory.

All of it lives in namespaces of this driver, so that nothing stays, however the driver ends.
"""
import ctypes
import itertools
import os
import signal
import subprocess
import sys

import runs

PREFIX = "10.77.0."
_serial = itertools.count()


def enter():
    """Runs this driver again in a network namespace of its own, where the hosts are made. Skips it where that is not allowed."""
    if os.environ.get("DG_TEST_HOSTS"):
        return
    for command in (["unshare", "-nm", "ip", "link", "add", "bridge-probe", "type", "bridge"], ["nft", "--version"]):
        try:
            refusal = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError as missing:
            refusal = subprocess.CompletedProcess(command, 1, "", str(missing))
        if refusal.returncode:
            print(f"SKIPPED: no network namespaces on this machine: {refusal.stderr.strip()}")
            sys.exit(77)
    os.environ["DG_TEST_HOSTS"] = "1"
    script = 'ip link set lo up && exec "$@"'
    os.execvp("unshare", ["unshare", "-nm", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Host:
    """One host: a first process that holds its namespaces, and an interface on the bridge."""

    def __init__(self, number, bridge):
        # The kernel removes an interface some time after its host: names are not used twice.
        self.name, self.address, self.port = f"host{number}", f"{PREFIX}{number + 1}", f"port{next(_serial)}"
        # UCX looks for interfaces in /sys, which shows those of the namespace in which it was mounted; Slurm looks for cgroups.
        hold = (f"hostname {self.name} && mount -t tmpfs dg-test /dev/shm && mount --rbind /sys/fs/cgroup /mnt && "
                "mount -t sysfs dg-test /sys && mount --move /mnt /sys/fs/cgroup && echo ready && exec sleep infinity")
        command = ["unshare", "-nuimp", "--fork", "--kill-child", "--mount-proc", "sh", "-c", hold]
        self.unshare = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_die_with_parent)
        if self.unshare.stdout.readline() != "ready\n":
            raise AssertionError(f"{self.name} did not start")
        with open(f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children") as file:
            self.pid = int(file.read().split()[0])
        call("ip", "link", "add", self.port, "type", "veth", "peer", "name", "net0", "netns", str(self.pid))
        call("ip", "link", "set", self.port, "master", bridge, "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "net0")
        self.run("ip", "link", "set", "net0", "up")
        self.run("ip", "link", "set", "lo", "up")

    def inside(self, *command):
        """The command line that runs a command on this host."""
        return ["nsenter", f"--target={self.pid}", "-n", "-u", "-i", "-m", "-p", "--", *command]

    def run(self, *command):
        return call(*self.inside(*command))

    def set_link(self, is_up):
        call("ip", "link", "set", self.port, "up" if is_up else "down")

    def lose_packets(self, percent):
        """Drops that many of a hundred packets that arrive here."""
        self.run("nft", "add table inet loss; add chain inet loss input { type filter hook input priority 0; }; "
                        f"add rule inet loss input iif net0 numgen random mod 100 < {percent} drop")

    def limit_rate(self, rate):
        """What leaves this host goes at this rate, as 5mbit."""
        self.run("tc", "qdisc", "add", "dev", "net0", "root", "tbf", "rate", rate, "burst", "32k", "latency", "100ms")

    def close(self):
        self.unshare.kill()
        self.unshare.wait()
        self.unshare.stdout.close()


class HostsTest(runs.JobTest):
    """A test with hosts that are joined by a bridge, and a secret that they share."""
    number = 2

    def setUp(self):
        super().setUp()
        call("ip", "link", "add", "bridge0", "type", "bridge")
        self.addCleanup(call, "ip", "link", "delete", "bridge0")
        call("ip", "link", "set", "bridge0", "up")
        call("ip", "address", "add", f"{PREFIX}254/24", "dev", "bridge0")
        self.hosts = []
        for number in range(self.number):
            self.hosts.append(Host(number, "bridge0"))
            self.addCleanup(self.hosts[-1].close)
        self.secret = self.path("secret")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(os.urandom(16).hex())

    def start_node(self, node, endpoint, job, *flags, secret=None):
        flags = [*flags, "--nnodes", str(self.number), "--node-rank", str(node), "--rdzv-endpoint", endpoint]
        return self.start(job, *flags, prefix=self.hosts[node].inside(),
                          environment={"DG_SECRET_FILE": secret or self.secret})

    def start_nodes(self, stack, job, *flags):
        """One dgrun on each host, joined; they are killed when the stack is left."""
        first = stack.enter_context(self.start_node(0, self.hosts[0].address, job, *flags))
        endpoint = first.wait_for_endpoint()
        rest = [stack.enter_context(self.start_node(node, endpoint, job, *flags)) for node in range(1, self.number)]
        return [first, *rest]
