#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves what is a parameter of an ONNX file, by files as PyTorch's two exporters write them: tensors that they merged are separate, a tied head
is shared, constants are not trained, what cannot be trained is refused, statistics of batch norm keep their names, and inference of a file that
was exported for training neither drops nor takes the statistics of the batch.

usage: parameters_test.py --dgc DGC --dgrun DGRUN --dgviz DGVIZ
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import onnx_files
from training_test import field, node, tensor, value_info

WORDS, WIDTH = 5, 4


def with_metadata(message, number, entries):
    return message + b"".join(field(number, field(1, key) + field(2, value)) for key, value in entries.items())


def exported_node(made, call, *scopes):
    """A node as torch.export writes it: with the call that it was and the modules around it."""
    return with_metadata(made, 9, {"pkg.torch.onnx.fx_node": f"%y : [num_users=1] = call_function[target={call[0]}](args = ({call[1]}), kwargs = {{}})",
                                   "pkg.torch.onnx.name_scopes": str(list(scopes))})


def parameter_info(name):
    return with_metadata(value_info(name, []), 4, {"pkg.torch.export.graph_signature.InputSpec.kind": "PARAMETER",
                                                   "pkg.torch.onnx.original_node_name": "p_" + name.replace(".", "_")})


def folded_info(name, *sources):
    return with_metadata(value_info(name, []), 4, {"pkg.onnxscript.optimizer.folded_from": str(list(sources))})


def model(nodes, tensors, infos=(), inputs=(("x", ["N", WIDTH]),), outputs=(("y", ["N", WORDS]),), producer="pytorch", signature=""):
    graph = b"".join(field(1, one) for one in nodes) + field(2, "g") + b"".join(field(5, one) for one in tensors)
    graph += b"".join(field(11, value_info(*one)) for one in inputs) + b"".join(field(12, value_info(*one)) for one in outputs)
    graph += b"".join(field(13, one) for one in infos)
    graph = with_metadata(graph, 16, {"pkg.torch.export.ExportedProgram.graph_signature": signature} if signature else {})
    return field(1, 10) + field(2, producer) + field(7, graph) + field(8, field(1, "") + field(2, 18))


TABLE = [math.sin(index) for index in range(WORDS * WIDTH)]
TURNED = [TABLE[row * WIDTH + column] for column in range(WIDTH) for row in range(WORDS)]
SQUARE = [math.cos(index) for index in range(WIDTH * WIDTH)]
SQUARE_TURNED = [SQUARE[row * WIDTH + column] for column in range(WIDTH) for row in range(WIDTH)]
ONES, ZEROS = [1.0] * WIDTH, [0.0] * WIDTH
NORM = "torch.ops.aten.layer_norm.default"


def exported_model():
    """Two layer norms whose weights are one initializer, a scale and a head that is the transpose of the embedding."""
    nodes = [
        exported_node(node("LayerNormalization", ["x", "a.norm.weight", "a.norm.bias"], "n1"), (NORM, "%x, [4], %p_a_norm_weight, %p_a_norm_bias"), "", "a.norm", "n1"),
        exported_node(node("Mul", ["n1", "val_3"], "m"), ("torch.ops.aten.mul.Tensor", "%n1"), "", "m"),
        exported_node(node("MatMul", ["m", "val_4"], "p"), ("torch.ops.aten.linear.default", "%m, %p_a_up_weight"), "", "a.up", "p"),
        exported_node(node("LayerNormalization", ["p", "a.norm.weight", "a.norm.bias"], "n2"), (NORM, "%p, [4], %p_b_norm_weight, %p_b_norm_bias"), "", "b.norm", "n2"),
        exported_node(node("MatMul", ["n2", "val_5"], "y"), ("torch.ops.aten.linear.default", "%n2, %p_words_weight"), "", "y"),
        exported_node(node("Gather", ["words.weight", "index"], "unread"), ("torch.ops.aten.embedding.default", "%p_words_weight, %index"), "", "words", "unread"),
    ]
    tensors = [tensor("a.norm.weight", [WIDTH], ONES), tensor("a.norm.bias", [WIDTH], ZEROS), tensor("val_3", [1], [0.5]),
               tensor("val_4", [WIDTH, WIDTH], SQUARE_TURNED), tensor("val_5", [WIDTH, WORDS], TURNED), tensor("words.weight", [WORDS, WIDTH], TABLE),
               field(1, 1) + field(2, 7) + field(8, "index") + field(9, struct.pack("<q", 1))]
    infos = [parameter_info("a.norm.weight"), parameter_info("a.norm.bias"), parameter_info("words.weight"), folded_info("val_3", "n1", "val_1"),
             folded_info("val_4", "a.up.weight"), folded_info("val_5", "words.weight")]
    return nodes, tensors, infos


def root_model():
    """Parameters of the module itself, whose names have no dot: a weight whose transpose was folded, one that was computed with a constant, two that are
    equal and merged; and a buffer of a layer that was folded too."""
    nodes = [
        exported_node(node("Add", ["x", "val_1"], "a"), ("torch.ops.aten.add.Tensor", "%x, %mul"), "", "a"),
        exported_node(node("MatMul", ["a", "val_2"], "p"), ("torch.ops.aten.linear.default", "%a, %p_weight"), "", "p"),
        exported_node(node("Mul", ["p", "gain"], "q"), ("torch.ops.aten.mul.Tensor", "%p, %p_gain"), "", "q"),
        exported_node(node("Mul", ["q", "gain"], "y"), ("torch.ops.aten.mul.Tensor", "%q, %p_gain_2"), "", "y"),
    ]
    tensors = [tensor("val_1", [WIDTH], TABLE[:WIDTH]), tensor("val_2", [WIDTH, WORDS], TURNED), tensor("gain", [WORDS], [1.0] * WORDS)]
    infos = [folded_info("val_1", "layer.shift", "val_0"), folded_info("val_2", "weight"), parameter_info("gain")]
    names = {"p_weight": "weight", "p_gain": "gain", "p_gain_2": "gain_2", "p_low": "low"}
    signature = "\n# inputs\n" + "".join(f"{key}: PARAMETER target='{name}'\n" for key, name in names.items())
    return (nodes, tensors, infos), signature + "b_layer_shift: BUFFER target='layer.shift' persistent=True\nx: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n"


def scripted_model():
    """The same as TorchScript's exporter writes it."""
    nodes = [
        node("Identity", ["a.norm.weight"], "b.norm.weight"), node("Identity", ["a.norm.bias"], "b.norm.bias"),
        node("LayerNormalization", ["x", "a.norm.weight", "a.norm.bias"], "n1"), node("Mul", ["n1", "onnx::Mul_8"], "m"),
        node("MatMul", ["m", "onnx::MatMul_9"], "q"), node("Add", ["q", "a.up.bias"], "p"),
        node("LayerNormalization", ["p", "b.norm.weight", "b.norm.bias"], "n2"), node("MatMul", ["n2", "onnx::MatMul_10"], "y"),
        node("Gather", ["words.weight", "index"], "unread"),
    ]
    tensors = [tensor("a.norm.weight", [WIDTH], ONES), tensor("a.norm.bias", [WIDTH], ZEROS), tensor("onnx::Mul_8", [1], [0.5]),
               tensor("onnx::MatMul_9", [WIDTH, WIDTH], SQUARE_TURNED), tensor("a.up.bias", [WIDTH], ZEROS),
               tensor("onnx::MatMul_10", [WIDTH, WORDS], TURNED), tensor("words.weight", [WORDS, WIDTH], TABLE),
               field(1, 1) + field(2, 7) + field(8, "index") + field(9, struct.pack("<q", 1))]
    return nodes, tensors


def training_mode_model():
    """Batch norm and dropout that were exported for training."""
    nodes = [node("BatchNormalization", ["x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], "b", [("training_mode", 1)]),
             node("Dropout", ["b", "ratio", "mode"], "y")]
    tensors = [tensor("bn.weight", [WIDTH], ONES), tensor("bn.bias", [WIDTH], ZEROS), tensor("bn.running_mean", [WIDTH], [1.0] * WIDTH),
               tensor("bn.running_var", [WIDTH], [4.0] * WIDTH), tensor("ratio", [], [0.5]), field(2, 9) + field(8, "mode") + field(9, b"\1")]
    return nodes, tensors


class Test:
    def __init__(self, options, folder):
        for name in ("dgc", "dgrun", "dgviz"):
            setattr(options, name, os.path.abspath(getattr(options, name)))
        self.options, self.folder, self.failures, self.count = options, folder, [], 0

    def check(self, what, found, expected):
        self.count += 1
        if found != expected:
            self.failures.append(f"{what}: found {found}, expected {expected}")

    def dgc(self, name, *flags, code=0):
        done = subprocess.run([self.options.dgc, os.path.join(self.folder, name), *flags], capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.check(f"exit code of dgc {name} {' '.join(flags)} ({done.stderr[-300:]})", done.returncode, code)
        return done

    def write(self, name, *parts, **more):
        with open(os.path.join(self.folder, name), "wb") as out:
            out.write(model(*parts, **more))

    def table(self, name, *flags):
        done = self.dgc(name, "--train", "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.1", "--batch", "2", "--json", *flags)
        rows = json.loads(done.stdout)["parameters"] if done.returncode == 0 else []
        return {row["name"]: (row["type"], row["role"], len(row["readers"])) for row in rows}

    def separates_and_shares(self):
        norms = {f"{layer}.norm.{part}": ("4xf32", "trained", 1) for layer in "ab" for part in ("weight", "bias")}
        shared = {**norms, "a.up.weight": ("4x4xf32", "trained", 1), "words.weight": ("5x4xf32", "trained", 1)}
        self.write("exported.onnx", *exported_model())
        self.check("parameters of torch.export's file", self.table("exported.onnx"), {**shared, "val_3": ("1xf32", "constant", 0)})
        self.write("scripted.onnx", *scripted_model())
        self.check("parameters of TorchScript's file", self.table("scripted.onnx"),
                   {**shared, "a.up.bias": ("4xf32", "trained", 1), "onnx::Mul_8": ("1xf32", "constant", 0)})
        said = self.dgc("scripted.onnx", "--infer", "--batch", "2", "-o", os.path.join(self.folder, "job.dgx")).stderr
        self.check("an import prints the table", "b.norm.weight" in said and "onnx::Mul_8" in said, True)
        text = subprocess.run([self.options.dgviz, os.path.join(self.folder, "job.dgx"), "--text"], capture_output=True, text=True, timeout=60).stdout
        self.check("dgviz counts the roles", "7 weight" in text, True)
        page = subprocess.run([self.options.dgviz, os.path.join(self.folder, "job.dgx"), "-o", "-"], capture_output=True, text=True, timeout=60).stdout
        self.check("the page has the table", '["b.norm.weight","4xf32","weight",' in page, True)

    def trains_parameters_of_the_root(self):
        parts, signature = root_model()
        self.write("root.onnx", *parts, signature=signature)
        self.check("parameters of the module itself", self.table("root.onnx"),
                   {"weight": ("5x4xf32", "trained", 1), "gain": ("5xf32", "trained", 1), "gain_2": ("5xf32", "trained", 1), "val_1": ("4xf32", "constant", 0)})
        parts[2][0] = folded_info("val_1", "low", "val_0")
        self.write("computed.onnx", *parts, signature=signature)
        said = self.dgc("computed.onnx", "--train", "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.1", "--batch", "2", "-o",
                        os.path.join(self.folder, "no.dgx"), code=65).stderr
        self.check("what was computed from one is refused", "'val_1': was computed by the exporter's optimizer from low, val_0" in said, True)

    def shares_by_name(self):
        """Nodes that read one name share the parameter, as a module does that is called twice."""
        nodes, tensors = scripted_model()
        nodes[6] = node("LayerNormalization", ["p", "a.norm.weight", "b.norm.bias"], "n2")
        self.write("shared.onnx", nodes, tensors)
        found = self.table("shared.onnx")
        self.check("readers of a shared parameter", found.get("a.norm.weight"), ("4xf32", "trained", 2))

    def refuses(self):
        train = ("--train", "--loss", "cross_entropy", "--optimizer", "sgd:lr=0.1", "--batch", "2", "-o", os.path.join(self.folder, "no.dgx"))
        nodes, tensors = scripted_model()
        nodes[3], tensors[2] = node("Add", ["n1", "onnx::Add_8"], "m"), tensor("onnx::Add_8", [WIDTH], TABLE[:WIDTH])
        self.write("folded.onnx", nodes, tensors)
        said = self.dgc("folded.onnx", *train, code=65).stderr
        self.check("a folded tensor is refused", "initializer 'onnx::Add_8': was computed by the exporter" in said and "--freeze 'onnx::Add_8'" in said, True)
        self.dgc("folded.onnx", *train, "--freeze", "onnx::Add_8")
        nodes, tensors = scripted_model()
        tensors[0] = tensor("a.norm.weight", [WIDTH], TABLE[:WIDTH])
        self.write("equal.onnx", nodes, tensors)
        said = self.dgc("equal.onnx", *train, code=65).stderr
        self.check("equal tensors are refused", "is one tensor for 'a.norm.weight' and 'b.norm.weight'" in said, True)
        nodes, tensors, infos = exported_model()
        self.write("fused.onnx", nodes, tensors, infos[1:])
        said = self.dgc("fused.onnx", *train, code=65).stderr
        self.check("a tensor of the optimizer is refused", "'a.norm.weight': was computed by the exporter's optimizer" in said, True)
        # Wherever nothing is trained, all of these are files like any other.
        for name in ("folded.onnx", "equal.onnx", "fused.onnx"):
            self.dgc(name, "--infer", "--batch", "2", "-o", os.path.join(self.folder, "yes.dgx"))
        self.dgc("equal.onnx", "--infer", "--json", "--simulate", code=2)

    def names_statistics(self):
        self.write("norm.onnx", *training_mode_model(), outputs=(("y", ["N", WIDTH]),))
        self.check("names of statistics", sorted(self.table("norm.onnx")), ["bn.bias", "bn.running_mean", "bn.running_var", "bn.weight"])
        nodes, tensors = training_mode_model()
        nodes[:1] = [node("BatchNormalization", ["x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], "c", [("training_mode", 1)]),
                     node("Identity", ["bn.running_mean"], "bn2.running_mean"), node("Identity", ["bn.running_var"], "bn2.running_var"),
                     node("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn2.running_mean", "bn2.running_var"], "b", [("training_mode", 1)])]
        self.write("norms.onnx", nodes, tensors, outputs=(("y", ["N", WIDTH]),))
        found = {name for name, row in self.table("norms.onnx").items() if row[1] == "statistics"}
        self.check("names of merged statistics", found, {"bn.running_mean", "bn.running_var", "bn2.running_mean", "bn2.running_var"})

    def infers_without_dropping(self):
        self.write("norm.onnx", *training_mode_model(), outputs=(("y", ["N", WIDTH]),))
        rows = [[float(row + column) for column in range(WIDTH)] for row in range(2)]
        flat = [value for row in rows for value in row]
        onnx_files.write_npy(os.path.join(self.folder, "x.npy"), onnx_files.Tensor("x", "<f4", [2, WIDTH], struct.pack(f"<{len(flat)}f", *flat)))
        results = []
        for flags in ([], ["--training-mode"]):
            self.dgc("norm.onnx", "--infer", "--batch", "2", "-o", "norm.dgx", *flags)
            done = subprocess.run([self.options.dgrun, "norm.dgx", "--input", "x=@x.npy", "--output", "y=@y.npy"], cwd=self.folder, capture_output=True,
                                  text=True, timeout=60)
            self.check(f"exit code of dgrun ({done.stderr})", done.returncode, 0)
            results.append(onnx_files.read_npy(os.path.join(self.folder, "y.npy")).values())
        expected = [(value - 1) / math.sqrt(4 + 1e-5) for value in flat]
        self.check("inference uses the running statistics and drops nothing", max(map(lambda a, b: abs(a - b), results[0], expected)) < 1e-6, True)
        # Of the batch at hand: each column is -1 or 1, then dropped or doubled.
        self.check("--training-mode keeps both", {round(abs(value), 2) for value in results[1]} <= {0.0, 2.0}, True)
        self.dgc("norm.onnx", "--train", "--training-mode", "--loss", "mse", "--batch", "2", code=2)
        with open(os.path.join(self.folder, "m.mlir"), "w", encoding="utf-8") as out:
            out.write("dg.graph @forward(%x: tensor<2x2xf32>) {\n  %y = dg.relu %x\n  dg.return %y {names = [\"y\"]}\n}\n")
        self.dgc("m.mlir", "--infer", "--training-mode", code=2)

    def goes_on_as_text(self):
        """What --emit source prints of a file computes the same with --weights of the file."""
        self.write("scripted.onnx", *scripted_model())
        self.dgc("scripted.onnx", "--infer", "--batch", "2", "--emit", "source", "-o", "text.mlir")
        self.dgc("scripted.onnx", "--infer", "--batch", "2", "-o", "file.dgx")
        said = self.dgc("text.mlir", "--infer", "--weights", "scripted.onnx", "-o", "text.dgx").stderr
        self.check("weights of an ONNX file are told", "scripted.onnx: 7 parameters loaded" in said, True)
        flat = [math.sin(place) for place in range(2 * WIDTH)]
        onnx_files.write_npy(os.path.join(self.folder, "x.npy"), onnx_files.Tensor("x", "<f4", [2, WIDTH], struct.pack(f"<{len(flat)}f", *flat)))
        results = []
        for name in ("file", "text"):
            subprocess.run([self.options.dgrun, name + ".dgx", "--input", "x=@x.npy", "--output", f"y=@{name}.npy"], cwd=self.folder, capture_output=True,
                           timeout=60, check=True)
            with open(os.path.join(self.folder, name + ".npy"), "rb") as file:
                results.append(file.read())
        self.check("results of file and text are the same bits", results[0] == results[1], True)
        self.dgc("text.mlir", "--infer", "--weights", "x.onnx", "-o", "text.dgx", code=65)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--dgc", "--dgrun", "--dgviz"):
        parser.add_argument(name, required=True)
    with tempfile.TemporaryDirectory(prefix="dg-parameters-") as folder:
        test = Test(parser.parse_args(), folder)
        for one in (test.separates_and_shares, test.trains_parameters_of_the_root, test.shares_by_name, test.refuses, test.names_statistics, test.infers_without_dropping,
                    test.goes_on_as_text):
            one()
        print("\n".join(test.failures) or f"{test.count} checks passed")
        return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
