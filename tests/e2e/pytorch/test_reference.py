# SPDX-License-Identifier: Apache-2.0
"""Proves that reference.py computes what it says: gradients and updates against NumPy and finite differences."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

import reference


def run_in_process(*arguments):
    reference.run(reference.parse_arguments([str(argument) for argument in arguments]))


class ReferenceTest(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def make_case(self, model, samples=20):
        reference.write_random_case(model, self.directory, samples, seed=7)
        weights = load_file(self.directory / "init.safetensors")
        return weights, np.load(self.directory / "x.npy"), np.load(self.directory / "y.npy")

    def case_flags(self):
        return ["--weights", self.directory / "init.safetensors", "--x", self.directory / "x.npy", "--y",
                self.directory / "y.npy"]

    def train(self, model, steps, optimizer, dtype="f64", batch=8):
        losses, gradients = self.directory / "losses.json", self.directory / "gradients.safetensors"
        run_in_process("--model", model, *self.case_flags(), "--steps", steps, "--optimizer", optimizer, "--dtype",
                       dtype, "--batch", batch, "--losses", losses, "--gradients", gradients)
        return json.loads(losses.read_text())["losses"], load_file(gradients)

    def train_mlp_in_numpy(self, weights, x, y, steps, batch, update):
        """Forward and backward of the MLP by hand, in f64; batches 8, 8, 4, 8, 8, 4, …"""
        p = {name: w.double().numpy().copy() for name, w in weights.items()}
        x, y = x.astype(np.float64), y.astype(np.float64)
        losses, first, start = [], None, 0
        for step in range(steps):
            bx, by = x[start : start + batch], y[start : start + batch]
            start = start + batch if start + batch < len(x) else 0
            h = bx @ p["fc1.weight"].T + p["fc1.bias"]
            r = np.maximum(h, 0)
            e = r @ p["fc2.weight"].T + p["fc2.bias"] - by
            losses.append((e**2).mean())
            de = 2 * e / e.size
            dh = (de @ p["fc2.weight"]) * (h > 0)
            g = {"fc1.weight": dh.T @ bx, "fc1.bias": dh.sum(0), "fc2.weight": de.T @ r, "fc2.bias": de.sum(0)}
            first = first or g
            update(p, g, step + 1)
        return losses, first

    def check_mlp(self, optimizer, update):
        weights, x, y = self.make_case("mlp")
        losses, gradients = self.train("mlp", 12, optimizer)
        expected, first = self.train_mlp_in_numpy(weights, x, y, 12, 8, update)
        np.testing.assert_allclose(losses, expected, rtol=1e-12)
        self.assertEqual(set(gradients), set(first))
        for name in first:
            np.testing.assert_allclose(gradients[name].numpy(), first[name], rtol=1e-12, atol=1e-15)

    def test_sgd_with_momentum_equals_numpy(self):
        velocity = {}

        def update(p, g, step):
            for name in p:
                velocity[name] = 0.5 * velocity.get(name, 0) + g[name]
                p[name] -= 0.05 * velocity[name]

        self.check_mlp("sgd:lr=0.05,momentum=0.5", update)

    def check_adam(self, optimizer, decay):
        m, v = {}, {}

        def update(p, g, step):
            for name in p:
                m[name] = 0.9 * m.get(name, 0) + 0.1 * g[name]
                v[name] = 0.999 * v.get(name, 0) + 0.001 * g[name] ** 2
                p[name] *= 1 - 0.01 * decay
                p[name] -= 0.01 * m[name] / (1 - 0.9**step) / (np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8)

        self.check_mlp(optimizer, update)

    def test_adam_equals_numpy(self):
        self.check_adam("adam:lr=0.01", 0)

    def test_adamw_equals_numpy(self):
        self.check_adam("adamw:lr=0.01,weight_decay=0.1", 0.1)

    def check_finite_differences(self, model, samples):
        """One random direction through all parameters: the slope of the loss is the gradient times the direction."""
        self.make_case(model, samples)
        loss_of, shapes, holds_ids = reference.MODELS[model]
        p = reference.load_parameters(self.directory / "init.safetensors", shapes, torch.float64)
        x = reference.load_inputs(self.directory / "x.npy", torch.float64, holds_ids)
        y = reference.load_inputs(self.directory / "y.npy", None, False)
        _, gradients = self.train(model, 1, "sgd:lr=0.1", batch=samples)
        generator = torch.Generator().manual_seed(3)
        direction = {n: torch.randn(t.shape, generator=generator, dtype=torch.float64) for n, t in p.items()}
        slope = sum((gradients[n] * direction[n]).sum().item() for n in p)
        step = 1e-6
        with torch.no_grad():
            ends = [loss_of({n: p[n] + s * step * direction[n] for n in p}, x, y).item() for s in (1, -1)]
        self.assertAlmostEqual((ends[0] - ends[1]) / (2 * step) / slope, 1, delta=1e-4)

    def test_lenet_gradients(self):
        self.check_finite_differences("lenet", 4)

    def test_wide_mlp_gradients(self):
        self.check_finite_differences("wide_mlp", 4)

    def test_gpt_gradients(self):
        self.check_finite_differences("gpt", 1)

    def test_gpt_attention_equals_pytorchs_own(self):
        self.make_case("gpt", 1)
        p = reference.load_parameters(self.directory / "init.safetensors", reference.MODELS["gpt"][1], torch.float64)
        x = torch.randn(2, 16, 384, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
        q, k, v = (reference.linear(p, f"blocks.0.attn.{w}", x).view(2, 16, 6, 64).transpose(1, 2) for w in "qkv")
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        expected = reference.linear(p, "blocks.0.attn.o", o.transpose(1, 2).reshape(2, 16, 384))
        torch.testing.assert_close(reference.attention(p, "blocks.0.attn", x), expected)

    def test_f32_is_near_f64_and_repeats(self):
        for model, optimizer in (("mlp", "sgd:lr=0.01"), ("lenet", "sgd:lr=0.01,momentum=0.5"),
                                 ("wide_mlp", "adam:lr=0.001")):
            self.make_case(model)
            wide, _ = self.train(model, 5, optimizer, "f64")
            narrow, gradients = self.train(model, 5, optimizer, "f32")
            again, same = self.train(model, 5, optimizer, "f32")
            np.testing.assert_allclose(narrow, wide, rtol=1e-4)
            self.assertEqual(narrow, again)
            self.assertEqual(narrow, [float(np.float32(loss)) for loss in narrow])
            for name in gradients:
                self.assertTrue(torch.equal(gradients[name], same[name]))

    def test_mistakes_are_named(self):
        self.make_case("mlp")
        for flags, expected in ((["--optimizer", "rmsprop:lr=1"], "optimizer 'rmsprop' is unknown"),
                                (["--optimizer", "sgd:rate=1"], "no option 'rate'"),
                                (["--optimizer", "sgd:momentum=0.5"], "has no lr"),
                                (["--y", "missing.npy"], "missing.npy")):
            with self.assertRaises((reference.UsageError, OSError)) as caught:
                run_in_process("--model", "mlp", *self.case_flags(), *flags)
            self.assertIn(expected, str(caught.exception))
        done = subprocess.run([sys.executable, reference.__file__, "--model", "lenet", *map(str, self.case_flags())],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("tensor 'conv1.weight' is missing", done.stderr)


if __name__ == "__main__":
    unittest.main()
