"""Ranks compare notes when their group is made, so that a difference is an error and not a hang."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Protocol

from coccl.errors import ArgumentError


class Store(Protocol):
    """What is used of a torch.distributed store."""

    def set(self, key: str, value: str) -> None: ...
    def wait(self, keys: list[str], timeout: timedelta) -> None: ...
    def multi_get(self, keys: list[str]) -> list[bytes]: ...


@dataclass(frozen=True)
class Note:
    """What one rank tells the others.

    settings: must be equal on all ranks; node: the host's name; failure: why this rank cannot join.
    """

    settings: Mapping[str, str]
    node: str
    failure: str = ""


def agree(store: Store, rank: int, size: int, note: Note, timeout: timedelta) -> list[int]:
    """Numbers the node of every rank, once all ranks have shown equal settings.

    Where one rank failed or two differ, every rank raises the same ArgumentError.
    """
    keys = [f"coccl/note/{peer}" for peer in range(size)]
    store.set(keys[rank], json.dumps(asdict(note)))
    store.wait(keys, timeout)
    notes = [Note(**json.loads(text)) for text in store.multi_get(keys)]
    for peer, other in enumerate(notes):
        if other.failure:
            raise ArgumentError(f"rank {peer}: {other.failure}")
    for peer, other in enumerate(notes):
        for key, value in notes[0].settings.items():
            if other.settings.get(key) != value:
                raise ArgumentError(
                    f"ranks disagree on {key}: {value} on rank 0, "
                    f"{other.settings.get(key)} on rank {peer}"
                )
    numbers = {name: number for number, name in enumerate(dict.fromkeys(n.node for n in notes))}
    return [numbers[n.node] for n in notes]
