# SPDX-License-Identifier: Apache-2.0
"""Proves that data of http, s3 and hdfs servers train as local files do, bit by bit, whatever the servers do on the way;
that a server that stays broken is a clear end; and that what is here and has not changed is not sent again."""
import glob
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest

import bad_server
import sample_files
from sources_test import BIN, MODEL

LOST, BAD_FILE, USAGE = 69, 65, 2


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.held.cleanup)
        cls.folder = cls.held.name
        samples = sample_files.make_samples(count=240)
        sample_files.write_npy(cls.folder, samples)
        sample_files.write_tars(cls.folder, samples, 2)
        with open(os.path.join(cls.folder, "net.mlir"), "w", encoding="utf-8") as file:
            file.write(MODEL)
        subprocess.run([os.path.join(BIN, "dgc"), "net.mlir", "--batch", "20", "-o", "net.dgx"], cwd=cls.folder, check=True,
                       timeout=120)
        cls.server = bad_server.Server(cls.folder)
        cls.url = cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        done = cls.dgrun("x.npy", "y.npy")
        assert done.returncode == 0, done.stderr
        cls.expected = cls.step_lines(done)

    def setUp(self):
        self.cache = os.path.join(self.folder, "cache")
        shutil.rmtree(self.cache, ignore_errors=True)
        self.server.turns.clear()

    @classmethod
    def dgrun(cls, x, y="y.npy", *flags, **variables):
        environment = {**os.environ, "no_proxy": "*", **variables}
        for name in [name for name in environment if name.startswith("AWS_") and name not in variables]:
            del environment[name]
        return subprocess.run([os.path.join(BIN, "dgrun"), "net.dgx", "--data", "x=" + x, "--data", "y=" + y, "--json",
                               "--threads", "1", "--timeout", "1", *flags],
                              cwd=cls.folder, capture_output=True, text=True, timeout=120, env=environment)

    @staticmethod
    def step_lines(done):
        """Steps without the times."""
        return [line.split(",\"step_us\"")[0] for line in done.stdout.splitlines() if '"event":"step"' in line]

    def trains(self, x, y="y.npy", **variables):
        done = self.dgrun(x, y, "--data-cache", self.cache, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.expected), 12)
        self.assertEqual(self.step_lines(done), self.expected)

    def refused(self, x, code, *words, flags=None, **variables):
        done = self.dgrun(x, "y.npy", *(["--data-cache", self.cache] if flags is None else flags), **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(glob.glob(self.cache + "/*"), [], "nothing half fetched stays")

    def test_servers_that_misbehave_and_recover(self):
        for how in ("good", "flaky", "cut", "norange", "stall", "changed", "redirect"):
            with self.subTest(how):
                self.trains(f"{self.url}/{how}/x.npy")
                with open(os.path.join(self.folder, "x.npy"), "rb") as here, \
                        open(glob.glob(self.cache + "/*-x.npy")[0], "rb") as there:
                    self.assertEqual(here.read(), there.read())
                shutil.rmtree(self.cache)

    def test_servers_that_stay_broken(self):
        for how, code, words in (("broken", LOST, "HTTP status 500"), ("empty", LOST, "0 bytes came"),
                                 ("changing", LOST, "changes"), ("loop", LOST, "redirect"),
                                 ("elsewhere", LOST, "rotocol"), ("none", BAD_FILE, "HTTP status 404")):
            with self.subTest(how):
                self.refused(f"{self.url}/{how}/x.npy", code, f"/{how}/x.npy", words)
        self.refused(f"{self.url}/good/gone.npy", BAD_FILE, "404")
        self.refused("http://127.0.0.1:1/x.npy", LOST, "http://127.0.0.1:1/x.npy")

    def test_what_is_malformed_is_refused(self):
        self.refused(f"{self.url}/good/x.npy", USAGE, "--data-cache DIR", flags=[])
        self.refused("http://user:pass@127.0.0.1/x.npy", USAGE, "password")
        self.refused("ftp://127.0.0.1/x.npy", USAGE, "ftp://", "s3://")
        self.refused("s3://bucket", USAGE, "s3://BUCKET/KEY")
        self.refused("hdfs://namenode", USAGE, "hdfs://NAMENODE:PORT/PATH")

    def test_shards_in_parallel_and_once(self):
        x, y = f"{self.url}/cut/part-{{00..01}}.tar:png", f"{self.url}/cut/part-{{00..01}}.tar:cls"
        self.trains(x, y)
        self.assertEqual(len(glob.glob(self.cache + "/*.tar")), 2)
        before = self.server.sent
        self.trains(x, y)
        self.assertEqual(self.server.sent, before, "what has not changed is not sent again")
        with open(glob.glob(self.cache + "/*-part-00.tar")[0], "ab") as file:
            file.write(b"more")
        self.trains(x, y)
        self.assertGreater(self.server.sent, before, "a copy that was changed is fetched again")

    def test_s3_is_signed(self):
        keys = {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": bad_server.KEY, "AWS_REGION": "eu-test-1",
                "AWS_SECRET_ACCESS_KEY": bad_server.SECRET, "AWS_SESSION_TOKEN": bad_server.TOKEN}
        self.trains("s3://bucket/some folder/x.npy", **keys)
        shutil.rmtree(self.cache)
        self.refused("s3://bucket/x.npy", BAD_FILE, "403", "AWS_", **{**keys, "AWS_SECRET_ACCESS_KEY": "wrong"})
        self.refused("s3://bucket/x.npy", BAD_FILE, "403", AWS_ENDPOINT_URL=self.url)

    def test_hdfs(self):
        self.trains(self.url.replace("http://", "hdfs://") + "/x.npy")

    @unittest.skipIf(not shutil.which("openssl"), "openssl is not installed")
    def test_certificates_are_verified(self):
        certificate, key = os.path.join(self.folder, "c.pem"), os.path.join(self.folder, "k.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out",
                        certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True, timeout=60)
        server = bad_server.Server(self.folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = server.start().replace("http://", "https://")
        self.addCleanup(server.stop)
        self.refused(f"{url}/good/x.npy", LOST, "ertificate")
        self.trains(f"{url}/good/x.npy", SSL_CERT_FILE=certificate)
        shutil.rmtree(self.cache)


if __name__ == "__main__":
    unittest.main()
