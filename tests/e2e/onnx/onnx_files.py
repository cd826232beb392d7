# SPDX-License-Identifier: Apache-2.0
"""Reads the files of the ONNX backend tests and NumPy's .npy without packages: protobuf's wire format is a few lines, and the tests run
on a machine that has nothing but Python."""
import ast
import json
import struct
from dataclasses import dataclass


@dataclass
class Tensor:
    """`dtype` is NumPy's ("<f4"); bf16 is kept as its 16 bits with dtype "bf16"; strings and sequences have dtype None."""

    name: str
    dtype: str
    shape: list
    data: bytes

    def values(self):
        """Python numbers, row by row."""
        if self.dtype == "bf16":
            return [struct.unpack("<f", b"\0\0" + self.data[i : i + 2])[0] for i in range(0, len(self.data), 2)]
        code = FORMATS[self.dtype]
        return list(struct.unpack(f"<{len(self.data) // struct.calcsize(code)}{code}", self.data))


FORMATS = {"|b1": "?", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H", "<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q",
           "<f2": "e", "<f4": "f", "<f8": "d"}
# TensorProto.DataType → NumPy.
DTYPES = {1: "<f4", 2: "|u1", 3: "|i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2", 11: "<f8", 12: "<u4", 13: "<u8",
          16: "bf16"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{field number: [value, …]}: numbers for varints, bytes for everything else."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def numbers(values):
    """A repeated integer field, packed or not, as signed 64-bit numbers."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(number)
    return [number - (1 << 64) if number >> 63 else number for number in out]


def read_tensor(data):
    """A TensorProto."""
    proto = fields(data)
    name = proto.get(8, [b""])[0].decode()
    shape = numbers(proto.get(1, []))
    dtype = DTYPES.get(proto.get(2, [0])[0])
    if dtype is None:
        return Tensor(name, None, shape, b"")
    raw = proto.get(9, [b""])[0]
    if not raw:
        if dtype in ("<f4", "<f8"):
            raw = b"".join(proto.get(4 if dtype == "<f4" else 10, []))
        elif dtype in ("bf16", "<f2"):
            raw = b"".join(struct.pack("<H", number) for number in numbers(proto.get(5, [])))
        else:
            field = 7 if dtype == "<i8" else 11 if dtype in ("<u4", "<u8") else 5
            raw = b"".join(struct.pack("<" + FORMATS[dtype], number) for number in numbers(proto.get(field, [])))
    return Tensor(name, dtype, shape, raw)


@dataclass
class ValueInfo:
    name: str
    is_tensor: bool
    dtype: str


def read_value_info(data):
    proto = fields(data)
    kind = fields(proto.get(2, [b""])[0])
    tensor = fields(kind[1][0]) if 1 in kind else {}
    return ValueInfo(proto[1][0].decode(), 1 in kind, DTYPES.get(tensor.get(1, [0])[0]))


@dataclass
class Model:
    inputs: list  # of ValueInfo, without initializers
    outputs: list
    ops: list  # op types, in order


def read_model(path):
    with open(path, "rb") as file:
        graph = fields(fields(file.read())[7][0])
    initializers = {fields(tensor)[8][0].decode() for tensor in graph.get(5, [])}
    inputs = [read_value_info(value) for value in graph.get(11, [])]
    return Model([value for value in inputs if value.name not in initializers],
                 [read_value_info(value) for value in graph.get(12, [])],
                 [fields(node)[4][0].decode() for node in graph.get(1, [])])


def write_npy(path, tensor):
    dtype = tensor.dtype
    shape = "(" + "".join(f"{size}, " for size in tensor.shape) + ")"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust((10 + len(header) + 1 + 63) // 64 * 64 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + tensor.data)


def write_bf16(path, tensor):
    """NumPy has no bf16: a safetensors file with one tensor, "x"."""
    header = json.dumps({"x": {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [0, len(tensor.data)]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + tensor.data)


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + size].decode())
    return Tensor("", header["descr"], list(header["shape"]), data[10 + size :])
