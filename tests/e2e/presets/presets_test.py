# SPDX-License-Identifier: Apache-2.0
"""Proves that the search proposes only what can be compiled: every family and example gets a plan, proved sound by dgc, on every
cluster preset with one node and with two; small ones also get a whole job.

    python3 presets_test.py DGC SOURCE
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

DGC, SOURCE = sys.argv[1:3]
MODELS = {
    "mlp": "mlp:64-64-64-8", "lenet": "lenet", "gpt": "gpt:layers=2,hidden=64,heads=4,seq=16,vocab=64",
    "bert": "bert:layers=2,hidden=64,heads=4,seq=16,vocab=64", "resnet": "resnet:18",
}
GPT_39B = "gpt:layers=48,hidden=8192,heads=64,seq=2048,vocab=51200"


def presets():
    """Names of the presets, as the error about an unknown one lists them."""
    said = subprocess.run([DGC, "lenet", "--batch", "8", "--cluster", "nowhere", "--simulate"], capture_output=True, text=True).stderr
    return re.search(r"a preset \(([\w, ]+), with", said).group(1).split(", ")


def examples():
    folder = os.path.join(SOURCE, "examples")
    return {name: os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".mlir")}


class PresetsTest(unittest.TestCase):
    def dgc(self, *arguments):
        done = subprocess.run([DGC, *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"dgc {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def check_plan(self, plan, devices):
        self.assertEqual(math.prod(plan["mesh"].values()), devices)
        self.assertGreater(plan["predicted"]["step_us"], 0)

    def test_every_model_on_every_preset(self):
        clusters = [f"{preset}:nodes={nodes}" for preset in presets() for nodes in (1, 2)]
        self.assertGreaterEqual(len(clusters), 6)
        for name, model in {**MODELS, **examples()}.items():
            for cluster in clusters:
                with self.subTest(model=name, cluster=cluster):
                    nodes, devices = int(cluster[-1]), 8 if "x8" in cluster else 1
                    plan = json.loads(self.dgc(model, "--batch", "64", "--cluster", cluster, "--emit", "plan"))
                    self.check_plan(plan, nodes * devices)

    def test_inference(self):
        for name in ("lenet", "gpt"):
            plan = json.loads(self.dgc(MODELS[name], "--infer", "--batch", "16", "--cluster", "a100x8", "--emit", "plan"))
            self.check_plan(plan, 8)

    def test_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.dgx")
            for model in (MODELS["mlp"], MODELS["gpt"], examples()["lenet.mlir"]):
                self.dgc(model, "--batch", "64", "--cluster", "a100x8:nodes=1", "-o", path)
                with zipfile.ZipFile(path) as job:
                    self.check_plan(json.loads(job.read("plan.json")), 8)

    def test_a_large_model(self):
        plan = json.loads(self.dgc(GPT_39B, "--batch", "1536", "--cluster", "a100x8:nodes=8", "--emit", "plan"))
        self.check_plan(plan, 64)

    def test_a_schedule_by_hand_gets_micro_batches_that_it_can_take(self):
        for schedule in ("gpipe", "1f1b", "interleaved", "interleaved:2", "zb-h1", "zb-v"):
            for axis in ("pipe", "data"):
                self.dgc("mlp:64-64-64-64-64-8", "--batch", "16", "--ranks", "2", "--forbid", "tensor", "--forbid", axis, "--schedule", schedule, "--emit", "plan")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
