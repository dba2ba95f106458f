"""Times coccl against NCCL (gloo on a CPU) through torch.distributed, both in the same run.

    python -m coccl.cluster "a b c d" -- python3 benchmarks/torch_all_reduce.py --sizes 1M 64M
    torchrun --nproc-per-node 8 benchmarks/torch_all_reduce.py --json result.json

Every sample draws new random data, then gives the same data to every contender in turn. A time is
the median over samples of the slowest rank's. Every result is compared with the fp64 sum of all
ranks' inputs; the exit code is 1 if a coded one is past its published bound or ranks differ.

Size is the larger buffer of a rank (as nccl-tests has it): the whole tensor of an all_reduce, the
input of a reduce_scatter, the output of an all_gather. busbw is defined as in nccl-tests.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from contenders import (
    COLLECTIVES,
    DTYPES,
    Case,
    Contender,
    World,
    make_contenders,
    make_world,
)
from error_bound import bound_used, relative_error
from torch import Tensor

import coccl
from coccl import _core
from coccl.nccl import bundled_nccl

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
BLOCK = 512  # sizes are whole blocks of every rank, so that the groups of the bound are known


@dataclass(frozen=True)
class Result:
    """One contender in one case. Times in milliseconds, bandwidths in GB/s (10^9 bytes)."""

    collective: str
    dtype: str
    size: int
    contender: str
    median_ms: float
    fastest_ms: float
    algbw: float
    busbw: float
    speedup: float  # over the baseline of the same dtype
    relative_error: float
    bound_used: float | None  # fraction of the published bound; None for the baseline
    ranks_agree: bool | None  # None where ranks end with different parts

    @property
    def right(self) -> bool:
        return self.ranks_agree is not False and (self.bound_used is None or self.bound_used <= 1)


def parse_size(text: str) -> int:
    """Bytes of "64M", "4K" or "123"."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if match is None or int(match[1]) < 1:
        raise argparse.ArgumentTypeError(f'size "{text}"; expected such as 4096, 256K, 64M or 1G')
    return int(match[1]) * UNITS[match[2]]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--sizes", nargs="+", type=parse_size, default=[1 << 20, 16 << 20, 64 << 20])
    add("--compressors", nargs="+", default=["int8h", "int4h"])
    add("--algorithms", nargs="+", default=["auto"], help="of coccl, each with each compressor")
    add("--dtypes", nargs="+", choices=DTYPES, default=["bfloat16", "float32"])
    add("--collectives", nargs="+", choices=COLLECTIVES, default=list(COLLECTIVES))
    add("--samples", type=int, default=20, help="timed samples of every case")
    add("--warm-up", type=int, default=3, help="samples before the timed ones")
    add("--seed", type=int, default=1)
    add("--json", type=Path, help="where the results are written")
    arguments = parser.parse_args()
    if arguments.samples < 1:
        parser.error(f"--samples {arguments.samples}; expected at least 1")
    if arguments.json is not None and not arguments.json.parent.is_dir():
        parser.error(f"--json {arguments.json}: no such folder")
    if "RANK" not in os.environ:
        parser.error("RANK is not set; start with torchrun or python -m coccl.cluster")
    return arguments


def time_call(case: Case, group: dist.ProcessGroup, source: Tensor, output: Tensor) -> float:
    """Seconds of one call on this rank, all ranks starting together."""
    synchronize(output.device)
    dist.barrier()
    synchronize(output.device)
    begun = time.perf_counter()
    case.run(group, source, output)
    synchronize(output.device)
    return time.perf_counter() - begun


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def contributions(case: Case, world: World, source: Tensor) -> Tensor:
    """What the output should be the sum of, [ranks or 1, output elements] in fp64."""
    everyone = source.new_empty(world.size * source.numel())
    dist.all_gather_into_tensor(everyone, source)
    if case.collective == "all_gather":
        return everyone.double()[None]
    rows = everyone.view(world.size, -1)
    if case.collective == "reduce_scatter":
        rows = rows.chunk(world.size, 1)[world.rank]
    return rows.double()


def ranks_agree(output: Tensor) -> bool:
    """Whether all ranks hold the same bits, by exact collectives over the baseline's group."""
    first = output.view(torch.uint8).clone()
    dist.broadcast(first, 0)
    differs = torch.tensor([not torch.equal(output.view(torch.uint8), first)], dtype=torch.float64)
    return largest(differs.to(output.device)) == [0]


def largest(values: Tensor) -> list[float]:
    """The largest of each value over all ranks (fp64); a NaN counts as infinite."""
    values = values.nan_to_num(nan=math.inf, posinf=math.inf)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    numbers: list[float] = values.tolist()
    return numbers


def measure(
    case: Case, contenders: Sequence[Contender], world: World, options: argparse.Namespace
) -> list[Result]:
    """All contenders in one case, taking turns; the first of them is the baseline."""
    counts = case.counts(world.size)
    source, output = (torch.empty(n, dtype=DTYPES[case.dtype], device=world.device) for n in counts)
    outputs = [output, *(torch.empty_like(output) for _ in contenders[1:])]
    seconds: list[list[float]] = [[] for _ in contenders]
    for sample in range(options.warm_up + options.samples):
        source.normal_()
        # A different one begins each time, so that none has always the same neighbour.
        for turn in range(len(contenders)):
            index = (sample + turn) % len(contenders)
            if case.collective == "all_reduce":
                outputs[index].copy_(source)
            taken = time_call(case, contenders[index].group, source, outputs[index])
            if sample >= options.warm_up:
                seconds[index].append(taken)
    slowest = [
        largest(torch.tensor(own, dtype=torch.float64, device=world.device)) for own in seconds
    ]
    expected = contributions(case, world, source)
    return [
        Result(
            **asdict(case),
            contender=contender.name,
            **speed(case, world.size, times, slowest[0]),
            **quality(case, contender, world, expected, result),
        )
        for contender, times, result in zip(contenders, slowest, outputs, strict=True)
    ]


def speed(case: Case, ranks: int, times: list[float], baseline: list[float]) -> dict[str, Any]:
    """The fields of a Result that follow from the times, in seconds."""
    median = statistics.median(times)
    algbw = case.size / median / 1e9
    rounds = 2 if case.collective == "all_reduce" else 1
    return {
        "median_ms": median * 1e3,
        "fastest_ms": min(times) * 1e3,
        "algbw": algbw,
        "busbw": algbw * rounds * (ranks - 1) / ranks,
        "speedup": statistics.median(baseline) / median,
    }


def quality(
    case: Case, contender: Contender, world: World, expected: Tensor, output: Tensor
) -> dict[str, Any]:
    """The fields of a Result that say whether the output is right; the worst of all ranks."""
    codec = contender.compressor
    errors = [relative_error(output, expected.sum(0))]
    if codec is not None:
        errors.append(bound_used(codec, contender.encodings(case, world), expected, output))
    error, *used = largest(torch.tensor(errors, dtype=torch.float64, device=world.device))
    return {
        "relative_error": error,
        "bound_used": used[0] if used else None,
        "ranks_agree": None if case.collective == "reduce_scatter" else ranks_agree(output),
    }


def print_result(result: Result) -> None:
    used = "" if result.bound_used is None else f"{result.bound_used:9.1%}"
    wrong = "" if result.right else "  WRONG"
    print(
        f"{result.collective:14s} {result.dtype:9s} {result.size:>11d} {result.contender:26s} "
        f"{result.median_ms:10.3f} {result.algbw:8.3f} {result.busbw:8.3f} {result.speedup:7.2f}x "
        f"{result.relative_error:9.1e} {used:>9s}{wrong}",
        flush=True,
    )


def print_header() -> None:
    print(
        f"{'collective':14s} {'dtype':9s} {'bytes':>11s} {'contender':26s} "
        f"{'median ms':>10s} {'algbw':>8s} {'busbw':>8s} {'speedup':>8s} {'rel. err':>9s} "
        f"{'of bound':>9s}"
    )


def nccl_version() -> str:
    """Of the library in this process, which need not be the one that torch was built with."""
    number, _ = _core.nccl_version(bundled_nccl())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def describe(world: World, hosts: list[str]) -> dict[str, Any]:
    """Where, when and with what this was measured."""
    cuda = world.device.type == "cuda"
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.executable).name, *sys.argv]),
        "ranks": world.size,
        "hosts": hosts,
        "device": torch.cuda.get_device_name() if cuda else f"CPU, {os.cpu_count()} cores",
        "baseline": dist.get_backend(),
        "nccl": nccl_version() if cuda else None,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "coccl": coccl.__version__,
        "python": platform.python_version(),
    }


def main() -> int:
    options = read_arguments()
    # torch 2.13 renames the *_tensor collectives; older ones know only these names.
    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)
    world, hosts = make_world()
    torch.manual_seed(options.seed * 100_003 + world.rank)
    contenders = make_contenders(options.compressors, options.algorithms)
    results = []
    if world.rank == 0:
        print_header()
    for collective in options.collectives:
        for dtype in options.dtypes:
            for size in options.sizes:
                whole = world.size * BLOCK * DTYPES[dtype].itemsize
                case = Case(collective, dtype, max(1, round(size / whole)) * whole)
                some = measure(case, contenders, world, options)
                results += some
                if world.rank == 0:
                    for result in some:
                        print_result(result)
    right = all(result.right for result in results)
    if world.rank == 0 and options.json is not None:
        found = {**describe(world, hosts), "results": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    dist.barrier()
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
