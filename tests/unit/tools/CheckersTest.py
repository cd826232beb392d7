# SPDX-License-Identifier: Apache-2.0
# Proves that check-layers, check-passes and check-tests find what is planted in a small tree, and are silent about a clean one.
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop(1)
sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(TOOLS, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


layers = load("check-layers")
passes = load("check-passes")
tests = load("check-tests")


class Tree:
    """A temporary source tree made of a {path: text} table."""

    def __init__(self, files):
        self.files = files

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        for path, text in self.files.items():
            path = os.path.join(self.folder.name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return self.folder.name

    def __exit__(self, *_):
        self.folder.cleanup()


class LayersTest(unittest.TestCase):
    def violations(self, files):
        with Tree(files) as root:
            return layers.check(root)

    def assertOne(self, files, *parts):
        found = self.violations(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def testCleanTreeIsSilent(self):
        self.assertEqual([], self.violations({
            "runtime/plan/Plan.cpp": '#include "runtime/plan/Plan.h"\n#include "runtime/support/Status.h"\n'
                                     "#include <nlohmann/json.hpp>\n#include <vector>\n#include <sys/mman.h>\n",
            "runtime/executor/A.cpp": '#include "runtime/plan/Plan.h"\n#include <oneapi/tbb/task_arena.h>\n',
            "ir/Ops.cpp": '#include "mlir/IR/Builders.h"\n#include "ir/dialect/Ops.h.inc"\n',
            "tools/dgc/Main.cpp": '#include "codegen/A.h"\n#include <CLI/CLI.hpp>\n',
            "tests/unit/plan/T.cpp": '#include <gtest/gtest.h>\n#include "runtime/plan/Plan.h"\n',
        }))

    def testCompilerHeaderInRuntime(self):
        self.assertOne({"runtime/executor/A.cpp": '\n#include "ir/Ops.h"\n'},
                       "runtime/executor/A.cpp:2", '"ir/Ops.h"', "allowed in runtime: runtime")

    def testMlirInPartitioner(self):
        self.assertOne({"partitioner/A.h": "#include <mlir/IR/Value.h>\n"}, "partitioner/A.h:1", "(MLIR)", "Boost.Graph")

    def testLeafIncludesSibling(self):
        self.assertOne({"runtime/plan/A.h": '#include "runtime/transport/Transport.h"\n'}, "allowed in runtime/plan")

    def testPassesAreHiddenFromCodegen(self):
        self.assertOne({"codegen/A.cpp": '#include "passes/Passes.h"\n'}, "codegen/A.cpp:1")

    def testAbiIncludesNothing(self):
        self.assertOne({"runtime/abi/A.h": "#include <fmt/core.h>\n"}, "no third party")

    def testIncludeNotFromTheRoot(self):
        self.assertOne({"ir/A.cpp": '#include "A.h"\n'}, "written from the root")

    def testUnknownHeader(self):
        self.assertOne({"ir/A.cpp": "#include <python/Python.h>\n"}, "no rule knows")

    def testConditionalAndIndentedIncludeIsSeen(self):
        self.assertOne({"passes/A.cpp": "#if X\n  #  include <ucp/api/ucp.h>\n#endif\n"}, "passes/A.cpp:2", "(UCX)")

    def testSecondWayToReadJson(self):
        for call in ("Json::parse(text)", "nlohmann::json::parse(text, nullptr, false)", "json::from_cbor(bytes)"):
            self.assertOne({"tools/dgviz/A.cpp": f"Json json = {call};\n"}, "tools/dgviz/A.cpp:1", "runtime/support/Json.h", "parseJson")
        self.assertEqual([], self.violations({"tests/unit/A.cpp": "auto a = Json::parse(text);\n"}))

    def testCircle(self):
        self.assertOne({"runtime/data/A.h": '#include "runtime/launch/B.h"\n',
                        "runtime/launch/B.h": '#include "runtime/data/A.h"\n'}, "circle", "runtime/data -> runtime/launch")


class PassesTest(unittest.TestCase):
    OPS = ('def DG_LossOp : OpInterface<"LossOp"> {}\n'
           'def DG_ReluOp : DG_Elementwise<"relu", (ins)> {}\ndef DG_PickOp\n    : Op<DG_Dialect, "pick", []> {}\n'
           'def DG_GraphOp : Op<DG_Dialect, "graph", []> {}\n')

    def violations(self, path, text):
        with Tree({"ir/ops/Ops.td": self.OPS, path: text}) as root:
            return passes.check(root)

    def assertOne(self, text, *parts, path="passes/shape/A.cpp"):
        found = self.violations(path, text)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def testStructureInterfacesAndBuildingAreSilent(self):
        self.assertEqual([], self.violations("passes/shape/A.cpp", (
            "for (auto graph : module.getOps<GraphOp>()) // ReluOp\n"
            '  if (isa<LossOp>(op)) builder.create<ReluOp>(loc, x); error << "dg.relu is meant: ReluOp, relu";\n'
            'if (graph.getSymName() == "relu") {}\n')))

    def testCastToAnOp(self):
        self.assertOne("\nif (auto relu = dyn_cast<ir::ReluOp>(op))\n", "passes/shape/A.cpp:2", "asks for ReluOp", "interface or trait")

    def testListOverSeveralLines(self):
        self.assertOne("return isa<GraphOp,\n           ReluOp>(op);\n", "passes/shape/A.cpp:2", "ReluOp")

    def testParameterOfAFunction(self):
        self.assertOne("static void fuse(ReluOp relu) {}\n", "passes/split/A.h:1", path="passes/split/A.h")

    def testNamesInAStringSwitch(self):
        self.assertOne('  .Case("relu", true)\n', 'lists the op name "relu"')

    def testNamesInATable(self):
        self.assertOne('const char *low[] = {\n  "relu",\n};\n', "passes/shape/A.cpp:2", '"relu"')

    def testNameWithDialect(self):
        self.assertOne('bool is = op->getName().getStringRef() == "dg.relu";\n', '"dg.relu"')

    def testSubjectOfItsFileOnly(self):
        subject = "// Pattern of LogSoftmaxOp, PickOp: they become one.\n"
        self.assertEqual([], self.violations("passes/fuse/FuseSoftmaxPick.cpp", subject + "void fuse(PickOp pick);\n"))
        self.assertOne("void fuse(PickOp pick);\n", "A.cpp:1", '"// Pattern of PickOp: …" above the includes')
        self.assertOne(subject + "void fuse(ReluOp relu);\n", "A.cpp:2", "asks for ReluOp")
        self.assertOne("#include <vector>\n" + subject + "void fuse(PickOp pick);\n", "A.cpp:3")


class LitRuleTest(unittest.TestCase):
    def problems(self, text):
        return tests.check_lit_file("t.mlir", text)

    def testReadPrefixIsSilent(self):
        self.assertEqual([], self.problems("// RUN: dg-opt %s | FileCheck %s\n// CHECK-LABEL: a\n// CHECK: b\n"))
        self.assertEqual([], self.problems("// RUN: dg-opt %s \\\n// RUN:   | FileCheck %s --check-prefixes=A,B\n// A-NEXT: x\n// B-NOT: y\n"))
        self.assertEqual([], self.problems("// RUN: dg-opt %s -verify-diagnostics\n// This rejects: nothing here.\n"))

    def testCheckWithoutFileCheck(self):
        found = self.problems("// RUN: dg-opt %s\n// CHECK: b\n// CHECK: c\n")
        self.assertEqual(len(found), 1, found)
        self.assertIn("t.mlir:2: no FileCheck reads the prefix CHECK", found[0])

    def testUnreadPrefix(self):
        found = self.problems("// RUN: dg-opt %s | FileCheck %s --check-prefix=GOOD\n// GOOD: a\n// OTHER-NEXT: b\n// CHECK: c\n")
        self.assertEqual(len(found), 2, found)

    def testNoRunLine(self):
        self.assertIn("no RUN line", self.problems("func.func @f()\n")[0])


class CoverageRuleTest(unittest.TestCase):
    PASSES = ('include "mlir/Pass/PassBase.td"\n'
              'def FooBar : Pass<"dg-foo-bar"> { let summary = "s"; let description = [{\n```mlir\n```\n}]; }\n')
    OPS = ('include "mlir/IR/OpBase.td"\n'
           'def Dg_Dialect : Dialect { let name = "dg"; let cppNamespace = "::dg"; }\n'
           'def Dg_AddOp : Op<Dg_Dialect, "add">;\ndef Dg_AddGradOp : Op<Dg_Dialect, "add_grad">;\n')
    RUN = "// RUN: dg-opt --dg-foo-bar %s\n"

    def problems(self, files):
        with Tree(files) as root:
            return tests.check(root)

    def testPassWithoutTest(self):
        found = self.problems({"passes/Passes.td": self.PASSES, "passes/FooBar.cpp": "signalPassFailure();"})
        self.assertEqual(len(found), 2, found)
        self.assertIn("passes/Passes.td:2: pass FooBar has no test; expected tests/lit/passes/foo-bar.mlir", found[0])
        self.assertIn("foo-bar-invalid.mlir", found[1])

    def testPassWithTestsIsSilent(self):
        self.assertEqual([], self.problems({"passes/Passes.td": self.PASSES, "passes/FooBar.cpp": "signalPassFailure();",
                                            "tests/lit/passes/foo-bar.mlir": self.RUN,
                                            "tests/lit/passes/foo-bar-invalid.mlir": self.RUN}))

    def testTestThatRunsAnotherPass(self):
        found = self.problems({"passes/Passes.td": self.PASSES, "passes/deep/FooBar.cpp": "",
                               "tests/lit/passes/foo-bar.mlir": "// RUN: dg-opt --dg-foo %s\n"})
        self.assertEqual(len(found), 1, found)
        self.assertIn("does not run --dg-foo-bar", found[0])

    def testPassWithoutIr(self):
        found = self.problems({"passes/Passes.td": self.PASSES.replace("mlir\n", "\n"), "passes/FooBar.cpp": "",
                               "tests/lit/passes/foo-bar.mlir": self.RUN})
        self.assertEqual(found, ["passes/Passes.td:2: pass FooBar shows no IR; expected ```mlir with lines before and after in its "
                                 "description"])

    def testOpWithoutTest(self):
        found = self.problems({"ir/dialect/Ops.td": self.OPS, "tests/lit/ir/a.mlir": "// RUN: dg-opt %s\n%0 = dg.add_grad %a\n"})
        self.assertEqual(found, ["ir/dialect/Ops.td:3: no test mentions dg.add; expected one in tests/lit/ir/"])

    def testSourceOutsideTheBuild(self):
        found = self.problems({"tests/unit/a/CMakeLists.txt": "dg_add_test(x ATest.cpp)", "tests/unit/a/ATest.cpp": "",
                               "tests/unit/a/BTest.cpp": ""})
        self.assertEqual(found, ["tests/unit/a/BTest.cpp:1: no CMakeLists.txt names this file; it is never built"])


if __name__ == "__main__":
    unittest.main()
