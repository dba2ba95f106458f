"""Ranks as threads of this process: what every test of collectives stands on."""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import torch

from coccl import _core

T = TypeVar("T")

# ncclDataType_t and ncclRedOp_t, which the library's numbers are.
TYPE_OF = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.int32: 2,
    torch.int64: 4,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bfloat16: 9,
}
OP = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
RAW_TYPES = [torch.float32, torch.bfloat16, torch.float16]
# Half an ulp of a value, as a fraction of it, and below the smallest normal value.
HALF_ULP = {
    torch.float32: (2.0**-24, 2.0**-150),
    torch.bfloat16: (2.0**-8, 2.0**-134),
    torch.float16: (2.0**-11, 2.0**-25),
}

GUARD = 64  # elements on either side of a guarded tensor
_GUARD_VALUE = 77  # exact in every type


class Guarded:
    """A tensor of `count` elements, `shift` past alignment, between elements that must stay."""

    def __init__(self, count: int, dtype: torch.dtype, device: str, shift: int = 0) -> None:
        self._all = torch.full((count + 2 * GUARD + shift,), _GUARD_VALUE, dtype=dtype)
        self._all = self._all.to(device)
        self._first = GUARD + shift
        self.tensor = self._all[self._first : self._first + count]

    @classmethod
    def copy_of(cls, x: torch.Tensor, shift: int = 0) -> Guarded:
        guarded = cls(x.numel(), x.dtype, x.device.type, shift)
        guarded.tensor.copy_(x)
        return guarded

    def check(self) -> None:
        before = self._all[: self._first]
        after = self._all[self._first + self.tensor.numel() :]
        untouched = torch.full_like(before, _GUARD_VALUE)
        assert torch.equal(before, untouched), "the guard before the tensor was changed"
        assert torch.equal(after, untouched[: after.numel()]), "the guard after it was changed"


def sha256(x: torch.Tensor) -> str:
    """Of the bits of a tensor."""
    return hashlib.sha256(x.contiguous().cpu().view(torch.uint8).numpy().tobytes()).hexdigest()


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Equal to the bit, where any NaN equals any other."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    integer = {2: torch.int16, 4: torch.int32}[x.element_size()]
    if torch.equal(x.view(integer), y.view(integer)):
        return True
    nan = torch.isnan(x)
    numbers = x.view(integer)[~nan], y.view(integer)[~nan]
    return torch.equal(nan, torch.isnan(y)) and torch.equal(*numbers)


def address(x: torch.Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


def current_stream(device: str) -> int | None:
    """The stream handle that the library takes: None means host memory."""
    return None if device == "cpu" else int(torch.cuda.current_stream().cuda_stream)


@dataclass
class Rank:
    """One rank's end. Collectives return a tensor of their own, whose guards were checked."""

    index: int
    size: int
    comm: Any  # _core.Communicator
    device: str

    def all_reduce(
        self,
        x: torch.Tensor,
        compressor: str = "none",
        algorithm: str = "auto",
        op: str = "sum",
        in_place: bool = False,
    ) -> torch.Tensor:
        source = Guarded.copy_of(x)
        out = source if in_place else Guarded(x.numel(), x.dtype, self.device)
        self._call("all_reduce", source, out, x.numel(), (OP[op],), compressor, algorithm)
        return self._result(x, source, out, in_place)

    def reduce_scatter(
        self,
        x: torch.Tensor,
        compressor: str = "none",
        algorithm: str = "auto",
        op: str = "sum",
        in_place: bool = False,
    ) -> torch.Tensor:
        count = x.numel() // self.size
        source = Guarded.copy_of(x)
        if in_place:
            own = slice(self.index * count, (self.index + 1) * count)
            out = source.tensor[own]
            self._call("reduce_scatter", source, out, count, (OP[op],), compressor, algorithm)
            source.check()
            result = out.clone()
            out.copy_(x[own])
            assert same_bits(source.tensor, x), "other parts of the input were changed"
            return result
        out = Guarded(count, x.dtype, self.device)
        self._call("reduce_scatter", source, out, count, (OP[op],), compressor, algorithm)
        return self._result(x, source, out)

    def all_gather(
        self,
        x: torch.Tensor,
        compressor: str = "none",
        algorithm: str = "auto",
        in_place: bool = False,
    ) -> torch.Tensor:
        count = x.numel()
        out = Guarded(count * self.size, x.dtype, self.device)
        if in_place:
            own = out.tensor[self.index * count : (self.index + 1) * count]
            own.copy_(x)
            self._call("all_gather", own, out, count, (), compressor, algorithm)
            out.check()
            return out.tensor.clone()
        source = Guarded.copy_of(x)
        self._call("all_gather", source, out, count, (), compressor, algorithm)
        return self._result(x, source, out)

    def run(self, collective: str, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        result: torch.Tensor = getattr(self, collective)(x, *args, **kwargs)
        return result

    def _call(
        self,
        collective: str,
        source: Guarded | torch.Tensor,
        out: Guarded | torch.Tensor,
        count: int,
        op: tuple[int, ...],
        compressor: str,
        algorithm: str,
    ) -> None:
        tensors = [t.tensor if isinstance(t, Guarded) else t for t in (source, out)]
        getattr(self.comm, collective)(
            *map(address, tensors),
            count,
            TYPE_OF[tensors[0].dtype],
            *op,
            current_stream(self.device),
            compressor,
            algorithm,
        )

    def _result(
        self, x: torch.Tensor, source: Guarded, out: Guarded, in_place: bool = False
    ) -> torch.Tensor:
        out.check()
        if not in_place:
            source.check()
            assert same_bits(source.tensor, x.reshape(-1)), "the input was changed"
        return out.tensor.clone()


class World:
    """`size` ranks over a local hub. On "cuda" each rank has a stream of its own."""

    def __init__(
        self,
        size: int,
        device: str = "cpu",
        nodes: Sequence[int] = (),
        poison_scratch: bool = False,
        timeout_s: float = 30.0,
    ) -> None:
        self.size = size
        self.device = device
        self._hub = _core.LocalHub(size, list(nodes), timeout_s)
        make = _core.Communicator.local
        self.ranks = [
            Rank(rank, size, make(self._hub, rank, poison_scratch), device) for rank in range(size)
        ]
        self._streams = [torch.cuda.Stream() for _ in range(size)] if device == "cuda" else None

    def run(self, work: Callable[[Rank], T]) -> list[T]:
        """Every rank's result, in rank order. The first error of any rank is raised again."""
        results: list[Any] = [None] * self.size
        errors: list[tuple[int, BaseException]] = []

        def body(rank: Rank) -> None:
            try:
                with self._on_stream(rank.index):
                    results[rank.index] = work(rank)
            except BaseException as error:  # whatever it is, the other ranks must not wait for it
                errors.append((rank.index, error))
                self._hub.close(f"rank {rank.index} failed: {error}")

        if self.device == "cuda":
            torch.cuda.synchronize()
        threads = [threading.Thread(target=body, args=(rank,)) for rank in self.ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            others = [f"rank {rank}: {error!r}" for rank, error in errors[1:]]
            first = errors[0][1]
            if others:
                first.args = ("\n".join([str(first), "after it,", *others]),)
            raise first
        return results

    def errors(self, work: Callable[[Rank], object]) -> list[BaseException | None]:
        """What each rank raised."""

        def caught(rank: Rank) -> BaseException | None:
            try:
                work(rank)
            except Exception as error:
                return error
            return None

        return self.run(caught)

    def close(self, reason: str) -> None:
        self._hub.close(reason)

    @contextmanager
    def _on_stream(self, rank: int) -> Iterator[None]:
        stream = self._streams[rank] if self._streams else None
        with torch.cuda.stream(stream) if stream else nullcontext():
            yield
        if stream:
            stream.synchronize()


def cases_of(module: ModuleType) -> dict[str, Callable[..., object]]:
    """The tests of a module that ask for a device, to run them again on another one."""
    return {
        name: test
        for name, test in vars(module).items()
        if name.startswith("test_") and "device" in inspect.signature(test).parameters
    }
