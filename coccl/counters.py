"""Counts what the process groups of this process sent, and what they left uncoded and why."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")


@dataclass(frozen=True)
class CollectiveStats:
    """Of one collective, on this rank, since the start or the last reset.

    calls: coded calls.
    tensor_bytes: bytes of their tensors, the larger side of each call.
    raw_bytes: bytes that a bandwidth-optimal algorithm hands to other ranks uncoded:
        2(n-1)/n of the tensor for an all_reduce over n ranks, (n-1)/n for the others.
    wire_bytes: bytes that were handed to other ranks, as the transport counted them.
    bypasses: calls that went to NCCL or gloo untouched, by reason.
    """

    calls: int = 0
    tensor_bytes: int = 0
    raw_bytes: int = 0
    wire_bytes: int = 0
    bypasses: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ratio(self) -> float:
        """raw_bytes / wire_bytes, 1.0 where nothing was sent.

        An algorithm that sends more than the optimum, such as a one-shot all_reduce, shows as a
        lower ratio than its codec has.
        """
        return self.raw_bytes / self.wire_bytes if self.wire_bytes else 1.0


@dataclass(frozen=True)
class Stats:
    """A snapshot of this process's counters; printing it gives a table."""

    all_reduce: CollectiveStats
    reduce_scatter: CollectiveStats
    all_gather: CollectiveStats

    def __str__(self) -> str:
        header = ("collective", "coded", "raw MB", "sent MB", "ratio", "bypassed")
        rows = [header]
        for name in COLLECTIVES:
            one: CollectiveStats = getattr(self, name)
            bypassed = ", ".join(f"{reason} {n}" for reason, n in sorted(one.bypasses.items()))
            rows.append(
                (
                    name,
                    str(one.calls),
                    f"{one.raw_bytes / 1e6:.2f}",
                    f"{one.wire_bytes / 1e6:.2f}",
                    f"{one.ratio:.2f}",
                    bypassed or "0",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(header) - 1)]
        return "\n".join(
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
                + [row[-1]]
            ).rstrip()
            for row in rows
        )


class _Counters:
    """The counters of one collective; the caller holds the lock."""

    def __init__(self) -> None:
        self.calls = self.tensor_bytes = self.raw_bytes = self.wire_bytes = 0
        self.bypasses: Counter[str] = Counter()

    def snapshot(self) -> CollectiveStats:
        return CollectiveStats(
            self.calls,
            self.tensor_bytes,
            self.raw_bytes,
            self.wire_bytes,
            MappingProxyType(dict(self.bypasses)),
        )


# The counters belong to the process, since `coccl.stats()` asks for no group: groups come and go,
# and torch itself makes some that a user never sees.
_lock = threading.Lock()
_counters = {name: _Counters() for name in COLLECTIVES}


def count_call(collective: str, tensor_bytes: int, size: int, wire_bytes: int) -> None:
    """Counts a coded call over `size` ranks that handed `wire_bytes` to other ranks."""
    rounds = 2 if collective == "all_reduce" else 1
    with _lock:
        counters = _counters[collective]
        counters.calls += 1
        counters.tensor_bytes += tensor_bytes
        counters.raw_bytes += rounds * (size - 1) * tensor_bytes // size
        counters.wire_bytes += wire_bytes


def count_bypass(collective: str, reason: str) -> None:
    """Counts a call that was left uncoded."""
    with _lock:
        _counters[collective].bypasses[reason] += 1


def stats() -> Stats:
    """What this process's coccl groups have done since the start or the last `reset_stats()`."""
    with _lock:
        return Stats(**{name: counters.snapshot() for name, counters in _counters.items()})


def reset_stats() -> None:
    """Sets every counter to zero."""
    with _lock:
        for name in COLLECTIVES:
            _counters[name] = _Counters()
