# SPDX-License-Identifier: Apache-2.0
"""A server that misbehaves as the first folder of a path says: /cut/x.npy is x.npy in answers that end too early, and so on."""
import hashlib
import hmac
import http.server
import os
import re
import threading
import urllib.parse

KEY, SECRET, TOKEN = "AKIDTEST", "secret/of+test", "a-token"
PIECE = 3000  # bytes at least, of a large file a fifth


def signature(method, path, headers, authorization):
    """Signature version 4 as Amazon describes it, over what the client says that it has signed."""
    scope, signed, _ = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=[^/]+/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)",
                                    authorization).groups()
    names = signed.split(";")
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
    empty = hashlib.sha256(b"").hexdigest()
    request = f"{method}\n{path}\n\n{lines}\n{signed}\n{empty}"
    text = "AWS4-HMAC-SHA256\n{}\n{}\n{}".format(headers["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest())
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, code, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        body = b"this is no data\n"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, data, most=None, honours_range=True, etag=None, offset=None, stall=False):
        """At most `most` bytes of the answer, then the connection ends or stalls."""
        etag = etag or '"%s"' % hashlib.sha256(data).hexdigest()[:16]
        if self.headers.get("If-None-Match") == etag:
            self.send_response(304)
            self.send_header("ETag", etag)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        begin, asked = offset or 0, re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and honours_range and self.headers.get("If-Range", etag) == etag:
            begin = int(asked.group(1))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        rest = data[begin:]
        self.send_header("Content-Length", str(len(rest)))
        if offset is None:
            self.send_header("ETag", etag)
        self.end_headers()
        sent = rest if most is None else rest[:max(most, len(data) // 5) if most else 0]
        self.wfile.write(sent)
        self.wfile.flush()
        self.server.sent += len(sent)
        if len(sent) < len(rest):
            if stall:
                self.server.ended.wait(20)
            self.close_connection = True

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        _, how, name = url.path.split("/", 2)
        with self.server.lock:
            turn = self.server.turns[url.path] = self.server.turns.get(url.path, 0) + 1
        if how == "webhdfs":
            where = urllib.parse.parse_qs(url.query)
            self.refuse(307, Location=f"/datanode/{name[3:]}?offset={where['offset'][0]}")
            return
        try:
            with open(os.path.join(self.server.folder, urllib.parse.unquote(os.path.basename(name))), "rb") as file:
                data = file.read()
        except OSError:
            self.refuse(404)
            return
        if how == "good":
            self.answer(data)
        elif how == "flaky":
            self.refuse(503) if turn <= 2 else self.answer(data)
        elif how == "broken":
            self.refuse(500)
        elif how == "cut":
            self.answer(data, PIECE)
        elif how == "norange":
            self.answer(data, None if turn > 2 else PIECE, honours_range=False)
        elif how == "empty":
            self.answer(data, 0)
        elif how == "stall":
            self.answer(data, PIECE if turn == 1 else None, stall=True)
        elif how == "changing":
            self.answer(data, PIECE, etag=f'"{turn}"')
        elif how == "changed":  # once, in the middle
            self.answer(b"\0" * len(data) if turn == 1 else data, PIECE if turn == 1 else None)
        elif how == "redirect":
            self.refuse(302, Location="/good/" + name)
        elif how == "loop":
            self.refuse(302, Location=url.path)
        elif how == "elsewhere":
            self.refuse(302, Location="file:///etc/hostname")
        elif how == "datanode":
            self.answer(data, PIECE, offset=int(urllib.parse.parse_qs(url.query)["offset"][0]))
        elif how == "bucket":
            sent = self.headers.get("Authorization", "")
            right = (sent and sent.rsplit("=", 1)[1] == signature("GET", url.path, self.headers, sent)
                     and self.headers.get("x-amz-security-token") == TOKEN
                     and self.headers.get("x-amz-content-sha256") == hashlib.sha256(b"").hexdigest())
            self.answer(data, PIECE) if right else self.refuse(403)
        else:
            self.refuse(404)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.turns, self.sent = folder, {}, 0
        self.lock, self.ended = threading.Lock(), threading.Event()

    def handle_error(self, request, client_address):
        pass  # clients go away in the middle; that is what they are tested with

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server_port}"

    def stop(self):
        self.ended.set()
        self.shutdown()
        self.server_close()
