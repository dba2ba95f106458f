"""Compressed collectives for PyTorch and C++, over stock NCCL.

`torch.distributed.init_process_group("coccl")` uses them from PyTorch, without an import of this
package; `COCCL_COMPRESSOR` says what is compressed. `coccl.stats()` reports what was sent, and
`python -m coccl.info` what this installation can do. Importing coccl needs neither torch nor a GPU.
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING

# Run from a checkout, these sources hide the installed package, which alone holds the extension.
__path__ = extend_path(__path__, __name__)

from coccl.config import Config
from coccl.counters import Stats, reset_stats, stats
from coccl.errors import ArgumentError, CudaError, Error, TransportError, UnsupportedError

if TYPE_CHECKING:
    __version__: str

__all__ = [
    "ArgumentError",
    "Config",
    "CudaError",
    "Error",
    "Stats",
    "TransportError",
    "UnsupportedError",
    "__version__",
    "reset_stats",
    "stats",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from coccl._core import __version__

        return __version__
    raise AttributeError(f"module 'coccl' has no attribute {name!r}")
