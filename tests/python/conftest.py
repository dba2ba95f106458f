from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torch_world import World


@pytest.fixture(scope="session")
def torch_world() -> Iterator[Callable[[int], World]]:
    """World of a given size, shared by all tests and made anew after a failure."""
    from torch_world import World

    worlds: dict[int, World] = {}

    def world(size: int) -> World:
        if size in worlds and worlds[size].broken:
            del worlds[size]
        if size not in worlds:
            worlds[size] = World(size)
        return worlds[size]

    yield world
    for one in worlds.values():
        one.close()
