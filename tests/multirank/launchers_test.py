# SPDX-License-Identifier: Apache-2.0
"""Proves that mpirun starts one job, not many, with the bits of dgrun alone, and that a launcher without PMIx is refused."""
import os
import shutil
import signal
import unittest

import neighbours_test
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--epochs", "3", "--seed", "7", "--threads", "1"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
class MpirunTest(runs.JobTest):
    def test_same_losses(self):
        job = self.job(*PLAN)
        alone = self.run_job(job, *FLAGS)
        for processes, flags in (4, []), (2, ["-n", "2"]):
            with self.subTest(processes=processes):
                managed = self.run_job(job, *FLAGS, *flags, prefix=[*MPIRUN, str(processes)])
                self.assertEqual(managed.lines("start", "step", "epoch", "end"), alone.lines("start", "step", "epoch", "end"))

    def test_no_port_on_one_host(self):
        with self.start(self.job(*PLAN), *runs.MLP_DATA, *runs.ENDLESS, prefix=[*MPIRUN, "4"]) as run:
            run.wait_for_event("step")
            ours = set().union(*(neighbours_test.socket_inodes(pid) for pid in run.processes()
                                 if os.readlink(f"/proc/{pid}/exe").endswith("/dgrun")))
            open_ports = {inode: table for inode, table in neighbours_test.internet_sockets().items() if inode in ours}
            self.assertTrue(ours, "launchers and ranks talk through sockets")
            self.assertEqual(open_ports, {}, "internet sockets of dgrun")

    def test_killed_rank(self):
        with self.start(self.job(*PLAN), *runs.MLP_DATA, *runs.ENDLESS, prefix=[*MPIRUN, "4"]) as run:
            run.wait_for_event("step")
            victim = run.pid_of_rank(2)
            os.kill(victim, signal.SIGKILL)
            finished = run.finish()
            self.assertEqual(run.processes(), [])
        self.assertEqual(finished.code, 69, finished.err)
        self.assertIn(f"dgrun: rank 2 (host {runs.HOST}, pid {victim}) was killed by signal 9", finished.err)
        self.assertEqual(finished.err.count("was killed by signal 9"), 1, "told once")

    def test_wrong_number(self):
        finished = self.run_job(self.job(*PLAN), *FLAGS, prefix=[*MPIRUN, "2"], code=2)
        self.assertIn("the plan is for 4 ranks, but the nodes start 2", finished.err)


class NoPmixTest(runs.JobTest):
    def test_is_refused(self):
        for variable, name in ("SLURM_STEP_NUM_TASKS", "srun"), ("OMPI_COMM_WORLD_SIZE", "mpirun"), ("PMI_SIZE", "mpiexec"):
            with self.subTest(launcher=name):
                finished = self.run_job(self.job(*PLAN), *FLAGS, environment={variable: "4"}, code=2)
                self.assertIn(f"{name} has started 4 processes, but PMIx does not work here", finished.err)
                self.assertEqual(finished.of("step"), [])

    def test_broken_pmix_is_refused(self):
        environment = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "gone", "OMPI_COMM_WORLD_SIZE": "4"}
        finished = self.run_job(self.job(*PLAN), *FLAGS, environment=environment, code=2)
        self.assertIn("mpirun has started 4 processes, but PMIx does not work here", finished.err)

    def test_one_task_of_a_launcher_runs_alone(self):
        finished = self.run_job(self.job(*PLAN), *FLAGS, environment={"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"})
        self.assertEqual(finished.of("start")[0]["ranks"], 4)


if __name__ == "__main__":
    runs.main()
