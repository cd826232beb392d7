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
    """By the lower end of the interval."""
    if result["low"] >= result["aim"]:
        return "aim reached"
    return "reached" if result["low"] >= result["must"] else "MISSED"


def figure_text(figure, unit):
    if unit == "bytes":
        return f"{figure / (1 << 20):.4g} MiB"
    if figure < 1000:
        return f"{figure:.3g} µs"
    return f"{figure / 1000:.3g} ms" if figure < 1e6 else f"{figure / 1e6:.3g} s"


def ratio_text(result):
    return f"{result['ratio']:.2f}× ({result['low']:.2f}–{result['high']:.2f})"


def share_text(result, figure):
    """The share of the peak of a matrix product, where the row has its floating-point operations and the peak was measured."""
    if "peak" not in result:
        return ""
    return f" ({result['work'] / (figure * 1e-6) / result['peak']:.0%} of peak)"


def ours_text(result):
    return figure_text(result["ours"], result["unit"]) + share_text(result, result["ours"])


def theirs_text(result):
    return figure_text(result["theirs"], result["unit"]) + share_text(result, result["theirs"])


def line(result):
    return f"{result['name']}: DG {ours_text(result)}, {result['peer']} {theirs_text(result)}, {ratio_text(result)}: {verdict(result)}"


def table(results):
    """Markdown."""
    rows = ["| work | DG | best peer | | ratio (95 %) | must | aim | |", "|---|---|---|---|---|---|---|---|"]
    for result in results:
        rows.append(f"| {result['name']} | {ours_text(result)} | {result['peer']} | {theirs_text(result)} | {ratio_text(result)} | "
                    f"{result['must']:.3g}× | {result['aim']:.3g}× | {verdict(result)} |")
    return "\n".join(rows)


def picture(results):
    """Ratios as bars on a logarithmic scale; a thin mark for what must be reached, a thick one for the aim; the whisker is the 95 % interval."""
    left, width, height = 360, 520, 22
    largest = max(max(result["high"], result["aim"]) for result in results)
    smallest = min(min(result["low"] for result in results), 0.5)

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
        parts.append(f'<text x="{place(max(result["ratio"], result["high"])) + 4:.1f}" y="{top + 13}">{result["ratio"]:.2f}×</text>')
        parts.append(f'<line x1="{place(result["low"]):.1f}" x2="{place(result["high"]):.1f}" y1="{top + 8}" y2="{top + 8}" '
                     'stroke="black" stroke-opacity="0.5"/>')
        for key, thickness in (("must", 1), ("aim", 3)):
            parts.append(f'<rect x="{place(result[key]):.1f}" y="{top - 2}" width="{thickness}" height="{height - 2}" '
                         'fill="black"/>')
    parts.append(f'<line x1="{place(1):.1f}" x2="{place(1):.1f}" y1="0" y2="{total - height}" stroke="grey"/>')
    parts.append(f'<text x="{left}" y="{total - 8}">figure of the best peer / figure of DG, with its 95 % interval; marks: must be reached, aim</text></svg>')
    return "\n".join(parts) + "\n"
