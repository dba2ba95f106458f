"""Where NVIDIA's wheel keeps its NCCL."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def bundled_nccl() -> str:
    """The path of libnccl.so.2 in the package `nvidia.nccl`, or "" if that is not installed.

    The core prefers the library that is already in the process, which is torch's.
    """
    try:
        spec = find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return ""
    for location in (spec and spec.submodule_search_locations) or ():
        library = Path(location, "lib", "libnccl.so.2")
        if library.exists():
            return str(library)
    return ""
