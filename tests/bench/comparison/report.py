# SPDX-License-Identifier: Apache-2.0
"""The figures of a comparison as lines, a table and a picture."""
import math
import os
import platform
from xml.sax.saxutils import escape


def machine():
    """What the figures are of."""
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for text in file:
            if text.startswith("model name"):
                model = text.split(":", 1)[1].strip()
                break
    return {"processor": model, "cores": os.cpu_count(), "load": os.getloadavg()[0]}


def verdict(result):
    if result["ratio"] >= result["aim"]:
        return "aim reached"
    return "reached" if result["ratio"] >= result["must"] else "MISSED"


def time_text(microseconds):
    if microseconds < 1000:
        return f"{microseconds:.3g} µs"
    return f"{microseconds / 1000:.3g} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3g} s"


def line(result):
    return (f"{result['name']}: DG {time_text(result['ours_us'])}, {result['peer']} {time_text(result['theirs_us'])}, "
            f"{result['ratio']:.2f}× ({verdict(result)})")


def table(results):
    """Markdown."""
    rows = ["| work | DG | peer | | ratio | must | aim | |", "|---|---|---|---|---|---|---|---|"]
    for result in results:
        rows.append(f"| {result['name']} | {time_text(result['ours_us'])} | {result['peer']} | "
                    f"{time_text(result['theirs_us'])} | {result['ratio']:.2f}× | {result['must']}× | {result['aim']}× | "
                    f"{verdict(result)} |")
    return "\n".join(rows)


def picture(results):
    """Ratios as bars on a logarithmic scale; a thin mark for what must be reached, a thick one for the aim."""
    left, width, height = 360, 520, 22
    largest = max(max(result["ratio"], result["aim"]) for result in results)
    smallest = min(min(result["ratio"] for result in results), 0.5)

    def place(ratio):
        return left + width * math.log(ratio / smallest) / math.log(largest / smallest)

    total = height * (len(results) + 2)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" height="{total}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for index, result in enumerate(results):
        top = height * index + 8
        colour = {"MISSED": "#c0392b", "reached": "#2980b9", "aim reached": "#27ae60"}[verdict(result)]
        parts.append(f'<text x="{left - 8}" y="{top + 13}" text-anchor="end">{escape(result["name"])} / '
                     f'{escape(result["peer"])}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{place(result["ratio"]) - left:.1f}" height="{height - 6}" '
                     f'fill="{colour}"/>')
        parts.append(f'<text x="{place(result["ratio"]) + 4:.1f}" y="{top + 13}">{result["ratio"]:.2f}×</text>')
        for key, thickness in (("must", 1), ("aim", 3)):
            parts.append(f'<rect x="{place(result[key]):.1f}" y="{top - 2}" width="{thickness}" height="{height - 2}" '
                         'fill="black"/>')
    parts.append(f'<line x1="{place(1):.1f}" x2="{place(1):.1f}" y1="0" y2="{total - height}" stroke="grey"/>')
    parts.append(f'<text x="{left}" y="{total - 8}">time of the peer / time of DG; marks: must be reached, aim</text></svg>')
    return "\n".join(parts) + "\n"
