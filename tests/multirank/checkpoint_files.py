# SPDX-License-Identifier: Apache-2.0
"""Alters a checkpoint so that only its meaning is wrong: tensors are taken out and every hash is made right again."""
import ctypes
import json
import os
import re
import struct


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3(data):
    """The 128-bit hash of the manifest, by the library that dgrun itself links."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = _Hash128
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    value = library.XXH3_128bits(data, len(data))
    return f"{value.high:016x}{value.low:016x}"


def read_tensors(path):
    """name → (dtype, shape, bytes), and the metadata."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    body = content[8 + length:]
    return {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}, metadata


def write_tensors(path, tensors, metadata):
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def _hash_of_manifest(text):
    # The text is edited, not parsed and printed: numbers keep the digits that the writer gave them.
    without = re.sub(r'\s*"manifest_xxh3": "\w+",?', "", text)
    return xxh3(re.sub(r'(": )', '":', re.sub(r"\n\s*", "", without)).encode())


def drop_tensors(folder, is_dropped):
    """Takes out the tensors for whose names is_dropped is true; returns those names. The manifest's hashes fit again."""
    path, manifest_path = os.path.join(folder, "model.safetensors"), os.path.join(folder, "manifest.json")
    with open(manifest_path) as file:
        manifest = file.read()
    written = re.search(r'"manifest_xxh3": "(\w+)"', manifest).group(1)
    if _hash_of_manifest(manifest) != written:
        raise AssertionError(f"{manifest_path}: this driver computes another hash than dgrun; it must follow the format")
    tensors, metadata = read_tensors(path)
    dropped = [name for name in tensors if is_dropped(name)]
    write_tensors(path, {name: t for name, t in tensors.items() if name not in dropped}, metadata)
    with open(path, "rb") as file:
        content = file.read()
    manifest = re.sub(r'"file_bytes": \d+', f'"file_bytes": {len(content)}', manifest)
    manifest = re.sub(r'"file_xxh3": "\w+"', f'"file_xxh3": "{xxh3(content)}"', manifest)
    manifest = manifest.replace(written, _hash_of_manifest(manifest))
    with open(manifest_path, "w") as file:
        file.write(manifest)
    return dropped
