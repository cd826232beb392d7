# SPDX-License-Identifier: Apache-2.0
"""Proves that `dgrun -n K·ranks` runs K replicas of one package: the numbers of one replica, the same bits for the same dealing, any other
number of replicas from its checkpoints, and clear words where it cannot."""
import json
import os
import signal
import struct
import subprocess
import zipfile

import checkpoint_files
import runs

REPLICAS = (1, 2, 3, 4)
# Everything in f64, so that the order of a sum cannot hide a wrong one.
DOUBLE_MODEL = """dg.graph @loss(%x: tensor<?x{inputs}xf64>, %y: tensor<?x{outputs}xf64>) {{
{body}
  %loss = dg.mse %h{layers}, %y
  dg.return %loss
}}
"""
NORM_MODEL = """dg.graph @loss(%x: tensor<?x4x5x5xf32>, %y: tensor<?x3xf32>) {
  %w = dg.parameter "conv.weight" tensor<6x4x3x3xf32> uniform 0.3
  %c = dg.conv2d %x, %w
  %g = dg.parameter "bn.weight" tensor<6xf32> constant 1.0
  %b = dg.parameter "bn.bias" tensor<6xf32> constant 0.0
  %m = dg.parameter "bn.running_mean" tensor<6xf32> constant 0.0 {state}
  %v = dg.parameter "bn.running_var" tensor<6xf32> constant 1.0 {state}
  %n = dg.batch_norm %c, %g, %b, %m, %v
  %h = dg.relu %n
  %p = dg.global_avg_pool %h
  %f = dg.flatten %p
  %u = dg.parameter "fc.weight" tensor<3x6xf32> uniform 0.4
  %o = dg.linear %f, %u
  %loss = dg.mse %o, %y
  dg.return %loss
}
"""
PIPED = ("mlp", "--batch", "16", "--mesh", "pipe=2", "--microbatches", "8")
UNEVEN = ("mlp", "--batch", "16", "--microbatches", "8")
FLAGS = [*runs.MLP_DATA, "--seed", "7", "--threads", "1"]


def tensors_of(folder):
    tensors, _ = checkpoint_files.read_tensors(os.path.join(folder, "model.safetensors"))
    formats = {"F64": "d", "F32": "f"}
    return {name: struct.unpack(f"<{len(data) // struct.calcsize(formats[kind])}{formats[kind]}", data)
            for name, (kind, _, data) in tensors.items() if kind in formats}


def difference(found, expected):
    """The largest one of two checkpoints, against the largest number of each tensor."""
    assert found.keys() == expected.keys()
    return max(max(map(abs, (a - b for a, b in zip(found[name], expected[name])))) / max(1e-3, *map(abs, expected[name]), 0) for name in expected)


class ReplicasTest(runs.JobTest):
    def double_model(self, random):
        """A random small model, and what dgc and dgrun are to be told about it."""
        sizes = [random.randint(2, 9) for _ in range(random.randint(2, 4))]
        lines = []
        for layer, (size, after) in enumerate(zip(sizes, sizes[1:]), 1):
            value = f"%h{layer - 1}" if layer > 1 else "%x"
            activation = random.choice(["relu", "tanh", "gelu"])
            lines += [f'  %w{layer} = dg.parameter "fc{layer}.weight" tensor<{after}x{size}xf64> uniform 0.5',
                      f"  %p{layer} = dg.linear {value}, %w{layer}", f"  %h{layer} = dg.{activation} %p{layer}"]
        path = self.path(f"model{len(os.listdir(self.folder))}.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(DOUBLE_MODEL.format(inputs=sizes[0], outputs=sizes[-1], body="\n".join(lines), layers=len(sizes) - 1))
        return path, sizes

    def compile(self, *arguments):
        job = self.path(f"job{len(os.listdir(self.folder))}.dgx")
        run = subprocess.run([runs.tool("dgc"), *arguments, "-o", job], capture_output=True, text=True, timeout=runs.DEADLINE_S)
        self.assertEqual(run.returncode, 0, f"{arguments}\n{run.stderr}")
        return job

    def test_numbers_of_one_replica_in_f64(self):
        random = runs.seeded_random()
        for _ in range(5):
            model, sizes = self.double_model(random)
            mesh = random.choice(["data=1", "data=1", "data=2", "pipe=2"])
            microbatches, samples = random.randint(4, 7), random.randint(40, 60)
            optimizer = random.choice(["sgd:lr=0.05,momentum=0.9", "adam:lr=0.01,clip_norm=0.5", "adamw:lr=0.01"])
            flags = ["--batch", str(random.choice([14, 16, 21])), "--mesh", mesh, "--microbatches", str(microbatches), "--optimizer", optimizer]
            if mesh == "data=2" and random.random() < 0.7:
                flags += ["--zero", random.choice("123")]
            job = self.compile(model, *flags)
            data = [f"x=randn:{samples}x{sizes[0]}", f"y=randn:{samples}x{sizes[-1]}"]
            expected = None
            for replicas in REPLICAS:
                with self.subTest(sizes=sizes, flags=flags, replicas=replicas):
                    folder = self.path(f"ckpt{len(os.listdir(self.folder))}")
                    ranks = replicas * (1 if mesh == "data=1" else 2)
                    run = self.run_job(job, "-n", str(ranks), *(word for each in data for word in ("--data", each)), "--epochs", "2", "--threads", "1",
                                       "--eval-data", data[0], "--eval-data", data[1], "--checkpoint", folder, "--check-replicas", "1")
                    self.assertEqual(run.of("start")[0]["ranks"], ranks)
                    found = (tensors_of(self.latest(folder)), [e["loss"] for e in run.of("step")], [e["loss"] for e in run.of("eval")])
                    expected = expected or found
                    worst = difference(found[0], expected[0])
                    print(f"{replicas} replicas of {mesh}, {microbatches} micro-batches, {optimizer}: parameters differ by {worst:.1e}", flush=True)
                    self.assertLess(worst, 1e-9)
                    for ours, theirs in zip(found[1] + found[2], expected[1] + expected[2], strict=True):
                        self.assertAlmostEqual(ours, theirs, delta=1e-6 * max(1, abs(theirs)))  # losses are told as f32

    def test_same_dealing_same_bits(self):
        for plan, ranks, mesh in ((UNEVEN, 3, "replica=3"), (PIPED, 6, "replica=3")):
            job, seen = self.job(*plan), []
            for threads in ("1", "1", "2"):
                folder = f"bits{len(os.listdir(self.folder))}"
                run = self.run_job(job, "-n", str(ranks), *FLAGS[:-1], threads, "--epochs", "2", "--checkpoint", self.path(folder))
                self.assertIn(mesh, run.of("start")[0]["mesh"])
                seen.append((run.loss_texts(), self.checkpoint_files(folder)))
            self.assertTrue(seen[0] == seen[1] == seen[2], f"{ranks} ranks: bits differ")

    def test_stop_and_resume_with_other_numbers(self):
        job = self.job(*PIPED)
        expected = self.run_job(job, *FLAGS, "--steps", "120").loss_texts()
        losses = {}
        with self.start(job, "-n", "6", *FLAGS, *runs.ENDLESS, "--checkpoint", self.path("ckpt")) as run:
            run.wait_for_steps(3)
            ended = run.finish_after(signal.SIGTERM)
            self.assertEqual(ended.code, 75, ended.err)
        losses |= ended.loss_texts()
        for ranks in (2, 8, 4):
            end = str(max(losses) + 10)
            losses |= self.run_job(job, "-n", str(ranks), *FLAGS, "--steps", end, "--checkpoint", self.path("ckpt"), "--resume").loss_texts()
        for step, loss in losses.items():
            if step in expected:
                self.assertAlmostEqual(float(loss), float(expected[step]), delta=1e-4 * abs(float(expected[step])), msg=f"step {step}")
        self.assertEqual(sorted(losses), list(range(1, max(losses) + 1)), "a step is missing or came twice")

    def test_batch_norm(self):
        model = self.path("norm.mlir")
        with open(model, "w", encoding="utf-8") as file:
            file.write(NORM_MODEL)
        samples = ["x=randn:45x4x5x5", "y=randn:45x3"]  # the last batch of each epoch is smaller, and some micro-batches are empty
        for mesh, ranks in (("data=1", 1), ("data=2", 2)):
            job, expected = self.compile(model, "--batch", "16", "--microbatches", "5", "--mesh", mesh, "--optimizer", "sgd:lr=0.1"), None
            for replicas in REPLICAS:
                folder = self.path(f"{mesh}-{replicas}")
                run = self.run_job(job, "-n", str(replicas * ranks), *(word for each in samples for word in ("--data", each, "--eval-data", each)),
                                   "--epochs", "3", "--threads", "1", "--checkpoint", folder)
                found = (tensors_of(self.latest(folder)), [e["loss"] for e in run.of("eval")])
                expected = expected or found
                self.assertIn("bn.running_var", found[0])
                worst = difference(found[0], expected[0])
                print(f"{replicas} replicas of {mesh}, batch norm: parameters and statistics differ by {worst:.1e}", flush=True)
                self.assertLess(worst, 2e-5)  # a sum that is missing would be far more than rounding
                for ours, theirs in zip(found[1], expected[1], strict=True):
                    self.assertAlmostEqual(ours, theirs, delta=1e-5 * theirs)

    def test_metrics_of_classes(self):
        job, expected = self.job("lenet", "--batch", "32", "--microbatches", "4", "--metrics"), None
        flags = [*runs.IMAGE_DATA, *(word.replace("--data", "--eval-data") for word in runs.IMAGE_DATA), "--steps", "1", "--threads", "1"]
        for replicas in (1, 3):
            told = self.run_job(job, "-n", str(replicas), *flags, "--lr", "0").of("eval")[-1]
            numbers = {name: number for name, number in told.items() if name not in runs.MEASURED and name != "loss"}
            expected = expected or numbers
            self.assertEqual(numbers, expected)
            self.assertIn("top5", numbers)

    def test_inference_deals_samples(self):
        job = self.job("mlp", "--infer", "--batch", "16", "--microbatches", "4")
        results = []
        for replicas in (1, 3, 4):
            out = self.path(f"out{replicas}.npy")
            source = self.path("x.npy")
            if not os.path.exists(source):
                header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (37, 10), }"
                header += b" " * (-(len(header) + 11) % 64) + b"\n"
                values = [((i * 37) % 101) / 50 - 1 for i in range(370)]
                with open(source, "wb") as file:
                    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<370f", *values))
            outputs = self.outputs_of(job)
            self.run_job(job, "-n", str(replicas), "--input", f"x=@{source}", "--output", f"{outputs[0]}=@{out}")
            with open(out, "rb") as file:
                results.append(file.read())
        self.assertTrue(results[0] == results[1] == results[2], "results differ from those of one replica")

    @staticmethod
    def outputs_of(job):
        plan = json.loads(zipfile.ZipFile(job).read("plan.json"))
        return [port["name"] for program in plan["programs"] if program["name"] == "infer" for port in program["outputs"]]

    def test_restarts_and_snapshots(self):
        job = self.job(*UNEVEN)
        steps = ["--steps", "20000"]
        expected = self.run_job(job, "-n", "3", *FLAGS, *steps)
        flags = ["-n", "3", *FLAGS, *steps, "--max-restarts", "3", "--snapshot-every", "20steps"]
        with self.start(job, *flags) as run:
            run.wait_for_steps(50)
            runs.signal_process(run.pid_of_rank(2), signal.SIGKILL)
            finished = run.finish()
        self.assertEqual(finished.code, 0, finished.err)
        self.assertEqual(finished.loss_texts(), expected.loss_texts())
        self.assertEqual(len(finished.of("restart")), 1, "the training was over before the signal came")

    def test_what_was_dealt_repeats_its_bits(self):
        job = self.job(*PIPED)
        expected = self.run_job(job, *FLAGS, "--steps", "150").loss_texts()
        for deal in ("6/1/1", "3/3/2,20:1/2/5,63:4/2/2", "balanced"):
            run = self.run_job(job, "-n", "6", *FLAGS, "--steps", "150", "--deal", deal)
            told = run.of("deal")
            self.assertEqual(sum(told[-1]["microbatches"]), 8)
            if deal != "balanced":
                self.assertEqual(told[-1]["repeat"], deal)
            again = self.run_job(job, "-n", "6", *FLAGS, "--steps", "150", "--deal", told[-1]["repeat"])
            self.assertEqual(again.loss_texts(), run.loss_texts(), told)
            for step, loss in run.loss_texts().items():
                self.assertAlmostEqual(float(loss), float(expected[step]), delta=1e-4 * abs(float(expected[step])), msg=f"{deal}, step {step}")

    def test_what_cannot_be(self):
        for plan, flags, says in (
            (PIPED, ["-n", "3"], ["-n 3", "2 ranks", "multiple of 2"]),
            (PIPED, ["-n", "18"], ["9 replicas", "8 micro-batches", "--microbatches 9"]),
            (("mlp", "--batch", "16"), ["-n", "2"], ["1 micro-batch,", "--microbatches 2"]),
            (PIPED, ["-n", "4", "--deal", "3/3/2"], ["--deal 3/3/2", "3 replicas", "8 for 2"]),
            (PIPED, ["-n", "4", "--deal", "4/3"], ["7 micro-batches for 2 replicas", "the job has 8"]),
            (PIPED, ["-n", "4", "--deal", "fair"], ["--deal fair", "expected even, balanced"]),
        ):
            with self.subTest(flags=flags):
                run = self.run_job(self.job(*plan), *flags, *FLAGS, code=2)
                for each in says:
                    self.assertIn(each, run.err)
                self.assertEqual(run.err.count("\n"), 1, run.err)


if __name__ == "__main__":
    runs.main()
