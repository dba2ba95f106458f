"""The short forms in which torch's group methods may be called, made into the long ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ReduceOp

_NO_TIMEOUT = timedelta(milliseconds=-1)


def as_list(tensors: Any) -> list[torch.Tensor]:
    """The tensors, of which one may stand alone."""
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def options_of(kind: Any, opts: Any, timeout: timedelta | None = None, op: Any = None) -> Any:
    """`opts`, or new options of that kind where a short form gave an op, or nothing."""
    if opts is not None and not isinstance(opts, ReduceOp | ReduceOp.RedOpType):
        return opts
    made = kind()
    op = opts if opts is not None else op
    if op is not None:
        made.reduceOp = op
    if timeout is not None and timeout != _NO_TIMEOUT:
        made.timeout = timeout
    return made
