"""Who a rank is within its group, and how it gets there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from torch._C._distributed_c10d import Store

from coccl import _core
from coccl.config import Config, node_name
from coccl.counters import COLLECTIVES
from coccl.errors import ArgumentError
from coccl.torch.agreement import Note, agree


@dataclass(frozen=True)
class Membership:
    """A rank's place in its group, and the store through which the ranks find each other.

    nodes: the number of the node of every rank.
    """

    store: Store
    rank: int
    size: int
    nodes: list[int]
    timeout: timedelta
    poison_scratch: bool


def join(
    store: Store, rank: int, size: int, timeout: timedelta, pg_options: object
) -> tuple[Config, dict[str, tuple[str, str]], Membership]:
    """The configuration, the methods of the coded collectives and this rank's place.

    Returns once all ranks agree; raises ArgumentError on all of them where they do not.
    """
    known: dict[str, list[str]] = {collective: [] for collective in COLLECTIVES}
    for algorithm in _core.algorithms():
        known[algorithm.collective].append(algorithm.name)
    config = Config()
    methods: dict[str, tuple[str, str]] = {}
    failure = ""
    try:
        config = pg_options if isinstance(pg_options, Config) else Config.from_environment()
        methods = config.validate([compressor.name for compressor in _core.compressors()], known)
    except ArgumentError as error:
        failure = str(error)
    # Ranks that differ in version might differ in what they send.
    settings = {"coccl.__version__": _core.__version__, **config.settings()}
    nodes = agree(store, rank, size, Note(settings, node_name(), failure), timeout)
    return config, methods, Membership(store, rank, size, nodes, timeout, config.poison_scratch)
