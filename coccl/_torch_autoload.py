"""What torch's entry points call, so that the backend "coccl" is known without importing coccl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coccl.torch import CocclProcessGroup


def _create(options: Any, pg_options: Any) -> CocclProcessGroup:
    # Imported by the first group, not by every `import torch`.
    from coccl.torch import create

    return create(options, pg_options)


def register() -> None:
    """Makes the backend "coccl" known to torch.distributed; again does nothing."""
    import torch.distributed as dist

    if dist.is_available() and "COCCL" not in dist.Backend._plugins:
        dist.Backend.register_backend("coccl", _create, extended_api=True, devices=["cpu", "cuda"])


def autoload() -> None:
    """Called at the end of every `import torch`; torch 2.14 calls register() when needed."""
    try:
        import torch

        major, minor = torch.__version__.split("+")[0].split(".")[:2]
        if (int(major), int(minor)) < (2, 14):
            register()
    except Exception:  # an entry point that raises would make torch itself fail to import
        pass
