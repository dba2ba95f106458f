"""Who competes in a benchmark, and at what: ranks, cases, and the process groups that run them."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import coccl
from coccl import _core

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")


@dataclass(frozen=True)
class World:
    """The ranks: this one, how many, where its tensors live, and the node of each."""

    rank: int
    size: int
    device: torch.device
    nodes: list[int]


@dataclass(frozen=True)
class Case:
    """One collective on one size and type of data; `size` in bytes."""

    collective: str
    dtype: str
    size: int

    def counts(self, ranks: int) -> tuple[int, int]:
        """Elements of a rank's input and output."""
        whole = self.size // DTYPES[self.dtype].itemsize
        return {
            "all_reduce": (whole, whole),
            "reduce_scatter": (whole, whole // ranks),
            "all_gather": (whole // ranks, whole),
        }[self.collective]

    def run(self, group: dist.ProcessGroup, source: Tensor, output: Tensor) -> None:
        """The call itself; the output of an all_reduce holds its input already."""
        if self.collective == "all_reduce":
            dist.all_reduce(output, group=group)
        elif self.collective == "reduce_scatter":
            dist.reduce_scatter_tensor(output, source, group=group)
        else:
            dist.all_gather_into_tensor(output, source, group=group)


@dataclass(frozen=True)
class Contender:
    """A process group that runs every case; the baseline's has no compressor."""

    name: str
    group: dist.ProcessGroup
    compressor: Any = None  # a row of _core.compressors()
    algorithm: str = ""

    def encodings(self, case: Case, world: World) -> int:
        """How often an element is encoded on its way."""
        name = self.algorithm
        if name == "auto":
            name = _core.select(case.collective, case.size, world.size, world.nodes)
        for info in _core.algorithms():
            if (info.collective, info.name) == (case.collective, name):
                return int(info.encodings(world.size, world.nodes))
        raise LookupError(f'no algorithm "{name}" of {case.collective}')


def make_world() -> tuple[World, list[str]]:
    """Joins the baseline's group; also the host name of every rank."""
    cuda = torch.cuda.is_available()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    else:
        ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks_here))
    dist.init_process_group("nccl" if cuda else "gloo")
    hosts = [""] * dist.get_world_size()
    dist.all_gather_object(hosts, os.environ.get("NCCL_HOSTID", socket.gethostname()))
    order = list(dict.fromkeys(hosts))
    nodes = [order.index(host) for host in hosts]
    return World(dist.get_rank(), len(hosts), device, nodes), hosts


def make_contenders(compressors: Sequence[str], algorithms: Sequence[str]) -> list[Contender]:
    """The baseline, then coccl with every compressor and algorithm."""
    assert dist.group.WORLD is not None
    contenders = [Contender(dist.get_backend(), dist.group.WORLD)]
    rows = {row.name: row for row in _core.compressors()}
    for compressor in compressors:
        for algorithm in algorithms:
            everywhere = ",".join(f"{collective}:{compressor}" for collective in COLLECTIVES)
            config = coccl.Config(everywhere, algorithm, min_bytes=0, strict=True)
            group = dist.new_group(backend="coccl", pg_options=config)
            name = f"{compressor} {algorithm}"
            contenders.append(Contender(name, group, rows[compressor], algorithm))
    return contenders
