# SPDX-License-Identifier: Apache-2.0
"""Proves that an inference job with several batch sizes gives for any number of samples what one of a single size gives, with the
smallest size that holds the samples or what whole batches leave, in one object; and that wrong sizes are refused."""
import json
import os
import struct
import subprocess
import tempfile
import unittest
import zipfile

BIN = os.environ["DG_BIN"]
MODELS = {"mlp:16-64-10": ("16", "logits"), "lenet": ("1x28x28", "logp")}  # shape of a sample, output


class Sizes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.held.cleanup)
        cls.folder = cls.held.name

    def run_in(self, tool, *arguments, code=0):
        done = subprocess.run([os.path.join(BIN, tool), *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, f"{tool} {arguments}: {done.stderr}")
        return done

    def infer(self, job, samples, *flags, model="mlp:16-64-10"):
        """The result's numbers, and the events of the run."""
        shape, output = MODELS[model]
        done = self.run_in("dgrun", job, "--input", f"x=randn:{samples}x{shape}", "--output", output + "=@out.npy", "--seed", "5", "--json", *flags)
        with open(os.path.join(self.folder, "out.npy"), "rb") as file:
            data = file.read()
        header = 10 + struct.unpack("<H", data[8:10])[0]
        values = struct.unpack(f"<{(len(data) - header) // 4}f", data[header:])
        return values, [json.loads(line) for line in done.stdout.splitlines()]

    def test_any_number_of_samples(self):
        for model in MODELS:
            self.run_in("dgc", model, "--infer", "--batch", "64", "-o", "one.dgx")
            self.run_in("dgc", model, "--infer", "--batch", "1,8,64", "-o", "sizes.dgx")
            for samples, sizes in ((1, [1]), (2, [8]), (8, [8]), (9, [64]), (64, [64])):
                with self.subTest(model=model, samples=samples):
                    expected, _ = self.infer("one.dgx", samples, model=model)
                    found, events = self.infer("sizes.dgx", samples, model=model)
                    self.assertEqual(len(found), samples * 10)
                    for a, b in zip(found, expected):
                        self.assertAlmostEqual(a, b, delta=1e-5)
                    self.assertEqual([event["batch"] for event in events if event["event"] == "step"], sizes)

    def test_what_whole_batches_leave(self):
        """Where a full batch costs more than to load the parameters again, the rest runs with the smallest size that holds it."""
        self.run_in("dgc", "mlp:16-64-10", "--infer", "--batch", "1,8,64", "-o", "sizes.dgx")
        self.assertEqual([event["batch"] for event in self.infer("sizes.dgx", 70)[1] if event["event"] == "step"], [64, 64])
        self.run_in("dgc", "lenet", "--infer", "--batch", "4096", "-o", "one.dgx")
        self.run_in("dgc", "lenet", "--infer", "--batch", "1,64,4096", "-o", "sizes.dgx")
        for samples, sizes in ((4096, [4096]), (4097, [4096, 1]), (4098, [4096, 64]), (8200, [4096, 4096, 64]), (8192 + 65, [4096] * 3)):
            with self.subTest(samples=samples):
                expected, _ = self.infer("one.dgx", samples, model="lenet")
                found, events = self.infer("sizes.dgx", samples, model="lenet")
                self.assertEqual([event["batch"] for event in events if event["event"] == "step"], sizes)
                whole = samples // 4096 * 4096 * 10
                self.assertEqual(found[:whole], expected[:whole], "whole batches come from the same code")
                for a, b in zip(found[whole:], expected[whole:]):
                    self.assertAlmostEqual(a, b, delta=1e-5)

    def test_weights_of_a_checkpoint(self):
        """Each size starts from them."""
        self.run_in("dgc", "mlp:16-64-10", "--batch", "8", "--optimizer", "sgd:lr=0.1", "-o", "train.dgx")
        self.run_in("dgrun", "train.dgx", "--data", "x=randn:80x16", "--data", "y=randint:10:80", "--epochs", "2", "--checkpoint", "saved")
        for name, batch in (("one", "64"), ("sizes", "1,8,64")):
            self.run_in("dgc", "mlp:16-64-10", "--infer", "--batch", batch, "-o", name + ".dgx")
        for samples in (5, 67):
            expected, _ = self.infer("one.dgx", samples, "--resume", "saved")
            found, _ = self.infer("sizes.dgx", samples, "--resume", "saved")
            for a, b in zip(found, expected):
                self.assertAlmostEqual(a, b, delta=1e-5)
            self.assertNotEqual(found, self.infer("sizes.dgx", samples)[0], "the weights are another training's")

    def test_one_object_and_its_times(self):
        self.run_in("dgc", "lenet", "--infer", "--batch", "1,8,64", "-o", "sizes.dgx")
        with zipfile.ZipFile(os.path.join(self.folder, "sizes.dgx")) as package:
            names = package.namelist()
            plans = {size: json.loads(package.read(f"plan-{size}.json")) for size in (1, 8)}
            whole = json.loads(package.read("plan.json"))
        self.assertEqual(sum(name.endswith(".so") for name in names), 1, names)
        times = [plans[1]["predicted"]["step_us"], plans[8]["predicted"]["step_us"], whole["predicted"]["step_us"]]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[0], times[2] / 4)
        text = self.run_in("dgviz", "sizes.dgx", "--text").stdout
        self.assertIn("size       1 samples: step ", text)
        self.assertIn("size       8 samples: step ", text)
        simulated = json.loads(self.run_in("dgc", "lenet", "--infer", "--batch", "1,8,64", "--cluster", "cpu", "--simulate=json").stdout)
        self.assertEqual([size["batch"] for size in simulated["sizes"]], [1, 8])
        self.assertLess(simulated["sizes"][0]["step_us"], simulated["step_us"])
        self.assertRegex(self.run_in("dgc", "lenet", "--infer", "--batch", "1,8,64", "--cluster", "cpu", "--simulate").stdout, r"\nstep_us of 8 +\d")

    def test_wrong_sizes(self):
        mlp = ["mlp:16-64-10", "-o", "no.dgx"]
        for flags, words in ((["--infer", "--batch", "0,8"], "'0'"), (["--infer", "--batch", "8,8"], "8 is given twice"),
                             (["--infer", "--batch", "8,x"], "'x'"),
                             (["--train", "--optimizer", "sgd", "--batch", "8,16"], "a training has one size"),
                             (["--infer", "--batch", "8,16", "--mesh", "data=2"], "several sizes are for one rank, this plan has 2")):
            with self.subTest(flags):
                self.assertIn(words, self.run_in("dgc", *mlp, *flags, code=2).stderr)
        self.assertIn("--emit prints one size", self.run_in("dgc", mlp[0], "--infer", "--batch", "8,16", "--emit", "plan", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
