# SPDX-License-Identifier: Apache-2.0
"""Data files, whole and broken, written byte by byte."""
import struct


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def floats(*shape):
    count = 1
    for size in shape:
        count *= size
    return npy("<f4", shape, bytes(4 * count))


def integers(shape, values):
    return npy("<i4", shape, struct.pack(f"<{len(values)}i", *values))


def idx(shape, data):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def safetensors(header, data):
    return struct.pack("<Q", len(header)) + header.encode() + data
