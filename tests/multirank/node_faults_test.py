# SPDX-License-Identifier: Apache-2.0
"""Proves what two hosts do when a rank or a launcher is killed, when they are asked to stop, when packets are lost and when strangers call."""
import contextlib
import os
import signal
import socket
import time

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]


class NodeFaultsTest(hosts.HostsTest):
    def start_endless(self, stack, *flags):
        nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, *runs.ENDLESS, *flags)
        nodes[0].wait_for_steps(20)
        return nodes

    def check_gone(self, nodes, since, within):
        while any(node.processes() for node in nodes):
            self.assertLess(time.monotonic() - since, within, "processes are left")
        print(f"gone after {time.monotonic() - since:.3f} s", flush=True)

    def stop_and_check(self, nodes):
        """SIGTERM to the second node stops both; what they trained are the bits of one host."""
        os.kill(nodes[1].launcher(), signal.SIGTERM)
        ends = [node.finish() for node in nodes]
        self.assertEqual([end.code for end in ends], [143, 143], ends[0].err + ends[1].err)
        self.check_losses(ends[0], self.job(*PLAN), *FLAGS)
        return ends

    def test_killed_rank(self):
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack)
            victim = nodes[1].pid_of_rank(3)
            name, killed = f"rank 3 (host host1, pid {runs.inner_pid(victim)})", time.monotonic()
            os.kill(victim, signal.SIGKILL)
            ends = [node.finish() for node in nodes]
            self.check_gone(nodes, killed, 5)
        self.assertEqual([end.code for end in ends], [69, 69])
        for end in ends:  # the block on node 0, its first line on node 1
            self.assertIn(f"dgrun: {name} was killed by signal 9 (SIGKILL) while training", end.err)
        for rank, host in (0, 0), (1, 0), (2, 1):
            self.assertRegex(ends[0].err, rf"\n  rank {rank} \(host host{host}, pid \d+\): stopped by dgrun while training")

    def test_killed_launchers(self):
        for victim, message in (1, "dgrun: node 1 (host host1, ranks 2 to 3) is gone"), (0, "dgrun: the coordinator (node 0, "):
            with self.subTest(victim=victim), contextlib.ExitStack() as stack:
                nodes = self.start_endless(stack)
                os.kill(nodes[victim].launcher(), signal.SIGKILL)
                killed = time.monotonic()
                end = nodes[1 - victim].finish()
                self.check_gone(nodes, killed, 5)
                self.assertEqual(end.code, 69, end.err)
                self.assertIn(message, end.err)

    def test_stop_and_resume(self):
        job, folder = self.job(*PLAN), self.path("kept")
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack, "--checkpoint", folder)
            asked = time.monotonic()
            os.kill(nodes[1].launcher(), signal.SIGTERM)
            ends = [node.finish() for node in nodes]
            print(f"saved after {time.monotonic() - asked:.3f} s", flush=True)
            self.check_gone(nodes, asked, 20)
        self.assertEqual([end.code for end in ends], [75, 75], ends[0].err + ends[1].err)
        last = ends[0].of("end")[0]["steps"]
        flags = ["--steps", str(last + 20)]
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, job, *FLAGS, *flags, "--checkpoint", folder, "--resume")
            resumed = nodes[0].finish()
            self.assertEqual([resumed.code, nodes[1].finish().code], [0, 0], resumed.err)
        whole = self.run_job(job, *FLAGS, *flags).loss_texts()
        self.assertEqual({**ends[0].loss_texts(), **resumed.loss_texts()}, whole)

    def test_lost_packets(self):
        for host in self.hosts:
            host.lose_packets(2)
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack)
            nodes[0].wait_for_steps(200)
            ends = self.stop_and_check(nodes)
        self.assertEqual(ends[0].err.count("\n"), 1, ends[0].err)  # where node 0 listens, and no alarm
        self.assertEqual(ends[1].err, "")

    def test_short_silence(self):
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack)
            self.hosts[1].set_link(False)
            time.sleep(5)  # the silence is what is tested
            self.hosts[1].set_link(True)
            nodes[0].wait_for_steps(50)
            self.stop_and_check(nodes)

    def test_slow_link(self):
        # Each all-reduce takes longer than the deadline, but bytes flow all the time.
        job = self.job("mlp:784-512-512-10", "--batch", "16", "--mesh", "data=2")
        flags = [*runs.FLAT_DATA, "--seed", "7", "--threads", "1", "--steps", "1"]
        alone = self.run_job(job, *flags)
        for host in self.hosts:
            host.limit_rate("5mbit")
        for way in [], ["--trust-fabric"]:
            with self.subTest(way), contextlib.ExitStack() as stack:
                ends = [node.finish() for node in self.start_nodes(stack, job, *flags, *way, "--timeout", "2")]
                self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
                self.assertEqual(ends[0].lines("step"), alone.lines("step"))
                self.assertGreater(ends[0].seconds, 2)

    def test_strangers(self):
        self.meet_strangers(1)

    def test_strangers_of_a_trusted_fabric(self):
        self.meet_strangers(5, "--trust-fabric")

    def meet_strangers(self, num_doors, *flags):
        """They call at the rendezvous, and at the port of each rank where the network is trusted."""
        with contextlib.ExitStack() as stack:
            nodes = self.start_endless(stack, *flags)
            doors = []
            for host in self.hosts:
                listening = host.run("ss", "-Htln").splitlines()
                doors += [(host.address, int(line.split()[3].rsplit(":", 1)[1])) for line in listening]
            self.assertEqual(len(doors), num_doors)
            generator, held = runs.seeded_random(), []
            for door in doors:
                for length in (1, 8, 72, 100, 4096):
                    with contextlib.suppress(ConnectionError), socket.create_connection(door, 5) as stranger:
                        stranger.sendall(generator.randbytes(length))
            for i in range(1000):
                stranger = stack.enter_context(socket.socket())
                stranger.setblocking(False)
                stranger.connect_ex(doors[i % len(doors)])
                held.append(stranger)
            nodes[0].wait_for_steps(100)
            ends = self.stop_and_check(nodes)
        self.assertEqual(ends[0].err.count("\n"), 1, ends[0].err)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
