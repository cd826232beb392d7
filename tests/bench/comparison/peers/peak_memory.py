# SPDX-License-Identifier: Apache-2.0
"""Runs a command and prints the peak of resident memory of the largest of its processes: peak_memory.py COMMAND…"""
import json
import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
print(json.dumps({"peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
