# SPDX-License-Identifier: Apache-2.0
"""Proves that whichever single call fails by which launchers and ranks are made and meet (processes, pipes, sockets, shared memory,
threads), the job ends within its time-outs, with one message and the exit code of what happened, or goes on; nothing of it stays.

    launch_faults_test.py [every N]    one call of N, beginning at a random one; default: every call
"""
import collections
import contextlib
import errno
import os
import random
import struct
import sys
import time

import hosts
import runs

EVERY = int(os.environ.get("DG_FAULT_EVERY", "1"))
SHORT = 0
CALLS = {"send": (errno.ECONNRESET, SHORT), "recv": (errno.ECONNRESET, errno.EINTR, SHORT), "poll": (errno.EINTR, errno.ENOMEM),
         "socket": (errno.EMFILE, errno.ENOBUFS), "accept4": (errno.EMFILE, errno.ECONNABORTED), "connect": (errno.ECONNREFUSED, errno.EINTR),
         "mmap": (errno.ENOMEM,), "fork": (errno.EAGAIN, errno.ENOMEM), "pthread_create": (errno.EAGAIN,), "getaddrinfo": (errno.EAGAIN,)}
ERRORS = collections.defaultdict(lambda: (errno.EIO, errno.EMFILE), CALLS)
LIBRARY = os.environ["DG_FAIL_LAUNCH_CALL"]
FLAGS = ["--data", "x=randn:60x10", "--data", "y=randn:60x1", "--steps", "4", "--threads", "1", "--timeout", "4", "--rdzv-timeout", "8"]
LONGEST_S = 60
CODES = (0, 1, 2, 69, 70, 74)


def messages_of(text):
    """The messages for people; what stands below one is indented, and notes and progress are none."""
    return [line for line in text.splitlines() if line.startswith("dgrun: ") and not line.startswith(("dgrun: note:", "dgrun: warning:"))
            and "start them with --rdzv-endpoint" not in line and " nothing was saved " not in line and " has waited " not in line]


class LaunchFaultsTest(hosts.HostsTest):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("DG_TEST_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        self.random = random.Random(seed)
        self.state, self.log = self.path("state"), self.path("log")

    def faulty(self, at, error):
        """What stands in front of dgrun."""
        with open(self.state, "wb") as file:
            file.write(struct.pack("Q", 0))
        open(self.log, "w").close()
        return ["env", f"LD_PRELOAD={LIBRARY}", f"DG_FAULT_STATE={self.state}", f"DG_FAULT_AT={at}", f"DG_FAULT_ERROR={error}", f"DG_FAULT_LOG={self.log}"]

    def calls(self):
        with open(self.log) as file:
            return file.read().split()

    def fail_each(self, what, run, shared):
        """`run` starts the job with a prefix and returns its ends (runs.Finished); `shared` lists what lies in shared memory."""
        ends = run(self.faulty(0, 0))
        self.assertEqual([end.code for end in ends], [0] * len(ends), ends[0].err)
        losses, calls = ends[0].loss_texts(), self.calls()
        points = [(at, error) for at, name in enumerate(calls, 1) for error in ERRORS[name]]
        codes, began = collections.Counter(), time.monotonic()
        for at, error in points[self.random.randrange(EVERY)::EVERY]:
            ends = run(self.faulty(at, error))
            made = self.calls()
            name = made[at - 1] if at <= len(made) else "none"
            with self.subTest(f"{what}: call {at}, {name}: {errno.errorcode.get(error, 'short')}"):
                texts = "\n".join(end.err for end in ends)
                codes[tuple(end.code for end in ends)] += 1
                for end in ends:
                    self.assertIn(end.code, CODES, texts)
                    self.assertEqual(len(messages_of(end.err)), int(end.code != 0), texts)
                    self.assertLess(end.seconds, LONGEST_S, texts)
                for step, loss in ends[0].loss_texts().items():
                    self.assertEqual(loss, losses[step], "another number")
                self.assertEqual(shared(), "", "shared memory stays")
        print(f"{what}: {len(calls)} calls, {len(points)} points, {sum(codes.values())} run in {time.monotonic() - began:.0f} s, "
              f"exit codes {dict(codes)}", flush=True)

    def test_on_one_host(self):
        job = self.job("mlp", "--batch", "10", "--mesh", "data=2")

        def run(prefix):
            with self.start(job, *FLAGS, prefix=prefix) as running:
                end = running.finish()
                self.assertEqual(running.processes(), [], "a process stays")
                return [end]
        self.fail_each("one host", run, lambda: " ".join(os.listdir("/dev/shm")))

    def test_over_two_hosts(self):
        job = self.job("mlp", "--batch", "10", "--mesh", "data=2")

        def run(prefix):
            with contextlib.ExitStack() as stack:
                def start(node, endpoint):
                    flags = [*FLAGS, "--nnodes", "2", "--node-rank", str(node), "--rdzv-endpoint", endpoint]
                    return stack.enter_context(self.start(job, *flags, prefix=self.hosts[node].inside(*prefix),
                                                          environment={"DG_SECRET_FILE": self.secret}))
                nodes = [start(0, self.hosts[0].address)]
                with contextlib.suppress(AssertionError):  # it may end before
                    nodes.append(start(1, nodes[0].wait_for_endpoint()))
                ends = [node.finish() for node in nodes]
                for node in nodes:
                    self.assertEqual(node.processes(), [], "a process stays")
                return ends
        self.fail_each("two hosts", run, lambda: "".join(host.run("ls", "/dev/shm") for host in self.hosts))


if __name__ == "__main__":
    if "every" in sys.argv:
        os.environ["DG_FAULT_EVERY"] = sys.argv.pop(sys.argv.index("every") + 1)
        sys.argv.remove("every")
    hosts.enter()
    hosts.call("mount", "-t", "tmpfs", "dg-test", "/dev/shm")  # of this driver only, whose namespace it is
    runs.main()
