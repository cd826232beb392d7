# SPDX-License-Identifier: Apache-2.0
# How lit finds and runs the tests of this folder. Run with: ctest --test-dir build/release -R '^lit$'
# or one file: lit.py -v build/release/tests/lit --filter name
import os

import lit.formats

config.name = "dg"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.dg_output_root

# Only these folders: a test must not pass because of a tool that happens to be on someone's path.
config.environment["PATH"] = os.pathsep.join([config.dg_tools_dir, config.llvm_tools_dir, "/usr/bin", "/bin"])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# %examples: the models that users start from. %Inputs: files beside the tests that are not tests.
config.substitutions.append(("%examples", os.path.join(config.dg_source_root, "examples")))
config.substitutions.append(("%Inputs", os.path.join(config.test_source_root, "Inputs")))

for tool in ("dg-opt", "dgc", "dgviz", "dgrun"):
    if os.path.exists(os.path.join(config.dg_tools_dir, tool)):
        config.available_features.add(tool)
