"""What this installation of coccl is and can do: `python -m coccl.info`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from coccl import _core
from coccl.errors import Error
from coccl.nccl import bundled_nccl


def report() -> str:
    """Version, build, devices, NCCL, torch, compressors and algorithms, as text for people."""
    facts = [
        ("coccl", _core.__version__),
        ("build", _build()),
        ("NCCL", _nccl()),
        ("torch", _torch()),
        ("devices", _devices()),
    ]
    compressors = [
        (c.name, f"{c.bits_per_element:g}", f"{c.tolerance:.2g}", c.method)
        for c in _core.compressors()
    ]
    algorithms = [(a.collective, a.name, a.story) for a in _core.algorithms()]
    return "\n\n".join(
        [
            _table(facts),
            _table([("compressor", "bits/element", "tolerance", "method"), *compressors]),
            _table([("collective", "algorithm", "story"), *algorithms]),
        ]
    )


def _build() -> str:
    build = _core.build
    if not build["cuda"]:
        return f"host only, without CUDA kernels and NCCL; {build['compiler']}"
    return (
        f"CUDA {build['cuda_runtime']} for architectures {build['architectures']}, "
        f"NCCL headers {build['nccl_headers']}; {build['compiler']}"
    )


def _nccl() -> str:
    try:
        number, path = _core.nccl_version(bundled_nccl())
    except Error as error:
        return f"none: {error}"
    return f"{number // 10000}.{number // 100 % 100}.{number % 100} at {path}"


def _torch() -> str:
    if find_spec("torch") is None:
        return "not installed"
    try:
        import torch
        import torch.distributed as dist
    except Exception as error:  # a broken torch is something to report, whatever it raises
        return f"cannot be imported: {error}"
    if not dist.is_available():
        return f"{torch.__version__}, built without torch.distributed"
    _register_if_lazy(torch.__version__)
    known = "COCCL" in dist.Backend._plugins
    return f'{torch.__version__}, backend "coccl" {"registered" if known else "not registered"}'


def _register_if_lazy(version: str) -> None:
    """Does what torch 2.14 and newer do when a group first asks for the backend."""
    from importlib.metadata import entry_points

    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) >= (2, 14):
        for entry in entry_points(group="torch.distributed.backends", name="coccl"):
            entry.load()()


def _devices() -> str:
    if "torch" not in sys.modules:
        return "unknown without torch"
    import torch

    if not torch.cuda.is_available():
        return "CPU"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(["CPU", *names])


def _table(rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )


def main() -> None:
    """Prints the report."""
    print(report())


if __name__ == "__main__":
    main()
