# SPDX-License-Identifier: Apache-2.0
"""Proves that two runs of one job side by side do not meet, and that a run on one host opens no port."""
import os
import signal

import runs

PLAN = ("mlp", "--batch", "10", "--mesh", "data=2,pipe=2")
TABLES = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")


def socket_inodes(pid):
    """Inodes of the sockets that a process holds; none if it has just gone."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                found.add(target[len("socket:["):-1])
    except FileNotFoundError:
        pass
    return found


def internet_sockets():
    """inode → table of every internet socket of this network namespace."""
    found = {}
    for table in TABLES:
        path = f"/proc/net/{table}"
        if os.path.exists(path):
            with open(path) as file:
                found.update({line.split()[9]: table for line in file.readlines()[1:]})
    return found


class NeighboursTest(runs.JobTest):
    def test_two_runs_of_one_job(self):
        job = self.job(*PLAN)
        flags = [*runs.MLP_DATA, "--epochs", "3", "--seed", "5"]
        alone = self.run_job(job, *flags, "--checkpoint", self.path("alone"))
        with self.start(job, *flags, "--checkpoint", self.path("left")) as left, \
                self.start(job, *flags, "--checkpoint", self.path("right")) as right:
            # Both have their ranks at the same moment; if a machine is so slow that they do not, nothing is proved.
            left.wait_for_ranks(4)
            right.wait_for_ranks(4)
            self.assertIsNone(left.process.poll(), "the first run ended before the second began")
            for folder, run in (("left", left), ("right", right)):
                finished = run.finish()
                self.assertEqual(finished.code, 0, finished.err)
                self.assertEqual(finished.err, "")
                self.assertEqual(finished.lines("start", "step", "epoch"), alone.lines("start", "step", "epoch"))
                self.assertTrue(self.checkpoint_files(folder) == self.checkpoint_files("alone"), "checkpoints differ")
                self.assertEqual(run.processes(), [])

    def test_no_port_is_opened(self):
        with self.start(self.job(*PLAN), *runs.MLP_DATA, *runs.ENDLESS) as run:
            seen = 0

            def look():
                nonlocal seen
                held = {inode: pid for pid in [run.process.pid, *run.ranks().values()] for inode in socket_inodes(pid)}
                opened = {held[inode]: table for inode, table in internet_sockets().items() if inode in held}
                self.assertEqual(opened, {}, "pid: kind of socket")
                seen += 1
                return '"event":"step"' in run.text(0)

            run.wait_for_ranks(4)
            run.wait_for(look, "the first step")
            for _ in range(50):
                look()
            self.assertTrue(any(socket_inodes(pid) for pid in run.ranks().values()), "ranks hold sockets to the launcher")
            print(f"looked {seen} times")
            run.process.send_signal(signal.SIGINT)
            self.assertEqual(run.finish().code, 130)


if __name__ == "__main__":
    runs.main()
