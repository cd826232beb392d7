# SPDX-License-Identifier: Apache-2.0
"""Proves that dgc's cache of machine code changes the time of a compilation and nothing else: the packages are the same
bytes, several dgc may share a folder, a mesh shares kernels with another, and a folder that cannot be used costs a note."""
import os
import re
import subprocess
import tempfile
import unittest

BIN = os.environ["DG_BIN"]
MODEL = ["mlp:32-64-10", "--batch", "16", "--optimizer", "adam:lr=0.01"]


class Cache(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = held.name
        self.cache = os.path.join(self.folder, "cache")

    def dgc(self, name, *flags, cache=None, environment=None):
        """Starts a compilation to a file of that name."""
        command = [os.path.join(BIN, "dgc"), *MODEL, "--timing", "-o", os.path.join(self.folder, name), *flags]
        if cache != "":
            command += ["--cache", cache or self.cache]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})

    def end(self, run):
        """What a compilation said, and how many of its kernels came from the cache."""
        said = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, said)
        kernels, cached = re.search(r"machine code of (\d+) kernels, (\d+) from the cache", said).groups()
        return said, int(kernels), int(cached)

    def bytes(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def test_same_bytes(self):
        self.assertEqual(self.end(self.dgc("plain.dgx", cache="off"))[2], 0)
        self.assertFalse(os.path.exists(self.cache))
        _, kernels, cached = self.end(self.dgc("cold.dgx"))
        self.assertLess(cached, kernels)
        said, kernels, cached = self.end(self.dgc("warm.dgx"))
        self.assertEqual(cached, kernels)
        self.assertEqual(said.count(" s  "), 5, said)
        self.assertEqual(self.bytes("plain.dgx"), self.bytes("cold.dgx"))
        self.assertEqual(self.bytes("plain.dgx"), self.bytes("warm.dgx"))

    def test_another_mesh_shares_kernels(self):
        self.end(self.dgc("one.dgx"))
        _, kernels, cached = self.end(self.dgc("two.dgx", "--mesh", "pipe=2", "--microbatches", "1"))
        self.assertGreater(cached, kernels // 2)

    def test_several_at_once(self):
        for run in [self.dgc(f"{i}.dgx") for i in range(4)]:
            self.end(run)
        self.assertEqual(len({self.bytes(f"{i}.dgx") for i in range(4)}), 1)
        self.assertEqual([name for name in os.listdir(self.cache) if name.endswith(".partial")], [])

    def test_where_it_is(self):
        named = os.path.join(self.folder, "named")
        self.end(self.dgc("a.dgx", cache="", environment={"DG_CACHE": named}))
        self.assertTrue(os.listdir(named))
        home = os.path.join(self.folder, "home")
        os.mkdir(home)
        self.end(self.dgc("b.dgx", cache="", environment={"DG_CACHE": "", "XDG_CACHE_HOME": home}))
        self.assertTrue(os.listdir(os.path.join(home, "dg")))
        self.assertEqual(os.stat(os.path.join(home, "dg")).st_mode & 0o777, 0o700)

    def test_a_folder_that_cannot_be_used(self):
        self.end(self.dgc("plain.dgx", cache="off"))
        os.mkdir(self.cache)
        os.chmod(self.cache, 0o777)
        said, _, cached = self.end(self.dgc("open.dgx"))
        self.assertIn("dgc: note: nothing is cached: folder", said)
        self.assertIn("can be written by others", said)
        self.assertEqual((cached, os.listdir(self.cache)), (0, []))
        said = self.end(self.dgc("file.dgx", cache=os.path.join(self.folder, "plain.dgx")))[0]
        self.assertIn("dgc: note: nothing is cached:", said)
        self.assertEqual(self.bytes("open.dgx"), self.bytes("plain.dgx"))


if __name__ == "__main__":
    unittest.main()
