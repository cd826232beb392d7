# SPDX-License-Identifier: Apache-2.0
"""Proves that whole tensors of every element type, scalars and empty tensors go in and out of a compiled graph by .npy files,
with the arithmetic of their type, and that a file of another shape is refused by name."""
import ast
import os
import struct
import subprocess
import tempfile
import unittest

BIN = os.environ["DG_BIN"]
# MLIR type, .npy type, struct code, elements of x (shape 2x3), expected x + x: integers wrap.
TYPES = [
    ("f32", "<f4", "f", [0.5, -1.25, 3, 1e30, -0.0, 7], [1, -2.5, 6, 2e30, -0.0, 14]),
    ("f64", "<f8", "d", [0.1, -1.25, 3, 1e300, 0, 7], [0.2, -2.5, 6, 2e300, 0, 14]),
    ("f16", "<f2", "e", [0.5, -1.25, 3, 1000, 60000, 7], [1, -2.5, 6, 2000, float("inf"), 14]),
    ("i8", "|i1", "b", [1, -2, 100, -128, 0, 127], [2, -4, -56, 0, 0, -2]),
    ("i16", "<i2", "h", [1, -2, 20000, -32768, 0, 5], [2, -4, -25536, 0, 0, 10]),
    ("i32", "<i4", "i", [1, -2, 2**30, -(2**31), 0, 5], [2, -4, -(2**31), 0, 0, 10]),
    ("i64", "<i8", "q", [1, -2, 2**62, 2**53 + 1, 0, 5], [2, -4, -(2**63), 2**54 + 2, 0, 10]),
    ("ui8", "|u1", "B", [1, 2, 200, 255, 0, 5], [2, 4, 144, 254, 0, 10]),
    ("ui16", "<u2", "H", [1, 2, 40000, 65535, 0, 5], [2, 4, 14464, 65534, 0, 10]),
    ("ui32", "<u4", "I", [1, 2, 2**31, 3, 0, 5], [2, 4, 0, 6, 0, 10]),
    ("ui64", "<u8", "Q", [1, 2, 2**63, 2**60, 0, 5], [2, 4, 0, 2**61, 0, 10]),
]


def write_npy(path, descr, shape, code, elements):
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header = header.ljust((10 + len(header)) // 64 * 64 + 64 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(elements)}{code}", *elements))


def read_npy(path, code):
    with open(path, "rb") as file:
        data = file.read()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:end].decode())
    return header["descr"], header["shape"], [number for (number,) in struct.iter_unpack("<" + code, data[end:])]


class Types(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compile(self, text):
        with open(self.path("model.mlir"), "w") as file:
            file.write(text)
        subprocess.run([f"{BIN}/dgc", self.path("model.mlir"), "--infer", "-o", self.path("job.dgx")], check=True, timeout=60)

    def dgrun(self, inputs, outputs):
        command = [f"{BIN}/dgrun", self.path("job.dgx")]
        for name in inputs:
            command += ["--input", f"{name}=@{self.path(name + '.npy')}"]
        for name in outputs:
            command += ["--output", f"{name}=@{self.path(name + '.npy')}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_every_type_goes_in_and_out(self):
        inputs = [(f"x_{kind}", f"tensor<2x3x{kind}>") for kind, *_ in TYPES]
        inputs += [("flag", "tensor<4xi1>"), ("scalar", "tensor<f32>"), ("none", "tensor<0x3xi64>"), ("brain", "tensor<2xbf16>")]
        lines = [f"  %y_{kind} = dg.add %x_{kind}, %x_{kind}" for kind, *_ in TYPES]
        lines += ["  %twice = dg.add %scalar, %scalar", "  %nothing = dg.add %none, %none", "  %b = dg.add %brain, %brain"]
        outputs = [f"y_{kind}" for kind, *_ in TYPES] + ["twice", "nothing", "flag_out", "b"]
        values = [f"%y_{kind}" for kind, *_ in TYPES] + ["%twice", "%nothing", "%flag", "%b"]
        self.compile("dg.graph @forward(" + ", ".join(f"%{name}: {kind}" for name, kind in inputs) + ") {\n" + "\n".join(lines) +
                     "\n  dg.return " + ", ".join(values) + " {names = [" + ", ".join(f'"{name}"' for name in outputs) + "]}\n}\n")
        for kind, descr, code, elements, _ in TYPES:
            write_npy(self.path(f"x_{kind}.npy"), descr, (2, 3), code, elements)
        write_npy(self.path("flag.npy"), "|b1", (4,), "?", [True, False, False, True])
        write_npy(self.path("scalar.npy"), "<f4", (), "f", [1.5])
        write_npy(self.path("none.npy"), "<i8", (0, 3), "q", [])
        write_npy(self.path("brain.npy"), "<f4", (2,), "f", [1.5, 3.0])
        done = self.dgrun([name for name, _ in inputs], outputs)
        self.assertEqual(done.returncode, 0, done.stderr)
        for kind, descr, code, _, expected in TYPES:
            self.assertEqual(read_npy(self.path(f"y_{kind}.npy"), code),
                             (descr, (2, 3), [struct.unpack("<" + code, struct.pack("<" + code, e))[0] for e in expected]), kind)
        self.assertEqual(read_npy(self.path("twice.npy"), "f"), ("<f4", (), [3.0]))
        self.assertEqual(read_npy(self.path("nothing.npy"), "q"), ("<i8", (0, 3), []))
        self.assertEqual(read_npy(self.path("flag_out.npy"), "?"), ("|b1", (4,), [True, False, False, True]))
        self.assertEqual(read_npy(self.path("b.npy"), "H"), ("<u2", (2,), [0x4040, 0x40C0]))  # bf16 as its bits

    def test_another_shape_is_refused(self):
        self.compile("dg.graph @forward(%x: tensor<2x3xf32>) {\n  %y = dg.relu %x\n  dg.return %y\n}\n")
        write_npy(self.path("x.npy"), "<f4", (3, 2), "f", [0] * 6)
        done = self.dgrun(["x"], ["y"])
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("found shape 3x2, expected 2x3 for argument 'x'", done.stderr)


if __name__ == "__main__":
    unittest.main()
