# SPDX-License-Identifier: Apache-2.0
"""What dgrun must refuse: packages that dgc did not write, data that do not fit the model, checkpoints of another, wrong flags.

An object of another ABI version needs a package with right hashes around it: tests/unit/session/DgrunTest.cpp builds one.
"""
import os
import subprocess
import zipfile

from data_files import floats, idx, integers, npy, safetensors
from row import BAD_FILE, RUN_FAILED, USAGE, Row

FLIPS = 150
SAMPLES = 32
MLP_DATA = ["--data", "x=x.npy", "--data", "y=y.npy"]


# Each sample less the mean of its batch.
CENTRED = """module attributes {dg.optimizer = "sgd:lr=0.01"} {
  dg.graph @loss(%x: tensor<?x10xf32>, %y: tensor<?x1xf32>) {
    %m = dg.reduce_mean %x {dims = array<i64: 0>}
    %c = dg.sub %x, %m
    %w = dg.parameter "w" tensor<1x10xf32> uniform 0.3
    %p = dg.linear %c, %w
    %loss = dg.mse %p, %y
    dg.return %loss
  }
}
"""


# Rows by places that count from the end where they are negative, as in ONNX.
PLACES = """dg.graph @forward(%places: tensor<?x2xi64>) {
  %t = dg.parameter "t" tensor<5x3xf32> uniform 0.5
  %r = dg.gather %t, %places {dim = 0}
  dg.return %r {names = ["rows"]}
}
"""


# Rows of a table by places that the model computes: only then it is known which there are.
COMPUTED = """dg.graph @forward(%places: tensor<?x3xi64>) {
  %t = dg.parameter "t" tensor<5x3xf32> uniform 0.5
  %two = dg.slice %places {starts = array<i64: 0, 1>, sizes = array<i64: -1, 2>}
  %one = dg.constant {value = 1.0, type = tensor<i64>}
  %next = dg.add %two, %one
  %r = dg.gather %t, %next {dim = 0}
  dg.return %r {names = ["rows"]}
}
"""


def write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def prepare(folder, binaries, examples):
    """Jobs and a checkpoint that are right; the rows then make one thing wrong."""

    def run(*command):
        subprocess.run([os.path.join(binaries, command[0]), *command[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("dgc", os.path.join(examples, "mlp.mlir"), "--batch", "16", "-o", "mlp.dgx")
    run("dgc", os.path.join(examples, "mlp.mlir"), "--batch", "16", "--mesh", "data=2", "-o", "two.dgx")
    run("dgc", "mlp:784-16-10", "--batch", "16", "-o", "classes.dgx")
    run("dgc", "gpt:layers=1,hidden=16,heads=2,seq=8,vocab=50", "--batch", "4", "-o", "gpt.dgx")
    write(folder, "centred.mlir", CENTRED.encode())
    run("dgc", "centred.mlir", "--batch", "12", "-o", "centred.dgx")
    write(folder, "places.mlir", PLACES.encode())
    run("dgc", "places.mlir", "--infer", "--batch", "4", "-o", "places.dgx")
    run("dgc", "places.mlir", "--infer", "--batch", "4", "--microbatches", "2", "-o", "halves.dgx")  # which two replicas can run
    write(folder, "computed.mlir", COMPUTED.encode())
    run("dgc", "computed.mlir", "--infer", "--batch", "2", "--mesh", "data=2", "-o", "computed.dgx")
    write(folder, "inside.npy", integers((3, 3), [99, 3, -6, -99, 0, 0, 99, 3, 3]))
    run("dgrun", "computed.dgx", "--input", "places=@inside.npy", "--output", "rows=@inside rows.npy")
    write(folder, "x.npy", floats(SAMPLES, 10))
    write(folder, "y.npy", floats(SAMPLES, 1))
    write(folder, "images.npy", npy("|u1", (SAMPLES, 784), bytes(SAMPLES * 784)))
    write(folder, "labels.npy", integers((SAMPLES,), [1] * SAMPLES))
    write(folder, "tokens.npy", integers((8, 8), [1] * 64))
    run("dgrun", "mlp.dgx", *MLP_DATA, "--checkpoint", "saved")
    os.makedirs(os.path.join(folder, "torn", "step-000007"))
    run("dgrun", "two.dgx", *MLP_DATA)
    run("dgrun", "centred.dgx", *MLP_DATA, "--drop-last")
    run("dgrun", "classes.dgx", "--data", "x=images.npy", "--data", "y=labels.npy")
    run("dgrun", "gpt.dgx", "--data", "x=tokens.npy", "--data", "y=tokens.npy")


def package_rows(folder, generator):
    job = read(folder, "mlp.dgx")
    rows = [Row("missing job", ["dgrun", "missing.dgx"] + MLP_DATA, BAD_FILE, ["missing.dgx", "No such file"]),
            Row("no job", ["dgrun"], USAGE, ["JOB.dgx"]),
            Row("job is a folder", ["dgrun", "saved"] + MLP_DATA, BAD_FILE, ["saved", "folder"])]

    def add(name, content, says):
        path = f"bad {len(rows)}.dgx"
        write(folder, path, content)
        rows.append(Row(name, ["dgrun", path] + MLP_DATA, BAD_FILE, [path] + says))

    add("empty job", b"", ["empty"])
    add("job that is text", b"module {}\n", ["not a DG package", "give a file that dgc wrote"])
    for length in [1, 22, 1000, 4096, len(job) // 2, len(job) - 4096, len(job) - 33, len(job) - 1]:
        add(f"job cut to {length} bytes", job[:length], [])
    add("job with a byte more", job + b"\0", [])
    for _ in range(FLIPS):
        place, bit = generator.randrange(len(job)), generator.randrange(8)
        flipped = bytearray(job)
        flipped[place] ^= 1 << bit
        add(f"bit {bit} of byte {place} flipped", bytes(flipped), [])
    path = os.path.join(folder, "foreign.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    add("foreign zip", read(folder, "foreign.zip"), ["manifest.json", "not a DG package"])
    with zipfile.ZipFile(path, "w") as archive, zipfile.ZipFile(os.path.join(folder, "mlp.dgx")) as original:
        for name in original.namelist():
            archive.writestr(name, original.read(name))
    add("job packed again", read(folder, "foreign.zip"), ["dgc"])
    return rows


def data_rows(folder):
    """Name → content of the file that takes the place of x in the perceptron, whose samples have 10 floats."""
    broken = {
        "wrong shape.npy": (floats(SAMPLES, 9), ["32x9", "10", "'x'"]),
        "fewer samples.npy": (floats(SAMPLES - 1, 10), ["31 samples", "has 32", "y.npy"]),
        "no samples.npy": (floats(0, 10), ["no samples"]),
        "short.npy": (floats(SAMPLES, 10)[:-1], ["32x10", "1279 bytes"]),
        "objects.npy": (npy("|O", (SAMPLES, 10), bytes(1280)), ["'|O'"]),
        "negative.npy": (npy("<f4", (-SAMPLES, 10), bytes(1280)), ["header"]),
        "huge.npy": (npy("<f4", (1 << 62, 10), bytes(1280)), ["4611686018427387904x10"]),
        "header.npy": (b"\x93NUMPY\x01\x00\xff\xff{}", ["header"]),
        "nothing.npy": (b"", ["npy"]),
        "version.npy": (b"\x93NUMPY\x09\x00" + bytes(100), ["version"]),
        "text.npy": (b"1,2,3\n" * 10, ["NUMPY"]),
        "short.idx": (idx((SAMPLES, 10), bytes(10)), ["32x10", "10 bytes"]),
        "header.idx": (bytes([0, 0, 8, 3, 0]), ["truncated"]),
        "type.idx": (bytes([0, 0, 7, 1]) + bytes(100), ["0x07"]),
        "image.gif": (b"\x89PNG\r\n\x1a\n" + bytes(100), ["IDX", ".npy"]),
        "nothing": (b"", ["IDX"]),
        "header.safetensors": ((1 << 40).to_bytes(8, "little") + b"{}", ["1099511627776"]),
        "json.safetensors": (safetensors("{", b""), ["json.safetensors"]),
        "offsets.safetensors": (safetensors('{"x":{"dtype":"F32","shape":[32,10],"data_offsets":[0,4]}}', bytes(4)), ["offsets.safetensors"]),
        "name.safetensors": (safetensors('{"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)), ["'x'", "z"]),
        "zip.npz": (b"PK\x03\x04" + bytes(100), ["zip.npz"]),
        "odd.u16": (bytes(3), ["3 bytes", "u16"]),
        "short.u16": (bytes(4), ["2 tokens"]),
        "damaged.gz": (b"\x1f\x8b\x08" + bytes(20), ["damaged.gz"]),
    }
    write(folder, "transposed.npy", floats(10, SAMPLES))
    rows = []
    for name, (content, says) in broken.items():
        write(folder, name, content)
        rows.append(Row(name, ["dgrun", "mlp.dgx", "--data", f"x={name}", "--data", "y=y.npy"], BAD_FILE, [name] + says))
    for name, arguments, code, says in [
        ("no data", [], USAGE, ["'x'", "--data x=FILE"]),
        ("data of one argument", MLP_DATA[:2], USAGE, ["'y'", "--data y=FILE"]),
        ("missing file", ["--data", "x=missing.npy"] + MLP_DATA[2:], BAD_FILE, ["missing.npy", "No such file"]),
        ("data is a folder", ["--data", "x=saved"] + MLP_DATA[2:], BAD_FILE, ["saved"]),
        ("unknown argument", MLP_DATA + ["--data", "z=x.npy"], USAGE, ["'z'", "x, y"]),
        ("data twice", MLP_DATA + MLP_DATA, USAGE, ["given before"]),
        ("data without a name", MLP_DATA + ["--data", "garbage"], USAGE, ["'garbage'", "NAME=VALUE"]),
        ("random data of no shape", ["--data", "x=randn:axb"] + MLP_DATA[2:], USAGE, ["randn:axb", "randn:1000x10"]),
        ("more random data than memory", ["--data", "x=randn:100000000000x10"] + MLP_DATA[2:], RUN_FAILED, ["no memory", "4000000000000"]),
        ("a suffix on the first of two files", ["--data", "x=a.npy:nhwc,x.npy"] + MLP_DATA[2:], USAGE, ["a.npy:nhwc", "'x.npy'", "whole list"]),
        ("a suffix that another file cannot have", ["--data", "x=x.npy,a.u16:+1"] + MLP_DATA[2:], USAGE, ["':+1'", "'x.npy'"]),
        ("an unknown suffix", ["--data", "x=x.npy:nchw"] + MLP_DATA[2:], USAGE, ["x.npy:nchw", ":nhwc", ":reshape"]),
        ("channels last of no image", ["--data", "x=x.npy:nhwc"] + MLP_DATA[2:], BAD_FILE, ["32x10", ":nhwc", "height"]),
        ("another shape of as many elements", ["--data", "x=transposed.npy"] + MLP_DATA[2:], BAD_FILE, ["10x32", "10", "'x'"]),
        ("integers below 0", ["--data", "x=randint:0:32"] + MLP_DATA[2:], USAGE, ["randint:0:32"]),
    ]:
        rows.append(Row(name, ["dgrun", "mlp.dgx"] + arguments, code, says))
    return rows


def index_rows(folder):
    """Kernels use labels and tokens as places in memory, so each one is looked at before anything runs."""
    rows = []
    for value in [10, -1, 2000000000, -2147483648]:
        name = f"label {value}.npy"
        write(folder, name, integers((SAMPLES,), [1] * (SAMPLES - 1) + [value]))
        rows.append(Row(name, ["dgrun", "classes.dgx", "--data", "x=images.npy", "--data", f"y={name}"], BAD_FILE,
                        [name, "sample 31", f"holds {value} ", "'y'", "0 to 9"]))
    write(folder, "label.idx", idx((SAMPLES,), bytes([1] * 30 + [255, 1])))
    rows.append(Row("label in a byte", ["dgrun", "classes.dgx", "--data", "x=images.npy", "--data", "y=label.idx"], BAD_FILE,
                    ["label.idx", "sample 30", "holds 255 ", "0 to 9"]))
    write(folder, "wide.npy", npy("<i8", (SAMPLES,), bytes(8 * SAMPLES - 8) + (1 << 40).to_bytes(8, "little")))
    rows.append(Row("label of 41 bits", ["dgrun", "classes.dgx", "--data", "x=images.npy", "--data", "y=wide.npy"], BAD_FILE,
                    ["wide.npy", "sample 31", "does not fit argument 'y' (i32)"]))
    rows.append(Row("label in the second shard", ["dgrun", "classes.dgx", "--data", "x=images.npy,images.npy", "--data", "y=labels.npy,label 10.npy"],
                    BAD_FILE, ["label 10.npy: sample 31", "holds 10 "]))
    for value in [50, -1]:
        name = f"token {value}.npy"
        write(folder, name, integers((8, 8), [1] * 61 + [value, 1, 1]))
        for argument, other in [("x", "y"), ("y", "x")]:
            rows.append(Row(f"{name} for {argument}", ["dgrun", "gpt.dgx", "--data", f"{argument}={name}", "--data", f"{other}=tokens.npy"], BAD_FILE,
                            [name, "sample 7", f"holds {value} at element 5", f"'{argument}'", "0 to 49"]))
    for value in [5, -6]:
        name = f"place {value}.npy"
        write(folder, name, integers((3, 2), [0, 4, -5, -1, 1, value]))
        rows.append(Row(name, ["dgrun", "places.dgx", "--input", f"places=@{name}", "--output", "rows=@rows.npy"], BAD_FILE,
                        [name, "sample 2", f"holds {value} at element 1", "'places'", "-5 to 4"]))
    write(folder, "place.npy", integers((3, 2), [0, 4, -5, -1, 1, 2]))
    for target in ["places.dgx", "place.npy"]:
        rows.append(Row(f"a result over {target}", ["dgrun", "places.dgx", "--input", "places=@place.npy", "--output", f"rows=@./{target}"], USAGE,
                        [f"rows=./{target}", "which is read"]))
    for value in [4, -7]:
        name = f"computed {value}.npy"
        write(folder, name, integers((3, 3), [99, 3, -6, -99, 0, 0, 99, 3, value]))
        rows.append(Row(name, ["dgrun", "computed.dgx", "--input", f"places=@{name}", "--output", "rows=@rows.npy"], BAD_FILE,
                        ["r/gather", "while inferring", "computed.mlir:6", f"found index {value + 1} at element 1 of 'next/add'", "sample 2", "-5 to 4"]))
    rows.append(Row("label of the evaluation", ["dgrun", "classes.dgx", "--data", "x=images.npy", "--data", "y=labels.npy", "--eval-data", "x=images.npy",
                                                "--eval-data", "y=label 10.npy"], BAD_FILE, ["label 10.npy", "sample 31", "0 to 9"]))
    rows.append(Row("random labels", ["dgrun", "classes.dgx", "--data", "x=images.npy", "--data", "y=randint:1000:32"], BAD_FILE, ["randint:1000:32", "0 to 9"]))
    return rows


def flag_rows():
    rows = []

    def add(name, arguments, code, says, job="mlp.dgx", data=MLP_DATA):
        rows.append(Row(name, ["dgrun", job] + data + arguments, code, says))

    add("3 ranks for a plan of 2", ["-n", "3"], USAGE, ["-n 3", "2 ranks", "data=2", "-n 2"], job="two.dgx")
    add("unknown flag", ["--nope"], USAGE, ["--nope", "--help"])
    add("epochs and steps", ["--epochs", "3", "--steps", "4"], USAGE, ["--epochs", "--steps"])
    for flag in ["--epochs", "--steps", "-n", "--threads", "--eval-batch", "--shuffle-buffer"]:
        for text in ["0", "-1", "x", "1.5", "99999999999999999999999"]:
            add(f"{flag} {text}", [flag, text], USAGE, [flag, f"'{text}'", "expected a whole number from 1"])
    add("NaN allowed and forbidden", ["--allow-nan", "--check-numerics"], USAGE, ["--allow-nan", "--check-numerics"])
    add("100000 threads", ["--threads", "100000"], USAGE, ["--threads", "1024"])
    for text in ["x", "nan", "inf", "-1"]:
        add(f"--lr {text}", ["--lr", text], USAGE, ["--lr", f"'{text}'", "expected a number"])
    add("no time-out", ["--timeout", "0"], USAGE, ["--timeout", "above 0"])
    add("negative seed", ["--seed", "-1"], USAGE, ["--seed", "'-1'"])
    for text, right in {"foo": "warmup:steps=500+cosine:steps=10000", "step:every=0,gamma=1": "step:every=EPOCHS,gamma=FACTOR",
                        "cosine:epochs=x": "cosine:steps=10000"}.items():
        add(f"--lr-schedule {text}", ["--lr-schedule", text], USAGE, [text, right])
    add("normalization without a deviation", ["--normalize", "x=1"], USAGE, ["--normalize", "MEAN,STD"])
    add("normalization given twice", ["--normalize", "x=1,1", "--normalize", "x=0/1"], USAGE, ["'x' was given before"])
    add("no validation", ["--validation", "0"], USAGE, ["--validation 0", "above 0"])
    add("normalization of nothing", ["--normalize", "z=1,1"], USAGE, ["'z'", "x, y"])
    add("eval-batch above the plan's", ["--eval-batch", "1000", "--eval-data", "x=x.npy", "--eval-data", "y=y.npy"], USAGE, ["1000", "16"])
    add("a last batch of samples that are mixed", [], USAGE,
        ["--data", "dg.reduce_sum at centred.mlir:3:10", "whole batches of 12", f"{SAMPLES} samples", "--drop-last"], job="centred.dgx")
    add("an evaluation of samples that are mixed", ["--drop-last", "--eval-data", "x=x.npy", "--eval-data", "y=y.npy"], USAGE,
        ["--eval-data", "whole batches of 12"], job="centred.dgx")
    add("resume from nowhere", ["--resume"], USAGE, ["--resume DIR"])
    add("resume without a checkpoint", ["--resume", "nowhere"], BAD_FILE, ["nowhere", "no checkpoint there"])
    add("resume where all checkpoints are damaged", ["--checkpoint", "torn", "--resume"], BAD_FILE, ["torn/step-000007", "there is none before it"])
    add("resume-older where all checkpoints are damaged", ["--checkpoint", "torn", "--resume", "--resume-older"], BAD_FILE,
        ["torn/step-000007", "none of the 1 checkpoints"])
    add("resume with the checkpoint of another model", ["--resume", "saved"], BAD_FILE, ["saved/step-", "'mlp'", "expects"], job="classes.dgx",
        data=["--data", "x=images.npy", "--data", "y=labels.npy"])
    add("a training on top of another", ["--checkpoint", "saved"], USAGE, ["saved", "--resume"])
    add("checkpoints to nowhere", ["--checkpoint-every", "3steps"], USAGE, ["--checkpoint DIR"])
    add("lost saves of no checkpoints", ["--max-lost", "3"], USAGE, ["--max-lost", "--checkpoint DIR"])
    add("no save may be lost", ["--checkpoint", "new", "--max-lost", "0"], USAGE, ["--max-lost", "'0'", "from 1"])
    add("no time to save", ["--checkpoint", "new", "--save-timeout", "0"], USAGE, ["--save-timeout"])
    add("a verification that trains", ["--verify", "saved"], USAGE, ["--data", "--verify runs nothing"])
    add("verification of a damaged checkpoint", ["--verify", "torn"], BAD_FILE, ["torn/step-000007", "1 of 1 checkpoint "], data=[])
    add("verification of nothing", ["--verify", "nowhere"], BAD_FILE, ["nowhere", "no checkpoint there"], data=[])
    add("verification of another model's checkpoint", ["--verify", "saved"], BAD_FILE, ["saved/step-", "'mlp'"], job="classes.dgx", data=[])
    add("checkpoints every what", ["--checkpoint", "new", "--checkpoint-every", "3foo"], USAGE, ["3foo", "500steps"])
    add("checkpoints to a folder that cannot be made", ["--checkpoint", "/proc/new"], USAGE, ["/proc/new", "cannot be made"])
    add("checkpoints to a file", ["--checkpoint", "x.npy"], USAGE, ["x.npy"])
    add("a trace in place of the job", ["--trace", "mlp.dgx"], USAGE, ["--trace mlp.dgx", "which is read"])
    add("a trace in place of the data", ["--trace", "./x.npy"], USAGE, ["--trace ./x.npy", "which is read"])
    add("trace to a missing folder", ["--trace", "nowhere/trace.json"], USAGE, ["nowhere/trace.json", "folder"])
    add("a batch of no evaluations", ["--eval-batch", "2"], USAGE, ["--eval-batch", "--eval-data"])
    add("a rate of an evaluation", ["--evaluate", "--eval-data", "x=x.npy", "--eval-data", "y=y.npy", "--lr", "1"], USAGE, ["--lr", "--evaluate"], data=[])
    add("a stop of an inference", ["--input", "x=@x.npy", "--stop-when", "eval.loss:patience=1"], USAGE, ["--stop-when", "infers"], data=[])
    add("nothing on stdin", ["--data", "x=-", "--data", "y=y.npy"], USAGE, ["-: stdin holds nothing", "pipe a .npy"], data=[])
    for name, job, arguments, says in [("events and results on stdout", "places.dgx", ["--json"], "--json"),
                                       ("results to stdout for two ranks that were not started together", "halves.dgx",
                                        ["-n", "1", "--nnodes", "2", "--node-rank", "0"], "one dgrun")]:
        add(name, ["--input", "places=@place 5.npy", "--output", "rows=-", *arguments], USAGE, ["rows=-", says, "NAME=@FILE.npy"], job=job, data=[])
    add("inference by a training job", ["--input", "x=@x.npy", "--output", "y=@out.npy"], USAGE, ["--infer"], data=[])
    return rows


def make_rows(folder, binaries, examples, generator):
    prepare(folder, binaries, examples)
    return package_rows(folder, generator) + data_rows(folder) + index_rows(folder) + flag_rows()
