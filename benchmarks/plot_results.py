"""Draws benchmarks/results into one picture: python benchmarks/plot_results.py docs/results.png."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

RESULTS = Path(__file__).parent / "results"
OPERATIONS = ("encode", "decode", "decode 8 + reduce + encode")


def read(name: str) -> dict[str, Any]:
    """One file of results."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


def draw_speedups(axes: Axes) -> None:
    """Speed of an all-reduce over NCCL's in the same type, by size."""
    report = read("network_4.json")
    for dtype, style in (("bfloat16", "-"), ("float32", "--")):
        for compressor, color in (("int4h", "tab:orange"), ("int8h", "tab:blue")):
            rows = [
                row
                for row in report["results"]
                if row["collective"] == "all_reduce"
                and row["dtype"] == dtype
                and row["contender"] == f"{compressor} auto"
            ]
            axes.plot(
                [row["size"] / 2**20 for row in rows],
                [row["speedup"] for row in rows],
                style,
                color=color,
                marker="o",
                label=f"{compressor}, {dtype}",
            )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("MiB a rank")
    axes.set_ylabel("times NCCL's speed in the same type")
    axes.set_title(f"all_reduce, {report['ranks']} network ranks, NCCL {report['nccl']}")
    axes.legend()


def draw_kernels(axes: Axes) -> None:
    """Bandwidth of every pass on bf16 data, as a share of a device copy's."""
    report = read("codec_kernels.json")
    rows = [row for row in report["rows"] if row["type"] == "bfloat16"]
    names = list(dict.fromkeys(row["compressor"] for row in rows))
    for number, operation in enumerate(OPERATIONS):
        percents = [row["percent_of_copy"] for row in rows if row["operation"] == operation]
        places = [place + (number - 1) * 0.27 for place in range(len(names))]
        axes.bar(places, percents, width=0.25, label=operation)
    axes.axhline(100, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("% of a device copy's bandwidth")
    axes.set_title(f"one pass over bf16 data, {report['device']}")
    axes.legend(loc="lower left")


def main() -> None:
    """Writes the picture."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
    draw_speedups(left)
    draw_kernels(right)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
