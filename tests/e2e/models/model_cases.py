# SPDX-License-Identifier: Apache-2.0
"""The models that are compared, their data, and the plans they are split by.

Data is the same on every machine: bytes of Python's own generator (stable over its versions), turned into floats without
rounding. The PyTorch references beside ../pytorch/make_reference.py were made from exactly this data.
"""
import dataclasses
import random
import struct
from array import array
from pathlib import Path

MESHES = ("data=2", "tensor=2", "pipe=2", "pipe=3", "data=2,pipe=2")


@dataclasses.dataclass(frozen=True)
class ModelCase:
    """One model as dgc takes it, with its batch, its data and its optimizer (the one that the model names).

    wide_mlp has small batches: with larger ones PyTorch itself parts by 3e-3 in 100 steps (docs/decisions/2026-11-16-how-we-test.md).
    """

    name: str
    source: str  # a file of examples/, or a family of dgc
    batch: int
    samples: int
    sample_shape: tuple
    label_shape: tuple
    classes: int  # 0: labels are floats
    vocabulary: int  # 0: inputs are floats
    optimizer: str
    steps: int  # of training that is compared
    state: str  # the optimizer state that holds the gradient after one step …
    state_scale: float  # … times this
    gradient_optimizer: str = ""  # compiled in where the model's optimizer keeps no such state
    rate: tuple = ()  # flags of dgrun where the rate is not the model's
    microbatches: int = 0  # of every plan, where losses depend on them: statistics of batch norm are per micro-batch

    def numbers_of_microbatches(self, mesh):
        """Flags for a plan: four micro-batches in a pipeline, or as many as a replica's samples allow."""
        if self.microbatches:
            return ["--microbatches", str(self.microbatches)]
        if "pipe" not in mesh:
            return []
        replicas = 2 if "data=2" in mesh else 1
        return ["--microbatches", str(min(4, self.batch // replicas))]


ADAM = ("adam_m", 10.0)
MOMENTUM = ("momentum", 1.0)
GPT_SMALL = "gpt:layers=2,hidden=64,heads=2,seq=32,vocab=256"
RESNET_SMALL = "resnet:18,classes=10,image=64,width=8"

CASES = {
    case.name: case
    for case in (
        ModelCase("mlp", "mlp.mlir", 64, 1000, (10,), (1,), 0, 0, "sgd:lr=0.01", 100, *MOMENTUM,
                  gradient_optimizer="sgd:lr=0.01,momentum=0.5"),
        ModelCase("lenet", "lenet.mlir", 32, 320, (1, 28, 28), (), 10, 0, "sgd:lr=0.01,momentum=0.5", 10, *MOMENTUM),
        ModelCase("wide_mlp", "wide_mlp.mlir", 8, 800, (784,), (), 10, 0, "adam:lr=0.001", 100, *ADAM),
        ModelCase("resnet_small", RESNET_SMALL, 8, 80, (3, 64, 64), (), 10, 0, "sgd:lr=0.0001,momentum=0.9,weight_decay=0.0001", 10,
                  *MOMENTUM, gradient_optimizer="sgd:lr=0.01,momentum=0.5", rate=("--lr", "0.0001"), microbatches=2),
        ModelCase("gpt_small", GPT_SMALL, 4, 400, (32,), (32,), 256, 256, "adamw:lr=0.0001", 100, *ADAM),
        ModelCase("gpt", "gpt.mlir", 4, 400, (256,), (256,), 8192, 8192, "adamw:lr=0.0001", 100, *ADAM),
    )
}


def write_npy(path, kind, shape, values):
    """An .npy file, format 1.0; kind is 'f' (f32) or 'i' (i32)."""
    header = f"{{'descr': '<{kind}4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        array(kind, values).tofile(file)


def count(shape):
    number = 1
    for size in shape:
        number *= size
    return number


def random_floats(generator, number):
    """256 values from -2 to 2, each exact in f32."""
    table = [(byte - 127.5) / 64 for byte in range(256)]
    return [table[byte] for byte in generator.randbytes(number)]


def random_ids(generator, number, bound):
    """Integers below a bound; bounds that divide 65536 come out uniform."""
    return [value % bound for value in array("H", generator.randbytes(2 * number))]


def write_data(case, directory, samples=0):
    """Writes x.npy and y.npy; the first samples are the same however many are asked for."""
    samples = samples or case.samples
    directory = Path(directory)
    shapes = {"x": (samples, *case.sample_shape), "y": (samples, *case.label_shape)}
    for argument, bound in (("x", case.vocabulary), ("y", case.classes)):
        generator = random.Random(f"dg {case.name} 0 {argument}")
        number = count(shapes[argument])
        values = random_ids(generator, number, bound) if bound else random_floats(generator, number)
        write_npy(directory / f"{argument}.npy", "i" if bound else "f", shapes[argument], values)
    return directory
