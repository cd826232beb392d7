# SPDX-License-Identifier: Apache-2.0
"""Proves that srun over a real Slurm cluster of two nodes starts one job, with the bits of dgrun alone, and stops it as Slurm does."""
import os
import shutil
import signal
import subprocess
import sys
import time

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--epochs", "3", "--seed", "7", "--threads", "1"]
CONFIG = """
ClusterName=dg
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS=/mnt
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={names[0]} NodeAddr={addresses[0]} CPUs=4 State=UNKNOWN
NodeName={names[1]} NodeAddr={addresses[1]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmTest(hosts.HostsTest):
    def setUp(self):
        super().setUp()
        self.folder_of_cluster = self.path("cluster")
        os.makedirs(self.folder_of_cluster + "/state")
        os.chmod(self.folder, 0o755)
        key = self.folder_of_cluster + "/munge.key"
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(128))
        names = [host.name for host in self.hosts]
        with open(self.folder_of_cluster + "/slurm.conf", "w") as file:
            file.write(CONFIG.format(folder=self.folder_of_cluster, names=names, addresses=[host.address for host in self.hosts]))
        self.environment = {"SLURM_CONF": self.folder_of_cluster + "/slurm.conf"}
        self.start_daemon(0, "munged", "--foreground", "--force", "--num-threads=2",
                          *[f"--{name}={self.folder_of_cluster}/munge.{end}" for name, end in
                            (("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))])
        self.wait_until(lambda: os.path.exists(self.folder_of_cluster + "/munge.socket"), "munged")
        self.start_daemon(0, "slurmctld", "-D")
        for number, host in enumerate(self.hosts):
            host.run("mount", "-t", "tmpfs", "dg-test", "/mnt")  # a node's own temporary files
            self.start_daemon(number, "slurmd", "-D", "-N", host.name)
        self.wait_until(self.is_idle, "two idle nodes")

    def start_daemon(self, number, *command):
        log = open(f"{self.folder_of_cluster}/{command[0]}-{number}.out", "w")
        daemon = subprocess.Popen(self.hosts[number].inside(*command), stdout=log, stderr=log,
                                  env=dict(os.environ, **self.environment))
        log.close()

        def end():
            daemon.kill()
            daemon.wait()

        self.addCleanup(end)

    def wait_until(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                logs = ""
                for name in sorted(os.listdir(self.folder_of_cluster)):
                    if name.endswith((".log", ".out")):
                        with open(f"{self.folder_of_cluster}/{name}", errors="replace") as file:
                            logs += f"--- {name}\n{file.read()[-2000:]}\n"
                self.fail(f"{what}: not within {seconds} s\n{logs}")
            time.sleep(0.1)

    def ask(self, *command):
        done = subprocess.run(self.hosts[0].inside(*command), capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, **self.environment))
        return done.stdout

    def is_idle(self):
        return self.ask("sinfo", "-h", "-N", "-o", "%t").split() == ["idle", "idle"]

    def start_srun(self, *flags, srun=()):
        prefix = self.hosts[0].inside("srun", *srun)
        return self.start(self.job(*PLAN), *flags, prefix=prefix, environment=self.environment)

    def test_cluster(self):
        """One cluster for all cases: bringing it up takes longer than they do."""
        pmix = ("-N2", "-n4", "--mpi=pmix")
        with self.subTest("the bits of one host"):
            alone = self.run_job(self.job(*PLAN), *FLAGS)
            for srun, flags in (pmix, []), (("-N2", "-n2", "--mpi=pmix"), ["-n", "2"]), (pmix, ["--secure"]):
                with self.start_srun(*FLAGS, *flags, srun=srun) as run:
                    managed = run.finish()
                self.assertEqual(managed.code, 0, managed.err)
                self.assertEqual(managed.lines("start", "step", "epoch", "end"), alone.lines("start", "step", "epoch", "end"))
        with self.subTest("srun without PMIx is refused"):
            with self.start_srun(*FLAGS, srun=("-N2", "-n4", "--mpi=none")) as run:
                refused = run.finish()
            self.assertEqual(refused.code, 2, refused.err)
            self.assertIn("srun has started 4 processes, but PMIx does not work here", refused.err)
            self.assertEqual(refused.of("step"), [])
        with self.subTest("a killed rank"):
            with self.start_srun(*runs.MLP_DATA, *runs.ENDLESS, srun=pmix) as run:
                run.wait_for_event("step")
                victim = run.pid_of_rank(3)
                name = f"rank 3 (host host1, pid {runs.inner_pid(victim)})"
                os.kill(victim, signal.SIGKILL)
                killed = run.finish()
                self.assertEqual(killed.code, 69, killed.err)
                self.assertEqual(killed.err.count(f"dgrun: {name} was killed by signal 9"), 1, killed.err)
        with self.subTest("scancel: a checkpoint, exit code 75"):
            with self.start_srun(*runs.MLP_DATA, *runs.ENDLESS, "--checkpoint", self.path("kept"), srun=pmix) as run:
                run.wait_for_event("step")
                asked = time.monotonic()
                self.ask("scancel", "--signal=TERM", self.ask("squeue", "-h", "-o", "%i").split()[0])
                ended = run.finish()
            print(f"saved and gone {time.monotonic() - asked:.2f} s after scancel", flush=True)
            self.assertEqual(ended.code, 75, ended.err)
            self.assertTrue(ended.of("checkpoint"))
            self.assertLess(time.monotonic() - asked, 20)


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "srun") if not shutil.which(name)]
    if missing:
        print(f"SKIPPED: there is no {', '.join(missing)}")
        sys.exit(77)
    hosts.enter()
    runs.main()
