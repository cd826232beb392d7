# SPDX-License-Identifier: Apache-2.0
"""Proves that a training ends at the first loss that is not finite, with the last good checkpoint; that --check-numerics names the op
that made a NaN or infinity, and --check-replicas the rank whose memory changed; neither changes a bit of a sound run. --dry-run prints
every pair of ranks."""
import contextlib
import math
import os
import re
import signal
import struct

import checkpoint_files
import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7"]


def write_npy(path, shape, values):
    """A .npy file of f32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values))


def flip_bits(pid, pattern):
    """Changes one byte of every place in a process's writable memory that holds these bytes. Returns how many there were."""
    number = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            begin, end = (int(word, 16) for word in line.split()[0].split("-"))
            # AddressSanitizer reserves terabytes; an arena of these tests is small.
            if not line.split()[1].startswith("rw") or "[v" in line or end - begin > 1 << 30:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            for found in re.finditer(re.escape(pattern), content):
                memory.seek(begin + found.start())
                memory.write(bytes([pattern[0] ^ 1]))
                number += 1
    return number


class NumericsTest(runs.JobTest):
    def test_sound_runs_are_unchanged(self):
        for model, flags, data in (("mlp", PLAN[1:], runs.MLP_DATA),
                                   ("lenet", ("--batch", "60", "--mesh", "data=2"), runs.IMAGE_DATA)):
            job = self.job(model, *flags)
            plain = self.run_job(job, *data, "--steps", "5")
            checked = self.run_job(job, *data, "--steps", "5", "--check-numerics", "--check-replicas", "2")
            self.assertEqual(plain.loss_texts(), checked.loss_texts())

    def test_overflow_is_named(self):
        finished = self.run_job(self.job(*PLAN), *FLAGS, "--lr", "1e30", "--check-numerics", code=70)
        self.assertRegex(finished.err, r"dgrun: rank \d \(.*\) failed while training, step 2, in task '(.*)' \(.*mlp.mlir:\d+:\d+\): "
                         r"'\1' \(dg\.\w+, .*mlp.mlir:\d+:\d+\) made '.*' hold (nan|an infinity) at element \d+ of \d+, in step 2, "
                         r"micro-batch \d+; what it read is finite")

    def test_bad_data_is_not_the_ops_fault(self):
        write_npy(self.path("x.npy"), (16, 10), [1.0] * 37 + [float("nan")] + [1.0] * 122)
        data = ["--data", "x=" + self.path("x.npy"), "--data", "y=randn:16x1", "--no-shuffle"]
        finished = self.run_job(self.job("mlp", "--batch", "16"), *data, "--check-numerics", code=70)
        self.assertIn("; its input 'x' held nan at element 37 of 160 already", finished.err)


class LossTest(runs.JobTest):
    # The loss is on rank 0; on another rank; on a host of several replicas.
    MESHES = ((), ("--mesh", "pipe=2"), ("--mesh", "data=2,pipe=2"))

    def all_finite(self, folder):
        tensors, _ = checkpoint_files.read_tensors(os.path.join(folder, "model.safetensors"))
        return all(map(math.isfinite, (number for _, _, data in tensors.values() for number in struct.unpack(f"<{len(data) // 4}f", data))))

    def test_first_loss_that_is_not_finite_ends_the_run(self):
        for mesh in self.MESHES:
            with self.subTest(mesh=mesh):
                job, folder = self.job("mlp", "--batch", "16", *mesh), "kept" + "-".join(mesh)
                flags = [*FLAGS, "--checkpoint", self.path(folder), "--checkpoint-every", "1steps"]
                finished = self.run_job(job, *flags, "--lr", "1e9", code=70)
                found = re.search(r"dgrun: rank \d \(.*\) failed while training, step (\d+).*: the loss of step (\d+) is (nan|infinite), "
                                  r"expected a finite number; the last good checkpoint is (\S+?)(?: \((\S+) holds the parameters "
                                  r"that it came from\))?: find the op that made it with --check-numerics, .* --allow-nan", finished.err)
                self.assertTrue(found, finished.err)
                step = int(found[2])
                self.assertEqual(int(found[1]), step)
                # The save of the parameters that gave the loss was in flight, or had ended.
                saved = step if found[5] else step - 1
                self.assertEqual(found[4], self.path(folder, f"step-{step - 2:06}"))
                self.assertIn(found[5], (None, self.path(folder, f"step-{step - 1:06}")))
                self.assertIn(sorted(os.listdir(self.path(folder))), [[f"step-{number:06}" for number in range(1, end)] for end in {saved, step}])
                self.assertTrue(self.all_finite(self.latest(folder)))
                self.assertEqual(finished.of("end"), [])
                self.assertEqual(len(finished.of("failure")), 1)
                going_on = self.run_job(job, *FLAGS, "--lr", "1e9", "--steps", str(step + 3), "--allow-nan").of("step")
                self.assertEqual([event["loss"] is None for event in going_on], [False] * (step - 1) + [True] * 4)
                resumed = self.run_job(job, *FLAGS, "--lr", "0", "--resume", found[4], "--steps", str(step))
                self.assertNotIn(None, [event["loss"] for event in resumed.of("step")])

    def test_parameters_that_are_not_finite_are_not_saved(self):
        write_npy(self.path("x.npy"), (16, 10), [100.0] * 160)
        data = ["--data", "x=" + self.path("x.npy"), "--data", "y=randn:16x1"]
        for mesh in self.MESHES:
            with self.subTest(mesh=mesh):
                job, folder = self.job("mlp", "--batch", "16", *mesh), "none" + "-".join(mesh)
                flags = [*data, "--lr", "1e38", "--checkpoint", self.path(folder), "--steps", "1"]
                finished = self.run_job(job, *flags, code=70)
                self.assertRegex(finished.err, r"step 1 made '\S+' hold (nan|an infinity) at element \d+ of \d+: no checkpoint is written")
                self.assertFalse(os.path.exists(self.path(folder)), "a folder was left that holds nothing")
                self.run_job(job, *flags, "--allow-nan")
                self.assertFalse(self.all_finite(self.latest(folder)))

    def test_evaluation_that_is_not_finite_ends_the_run(self):
        write_npy(self.path("x.npy"), (16, 10), [float("inf")] * 160)
        flags = [*FLAGS, "--steps", "2", "--eval-data", "x=" + self.path("x.npy"), "--eval-data", "y=randn:16x1"]
        for mesh in self.MESHES:
            with self.subTest(mesh=mesh):
                job = self.job("mlp", "--batch", "16", *mesh)
                finished = self.run_job(job, *flags, code=70)
                self.assertRegex(finished.err, r"the loss of the evaluation after step 2 is (nan|infinite), .*; this run has no checkpoint from "
                                 r"before it")
                self.assertEqual(len(self.run_job(job, *flags, "--allow-nan").of("eval")), 1)


class ReplicasTest(hosts.HostsTest):
    number = 3  # ranks of one host map each other's memory, which would then change in all of them

    def test_drifted_rank_is_named(self):
        # With a learning rate of 0 the parameters in memory stay those of the first checkpoint.
        job = self.job("mlp", "--batch", "12", "--mesh", "data=3")
        flags = [*FLAGS, "--lr", "0", "--threads", "1"]
        self.run_job(job, *flags, "--steps", "1", "--checkpoint", self.path("start"))
        tensors, _ = checkpoint_files.read_tensors(os.path.join(self.latest("start"), "model.safetensors"))
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, job, *flags, *runs.ENDLESS, "--check-replicas", "5")
            nodes[0].wait_for_steps(20)
            victim = nodes[1].pid_of_rank(1)
            name = f"rank 1 (host host1, pid {runs.inner_pid(victim)})"
            os.kill(victim, signal.SIGSTOP)
            number = flip_bits(victim, tensors["fc1.bias"][2])
            os.kill(victim, signal.SIGCONT)
            self.assertGreaterEqual(number, 1, "the parameter was found in memory")
            finished = nodes[0].finish()
        self.assertEqual(finished.code, 1, finished.err)
        self.assertRegex(finished.err, rf"dgrun: {re.escape(name)} failed while training, step \d+.*: rank 1 drifted: 'fc1.bias' differs "
                         r"from what the 2 other replicas hold after step \d+")


class DryRunTest(hosts.HostsTest):
    def test_one_host(self):
        links = self.run_job(self.job(*PLAN), "--dry-run").of("link")
        self.assertEqual([(link["from"], link["to"]) for link in links], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
        self.assertEqual({link["transport"] for link in links}, {"shared memory"})

    def test_two_hosts(self):
        self.check_two_hosts("tls")
        self.check_two_hosts("tcp", "--trust-fabric")

    def check_two_hosts(self, network, *flags):
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, self.job(*PLAN), "--dry-run", *flags)
            ends = [node.finish() for node in nodes]
        self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
        links = {(link["from"], link["to"]): link for link in ends[0].of("link")}
        self.assertEqual(len(links), 6)
        for (low, high), link in links.items():
            is_shared = (low < 2) == (high < 2)
            self.assertEqual(link["transport"], "shared memory" if is_shared else network)
            if not is_shared:
                self.assertEqual((link["from_address"], link["to_address"]), (self.hosts[0].address, self.hosts[1].address))
                self.assertEqual((link["from_host"], link["to_host"]), ("host0", "host1"))

    def test_firewall(self):
        self.check_firewall(r"rank \d: no connection with rank \d at \S+ within 2 s; .*is a firewall between them")
        self.check_firewall(r"rank \d gets no answer from rank \d: .*look for a firewall", "--trust-fabric")

    def check_firewall(self, message, *flags):
        # Only the rendezvous is let through.
        flags = ("--dry-run", "--timeout", "2", *flags)
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(self.start_node(0, self.hosts[0].address, self.job(*PLAN), *flags))
            endpoint = first.wait_for_endpoint()
            port = endpoint.rsplit(":", 1)[1]
            for host in self.hosts:
                host.run("nft", "add table inet wall; add chain inet wall input { type filter hook input priority 0; }; add rule inet "
                                f"wall input tcp dport {port} accept; add rule inet wall input tcp sport {port} accept; add rule inet "
                                "wall input iif net0 meta l4proto tcp drop")
            second = stack.enter_context(self.start_node(1, endpoint, self.job(*PLAN), *flags))
            ends = [first.finish(), second.finish()]
            for host in self.hosts:
                host.run("nft", "delete table inet wall")
        self.assertEqual([end.code for end in ends], [69, 69], ends[0].err)
        self.assertRegex(ends[0].err, message)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
