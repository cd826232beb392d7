# SPDX-License-Identifier: Apache-2.0
"""Proves that what dgrun --probe measures is a cluster file that dgc plans for, with numbers that a processor can have.

    python3 probe.py DGRUN DGC
"""
import json
import subprocess
import sys
import tempfile


def main(dgrun, dgc):
    probed = subprocess.run([dgrun, "--probe"], capture_output=True, text=True, check=True).stdout
    cluster = json.loads(probed)
    device, links = cluster["device"], cluster["links"]
    ranges = {
        "flops": (device["flops_per_second"]["f32"], 1e8, 1e13),
        "memory bytes a second": (device["memory_bytes_per_second"], 1e7, 1e12),
        "turn us": (cluster["turn_us"], 1e-2, 1e5),
        "slice us": (cluster["slice_us"], 1e2, 1e6),
        "bytes a second from core to core": (links["intra_node"]["bytes_per_second"], 1e7, 1e12),
        "launch us": (device["launch_us"], 1e-5, 1e3),
        "memory latency us": (links["intra_node"]["latency_us"], 1e-3, 1e6),
        "TCP bytes a second": (links["inter_node"]["bytes_per_second"], 1e5, 1e12),
        "TCP latency us": (links["inter_node"]["latency_us"], 1e-1, 1e7),
    }
    wrong = [f"{what} is {value}, expected {least} to {most}" for what, (value, least, most) in ranges.items() if not least <= value <= most]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(probed)
        file.flush()
        command = [dgc, "mlp:64-64-8", "--batch", "8", "--cluster", file.name, "--simulate=json"]
        step = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if step["devices"] != cluster["devices_per_node"] or step["step_us"] <= 0:
        wrong.append(f"a step on {step['devices']} devices takes {step['step_us']} us, expected {cluster['devices_per_node']} devices")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
