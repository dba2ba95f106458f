"""What tests of collectives share: the methods of this build, inputs, exact results and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from world import HALF_ULP, World

from coccl import _core
from coccl.bounds import error_bound, error_size
from coccl.reference import REFERENCE

COMPRESSORS = [info.name for info in _core.compressors()]


@dataclass(frozen=True)
class Method:
    """A collective by one algorithm."""

    info: Any  # _core.AlgorithmInfo

    @property
    def collective(self) -> str:
        return str(self.info.collective)

    @property
    def algorithm(self) -> str:
        return str(self.info.name)

    @property
    def reduces(self) -> bool:
        return self.collective != "all_gather"

    def __str__(self) -> str:
        return f"{self.collective}-{self.algorithm}"

    @property
    def layouts(self) -> list[Layout]:
        """Those that make a difference to it: few where it does not look at nodes."""
        return [*SMALL, *(SEVERAL_NODES if self.algorithm == "hierarchical" else UNEVEN)]

    def input_count(self, count: int, size: int) -> int:
        return count * size if self.collective == "reduce_scatter" else count

    def run(
        self, world: World, inputs: Sequence[torch.Tensor], compressor: str, **options: Any
    ) -> list[torch.Tensor]:
        """Every rank's output."""
        device = [x.to(world.device) for x in inputs]
        outputs = world.run(
            lambda rank: rank.run(
                self.collective, device[rank.index], compressor, self.algorithm, **options
            )
        )
        return [out.cpu() for out in outputs]


METHODS = [Method(info) for info in _core.algorithms()]
REDUCTIONS = [method for method in METHODS if method.reduces]

each_method = pytest.mark.parametrize("method", METHODS, ids=str)
each_reduction = pytest.mark.parametrize("method", REDUCTIONS, ids=str)
each_compressor = pytest.mark.parametrize("compressor", COMPRESSORS)

Layout = tuple[
    int, tuple[int, ...]
]  # ranks, and the node of each; all on one node if none is named

SMALL: list[Layout] = [(2, ()), (3, ()), (4, ())]
UNEVEN: list[Layout] = [(5, (2, 0, 2, 0, 1)), (8, (0, 0, 0, 1, 1, 1, 2, 2))]
SEVERAL_NODES: list[Layout] = [(2, (0, 1)), (3, (0, 0, 1)), (4, (0, 0, 1, 1)), *UNEVEN]


@dataclass(frozen=True)
class Piece:
    """A part of an output that some ranks hold, and what went into it."""

    ranks: Sequence[int]
    place: slice
    terms: npt.NDArray[np.float32]  # [contributions, count]


def pieces_of(method: Method, inputs: Sequence[torch.Tensor]) -> Iterator[Piece]:
    rows = np.stack([x.float().numpy() for x in inputs])
    size, count = len(rows), rows.shape[1]
    everyone = range(size)
    if method.collective == "all_reduce":
        yield Piece(everyone, slice(0, count), rows)
    elif method.collective == "reduce_scatter":
        count //= size
        for rank in everyone:
            part = rows[:, rank * count : (rank + 1) * count]
            yield Piece([rank], slice(0, count), part)
    else:
        for rank in everyone:
            place = slice(rank * count, (rank + 1) * count)
            yield Piece(everyone, place, rows[rank : rank + 1])


def exact_outputs(
    method: Method, inputs: Sequence[torch.Tensor], op: str = "sum"
) -> list[torch.Tensor]:
    """Every rank's output in float64, without any compression."""
    size, count = len(inputs), inputs[0].numel()
    length = {"all_reduce": count, "reduce_scatter": count // size, "all_gather": count * size}
    outputs = [torch.zeros(length[method.collective], dtype=torch.float64) for _ in inputs]
    for piece in pieces_of(method, inputs):
        total = piece.terms.astype(np.float64).sum(axis=0) / (size if op == "avg" else 1)
        for rank in piece.ranks:
            outputs[rank][piece.place] = torch.from_numpy(total)
    return outputs


def within_bound(
    method: Method,
    compressor: str,
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    nodes: Sequence[int] = (),
    op: str = "sum",
) -> bool:
    """Whether every output keeps to the published bound of its codec and algorithm."""
    codec, size = REFERENCE[compressor], len(inputs)
    encodings = method.info.encodings(size, list(nodes))
    scale = 1 / size if op == "avg" else 1.0
    relative, absolute = HALF_ULP[outputs[0].dtype]
    for piece in pieces_of(method, inputs):
        exact = piece.terms.astype(np.float64).sum(axis=0) * scale
        bound = error_bound(codec, piece.terms, encodings, scale)
        for rank in piece.ranks:
            got = outputs[rank][piece.place].double().numpy()
            slack = error_size(codec, np.abs(got) * relative + absolute, np.zeros_like(got))
            if not (error_size(codec, got, exact) <= bound + slack).all():
                return False
    return True


def exact_places(codec_name: str, count: int) -> slice:
    """Where constant data come out exactly: not in a rotated codec's last, partial group."""
    codec = REFERENCE[codec_name]
    return slice(0, count // codec.group * codec.group if codec.rotated else count)


def filled(
    method: Method,
    size: int,
    count: int,
    dtype: torch.dtype,
    value: Callable[[int], float] = lambda _rank: 1.0,
) -> list[torch.Tensor]:
    """One input for each rank, full of one value."""
    length = method.input_count(count, size)
    return [torch.full((length,), value(rank), dtype=dtype) for rank in range(size)]


def randoms(
    method: Method, size: int, count: int, dtype: torch.dtype, seed: int = 0
) -> list[torch.Tensor]:
    """One normal input for each rank."""
    rng = np.random.default_rng([seed, size, count])
    length = method.input_count(count, size)
    return [torch.from_numpy(rng.standard_normal(length)).to(dtype) for _ in range(size)]
