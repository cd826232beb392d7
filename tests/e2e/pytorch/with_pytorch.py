# SPDX-License-Identifier: Apache-2.0
"""Runs a script of this folder with the Python that has PyTorch; says so and ends with 77 where there is none.

    python3 with_pytorch.py VENV SCRIPT [argument…]
"""
import os
import sys

venv, script, *arguments = sys.argv[1:]
python = os.path.join(venv, "bin", "python")
if not os.path.exists(python):
    print(f"skipped: {venv} does not exist; tools/install.sh bench makes it, with PyTorch")
    sys.exit(77)
os.execv(python, [python, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), script), *arguments])
