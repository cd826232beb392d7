# SPDX-License-Identifier: Apache-2.0
"""Inference on one host: DG and ONNX Runtime run the same file on the same threads."""
import os
import statistics

from rows import Row

THREADS, RUNS, WARM_UP = 2, 40, 5
# Floating-point operations of the convolutions and the last layer for one image.
WORK = 8.18e9


class ResNet:
    """ResNet-50 on one image of 224 by 224; made and compiled when first needed."""

    def __init__(self, tools):
        self.tools = tools
        self.peer = os.path.join(tools.peers, "onnx_resnet.py")

    def model(self):
        path = os.path.join(self.tools.scratch, "resnet50.onnx")
        if not os.path.exists(path):
            self.tools.run(self.tools.venv_python() + [self.peer, "write", path])
        return path

    def ours(self):
        job, images = (os.path.join(self.tools.scratch, name) for name in ("resnet50.dgx", "images.npy"))
        if not os.path.exists(job):
            self.tools.run([self.tools.command("dgc"), self.model(), "--infer", "--batch", "1", "-o", job])
            self.tools.run(self.tools.venv_python() + [self.peer, "images", images, str(WARM_UP + RUNS)])
        result = os.path.join(self.tools.scratch, "logits.npy")
        events = self.tools.objects([self.tools.command("dgrun"), job, "--threads", str(THREADS), "--json", "--input",
                                     f"x=@{images}", "--output", f"logits=@{result}"])
        return statistics.median([event["step_us"] for event in events if event["event"] == "step"][WARM_UP:])

    def theirs(self):
        return self.tools.objects(self.tools.venv_python() + [self.peer, "run", self.model(), str(THREADS), str(RUNS)])[0]["median_us"]


def rows(tools):
    """All rows, in the order of the report."""
    resnet = ResNet(tools)
    yield Row(f"ResNet-50 inference, batch 1, {THREADS} threads", resnet.ours, {"ONNX Runtime": resnet.theirs}, 0.85, 1.0,
              work=WORK, threads=THREADS)
