"""What is coded and what is left to NCCL or gloo: decided from values equal on every rank alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import torch
from torch.distributed import ReduceOp

from coccl.config import Config
from coccl.errors import UnsupportedError

# The numbers of coccl::DataType and coccl::Op, for what can be coded.
TYPES: Mapping[torch.dtype, int] = {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}
OPS: Mapping[ReduceOp, int] = {
    ReduceOp(ReduceOp.SUM): 0,
    ReduceOp(ReduceOp.AVG): 4,
}


class Bypass(str, Enum):
    """Why a call is left uncoded."""

    NO_COMPRESSOR = "no_compressor"  # none was chosen for the collective
    DTYPE = "dtype"  # only fp32, bf16 and fp16 are coded; complex numbers are not
    OP = "op"  # only SUM and AVG are coded
    SIZE = "size"  # smaller than COCCL_MIN_BYTES, or empty
    ONE_RANK = "one_rank"  # nothing is sent
    LAYOUT = "layout"  # sparse and other layouts without strides
    DEVICE = "device"  # neither CPU nor CUDA memory, or both
    LIST_FORM = "list_form"  # a collective over lists of tensors, which has no coded form


class Method(NamedTuple):
    """How a call is coded."""

    compressor: str
    algorithm: str
    op: int = 0


class Policy:
    """Chooses a Method or a Bypass for each call of a group of `size` ranks.

    methods: the (compressor, algorithm) of each coded collective, see Config.validate().
    """

    def __init__(self, config: Config, size: int, methods: Mapping[str, tuple[str, str]]) -> None:
        self._methods = dict(methods)
        self._size = size
        self._min_bytes = max(config.min_bytes, 1)
        self._strict = config.strict

    def choose(
        self, collective: str, tensors: Sequence[torch.Tensor], op: ReduceOp | None
    ) -> Method | Bypass:
        """Judges a call by the tensors of its larger side; `op` is None where nothing is reduced.

        Strict groups raise UnsupportedError for a bypass of a collective that has a compressor,
        except that of a single rank.
        """
        names = self._methods.get(collective)
        if names is None:
            return Bypass.NO_COMPRESSOR
        if self._size == 1:
            return Bypass.ONE_RANK
        number = 0 if op is None else OPS.get(op)
        bypass = self._bypass(tensors, number)
        if bypass is None:
            return Method(*names, number or 0)
        if self._strict:
            raise UnsupportedError(_strict_message(collective, names[0], tensors, op, bypass))
        return bypass

    def list_form(self, collective: str, tensors: Sequence[torch.Tensor]) -> Bypass:
        """The bypass of a collective over lists, an error like others in strict groups.

        Types that are never coded pass there too, since object collectives travel in this form.
        """
        names = self._methods.get(collective)
        if names is None:
            return Bypass.NO_COMPRESSOR
        bypass = Bypass.ONE_RANK if self._size == 1 else Bypass.LIST_FORM
        coded_type = any(tensor.dtype in TYPES for tensor in tensors)
        if self._strict and coded_type and bypass is Bypass.LIST_FORM:
            raise UnsupportedError(_strict_message(collective, names[0], tensors, None, bypass))
        return bypass

    def _bypass(self, tensors: Sequence[torch.Tensor], op: int | None) -> Bypass | None:
        if not tensors:
            return Bypass.SIZE
        first = tensors[0]
        if any(t.dtype != first.dtype or _holds_complex(t) for t in tensors):
            return Bypass.DTYPE
        if first.dtype not in TYPES:
            return Bypass.DTYPE
        if op is None:
            return Bypass.OP
        if any(t.layout is not torch.strided for t in tensors):
            return Bypass.LAYOUT
        if not (all(t.is_cuda for t in tensors) or all(t.is_cpu for t in tensors)):
            return Bypass.DEVICE
        if sum(t.numel() for t in tensors) * first.itemsize < self._min_bytes:
            return Bypass.SIZE
        return None


def _holds_complex(tensor: torch.Tensor) -> bool:
    """Whether these are parts of complex numbers, which torch.distributed hands over as reals."""
    if not tensor._is_view():
        return False
    base = tensor._base
    return base is not None and base.is_complex()


def _strict_message(
    collective: str,
    compressor: str,
    tensors: Sequence[torch.Tensor],
    op: ReduceOp | None,
    bypass: Bypass,
) -> str:
    what = ", ".join(f"{t.dtype}{list(t.shape)}" for t in tensors[:3]) or "no tensors"
    return (
        f"COCCL_STRICT: {collective} of {what}{f' with {op}' if op is not None else ''} cannot be "
        f'coded with "{compressor}": {bypass.value}'
    )
