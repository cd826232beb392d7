# SPDX-License-Identifier: Apache-2.0
"""Proves that the comparisons can fail: planted deviations, just above their tolerances, are reported.

    python3 test_comparison.py BIN
"""
import contextlib
import io
import json
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import compare_meshes
import compare_pytorch
from comparison import FIRST_LOSS, GRADIENT, HUNDRED_STEPS, TEN_STEPS, Comparison

BINARIES = ""


def failures_of(check, *arguments):
    comparison = Comparison(print_line=lambda line: None)
    getattr(comparison, check)("here", *arguments)
    return comparison.failures


def run(main, *arguments):
    """The exit code and the output of one of the commands."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            main(*arguments)
        except SystemExit as end:
            return end.code, output.getvalue()
    return None, output.getvalue()


class PlantedDeviation(unittest.TestCase):
    def check_planted_loss(self, step, tolerance, expected):
        losses = [2.0 + step / 7 for step in range(100)]
        planted = list(losses)
        planted[step] *= 1 + 0.9 * tolerance
        self.assertEqual(failures_of("check_training", planted, losses, 100), [])
        planted[step] = losses[step] * (1 - 1.1 * tolerance)
        self.assertEqual(failures_of("check_training", planted, losses, 100), [expected])
        planted[step] = float("nan")
        self.assertIn(expected, failures_of("check_training", planted, losses, 100))

    def test_losses(self):
        self.check_planted_loss(0, FIRST_LOSS, "here: loss of 1 step")
        self.check_planted_loss(9, TEN_STEPS, "here: loss of 10 steps")
        self.check_planted_loss(99, HUNDRED_STEPS, "here: loss of 100 steps")

    def test_missing_losses(self):
        self.assertTrue(failures_of("check_losses", [1.0], [1.0, 2.0], 2, 1.0))
        self.assertTrue(failures_of("check_losses", [], [], 0, 1.0))

    def test_gradients(self):
        gradients = {"a.weight": [0.0, -4.0, 1.0], "a.bias": [0.5, 0.25]}
        self.assertEqual(failures_of("check_gradients", gradients, gradients), [])
        for value in (4 * 1.1 * GRADIENT, float("nan")):
            planted = dict(gradients, **{"a.weight": [value, -4.0, 1.0]})
            self.assertEqual(failures_of("check_gradients", planted, gradients), ["here: gradients of step 0"])
        self.assertTrue(failures_of("check_gradients", {"a.bias": [0.5, 0.25]}, gradients))
        self.assertTrue(failures_of("check_gradients", dict(gradients, **{"a.bias": [0.5]}), gradients))
        self.assertTrue(failures_of("check_gradients", {"z": [0.0]}, {"z": [1.0]}))
        self.assertTrue(failures_of("check_gradients", {"z": [1e-30]}, {"z": [0.0]}))
        self.assertTrue(failures_of("check_gradients", {}, {}))
        self.assertTrue(failures_of("check_gradients", gradients, {}))
        self.assertTrue(failures_of("check_gradients", {"z": [1.0, 2.0]}, {"z": [float("nan"), 2.0]}))

    def test_bias_of_keys_is_held_to_the_unit_of_its_weight(self):
        gradients = {"b.attn.k.weight": [2.0], "b.attn.k.bias": [1e-9]}
        near, far = (dict(gradients, **{"b.attn.k.bias": [value]}) for value in (-3e-9, 2.2 * GRADIENT))
        self.assertEqual(failures_of("check_gradients", near, gradients), [])
        self.assertEqual(failures_of("check_gradients", far, gradients), ["here: gradients of step 0"])

    def check_planted_reference(self, plant, expected):
        """The whole command on a reference that differs in one number."""
        reference = json.loads((compare_pytorch.REFERENCES / "mlp.json").read_text())
        plant(reference)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "mlp.json").write_text(json.dumps(reference))
            with unittest.mock.patch.object(compare_pytorch, "REFERENCES", Path(folder)):
                code, output = run(compare_pytorch.main, BINARIES, "mlp")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, f"error: mlp against PyTorch .*: {expected}: deviates")

    def test_planted_in_a_reference(self):
        def in_gradient(reference):
            gradient = reference["gradients"]["fc1.weight"]
            gradient["values"][5] += 2 * GRADIENT * gradient["largest"]

        def in_loss(reference):
            reference["losses"][99] *= 1 + 2 * HUNDRED_STEPS

        self.check_planted_reference(in_gradient, "elements of gradients of step 0")
        self.check_planted_reference(in_loss, "loss of 100 steps")

    def test_planted_in_a_mesh(self):
        """The split job learns by 1 % more: its first loss agrees, the later ones do not."""
        right = compare_meshes.train

        def wrong(commands, case, data, mesh):
            losses, gradients = right(commands, case, data, mesh)
            if mesh == "data=2":
                job = commands.compile(case.source, "--batch", case.batch, "--mesh", mesh)
                losses = commands.losses(job, data, "--steps", case.steps, "--lr", 0.0101)
            return losses, gradients

        with unittest.mock.patch.object(compare_meshes, "train", wrong):
            code, output = run(compare_meshes.main, BINARIES, "mlp", "data=2")
        self.assertEqual(code, 1, output)
        self.assertIn("ok     mlp data=2 against 1 rank: loss of 1 step ", output)
        self.assertIn("error: mlp data=2 against 1 rank: loss of 10 steps: deviates", output)


if __name__ == "__main__":
    BINARIES = sys.argv.pop(1)
    unittest.main()
