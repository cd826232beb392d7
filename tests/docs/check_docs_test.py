# SPDX-License-Identifier: Apache-2.0
"""Proves that check-docs finds what is planted in a small tree, and is silent about a clean one."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop(1)
sys.dont_write_bytecode = True

loader = importlib.machinery.SourceFileLoader("check_docs", os.path.join(TOOLS, "check-docs"))
docs = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(docs)

FLAGS = {"dgc": {"--batch", "--mesh"}, "dgrun": {"--data"}, "dgviz": {"--text"}, "dg-opt": {"--dg-decompose"}, "check.sh": {"--full"}, "": {"--runs"}}
CLEAN = {
    "README.md": "# Top\n\n    ir/        the dialect\n      ops/ rules/\n    tools/     commands\n\nSee [ir](ir/README.md#the-op-contract).\n",
    "ir/README.md": "# ir\n\n## The `op` contract\n\n`ops/Ops.td` and `rules/{Shapes,Types}.h`; `tools/check.sh --full`, `dgc x.mlir --batch 4`, `--runs`.\n",
    "ir/ops/Ops.td": "", "ir/rules/Shapes.h": "", "ir/rules/Types.h": "", "tools/check.sh": "",
}


class CheckDocsTest(unittest.TestCase):
    def problems(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **changes}.items():
                path = os.path.join(root, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
            return docs.check(root, FLAGS)

    def assertOne(self, text, *parts, path="ir/README.md", base=True):
        found = self.problems({path: (CLEAN.get(path, "") if base else "") + "\n" + text + "\n"})
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def assertClean(self, text, path="ir/README.md"):
        self.assertEqual(self.problems({path: CLEAN.get(path, "") + "\n" + text + "\n"}), [])

    def testCleanTreeIsSilent(self):
        self.assertEqual(self.problems({}), [])

    def testLinks(self):
        self.assertOne("[a](missing.md)", "ir/README.md:7: link to missing.md")
        self.assertOne("[a](../README.md#missing)", "no heading with that anchor")
        self.assertOne("![a picture](pictures/a.png)", "link to pictures/a.png")
        self.assertClean("[a](../README.md#top), [b](https://example.org/missing.md), [c](#ir), `[d](missing.md)`")

    def testPaths(self):
        self.assertOne("`ir/ops/Missing.td`", "path ir/ops/Missing.td")
        self.assertOne("the file ops/Missing.h holds it", "path ops/Missing.h")
        self.assertOne("`rules/{Shapes,Missing}.h`", "path rules/{Shapes,Missing}.h")
        self.assertOne("`ir/ops/<Family>.cpp`", "path ir/ops/<Family>.cpp")
        self.assertOne("    tools/missing.sh --full", "path tools/missing.sh")
        self.assertClean("`ir/rules/Shapes`, `ir/rules/*.h`, `ir/<room>/Ops.td`, `ir/FooBar.cpp`, `/usr/ir/x`, other/thing")

    def testFlags(self):
        self.assertOne("`dgc x.mlir --data y`", "dgc --data, which dgc --help does not have")
        self.assertOne("    mpirun -n 4 dgrun job.dgx --batch 3", "dgrun --batch")
        self.assertOne("the flag `--nowhere`", "flag --nowhere")
        self.assertOne("```\ntools/check.sh --fast\n```", "check.sh --fast")
        self.assertClean("`--mesh data=2`, `dgrun JOB.dgx --data x=1`, --not-in-code, `dpkg --force-all`\n\n    cmake --anything # dgc --anything\n")

    def testShape(self):
        self.assertOne("word " * 30, "columns; prose has at most 120")
        self.assertOne("\n" * 80, "lines; a README has at most 80")
        self.assertClean("| " + "cell " * 40 + "|\n\n    " + "code " * 40 + "\n\n[" + "link " * 40 + "](../README.md)")

    def testMachinePaths(self):
        self.assertOne("see /home/someone/dg", "path /home/someone of a machine")
        self.assertOne("    cd /tmp/build", "path /tmp/build of a machine")
        self.assertClean("`/usr/share/datasets`, x/tmp/y")

    def testTree(self):
        self.assertOne(CLEAN["README.md"].replace("    tools/     commands\n", ""), "the tree lacks tools/", path="README.md", base=False)
        self.assertOne(CLEAN["README.md"].replace("ops/ rules/", "ops/"), "the tree lacks ir/rules/", path="README.md", base=False)
        self.assertOne(CLEAN["README.md"].replace("rules/", "rules/ gone/"), "ir/gone/ in the tree", path="README.md", base=False)
        self.assertOne("# Top", "no picture of the tree", path="README.md", base=False)

    def testTablesOfFiles(self):
        table = "| file | holds |\n|---|---|\n| ops/Ops.td, `rules/{Shapes,Types}.h` (both), rules/Shapes | x |\n"
        self.assertClean(table + "\n| what | where |\n|---|---|\n| Missing | x |")
        self.assertOne(table + "| Missing | x |", "file Missing in the table, which ir/ does not have")
        self.assertOne(table + "| rules/Shapes.h (over Missing.cpp) | x |", "file Missing.cpp")

    def testChangelogMaySpeakOfThePast(self):
        self.assertEqual(self.problems({"CHANGELOG.md": "`dgc --gone` and `ir/Gone.cpp`\n"}), [])


if __name__ == "__main__":
    unittest.main()
