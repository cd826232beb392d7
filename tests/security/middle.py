# SPDX-License-Identifier: Apache-2.0
"""A man in the middle for hosts_test.py: takes connections that the kernel redirects to it, and does to one record what it is told.

usage: middle.py flip|truncate|drop|repeat|exchange|delay|none|line
line: a bit is changed in what comes, which is no TLS but the messages of launchers, once a line came on stdin.
Prints its port, and a line when it has acted. Ends when its stdin does.
"""
import os
import random
import socket
import struct
import sys
import threading
import time

ORIGINAL_DESTINATION, MARK = 80, 7
QUIET_RECORDS = 50  # of a connection, before it acts: the handshake and some steps


def records(connection):
    """The records of TLS on a connection, as they come."""
    held = b""
    while True:
        while len(held) < 5 or len(held) < 5 + struct.unpack(">H", held[3:5])[0]:
            part = connection.recv(1 << 16)
            if not part:
                return
            held += part
        length = 5 + struct.unpack(">H", held[3:5])[0]
        yield held[:length]
        held = held[length:]


def chunks(connection):
    while part := connection.recv(1 << 16):
        yield part


class Middle:
    def __init__(self, attack):
        self.attack, self.lock, self.has_acted, self.is_told = attack, threading.Lock(), False, False

    def listen(self):
        for _ in sys.stdin:
            self.is_told = True
        os._exit(0)

    def act(self, record, waiting):
        """What goes on instead of a record; `waiting` is one that was held back."""
        with self.lock:
            if self.has_acted and not waiting:
                return [record]
            is_first, self.has_acted = not self.has_acted, True
        if is_first:
            print(f"acted: {self.attack}", flush=True)
        if self.attack in ("flip", "line"):
            at = random.randrange(5, len(record))
            return [record[:at] + bytes([record[at] ^ 1 << random.randrange(8)]) + record[at + 1:]]
        if self.attack == "repeat":
            return [record, record]
        if self.attack == "truncate":
            return [record[:len(record) // 2], None]
        if self.attack == "exchange" and not waiting:
            waiting.append(record)
            return []
        if self.attack == "exchange":
            return [record, waiting.pop()]
        return []  # drop

    def relay(self, source, target, is_attacked):
        waiting, is_line = [], self.attack == "line"
        try:
            for number, record in enumerate(chunks(source) if is_line else records(source)):
                parts = [record]
                if self.attack == "delay":
                    time.sleep(random.random() * 0.01)
                elif is_attacked and self.attack != "none" and (self.is_told if is_line else number >= QUIET_RECORDS):
                    parts = self.act(record, waiting)
                for part in parts:
                    if part is None:
                        raise OSError("cut")
                    target.sendall(part)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(self, connection):
        raw = connection.getsockopt(socket.SOL_IP, ORIGINAL_DESTINATION, 16)
        port, address = struct.unpack(">2xH4s8x", raw)
        onward = socket.socket()
        onward.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
        onward.connect((socket.inet_ntoa(address), port))
        for end in (connection, onward):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self.relay, args=(connection, onward, True), daemon=True).start()
        threading.Thread(target=self.relay, args=(onward, connection, False), daemon=True).start()


def main():
    random.seed(int(os.environ.get("DG_TEST_SEED", "1")))
    middle = Middle(sys.argv[1])
    listener = socket.create_server(("", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=middle.listen, daemon=True).start()
    while True:
        middle.serve(listener.accept()[0])


if __name__ == "__main__":
    main()
