# SPDX-License-Identifier: Apache-2.0
"""What dgc must refuse: files that are no models, models that are wrong, plans that cannot be, flags that mean nothing."""
import os
import pathlib

from row import BAD_FILE, USAGE, Row

WEIGHT = '%w = dg.parameter "w" tensor<1x10xf32> uniform 0.1'
LOSS = ["%l = dg.mse %a, %y", "dg.return %l"]
LINEAR = "%a = dg.linear %x, %w"


def model(body, arguments="%x: tensor<?x10xf32>, %y: tensor<?x1xf32>", optimizer="sgd:lr=0.01", graph="loss"):
    """Line 1 is the module, line 2 the graph, line 3 the first of the body, at column 5."""
    attribute = f' attributes {{dg.optimizer = "{optimizer}"}}' if optimizer else ""
    lines = [f"module{attribute} {{", f"  dg.graph @{graph}({arguments}) {{"] + [f"    {line}" for line in body] + ["  }", "}"]
    return "\n".join(lines) + "\n"


CLUSTER = '''{"version": 1, "name": "two", "nodes": 2, "devices_per_node": 1,
 "device": {"name": "cpu", "flops_per_second": {"f32": 97e9}, "memory_bytes": 17179869184, "memory_bytes_per_second": 13.8e9,
            "efficiency": 0.9, "launch_us": 0.1},
 "links": {"intra_node": {"bytes_per_second": 7.5e9, "latency_us": 0.16}, "inter_node": {"bytes_per_second": 6e9, "latency_us": 6}}}'''
# Name → content, what the message holds.
CLUSTERS = {
    "not json": ("nodes: 2", ["not JSON"]),
    "negative bandwidth": (CLUSTER.replace("7.5e9", "-7.5e9"), ["links.intra_node.bytes_per_second", "-7", "expected a number from 1e-09"]),
    "zero bandwidth": (CLUSTER.replace("6e9", "0"), ["links.inter_node.bytes_per_second", "expected a number from 1e-09"]),
    "half a device": (CLUSTER.replace('"devices_per_node": 1', '"devices_per_node": 0.5'), ["devices_per_node", "0.5", "whole number"]),
    "unknown key": (CLUSTER.replace('"nodes": 2', '"nodes": 2, "racks": 1'), ["racks", "no such key"]),
    "speeds that do not add up": (CLUSTER.replace('"nodes": 2', '"nodes": 2, "device_speeds": [1, 2, 3]'), ["device_speeds", "[1,2,3]", "each of the 2 devices"]),
    "missing key": (CLUSTER.replace('"nodes": 2, ', ""), ["nodes", "missing"]),
}


def damaged_bytecode(name):
    """Bytes of a .mlirbc that ended MLIR's reader: a heap overwritten, a size without end, a wild pointer."""
    return (pathlib.Path(__file__).parent / "bytecode" / f"{name}.mlirbc").read_bytes()


def files_of(noise):
    """Name → content, exit code, what the message holds."""
    image = "%x: tensor<?x1x28x28xf32>, %y: tensor<?x1xf32>"
    return {
        "empty": ("", BAD_FILE, ["empty.mlir", "no graph", "@loss"]),
        "noise": (b"\x00" + noise, BAD_FILE, ["noise.mlir:1:1:", "byte 0x0", "expected a model"]),
        "png": (b"\x89PNG\r\n\x1a\n" + noise, BAD_FILE, ["png.mlir:1:1:", "byte 0x89"]),
        "control character": (model([WEIGHT, "\x01"]), BAD_FILE, ["control character.mlir:4:5:", "byte 0x1"]),
        "huge line": ("a" * 3000000, BAD_FILE, ["huge line.mlir:1:1:"]),
        "parentheses": ("(" * 10000, BAD_FILE, ["parentheses.mlir:1:257:", "nested"]),
        "nested attributes": (model([WEIGHT, LINEAR + " {a = " + "[" * 10000 + "]" * 10000 + "}"] + LOSS), BAD_FILE, [":4:", "nested"]),
        "brackets in texts": (model([WEIGHT + " // " + "(" * 300, '%a = dg.linear %x, %w {label = "' + "[" * 300 + '"}'] + LOSS), BAD_FILE, ["no attribute 'label'"]),
        "nested types": (model([WEIGHT], "%x: " + "tuple<" * 5000), BAD_FILE, [":2:", "nested"]),
        "affine expression": ("#m = affine_map<(d0) -> (" + "-" * 20000 + "d0)>\n", BAD_FILE, ["affine expression.mlir:1:6: error", "affine_map"]),
        "complex numbers": (model([WEIGHT, LINEAR] + LOSS, "%x: tensor<?x10xcomplex<f32>>, %y: tensor<?x1xf32>"), BAD_FILE,
                            [":2:", "tensor of 'complex', expected numbers or booleans"]),
        "tensor with an encoding": (model([WEIGHT, LINEAR] + LOSS, '%x: tensor<?x10xf32, "a">, %y: tensor<?x1xf32>'), BAD_FILE, [":2:", "encoding"]),
        "cut short": (model([WEIGHT, LINEAR] + LOSS)[:150], BAD_FILE, ["cut short.mlir:"]),
        **{f"bytecode, {name}": (damaged_bytecode(name), BAD_FILE, [f"bytecode, {name}.mlir: error", "damaged bytecode", "expected"])
           for name in ("heap", "size", "pointer")},
        "another dialect": ("func.func @f() { return }", BAD_FILE, ["another dialect.mlir:1:1: error", "'func.func'", "Registered dialects: builtin, dg"]),
        "no graph": ("module {\n}", BAD_FILE, ["no graph.mlir", "no graph", "@loss"]),
        "unknown op": (model([WEIGHT, "%a = dg.foo %x"] + LOSS), BAD_FILE, [":4:10: error", "dg.foo"]),
        "unknown value": (model([WEIGHT, "%a = dg.relu %z"] + LOSS), BAD_FILE, [":4:18: error", "%z"]),
        "unknown attribute": (model([WEIGHT, LINEAR + " {bogus = 3}"] + LOSS), BAD_FILE,
                              [":4:20: error", "dg.linear", "no attribute 'bogus'", "expected"]),
        "misspelt attribute": (model(["%a = dg.attention %x, %x, %x {heads = 2, casual}"] + LOSS, "%x: tensor<?x4x10xf32>, %y: tensor<?x4x10xf32>"),
                               BAD_FILE, [":3:23: error", "no attribute 'casual'", "expected", "causal", "heads"]),
        "too few operands": (model([WEIGHT, "%a = dg.batch_norm %x, %w"] + LOSS), BAD_FILE,
                             [":4:10: error", "expected 5 operands, but found 2: input, weight, bias, mean, variance"]),
        "shapes of linear": (model([WEIGHT.replace("10x", "11x"), LINEAR] + LOSS), BAD_FILE, [":4:10: error", "dg.linear", "10", "11", "expected"]),
        "shapes of conv2d": (model(['%w = dg.parameter "w" tensor<4x3x5x5xf32> uniform 0.1', "%a = dg.conv2d %x, %w"] + LOSS, image), BAD_FILE,
                             [":4:10: error", "dg.conv2d", "8x1x28x28", "4x3x5x5", "expected"]),
        "shapes of add": (model(['%w = dg.parameter "w" tensor<7xf32> uniform 0.1', "%a = dg.add %x, %w"] + LOSS), BAD_FILE,
                          [":4:10: error", "dg.add", "8x10", "tensor<7x", "expected"]),
        "shapes of nll": (model([WEIGHT, LINEAR, "%p = dg.log_softmax %a", "%l = dg.nll %p, %y", "dg.return %l"], "%x: tensor<?x10xf32>, %y: tensor<3xi32>"),
                          BAD_FILE, [":6:10: error", "dg.nll", "tensor<3xi32>", "expected"]),
        "labels that are floats": (model([WEIGHT, LINEAR, "%l = dg.cross_entropy %a, %y", "dg.return %l"], "%x: tensor<?x10xf32>, %y: tensor<?xf32>"),
                                   BAD_FILE, [":5:10: error", "dg.cross_entropy", "expected"]),
        "parameter of 2^80 elements": (model(['%w = dg.parameter "w" tensor<1099511627776x1099511627776xf32> uniform 0.1', LINEAR] + LOSS), BAD_FILE,
                                       [":3:27: error", "1099511627776x1099511627776", "at most"]),
        "no optimizer": (model([WEIGHT, LINEAR] + LOSS, optimizer=""), USAGE, [":2:3: error", "--optimizer", "sgd:lr="]),
        "wrong optimizer": (model([WEIGHT, LINEAR] + LOSS, optimizer="sgd:lr=fast"), BAD_FILE, [":1:1: error", "dg.optimizer", "lr=fast", "expected"]),
        "no loss": (model([WEIGHT, LINEAR, "dg.return %a"], graph="other"), BAD_FILE, [":1:1: error", "@other", "@loss", "@forward"]),
        "loss from no loss op": (model([WEIGHT, LINEAR, "dg.return %a"]), BAD_FILE, [":5:5: error", "dg.mse"]),
        "parameter twice": (model([WEIGHT, WEIGHT.replace("%w", "%v"), LINEAR, "%b = dg.linear %x, %v", "%c = dg.add %a, %b", "%l = dg.mse %c, %y", "dg.return %l"]),
                            BAD_FILE, [":4:10: error", "'w'", "twice"]),
        "update in a model": (model([WEIGHT, LINEAR, 'dg.update %w {param = "w"}'] + LOSS), BAD_FILE, [":5:5: error", "dg.update", "a model cannot contain it"]),
        "send in a model": (model([WEIGHT, LINEAR, "dg.send %a {channel = 0, peer_stage = 1}"] + LOSS), BAD_FILE,
                            [":5:5: error", "dg.send", "a model cannot contain it"]),
        "bias of another type": (model(['%k = dg.parameter "k" tensor<4x1x5x5xf32> uniform 0.1', '%b = dg.parameter "b" tensor<4xf64> uniform 0.1',
                                        "%a = dg.conv2d %x, %k, %b"] + LOSS, image), BAD_FILE, [":5:10: error", "dg.conv2d", "tensor<4xf64>", "expected one element type"]),
        "norm of integers": (model([WEIGHT, "%a = dg.mean_variance_norm %x {dims = array<i64: 1>}"] + LOSS, "%x: tensor<?x10xi32>, %y: tensor<?x10xi32>"), BAD_FILE,
                             [":4:10: error", "dg.mean_variance_norm", "expected floats"]),
        "trained integers": (model([WEIGHT.replace("f32", "i64"), LINEAR, "%f = dg.cast %a {to = f32}", "%l = dg.mse %f, %y", "dg.return %l"],
                                   "%x: tensor<?x10xi64>, %y: tensor<?x1xf32>"), BAD_FILE, [":3:10: error", "'w'", "tensor<1x10xi64>", "expected floats", "frozen"]),
        "loss of no classes": (model(["%l = dg.cross_entropy %x, %y", "dg.return %l"], "%x: tensor<?x0xf32>, %y: tensor<?xi32>"), BAD_FILE,
                               [":3:10: error", "dg.cross_entropy", "at least one class"]),
        "input with the name of the weights of samples": (model([WEIGHT, "%a = dg.linear %x, %w", "%l = dg.mse %a, %sample_weight", "dg.return %l"],
                                                                "%x: tensor<?x10xf32>, %sample_weight: tensor<?x1xf32>"),
                                                          BAD_FILE, [":2:3: error", "sample_weight", "another name"]),
        "parameter with the name of the loss scale": (model([WEIGHT.replace('"w"', '"loss_scale"'), LINEAR] + LOSS), BAD_FILE,
                                                      [":3:10: error", "loss_scale", "another name"]),
        "bytecode with a tensor that text cannot have": (damaged_bytecode("index_elements"), BAD_FILE, ["tensor of 'index'", "expected numbers or booleans"]),
    }


def flags_of(mlp, gpt):
    """Name → arguments, exit code, what the message holds."""
    small = [mlp, "--batch", "64"]
    rows = {
        "missing file": (["missing.mlir", "--batch", "8"], BAD_FILE, ["missing.mlir", "No such file", "give the path"]),
        "a folder": ([".", "--batch", "8"], BAD_FILE, ["irectory", "give the path"]),
        "no model": ([], USAGE, ["MODEL is required"]),
        "two models": ([mlp, mlp], USAGE, ["mlp.mlir"]),
        "unknown flag": (small + ["--nope"], USAGE, ["--nope", "--help"]),
        "no batch": ([mlp], USAGE, ["mlp.mlir:4:3: error", "tensor<?x10xf32>", "--batch"]),
        "fewer samples than data ranks": ([mlp, "--batch", "2", "--mesh", "data=3"], USAGE, ["2 samples", "3 ranks", "--batch"]),
        "fewer samples than micro-batches": ([mlp, "--batch", "8", "--microbatches", "16"], USAGE, ["8 samples", "16 micro-batches"]),
        "6 heads over tensor=4": ([gpt, "--batch", "8", "--mesh", "tensor=4"], BAD_FILE, ["gpt.mlir:23:16: error", "6 heads", "tensor=4"]),
        "more stages than ops": (small + ["--mesh", "pipe=50"], USAGE, ["mlp.mlir:4:3: error", "pipe=50", "at most pipe="]),
        "tensor axis that divides nothing": (small + ["--mesh", "tensor=7"], USAGE, ["mlp.mlir:4:3: error", "tensor=7"]),
        "too many ranks": (small + ["--mesh", "data=1048576,tensor=1048576,pipe=1048576"], USAGE, ["ranks", "at most 1048576"]),
        "unknown schedule": (small + ["--schedule", "foo"], USAGE, ["'foo'", "gpipe", "1f1b"]),
        "unknown target": (small + ["--target", "foo"], USAGE, ["'foo'", "native", "x86-64-v3"]),
        "target twice": (small + ["--target", "x86-64-v3,x86-64-v3"], USAGE, ["x86-64-v3 and x86-64-v3", "give one"]),
        "code of several targets": (small + ["--target", "x86-64-v3", "--target", "x86-64-v4", "--emit", "asm"], USAGE,
                                    ["--emit asm", "one --target"]),
        "folder of the output is missing": (small + ["-o", "nowhere/job.dgx"], USAGE, ["nowhere/job.dgx", "no folder"]),
        "output is a device": (small + ["-o", "/dev/null"], USAGE, ["-o /dev/null", "expected the name of a file"]),
        "output is the model": (small + ["-o", mlp], USAGE, ["mlp.mlir", "which is read"]),
        "an op that there is not": (["--list-ops", "batchnorm"], USAGE, ["batchnorm", "batch_norm"]),
        "output is a folder": (small + ["-o", "."], USAGE, ["-o .", "is a folder"]),
        "memory too small": (small + ["--memory", "1KiB"], USAGE, ["more than --memory 1024", "--microbatches"]),
        "memory without a number": (small + ["--memory", "much"], USAGE, ["--memory", "much"]),
        "train and infer": (small + ["--infer", "--train"], USAGE, ["--train", "--infer"]),
        "simulation into a file": (small + ["--simulate", "-o", "job.dgx"], USAGE, ["-o job.dgx", "--simulate writes no job"]),
        "simulation and code": (small + ["--simulate", "--emit", "asm"], USAGE, ["--emit excludes --simulate"]),
        "code into no folder": (small + ["--emit", "asm", "-o", "nowhere/job.s"], USAGE, ["nowhere/job.s", "no folder"]),
        "unknown stage to print": (small + ["--emit", "foo"], USAGE, ["--emit", "foo", "plan"]),
        "unknown dimension": ([mlp, "--bind", "foo=3"], USAGE, ["foo=3", "batch=SIZE"]),
        "bind without a size": ([mlp, "--bind", "foo"], USAGE, ["--bind foo", "NAME=SIZE"]),
        "bind with a negative size": ([mlp, "--bind", "foo=-3"], USAGE, ["--bind foo=-3", "NAME=SIZE"]),
        "constant of a text model": ([mlp, "--const", "x=@x.npy"], USAGE, ["--const x", "ONNX"]),
        "constant without a file": ([mlp, "--const", "x"], USAGE, ["--const x", "NAME=@FILE.npy"]),
        "loss beside a loss": ([mlp, "--batch", "8", "--loss", "mse"], USAGE, ["@loss", "--loss"]),
        "weights that are none": ([mlp, "--batch", "8", "--weights", mlp], BAD_FILE, ["mlp.mlir", "safetensors"]),
        "accumulate beyond counting": (small + ["--accumulate", "2000000000"], USAGE, ["--accumulate 2000000000", "65536"]),
    }
    rows.update({
        "ranks against mesh": (small + ["--ranks", "4", "--mesh", "data=2"], USAGE, ["--ranks 4", "data=2", "2 ranks"]),
        "more ranks than devices": (small + ["--ranks", "9", "--cluster", "cpu:nodes=4"], USAGE, ["9 ranks", "'cpu'", "4 devices"]),
        "a mesh larger than the cluster": (small + ["--mesh", "data=8", "--cluster", "cpu:nodes=2", "--simulate"], USAGE, ["8 ranks", "2 devices"]),
        "cluster that is not there": (small + ["--cluster", "nowhere.json"], BAD_FILE, ["nowhere.json", "preset"]),
        "cluster option": (small + ["--cluster", "a100x8:racks=2"], USAGE, ["racks=2", "nodes=N"]),
        "more devices than ranks can be counted": (small + ["--cluster", "cpu:nodes=65536,devices=65536"], USAGE, ["65536 nodes of 65536 devices", "at most 1048576"]),
        "simulation of more devices than a mesh has ranks": (small + ["--cluster", "cpu:nodes=4000000000", "--simulate"], USAGE, ["4000000000 nodes", "at most 1048576"]),
        "cluster of no nodes": (small + ["--cluster", "a100x8:nodes=0"], USAGE, ["nodes", "'0'"]),
        "a search that does not fit": (small + ["--ranks", "2", "--memory", "64"], USAGE, ["no plan for 2 ranks", "more"]),
        "zero out of range": (small + ["--mesh", "data=2", "--zero", "4"], USAGE, ["--zero", "3"]),
        "unknown precision of a job": (small + ["--precision", "bf8"], USAGE, ["--precision bf8", "bf16"]),
        "precision override that matches nothing": (small + ["--precision-override", "nothing*=f32"], BAD_FILE, ["nothing*=f32", "expected the name of an op"]),
        "precision override without a type": (small + ["--precision-override", "fc1"], BAD_FILE, ["'fc1'", "PATTERN=f32"]),
        "precision override of an unknown type": (small + ["--precision-override", "fc1=f8"], BAD_FILE, ["fc1=f8", "PATTERN=bf16"]),
        "unknown precision": (small + ["--precision", "f8", "--simulate"], USAGE, ["--precision f8", "bf16"]),
        "a backward pass in two parts without micro-batches": (small + ["--mesh", "pipe=2", "--microbatches", "1", "--schedule", "zb-h1"], USAGE, ["'zb-h1'", "--microbatches"]),
        "micro-batches that do not interleave": (small + ["--mesh", "pipe=2", "--microbatches", "3", "--schedule", "interleaved"], USAGE, ["3 micro-batches", "multiple of the stages"]),
        "more chunks than layers": (small + ["--mesh", "pipe=2", "--microbatches", "2", "--schedule", "interleaved:99"], USAGE, ["pipe=2 with 99 chunks each"]),
        "chunks without interleaving": (small + ["--mesh", "pipe=2", "--schedule", "1f1b:2", "--simulate"], USAGE, ["1f1b:2", "interleaved:2"]),
        "simulate as what": (small + ["--simulate=xml"], USAGE, ["--simulate", "xml", "json"]),
        "pin of an op that is not there": (small + ["--ranks", "2", "--pin", "fc3=stage:0"], USAGE, ["--pin fc3=stage:0", "no op and no parameter 'fc3'", "did you mean 'fc"]),
        "pin without a wish": (small + ["--ranks", "2", "--pin", "fc1"], USAGE, ["--pin fc1", "PATTERN=stage:N"]),
        "pin with another wish": (small + ["--ranks", "2", "--pin", "fc1=data:0"], USAGE, ["--pin fc1=data:0", "PATTERN=tensor:DIMENSION"]),
        "pin to a stage below 0": (small + ["--ranks", "2", "--pin", "fc1=stage:-1"], USAGE, ["--pin fc1=stage:-1", "PATTERN=stage:N"]),
        "pin to a dimension that is not there": (small + ["--ranks", "2", "--pin", "fc1.weight=tensor:2"], USAGE, ["fc1.weight", "2 dimensions", "no dimension 2"]),
        "pin to a dimension that cannot be cut": (small + ["--ranks", "2", "--pin", "fc1=tensor:0"], USAGE, ["fc1", "dimension 0", "cannot be cut"]),
        "pin to a stage beyond the ranks": (small + ["--ranks", "2", "--pin", "fc1=stage:2"], USAGE, ["no plan for 2 ranks meets --pin 'fc1=stage:2'"]),
        "pins that leave a stage empty": (small + ["--ranks", "2", "--pin", "fc1=stage:1", "--pin", "fc2=stage:0"], USAGE, ["no plan for 2 ranks meets --pin 'fc1=stage:1':"]),
        "pins against each other": (small + ["--ranks", "2", "--pin", "fc2=stage:0", "--pin", "fc2.weight=stage:1"], USAGE, ["--pin 'fc2=stage:0', --pin 'fc2.weight=stage:1' together"]),
        "pin against a forbidden axis": (small + ["--ranks", "2", "--pin", "fc2=stage:1", "--forbid", "pipe"], USAGE, ["--pin 'fc2=stage:1', --forbid pipe together", "leave out"]),
        "every axis forbidden": (small + ["--ranks", "2", "--forbid", "data", "--forbid", "pipe", "--forbid", "tensor"], USAGE, ["--forbid data, --forbid pipe, --forbid tensor together"]),
        "forbidden axis that is none": (small + ["--ranks", "2", "--forbid", "rows"], USAGE, ["--forbid", "rows", "tensor"]),
        "memory against a forbidden axis": (["mlp:512-512-512-512", "--batch", "8", "--ranks", "4", "--memory", "6MiB", "--forbid", "tensor", "--forbid", "pipe", "--zero", "0"], USAGE,
                                            ["--memory 6291456 with --forbid tensor, --forbid pipe", "bytes a rank", "more"]),
        "freezing what is not trained": (small + ["--infer", "--freeze", "*"], USAGE, ["--freeze", "nothing is trained", "--train"]),
        "an optimizer of an inference": (small + ["--infer", "--optimizer", "adam"], USAGE, ["--optimizer", "nothing is trained", "--train"]),
        "a loss of an inference": (small + ["--infer", "--loss", "mse"], USAGE, ["--loss", "nothing is trained"]),
        "accumulation of an inference": (small + ["--infer", "--accumulate", "2"], USAGE, ["--accumulate", "nothing is trained"]),
        "recomputation of an inference": (small + ["--infer", "--recompute", "full"], USAGE, ["--recompute", "nothing is trained"]),
        "metrics of an inference": (small + ["--infer", "--metrics"], USAGE, ["--metrics", "nothing is trained"]),
        "two batches": (small + ["--bind", "batch=3"], USAGE, ["--bind batch=3", "--batch"]),
        "a loss scale of f32": (small + ["--loss-scale", "128"], USAGE, ["--loss-scale", "f16"]),
        "seconds of no search": (small + ["--plan-seconds", "5"], USAGE, ["--plan-seconds", "--ranks"]),
        "freezing no parameter": (small + ["--freeze", "nothing.*"], USAGE, ["'nothing.*'", "parameter"]),
        "freezing no statistics": (small + ["--freeze-statistics", "*"], USAGE, ["'*'", "running statistics"]),
        "freezing all": (small + ["--freeze", "*"], USAGE, ["no parameter left to train"]),
        "a pattern that others overrule": (small + ["--optimizer", "sgd:lr=0.1;*.weight:lr=1;*:lr=2"], USAGE, ["'*.weight'", "overruled"]),
        "momentum that grows": (small + ["--optimizer", "sgd:lr=0.1,momentum=1.5"], USAGE, ["momentum=1.5", "below 1"]),
        "a job named as a model": ([mlp, "--batch", "8", "-o", "net.onnx"], USAGE, ["-o net.onnx", "no .onnx file", "net.dgx"]),
        "no memory": (small + ["--memory", "0"], USAGE, ["--memory", "'0'"]),
        "no batch of a family": (["mlp:4-2"], USAGE, ["mlp:4-2: error: ", "--batch"]),
        "decay of no parameter": (small + ["--optimizer", "sgd:lr=0.1;nothing.*:weight_decay=0"], USAGE, ["'nothing.*'", "parameter"]),
        "negative seconds": (small + ["--ranks", "2", "--plan-seconds", "-1"], USAGE, ["--plan-seconds", "-1"]),
    })
    for text in ["0", "-1", "x", "1.5", "99999999999999999999", "2147483648"]:
        rows[f"batch {text}"] = ([mlp, "--batch", text], USAGE, ["--batch", f"'{text}'", "expected a whole number from 1"])
    for text, says in {"foo=2": "no axis 'foo'", "data=0": "'data=0'", "data=-1": "'data=-1'", "data=2,data=2": "twice", "garbage": "'garbage'",
                       "data=": "AXIS=SIZE", "=2": "no axis ''", "data=2x": "'data=2x'", "data=99999999999999999999": "from 1 to"}.items():
        rows[f"mesh {text}"] = (small + ["--mesh", text], USAGE, ["mesh", says])
    for text, says in {"foo": "sgd, adam, adamw, adagrad, rmsprop, lamb or lion", "sgd:foo=1": "no 'foo'", "sgd:lr=x": "'lr=x'", "sgd:lr=-1": "'lr=-1'", "sgd:lr": "'lr'",
                       "sgd:lr=nan": "'lr=nan'", "sgd:lr=inf": "'lr=inf'", "adam:beta1=1": "below 1", "sgd:lr=0.1,lr=0.2": "twice",
                       "sgd:nesterov=1": "momentum"}.items():
        rows[f"optimizer {text}"] = (small + ["--optimizer", text], USAGE, ["optimizer", says])
    for text, says in {"mlp:": "784-1024-10", "mlp:10": "two or more", "mlp:a-b": "'a'", "mlp:0-1": "'0'", "mlp:10-99999999999999999999": "expected a number",
                       "gpt:foo=1": "'foo'", "gpt:heads=7": "heads=7", "gpt:layers=0": "'0'", "gpt:layers=2,layers=3": "twice",
                       "lenet:3": "'3'", "resnet:20": "'20' for the depth", "resnet:18,image=0": "'0' for image"}.items():
        rows[f"family {text}"] = ([text, "--batch", "8"], USAGE, [f"'{text}'", says])
    return rows


def make_rows(folder, binaries, examples, generator):
    rows = []
    with open(os.path.join(folder, "job.dgx"), "w", encoding="utf-8") as file:
        file.write("an earlier job, which stays as it is")
    for name, (content, exit_code, says) in files_of(generator.randbytes(2000)).items():
        with open(os.path.join(folder, name + ".mlir"), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        rows.append(Row(name, ["dgc", name + ".mlir", "--batch", "8", "-o", "job.dgx"], exit_code, says))
    with open(os.path.join(folder, "centred.mlir"), "w", encoding="utf-8") as file:
        file.write(model(["%m = dg.reduce_mean %x {dims = array<i64: 0>}", "%c = dg.sub %x, %m", WEIGHT, "%a = dg.linear %c, %w"] + LOSS))
    for flags, says in ((["--mesh", "data=4"], ["2 rows", "give a --batch"]), (["--microbatches", "2"], ["2 micro-batches", "--microbatches 1"])):
        rows.append(Row(f"mixed samples, {flags[1]}", ["dgc", "centred.mlir", "--batch", "10", *flags, "-o", "job.dgx"], USAGE,
                        ["centred.mlir:3:10: error", "mixes the samples of a batch"] + says))
    for name, (content, says) in CLUSTERS.items():
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            file.write(content)
        rows.append(Row(name, ["dgc", "mlp:4-2", "--batch", "8", "--cluster", name + ".json", "--simulate"], BAD_FILE, [name + ".json"] + says))
    mlp, gpt = os.path.join(examples, "mlp.mlir"), os.path.join(examples, "gpt.mlir")
    for name, (arguments, exit_code, says) in flags_of(mlp, gpt).items():
        output = [] if "-o" in arguments or "--simulate" in arguments else ["-o", "job.dgx"]
        rows.append(Row(name, ["dgc"] + arguments + output, exit_code, says))
    return rows
