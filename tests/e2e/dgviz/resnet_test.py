# SPDX-License-Identifier: Apache-2.0
"""Proves the same views for ResNet-50 with two replicas."""
import os
import subprocess
import tempfile
import unittest

import jobs
from views import ViewTest


def compile_resnet(folder):
    job = os.path.join(folder, "resnet.dgx")
    made = subprocess.run([jobs.tool("dgc"), "resnet:50", "--batch", "4", "--mesh", "data=2", "-o", job], capture_output=True, text=True, timeout=4 * jobs.DEADLINE_S)
    assert made.returncode == 0, made.stderr
    return job


class ResnetTest(ViewTest):
    def test_resnet_data_parallel(self):
        plan = jobs.plan_of(JOB)
        heaviest = max(jobs.drawn_ops(plan, "train"), key=lambda op: plan["ops"][op].get("flops", 0))
        self.open(JOB)
        self.check_all(JOB, plan["ops"][heaviest]["name"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="dg-resnet-") as folder:
        JOB = compile_resnet(folder)
        unittest.main()
