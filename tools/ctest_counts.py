# SPDX-License-Identifier: Apache-2.0
"""Reads ctest's JUnit report: prints "passed failed skipped", and writes the names of what was skipped, one a line.

usage: ctest_counts.py REPORT.xml SKIPS.txt
A case that a GoogleTest binary skipped is counted as skipped although its binary passed.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_SKIP = re.compile(r"^\[  SKIPPED \] ([\w./]+)(?: \(\d+ ms\))", re.MULTILINE)


def main():
    report, skips_path = sys.argv[1:]
    passed = failed = 0
    skips = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") in ("notrun", "disabled"):
            skips.append(case.get("name"))
        else:
            failed += 1
        skips += [f'{case.get("name")}: {name}' for name in GTEST_SKIP.findall(case.findtext("system-out") or "")]
    with open(skips_path, "w", encoding="utf-8") as out:
        out.writelines(name + "\n" for name in skips)
    print(passed, failed, len(skips))


if __name__ == "__main__":
    main()
