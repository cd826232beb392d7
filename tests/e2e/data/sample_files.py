# SPDX-License-Identifier: Apache-2.0
"""Data files of every kind from the same samples, written with Python's own modules."""
import io
import os
import random
import struct
import tarfile
import zlib

SIDE, CLASSES, SAMPLES = 6, 3, 48


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def png(width, height, rows):
    """8 bits of grey."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    lines = b"".join(b"\0" + rows[row * width:(row + 1) * width] for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def tar(path, members, form=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=form) as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def make_samples(seed=1, count=SAMPLES):
    """Images of one channel and their labels; labels rise, so that a folder of class folders has the same order."""
    draw = random.Random(seed)
    return [(bytes(draw.randrange(256) for _ in range(SIDE * SIDE)), number * CLASSES // count)
            for number in range(count)]


def write_npy(folder, samples):
    with open(os.path.join(folder, "x.npy"), "wb") as file:
        file.write(npy("|u1", (len(samples), 1, SIDE, SIDE), b"".join(image for image, _ in samples)))
    with open(os.path.join(folder, "y.npy"), "wb") as file:
        file.write(npy("<i8", (len(samples),), b"".join(struct.pack("<q", label) for _, label in samples)))


def write_tars(folder, samples, shards):
    """part-00.tar …, of unequal size, with .png, .npy, .cls, .txt and .json of each sample."""
    size = len(samples) // shards + 1
    for shard in range(shards):
        members = []
        for number in range(shard * size, min((shard + 1) * size, len(samples))):
            image, label = samples[number]
            name = f"some/folder/{number:05d}"
            members += [(name + ".png", png(SIDE, SIDE, image)), (name + ".cls", str(label).encode()),
                        (name + ".npy", npy("|u1", (1, SIDE, SIDE), image)),
                        (name + ".json", b'{"label": %d, "box": [1, 2.5]}' % label)]
        form = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)[shard % 3]
        tar(os.path.join(folder, f"part-{shard:02d}.tar"), members, form)


def write_folder(folder, samples):
    for number, (image, label) in enumerate(samples):
        place = os.path.join(folder, "images", "abc"[label])
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"{number:05d}.png"), "wb") as file:
            file.write(png(SIDE, SIDE, image))


def write_table(folder, samples):
    with open(os.path.join(folder, "t.csv"), "w", encoding="utf-8") as file:
        file.write("label," + ",".join(f"p{i}" for i in range(SIDE * SIDE)) + "\n")
        for image, label in samples:
            file.write(f"{label}," + ",".join(repr(value / 255) for value in image) + "\n")
