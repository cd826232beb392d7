# SPDX-License-Identifier: Apache-2.0
"""Proves that who is on the network between the hosts of a job joined by hand gets nothing: no rank listens while it trains; strangers
at the door while ranks meet change nothing; a man in the middle who changes, drops, repeats or exchanges records ends the job with the
reason, never with other numbers; ranks do not have the secret."""
import contextlib
import os
import socket
import struct
import subprocess
import sys
import time

import hosts
import runs

PLAN = ("mlp", "--batch", "16", "--mesh", "data=2,pipe=2")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]
MIDDLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "middle.py")
# UCX's greeting, and a request to write 4 bytes to an address: what ended a rank of 0.1.
WRITE_TO_MEMORY = struct.pack("<QBI", 0xCAFEBABE12345678, 33, 20) + struct.pack("<QQI", 0x4141414141414141, 4, 0) + b"DGDG"


def listeners(host):
    """(address, port) of every listening TCP socket of a host."""
    return [(where.rsplit(":", 1)[0], int(where.rsplit(":", 1)[1]))
            for where in (line.split()[3] for line in host.run("ss", "-Htln").splitlines())]


class SecureHostsTest(hosts.HostsTest):
    def finish_with(self, nodes, code):
        ends = [node.finish() for node in nodes]
        self.assertEqual([end.code for end in ends], [code, code], ends[0].err + ends[1].err)
        return ends

    def test_no_rank_listens_while_it_trains(self):
        self.assertEqual(len(WRITE_TO_MEMORY), 37)
        with contextlib.ExitStack() as stack:
            nodes = self.start_nodes(stack, self.job(*PLAN), *FLAGS, *runs.ENDLESS)
            nodes[0].wait_for_steps(20)
            self.assertEqual([len(listeners(host)) for host in self.hosts], [1, 0], "the rendezvous only")
            for host in self.hosts:
                for line in host.run("ss", "-Htn").splitlines():  # nobody answers where ranks are connected
                    port = int(line.split()[3].rsplit(":", 1)[1])
                    with contextlib.suppress(OSError), socket.create_connection((host.address, port), 1) as stranger:
                        stranger.sendall(WRITE_TO_MEMORY)
            nodes[0].wait_for_steps(40)
            os.kill(nodes[1].launcher(), 15)
            ends = self.finish_with(nodes, 143)
            self.check_losses(ends[0], self.job(*PLAN), *FLAGS)

    def test_strangers_while_ranks_meet(self):
        # Host 1 cannot reach the ranks of host 0 at first, which wait for it with open doors.
        alone = self.run_job(self.job(*PLAN), *FLAGS, "--epochs", "1")
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(self.start_node(0, self.hosts[0].address, self.job(*PLAN), *FLAGS, "--epochs", "1"))
            endpoint = first.wait_for_endpoint()
            door = int(endpoint.rsplit(":", 1)[1])
            self.hosts[0].run("nft", "add table inet shut; add chain inet shut input { type filter hook input priority 0; }; "
                                     f"add rule inet shut input ip saddr {self.hosts[1].address} tcp dport != {door} ct state new drop")
            second = stack.enter_context(self.start_node(1, endpoint, self.job(*PLAN), *FLAGS, "--epochs", "1"))
            limit = time.monotonic() + 20
            while len(listeners(self.hosts[0])) < 3:
                self.assertLess(time.monotonic(), limit, "the ranks do not listen")
            doors = [place for place in listeners(self.hosts[0]) if place[1] != door]
            self.assertEqual({address for address, _ in doors}, {self.hosts[0].address}, "no other interface")
            generator, held = runs.seeded_random(), []
            for place in doors:
                for noise in (WRITE_TO_MEMORY, b"\x16\x03\x01" + generator.randbytes(300), generator.randbytes(4096)):
                    with contextlib.suppress(ConnectionError), socket.create_connection(place, 5) as stranger:
                        stranger.sendall(noise)
                self.knock_with_a_key(place)
            for number in range(500):  # and a crowd that says nothing
                stranger = stack.enter_context(socket.socket())
                stranger.setblocking(False)
                stranger.connect_ex(doors[number % len(doors)])
                held.append(stranger)
            self.hosts[0].run("nft", "delete table inet shut")
            ends = self.finish_with([first, second], 0)
        self.assertEqual(ends[0].lines("step", "epoch"), alone.lines("step", "epoch"))

    def knock_with_a_key(self, place):
        """A client of TLS 1.3 with a key of its own. One that names a pair of the job: SecureChannelTest."""
        knock = subprocess.run(["openssl", "s_client", "-connect", f"{place[0]}:{place[1]}", "-tls1_3", "-psk", "00" * 32,
                                "-psk_identity", "20000000", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
                               input="", capture_output=True, text=True, timeout=runs.DEADLINE_S)
        self.assertNotEqual(knock.returncode, 0, knock.stdout)

    def run_through(self, attack, *flags):
        """A job whose ranks of host 1 reach those of host 0 through a man in the middle."""
        with contextlib.ExitStack() as stack:
            middle = stack.enter_context(subprocess.Popen(self.hosts[1].inside(sys.executable, MIDDLE, attack), stdin=subprocess.PIPE,
                                                          stdout=subprocess.PIPE, text=True))
            port = int(middle.stdout.readline())
            first = stack.enter_context(self.start_node(0, self.hosts[0].address, self.job(*PLAN), *FLAGS, *flags))
            endpoint = first.wait_for_endpoint()
            self.hosts[1].run("nft", "add table ip middle; add chain ip middle output { type nat hook output priority -100; }; "
                                     f"add rule ip middle output ip daddr {self.hosts[0].address} tcp dport != {endpoint.rsplit(':', 1)[1]} "
                                     f"meta mark != 7 redirect to :{port}")
            try:
                second = stack.enter_context(self.start_node(1, endpoint, self.job(*PLAN), *FLAGS, *flags))
                ends = [first.finish(), second.finish()]
            finally:
                self.hosts[1].run("nft", "delete table ip middle")
            if attack not in ("none", "delay"):
                self.assertEqual(middle.stdout.readline(), f"acted: {attack}\n")
        return ends

    def test_man_in_the_middle(self):
        changed, cut = "changed on the way", "the connection was cut"
        for attack, reason in ("flip", changed), ("repeat", changed), ("drop", changed), ("exchange", changed), ("truncate", cut):
            with self.subTest(attack):
                ends = self.run_through(attack, *runs.ENDLESS)
                self.assertEqual([end.code for end in ends], [69, 69], ends[0].err + ends[1].err)
                self.assertRegex(ends[0].err, f"rank \\d lost rank \\d in .*({changed}|{cut})")
                self.assertIn(reason, ends[0].err)
                self.assertEqual(len(ends[0].of("failure")), 1)
                self.check_losses(ends[0], self.job(*PLAN), *FLAGS)
                print(f"{attack}: {ends[0].of('failure')[0]['message']}", flush=True)

    def test_slow_man_in_the_middle(self):
        flags = ["--steps", "60"]
        alone = self.run_job(self.job(*PLAN), *FLAGS, *flags)
        for attack in "none", "delay":
            with self.subTest(attack):
                ends = self.run_through(attack, *flags)
                self.assertEqual([end.code for end in ends], [0, 0], ends[0].err + ends[1].err)
                self.assertEqual(ends[0].lines("step"), alone.lines("step"))

    def test_ranks_do_not_have_the_secret(self):
        with open(self.secret) as file:
            secret = file.read()
        job, prefix = self.job(*PLAN), {"DG_SECRET": secret}
        flags = [*FLAGS, *runs.ENDLESS, "--nnodes", "2"]
        with contextlib.ExitStack() as stack:
            nodes = []
            for node in range(2):
                endpoint = nodes[0].wait_for_endpoint() if node else self.hosts[0].address
                nodes.append(stack.enter_context(self.start(job, *flags, "--node-rank", str(node), "--rdzv-endpoint", endpoint,
                                                            prefix=["env", "-u", "DG_SECRET_FILE", *self.hosts[node].inside()],
                                                            environment=prefix)))
            nodes[0].wait_for_steps(20)
            for rank in range(4):
                pid = nodes[rank // 2].pid_of_rank(rank)
                for where, memory in self.memory_of(pid):
                    self.assertNotIn(secret.encode(), memory, f"rank {rank}: {where}")
            seen = [where for where, memory in self.memory_of(nodes[0].launcher()) if secret.encode() in memory]
            self.assertEqual(len(seen), 1, "this looks where it is, and it is in one page")
            os.kill(nodes[0].launcher(), 15)
            self.finish_with(nodes, 143)

    @staticmethod
    def memory_of(pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            yield "environment", file.read()
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                begin, end = (int(part, 16) for part in line.split()[0].split("-"))
                if "r" not in line.split()[1] or end - begin > 1 << 28 or "[v" in line:
                    continue
                with contextlib.suppress(OSError):
                    memory.seek(begin)
                    yield line.strip(), memory.read(end - begin)


if __name__ == "__main__":
    hosts.enter()
    runs.main()
