# SPDX-License-Identifier: Apache-2.0
"""Proves that a plan without --cluster is for the host as it was measured: once, kept in the user's cache and read back only
where he alone can have written it, measured anew by dgrun --probe, and used without being kept where nothing can be written.

    python3 host.py DGRUN DGC
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

DGRUN, DGC = sys.argv[1:3]
MODEL = ["mlp:64-64-8", "--batch", "8"]


class Host(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.cache = os.path.join(held.name, "cache")

    def run_in(self, cache, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "DG_CACHE": cache})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def explain(self, *flags, cache=None):
        return self.run_in(cache or self.cache, DGC, *MODEL, *flags, "--explain").stdout

    def step_us(self, *flags):
        return json.loads(self.run_in(self.cache, DGC, *MODEL, *flags, "--simulate=json").stdout)["step_us"]

    def kept(self):
        found = glob.glob(os.path.join(self.cache, "host-*.json"))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def change(self, write):
        """Rewrites what was kept, as if this host were another."""
        with open(self.kept(), encoding="utf-8") as file:
            document = json.load(file)
        write(document)
        with open(self.kept(), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def test_measured_once(self):
        said = self.explain("--ranks", "1")
        self.assertRegex(said, r"for this host, one core to a rank: \d+ cores?.* Gflop/s and .* GB/s each, .* GiB, measured 20.* UTC")
        with open(self.kept(), encoding="utf-8") as file:
            first = file.read()
        cores = len(os.sched_getaffinity(0))
        self.assertEqual(json.loads(first)["cluster"]["devices_per_node"], cores)
        self.assertEqual(self.explain("--ranks", "1"), said)
        with open(self.kept(), encoding="utf-8") as file:
            self.assertEqual(file.read(), first, "measured again")
        shared = self.explain("--ranks", str(2 * cores))
        self.assertIn(f"; 0.5 of a core for each of {2 * cores} ranks", shared)

    def test_plans_for_what_was_kept(self):
        fast = self.step_us("--ranks", "1")
        self.change(lambda document: document["cluster"]["device"].update(launch_us=1e6))
        self.assertGreater(self.step_us("--ranks", "1"), 100 * fast)
        self.assertGreater(self.step_us("--ranks", "1", "--cluster", "host"), 100 * fast)
        self.assertLess(self.step_us("--ranks", "1", "--cluster", "cpu"), 1e6, "another cluster was named")
        by_hand = json.loads(self.run_in(self.cache, DGC, *MODEL, "--emit", "plan").stdout)
        self.assertLess(by_hand["predicted"]["step_us"], 1e6, "a plan by hand is the same on every host")

    def test_what_others_wrote_is_not_read(self):
        self.step_us("--ranks", "1")
        slow = lambda document: document["cluster"]["device"].update(launch_us=1e6)
        for name, spoil in {"writable by all": lambda path: os.chmod(path, 0o666),
                            "of another processor": lambda _: self.change(lambda document: document.update(key="other")),
                            "damaged": lambda path: os.truncate(path, 100),
                            "of another kind": lambda _: self.change(lambda document: document.update(when=7))}.items():
            with self.subTest(name):
                self.change(slow)
                spoil(self.kept())
                self.assertLess(self.step_us("--ranks", "1"), 1e6)
                with open(self.kept(), encoding="utf-8") as file:
                    self.assertLess(json.load(file)["cluster"]["device"]["launch_us"], 1e6, "kept anew")

    def test_probe_measures_anew(self):
        self.step_us("--ranks", "1")
        self.change(lambda document: document["cluster"]["device"].update(launch_us=1e6))
        said = self.run_in(self.cache, DGRUN, "--probe").stderr
        self.assertIn("dgc plans with it from now on", said)
        self.assertLess(self.step_us("--ranks", "1"), 1e6)

    def test_nothing_can_be_kept(self):
        for cache in ("off", "/proc/none"):
            self.assertIn("for this host", self.explain("--ranks", "1", cache=cache))
            self.assertIn("not kept for dgc", self.run_in(cache, DGRUN, "--probe").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
