# SPDX-License-Identifier: Apache-2.0
"""Proves that results without a row for each sample are written whole where they are defined and refused where they are not, that stdin
and stdout are as good as files, that a rank's own failure is what the run tells, and that a training of fixed sizes needs no --batch."""
import ast
import functools
import os
import struct
import subprocess

import runs

# A mean over the batch, which has as many elements as a batch of 64 has rows, a parameter, and a row for each sample.
RESULTS = """
dg.graph @forward(%x: tensor<?x64xf32>) {
  %w = dg.parameter "w" tensor<64x64xf32> uniform 0.125
  %m = dg.reduce_mean %x {dims = array<i64: 0>}
  %y = dg.matmul %x, %w
  %r = dg.relu %y
  dg.return %m, %w, %r {names = ["m", "w", "r"]}
}
"""
# Integers on the first stage.
INTEGERS = """
dg.graph @forward(%x: tensor<?x4xi32>) {
  %f = dg.cast %x {to = f32}
  %w1 = dg.parameter "w1" tensor<4x8xf32> uniform 0.5
  %w2 = dg.parameter "w2" tensor<8x4xf32> uniform 0.5
  %h = dg.matmul %f, %w1
  %r = dg.relu %h
  %y = dg.matmul %r, %w2
  dg.return %y
}
"""
FIXED = """
module attributes {dg.optimizer = "sgd:lr=0.01"} {
  dg.graph @loss(%x: tensor<16x10xf32>, %y: tensor<16x1xf32>) {
    %w = dg.parameter "w" tensor<1x10xf32> uniform 0.31622776
    %b = dg.parameter "b" tensor<1xf32> uniform 0.31622776
    %p = dg.linear %x, %w, %b
    %loss = dg.mse %p, %y
    dg.return %loss
  }
}
"""


def read_npy(path):
    """Shape and values of a .npy file of f32."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack_from("<H", content, 8)[0]
    header = ast.literal_eval(content[10:10 + length].decode())
    values = content[10 + length:]
    return header["shape"], struct.unpack(f"<{len(values) // 4}f", values)


def write_npy(path, kind, shape, values):
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    code = {"f4": "f", "i8": "q"}[kind]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{code}", *values))


class InferenceTest(runs.JobTest):
    @staticmethod
    @functools.lru_cache(None)
    def compiled(text, *flags):
        path = os.path.join(runs.JobTest._jobs(), f"{abs(hash((text, flags)))}")
        with open(path + ".mlir", "w") as file:
            file.write(text)
        run = subprocess.run([runs.tool("dgc"), path + ".mlir", *flags, "-o", path + ".dgx"], capture_output=True, text=True)
        if run.returncode:
            raise AssertionError(run.stderr)
        return path + ".dgx"

    def infer(self, job, samples, *names, code=0):
        values = [(7 * i) % 13 / 13 for i in range(64 * samples)]
        write_npy(self.path("x.npy"), "f4", (samples, 64), values)
        outputs = [flag for name in names for flag in ("--output", f"{name}=@{self.path(name)}.npy")]
        finished = self.run_job(job, "--input", "x=" + self.path("x.npy"), *outputs, code=code)
        return values, finished

    def test_results_of_a_whole_batch(self):
        for mesh in ("data=1", "data=2"):
            with self.subTest(mesh):
                job = self.compiled(RESULTS, "--infer", "--batch", "64", "--mesh", mesh)
                values, _ = self.infer(job, 64, "m", "w", "r")
                shape, means = read_npy(self.path("m.npy"))
                self.assertEqual(shape, (64,))
                for column, mean in enumerate(means):
                    self.assertAlmostEqual(mean, sum(values[column::64]) / 64, places=5)
                self.assertEqual(read_npy(self.path("w.npy"))[0], (64, 64))
                self.assertEqual(read_npy(self.path("r.npy"))[0], (64, 64))

    def test_results_of_many_batches(self):
        job = self.compiled(RESULTS, "--infer", "--batch", "64")
        values, _ = self.infer(job, 150, "w", "r")
        (_, w), (shape, rows) = read_npy(self.path("w.npy")), read_npy(self.path("r.npy"))
        self.assertEqual(shape, (150, 64))
        for sample in (0, 64, 149):
            expected = sum(values[64 * sample + k] * w[64 * k] for k in range(64))
            self.assertAlmostEqual(rows[64 * sample], max(0, expected), places=4)
        for samples in (63, 65, 128):
            _, finished = self.infer(job, samples, "m", code=2)
            self.assertIn("the output [64] has no row for each sample, so that it is of one whole batch of 64 samples", finished.err)
            self.assertIn(f"found {samples}", finished.err)
            self.assertFalse(os.path.exists(self.path("m.npy")))
        cut = self.compiled(RESULTS, "--infer", "--batch", "128", "--microbatches", "2")
        _, finished = self.infer(cut, 128, "m", code=2)
        self.assertIn("--microbatches 1", finished.err)

    def test_stdin_and_stdout_are_as_good_as_files(self):
        for mesh in ("data=1", "data=2", "pipe=2"):
            with self.subTest(mesh):
                job = self.compiled(RESULTS, "--infer", "--batch", "64", "--mesh", mesh)
                self.infer(job, 150, "r")
                with open(self.path("x.npy"), "rb") as file:
                    piped = subprocess.run([runs.tool("dgrun"), job, "--input", "x=-", "--output", "r=-"], input=file.read(), capture_output=True)
                self.assertEqual(piped.returncode, 0, piped.stderr)
                with open(self.path("r.npy"), "rb") as file:
                    self.assertEqual(piped.stdout, file.read())
                self.assertIn(b"done after 3 steps", piped.stderr)

    def test_own_failure_is_told(self):
        # The first stage cannot feed its row, and the second waits for it.
        job = self.compiled(INTEGERS, "--infer", "--batch", "8", "--mesh", "pipe=2", "--microbatches", "1")
        write_npy(self.path("x.npy"), "i8", (16, 4), [1] * 47 + [1 << 40] + [1] * 16)
        for _ in range(2):
            finished = self.run_job(job, "--input", "x=" + self.path("x.npy"), "--timeout", "4", code=65)
            self.assertIn("rank 0", finished.err)
            self.assertIn("sample 11 has a value that does not fit argument 'x' (i32)", finished.err)

    def test_fixed_sizes_need_no_batch(self):
        data = ["--data", "x=randn:50x10", "--data", "y=randn:50x1", "--epochs", "2"]
        for flags in ((), ("--mesh", "data=2"), ("--microbatches", "2")):
            with self.subTest(flags=flags):
                fixed = self.run_job(self.compiled(FIXED, *flags), *data)
                batch = "32" if "--microbatches" in flags else "16"
                free = self.compiled(FIXED.replace("<16x", "<?x"), *flags, "--batch", batch)
                self.assertEqual(fixed.lines("step", "epoch"), self.run_job(free, *data).lines("step", "epoch"))


if __name__ == "__main__":
    runs.main()
