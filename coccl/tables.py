"""The tables of compressors and algorithms as Markdown: `python -m coccl.tables`.

README holds them between markers; a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coccl import _core

_BF16_BITS = 16


def compressors() -> str:
    """One row a compressor: name, bits an element, ratio against bf16, worst error, method."""
    return _markdown(
        ("compressor", "bits/element", "ratio to bf16", "worst error of one encoding", "method"),
        (
            (
                f"`{c.name}`",
                f"{c.bits_per_element:g}",
                f"{_BF16_BITS / c.bits_per_element:.2f}",
                _tolerance(c),
                c.method,
            )
            for c in _core.compressors()
        ),
    )


def algorithms() -> str:
    """One row an algorithm: collective, name, how it goes, and encodings on eight ranks."""
    return _markdown(
        ("collective", "algorithm", "how", "encodings, n = 8 on 1 and 2 nodes"),
        (
            (
                a.collective,
                f"`{a.name}`",
                a.story,
                f"{a.encodings(8)}, {a.encodings(8, [0, 0, 0, 0, 1, 1, 1, 1])}",
            )
            for a in _core.algorithms()
        ),
    )


def _tolerance(compressor: _core.CompressorInfo) -> str:
    if compressor.tolerance == 0:
        return "0"
    if compressor.group == 1:
        return f"{compressor.tolerance:.2g} of the value"
    where = "rotated group's" if compressor.rotated else "group's"
    return f"{compressor.tolerance:.2g} of the {where} largest"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Prints both tables."""
    print(f"{compressors()}\n\n{algorithms()}")


if __name__ == "__main__":
    main()
