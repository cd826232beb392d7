# SPDX-License-Identifier: Apache-2.0
"""Proves that plans which only a search would choose are found, compiled and right: branches on different stages, schedules without
bubbles, ZeRO where memory is short, activations that cross nodes in parts, and a second search where the arenas of the first plan turn
out too large. Losses are those of one rank."""
import json
import os
import subprocess
import zipfile

import runs

STEPS = 5


def towers(length, width):
    """Two branches of products, written in turns, whose results are added."""
    lines = ['module attributes {dg.optimizer = "sgd:lr=0.01"} {', f"  dg.graph @loss(%x: tensor<?x{width}xf32>, %y: tensor<?xi32>) {{"]
    sizes = [(width, width)] * length + [(width, 16)]
    for tower in "ab":
        for i, (inputs, outputs) in enumerate(sizes):
            lines.append(f'    %w{tower}{i} = dg.parameter "{tower}{i}.weight" tensor<{outputs}x{inputs}xf32> uniform 0.04')
            lines.append(f'    %v{tower}{i} = dg.parameter "{tower}{i}.bias" tensor<{outputs}xf32> uniform 0.04')
    last = {"a": "x", "b": "x"}
    for i in range(len(sizes)):
        for tower in "ab":
            lines.append(f"    %{tower}{i} = dg.linear %{last[tower]}, %w{tower}{i}, %v{tower}{i}")
            last[tower] = f"{tower}{i}"
            if i < length:
                lines.append(f"    %{tower}{i}r = dg.relu %{tower}{i}")
                last[tower] += "r"
    return "\n".join([*lines, f"    %sum = dg.add %{last['a']}, %{last['b']}", "    %loss = dg.cross_entropy %sum, %y", "    dg.return %loss", "  }", "}", ""])


class SearchedTest(runs.JobTest):
    def compile(self, name, model, *flags):
        """Path of the job, its plan, and what dgc said."""
        path = self.path(name + ".dgx")
        done = subprocess.run([runs.tool("dgc"), model, *flags, "-o", path], capture_output=True, text=True, timeout=runs.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        with zipfile.ZipFile(path) as package:
            return path, json.loads(package.read("plan.json")), done.stderr

    def check_losses_of_one_rank(self, job, model, flags, data):
        run = lambda path: self.run_job(path, *data, "--seed", "3", "--threads", "1", "--steps", str(STEPS)).loss_texts()
        expected, found = run(self.compile("one", model, *flags)[0]), run(job)
        self.assertEqual(found.keys(), expected.keys())
        for step, loss in expected.items():
            self.assertLess(abs(float(found[step]) / float(loss) - 1), 1e-5, f"step {step}: {found[step]}, one rank {loss}")

    def test_branches_on_different_stages(self):
        model = self.path("towers.mlir")
        with open(model, "w", encoding="utf-8") as file:
            file.write(towers(4, 256))
        job, plan, _ = self.compile("towers", model, "--batch", "64", "--ranks", "2", "--cluster", "cpu:devices=2", "--mesh", "pipe=2", "--microbatches", "4")
        stages = {tower: {op["stage"] for op in plan["ops"] if op["name"].startswith(tower) and op["name"].endswith("/matmul")} for tower in "ab"}
        self.assertEqual(sorted(map(sorted, stages.values())), [[0], [1]], "each branch has a stage of its own")
        self.check_losses_of_one_rank(job, model, ["--batch", "64"], ["--data", "x=randn:300x256", "--data", "y=randint:10:300"])

    def test_a_schedule_without_bubbles(self):
        model, flags = "mlp:64-64-64-64-64-64-64-64-8", ["--batch", "64", "--optimizer", "sgd:lr=0.01"]
        job, plan, _ = self.compile("deep", model, *flags, "--ranks", "2", "--cluster", "cpu:devices=2", "--forbid", "data", "--forbid", "tensor", "--microbatches", "2")
        self.assertEqual(plan["mesh"], {"pipe": 2, "data": 1, "tensor": 1})
        by_hand = self.compile("hand", model, *flags, "--mesh", "pipe=2", "--microbatches", "2", "--schedule", "1f1b")[1]
        self.assertLess(plan["predicted"]["bubble"], by_hand["predicted"]["bubble"])
        self.check_losses_of_one_rank(job, model, flags, ["--data", "x=randn:300x64", "--data", "y=randint:8:300"])

    def test_zero_where_memory_is_short(self):
        model, flags = os.path.join(runs.EXAMPLES, "wide_mlp.mlir"), ["--batch", "64"]
        limit = 25_000_000  # more than a rank needs with --zero 3 (22.4 MB), less than with any other (28.1 MB, 30.1 MB)
        job, plan, said = self.compile("wide", model, *flags, "--ranks", "2", "--cluster", "cpu:devices=2", "--forbid", "tensor", "--forbid", "pipe", "--memory", str(limit))
        self.assertLessEqual(plan["memory"][0]["arena_bytes"], limit)
        self.assertAlmostEqual(plan["memory"][0]["persistent_bytes"] / plan["model"]["parameters"], 6, delta=0.05, msg=said)
        self.check_losses_of_one_rank(job, model, flags, runs.FLAT_DATA)

    def test_activations_between_nodes_in_parts(self):
        """Inside a node ranks are joined by faster links than between nodes: activations are sent in halves, and nothing else changes."""
        flags = ["--batch", "8", "--mesh", "tensor=2,pipe=2", "--microbatches", "2"]
        collectives = {}
        for name, cluster in (("near", "cpu:nodes=1,devices=4"), ("apart", "cpu:nodes=2,devices=2")):
            job, plan, _ = self.compile(name, runs.SMALL_GPT, *flags, "--cluster", cluster)
            collectives[name] = sum(task["kind"] == "all_gather" for task in plan["ops"])
            self.check_losses_of_one_rank(job, runs.SMALL_GPT, ["--batch", "8"], runs.TOKEN_DATA)
        self.assertGreater(collectives["apart"], collectives["near"])

    def test_a_second_search(self):
        """The first plan is estimated to fit and does not; the next search knows by how much the estimate was wrong."""
        model, flags = "lenet", ["--batch", "64", "--optimizer", "sgd:lr=0.01"]
        free = self.compile("free", model, *flags, "--ranks", "2", "--cluster", "cpu:devices=2")[1]
        limit = int(free["memory"][0]["arena_bytes"] * 0.85)
        job, plan, said = self.compile("tight", model, *flags, "--ranks", "2", "--cluster", "cpu:devices=2", "--memory", str(limit))
        self.assertRegex(said, r"was estimated at \d+ bytes on each device, but stage 0 needs \d+, \d+ more than " + str(limit) + ": searching again")
        self.assertLessEqual(max(stage["arena_bytes"] for stage in plan["memory"]), limit)
        self.check_losses_of_one_rank(job, model, flags, runs.IMAGE_DATA)


if __name__ == "__main__":
    runs.main()
