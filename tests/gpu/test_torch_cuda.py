"""The torch backend on CUDA tensors, over ranks that share one GPU (see coccl.cluster).

pytest launches this very file as every rank of a virtual cluster; as a rank it runs all checks and
names those that failed. A check is a function `check_…(world)`; ranks tell each other how it went.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import coccl
from coccl import Config, _core
from coccl.bounds import error_bound, error_size
from coccl.reference import REFERENCE

pytestmark = pytest.mark.gpu

MI = 1 << 20
FLOATS = [torch.float32, torch.bfloat16, torch.float16]
CODECS = [c.name for c in _core.compressors()]
ALL = "all_reduce:int8,reduce_scatter:int8,all_gather:int8"
GUARD = 64


@pytest.mark.timeout(600)
@pytest.mark.parametrize("layout", ["a b", "a b c", "a b c d"])
def test_every_check_holds_on_ranks_that_share_the_gpu(layout: str) -> None:
    command = [sys.executable, "-m", "coccl.cluster", layout, "--", sys.executable, __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    assert f"all {len(CHECKS)} checks hold" in done.stdout


class World:
    """This rank: its place, its GPU and groups of all ranks."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.nccl = dist.new_group(backend="nccl")

    @contextmanager
    def group(self, **settings: Any) -> Iterator[Any]:
        made = dist.new_group(backend="coccl", pg_options=Config(**{"min_bytes": 0, **settings}))
        coccl.reset_stats()
        yield made
        torch.cuda.synchronize()
        dist.destroy_process_group(made)

    def data(self, dtype: torch.dtype, count: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1 + self.rank)
        if dtype.is_floating_point:
            return torch.randn(count, generator=generator).to(dtype).cuda()
        return torch.randint(0, 100, (count,), generator=generator).to(dtype).cuda()


def call(pg: Any, collective: str, x: torch.Tensor, op: Any = dist.ReduceOp.SUM) -> torch.Tensor:
    if collective == "all_reduce":
        out = x.clone()
        dist.all_reduce(out, op, group=pg)
    elif collective == "reduce_scatter":
        out = x.new_empty(x.numel() // pg.size())
        dist.reduce_scatter_tensor(out, x, op, group=pg)
    else:
        out = x.new_empty(x.numel() * pg.size())
        dist.all_gather_into_tensor(out, x, group=pg)
    return out


def sha(x: torch.Tensor) -> str:
    return hashlib.sha256(x.contiguous().view(torch.uint8).cpu().numpy().tobytes()).hexdigest()


def same_on_all_ranks(value: Any) -> bool:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return all(other == values[0] for other in values)


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous().view(torch.uint8)


# -- values ----------------------------------------------------------------------------------------


def check_nothing_is_lossy_without_a_compressor(world: World) -> None:
    ops = [dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX]
    dtypes = [*FLOATS, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64]
    with world.group() as pg:
        for dtype in dtypes:
            x = world.data(dtype, 12 * 10_007)
            for collective in ("all_reduce", "reduce_scatter", "all_gather"):
                for op in ops if collective != "all_gather" else ops[:1]:
                    if op == dist.ReduceOp.AVG and not dtype.is_floating_point:
                        continue
                    ours, theirs = call(pg, collective, x, op), call(world.nccl, collective, x, op)
                    assert torch.equal(bits(ours), bits(theirs)), (dtype, collective, op)
        assert coccl.stats().all_reduce.calls == 0


def check_the_five_ops_have_their_values(world: World) -> None:
    """V4, and PRODUCT, MIN and MAX bit-equal to NCCL at 64 MiB."""
    n = world.size
    with world.group(compressor="int8") as pg:
        x = torch.full((5000,), world.rank + 2.0, device="cuda")
        inputs = [rank + 2.0 for rank in range(n)]
        product = 1.0
        for value in inputs:
            product *= value
        expected = {"SUM": sum(inputs), "PRODUCT": product, "MIN": 2.0, "MAX": n + 1.0}
        for op, value in {**expected, "AVG": sum(inputs) / n}.items():
            out = call(pg, "all_reduce", x, getattr(dist.ReduceOp, op))
            assert torch.allclose(out, torch.full_like(out, value), rtol=1e-6), (op, out[:4])
        large = world.data(torch.float32, 16 * MI)
        for op in (dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            ours, theirs = (call(g, "all_reduce", large, op) for g in (pg, world.nccl))
            assert torch.equal(bits(ours), bits(theirs))


def check_premultiplied_sums_are_those_of_nccl(world: World) -> None:
    """V5. In bf16 the sum is whatever NCCL makes of it: torch 2.11 over NCCL 2.28.9 gives zeros."""
    half = dist._make_nccl_premul_sum(0.5)
    with world.group(compressor="int8") as pg:
        x = torch.full((5000,), world.rank + 1.0, device="cuda")
        ours = call(pg, "all_reduce", x, half)
        assert torch.equal(ours, torch.full_like(x, sum(range(1, world.size + 1)) / 2))
        ours, theirs = (call(g, "all_reduce", x.bfloat16(), half) for g in (pg, world.nccl))
        assert torch.equal(bits(ours), bits(theirs))
        assert coccl.stats().all_reduce.bypasses == {"op": 2}


def check_what_nccl_cannot_do_is_a_clear_error(world: World) -> None:
    """V6."""
    with world.group(compressor="int8") as pg:
        with pytest.raises(Exception, match=r"(?i)bitwise|BXOR"):
            dist.all_reduce(torch.ones(5000, device="cuda"), dist.ReduceOp.BXOR, group=pg)
        z = torch.ones(5000, dtype=torch.complex64, device="cuda")
        with pytest.raises(ValueError, match="complex"):
            dist.all_reduce(z, dist.ReduceOp.MAX, group=pg)
        z = torch.full((MI,), 1 + 2j, dtype=torch.complex64, device="cuda")
        dist.all_reduce(z, group=pg)
        assert torch.equal(z, torch.full_like(z, world.size * (1 + 2j)))


def check_integers_and_doubles_are_exact(world: World) -> None:
    """V7."""
    with world.group(compressor=ALL) as pg:
        first = world.rank == 0
        big = torch.full((16 * MI,), (2**53 + 1) * first, dtype=torch.int64, device="cuda")
        assert torch.equal(call(pg, "all_reduce", big), torch.full_like(big, 2**53 + 1))
        small = torch.full((16 * MI,), 120 * first, dtype=torch.int8, device="cuda")
        small += 100 if world.rank == 1 else 0
        assert torch.equal(call(pg, "all_reduce", small), torch.full_like(small, -36))
        mine = world.data(torch.uint8, 16 * MI)
        gathered = call(pg, "all_gather", mine).view(world.size, -1)
        assert torch.equal(gathered[world.rank], mine)
        fine = torch.full((16 * MI,), 1 + 2.0**-40, dtype=torch.float64, device="cuda")
        doubled = call(pg, "all_reduce", fine)
        assert torch.equal(doubled, fine * world.size)


def check_objects_travel_unharmed(world: World) -> None:
    """V8."""
    with world.group(compressor=ALL, strict=True) as pg:
        texts: list[Any] = [None] * world.size
        dist.all_gather_object(texts, chr(ord("a") + world.rank) * 2_000_000, group=pg)
        assert texts == [chr(ord("a") + peer) * 2_000_000 for peer in range(world.size)]
        dist.barrier(group=pg)


def check_ones_sum_to_the_number_of_ranks_between_guards(world: World) -> None:
    """V9, V11 and V12's types."""
    n = world.size
    counts = [1, 2, 3, n - 1, n, n + 1, 7, 127, 128, 129, 255, 257, 511, 513, 4095, 1_055_659]
    for codec in CODECS:
        rotated = codec in {c.name for c in _core.compressors() if c.rotated}
        with world.group(compressor=codec, poison_scratch=True) as pg:
            for dtype in FLOATS:
                for count in counts:
                    whole = torch.full((count + 2 * GUARD,), 77.0, dtype=dtype, device="cuda")
                    x = whole[GUARD : GUARD + count]
                    x.fill_(1)
                    dist.all_reduce(x, group=pg)
                    if not rotated:  # whose tail groups are padded, and so not constant
                        assert torch.equal(x, torch.full_like(x, n)), (codec, dtype, count)
                    assert x.isfinite().all()
                    guards = torch.cat([whole[:GUARD], whole[GUARD + count :]])
                    assert torch.equal(guards, torch.full_like(guards, 77)), (codec, count)


def _sum_of(world: World, pg: Any, rows: list[torch.Tensor]) -> torch.Tensor:
    """The group's sum of rows[rank], on the CPU in the rows' type."""
    x = rows[world.rank].to("cuda", copy=True)
    dist.all_reduce(x, group=pg)
    return x.cpu()


def _bounds(codec: str, world: World, rows: list[torch.Tensor], out: torch.Tensor) -> Any:
    """(size of the error, its bound) of each group of a sum by the algorithm that auto chooses."""
    inputs = torch.stack(rows).double()
    exact = inputs.sum(0)
    size = rows[0].numel() * rows[0].itemsize
    name = _core.select("all_reduce", size, world.size, list(range(world.size)))
    info = next(a for a in _core.algorithms() if (a.collective, a.name) == ("all_reduce", name))
    encodings = info.encodings(world.size, list(range(world.size)))
    bound = error_bound(REFERENCE[codec], inputs.float().numpy(), encodings)
    half_ulp = torch.finfo(out.dtype).eps / 2 * out.double().abs() + torch.finfo(out.dtype).tiny
    rounding = error_size(REFERENCE[codec], half_ulp.numpy(), torch.zeros_like(exact).numpy())
    return error_size(REFERENCE[codec], out.double().numpy(), exact.numpy()), bound + rounding


def check_an_outlier_spoils_its_group_alone(world: World) -> None:
    """V1."""
    rows = [torch.ones(1024, dtype=torch.bfloat16) for _ in range(world.size)]
    rows[0][0] = 1e30
    for info in _core.compressors():
        with world.group(compressor=info.name) as pg:
            out = _sum_of(world, pg, rows)
        assert out.isfinite().all(), info.name
        assert torch.equal(out[info.group :], torch.full_like(out[info.group :], world.size))
        error, bound = _bounds(info.name, world, rows, out)
        assert (error <= bound).all(), info.name


def check_zero_and_subnormal_groups_give_no_nan(world: World) -> None:
    """V2."""
    kinds = (0.0, 1.0, 1e-40, -0.0)
    row = torch.cat([torch.full((128,), kind) for kind in kinds])
    for codec in CODECS:
        with world.group(compressor=codec) as pg:
            zeros, ones, tiny, minus = _sum_of(world, pg, [row] * world.size).split(128)
        assert (zeros == 0).all(), codec
        assert (minus == 0).all(), codec
        assert torch.equal(ones, torch.full_like(ones, world.size)), codec
        assert ((tiny.double() - 1e-40 * world.size).abs() <= 1.01e-40 * world.size).all(), codec


def check_what_is_not_finite_stays_visible_on_every_rank(world: World) -> None:
    """V3."""
    for info in _core.compressors():
        with world.group(compressor=info.name) as pg:
            for bad in (math.nan, math.inf, -math.inf):
                rows = [torch.ones(4096) for _ in range(world.size)]
                rows[1][7] = bad
                out = _sum_of(world, pg, rows)
                assert not out[7].isfinite(), (info.name, bad)
                assert same_on_all_ranks(out.isfinite().tolist())
                rest = out[max(info.group, 8) :]
                assert torch.equal(rest, torch.full_like(rest, world.size)), (info.name, bad)


def check_the_published_bound_holds(world: World) -> None:
    """V13, on Gaussian data and on data with outliers."""
    for codec in CODECS:
        with world.group(compressor=codec) as pg:
            for dtype in FLOATS:
                for count in (1, 127, 513, 70_001):
                    generator = torch.Generator().manual_seed(count)
                    rows = [torch.randn(count, generator=generator) for _ in range(world.size)]
                    for row in rows:
                        row[::97] *= 50
                    rows = [row.to(dtype) for row in rows]
                    error, bound = _bounds(codec, world, rows, _sum_of(world, pg, rows))
                    assert (error <= bound).all(), (codec, dtype, count)


# -- ranks agree -----------------------------------------------------------------------------------


def check_every_codec_and_algorithm_agrees_on_all_ranks(world: World) -> None:
    """R1: in place and not, through the engine that the collectives use."""
    from coccl.torch.call import Call
    from coccl.torch.policy import Method

    size, rank = world.size, world.rank
    count = 1_000_003 // size * size
    x = world.data(torch.bfloat16, count)
    exact = {name: call(world.nccl, name, x.double()) for name in ("all_reduce", "reduce_scatter")}
    hashes = {}
    with world.group(compressor="none") as pg:
        for codec in CODECS:
            limit = {"none": 0.01, "bf16": 0.01, "fp8": 0.12}.get(
                codec, 0.03 if codec.startswith("int8") else 0.4
            )
            for algorithm in _core.algorithms():
                name, part = algorithm.collective, count // size
                for in_place in (True, False):
                    source = x.clone()
                    if name == "all_reduce":
                        # torch's all_reduce is in place; the rest of the placements are the core's
                        target = source
                    elif name == "reduce_scatter":
                        target = source.view(size, -1)[rank] if in_place else source.new_empty(part)
                    else:
                        target = source.new_empty(size * count)
                        if in_place:
                            source = target.view(size, -1)[rank].copy_(x)
                    method = Method(codec, algorithm.name)
                    pg._engine(source).run(Call(name, [source], [target], method, size), False)
                    key = (codec, name, algorithm.name, in_place)
                    if name in exact:
                        error = (target.double() - exact[name]).norm() / exact[name].norm()
                        assert error < limit, (key, float(error))
                    if name != "reduce_scatter":
                        hashes[key] = sha(target)
    assert same_on_all_ranks(hashes)
    assert all(
        hashes[(codec, name, algorithm, True)] == digest
        for (codec, name, algorithm, _), digest in hashes.items()
    )


def check_repeats_give_one_hash_also_in_a_new_group(world: World) -> None:
    """R3."""
    hashes = set()
    x = world.data(torch.bfloat16, 1_000_003)
    for _ in range(2):
        with world.group(compressor="int4h") as pg:
            hashes.update(sha(call(pg, "all_reduce", x)) for _ in range(25))
    assert len(hashes) == 1
    assert same_on_all_ranks(hashes)


# -- tensors and streams ---------------------------------------------------------------------------


def check_layouts(world: World) -> None:
    """T1, T2 and T3."""
    with world.group(compressor=ALL) as pg:
        with pytest.raises(ValueError, match=r"\[4\] with strides \[2\]"):
            dist.all_reduce(torch.arange(8.0, device="cuda")[::2], group=pg)
        x = torch.ones(2, 3, 4, 5, device="cuda").to(memory_format=torch.channels_last)
        strides = x.stride()
        dist.all_reduce(x, group=pg)
        assert torch.equal(x, torch.full_like(x, world.size))
        assert x.stride() == strides
        for shape in ((0,), (3, 0, 2), ()):
            y = torch.ones(shape, device="cuda")
            dist.all_reduce(y, group=pg)
            assert torch.equal(y, torch.full(shape, float(world.size), device="cuda"))


def check_a_call_in_flight_keeps_its_memory(world: World) -> None:
    """T4."""
    side = torch.cuda.Stream()
    with world.group(compressor="int8") as pg:
        for _ in range(100):
            with torch.cuda.stream(side):
                x = torch.full((MI,), 3.0, device="cuda")
                dist.all_reduce(x, group=pg, async_op=True)
                del x
                fresh = torch.ones(MI, device="cuda")
            side.synchronize()
            torch.cuda.synchronize()
            assert bool((fresh == 1).all())


def check_a_call_waits_for_its_producer(world: World) -> None:
    """T5, synchronous and asynchronous, on the current and on a side stream."""
    side = torch.cuda.Stream()
    with world.group(compressor="int8") as pg:
        dist.all_reduce(torch.ones(MI, device="cuda"), group=pg)
        for stream in (torch.cuda.current_stream(), side):
            for async_op in (False, True):
                with torch.cuda.stream(stream):
                    x = torch.zeros(MI, device="cuda")
                    torch.cuda._sleep(50_000_000)
                    x.fill_(1)
                    work = dist.all_reduce(x, group=pg, async_op=async_op)
                    if async_op:
                        work.wait()
                    y = x * 2
                stream.synchronize()
                assert bool((y == 2 * world.size).all())


def check_an_asynchronous_call_returns_at_once(world: World) -> None:
    """T6: behind a 200 ms sleep, once warm."""
    with world.group(compressor="int8") as pg:
        x = torch.ones(MI, device="cuda")
        for _ in range(3):
            dist.all_reduce(x.clone(), group=pg, async_op=True).wait()
        torch.cuda.synchronize()
        x = torch.ones(MI, device="cuda")
        start = time.monotonic()
        torch.cuda._sleep(400_000_000)
        slept = time.monotonic()
        work = dist.all_reduce(x, group=pg, async_op=True)
        returned = time.monotonic()
        done = work.is_completed()
        work.wait()
        torch.cuda.synchronize()
        assert time.monotonic() - start > 0.15
        assert not done
        assert returned - slept < 0.005, returned - slept
        assert work.is_completed()
        assert bool((x == world.size).all())


def check_futures_carry_the_tensors(world: World) -> None:
    with world.group(compressor="int8") as pg:
        x = torch.ones(MI, device="cuda")
        future = dist.all_reduce(x, group=pg, async_op=True).get_future()
        half = future.then(lambda done: done.value()[0] / world.size)
        assert torch.equal(half.wait(), torch.ones(MI, device="cuda"))


def check_coalesced_calls_are_one_coded_call(world: World) -> None:
    with world.group(compressor=ALL) as pg:
        for async_ops in (False, True):
            tensors = [torch.ones(shape, device="cuda") for shape in ((5,), (3, 7), (), (1000,))]
            with dist._coalescing_manager(pg, async_ops=async_ops) as manager:
                for tensor in tensors:
                    dist.all_reduce(tensor, group=pg)
            if async_ops:
                manager.wait()
            assert all(torch.equal(t, torch.full_like(t, world.size)) for t in tensors)
        assert coccl.stats().all_reduce.calls == 2
        got = torch.empty(MI, device="cuda")
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        device = torch.device("cuda", torch.cuda.current_device())
        with dist._coalescing_manager(pg, device=device, async_ops=True) as manager:
            dist.isend(torch.full((MI,), float(world.rank), device="cuda"), after, group=pg)
            dist.irecv(got, before, group=pg)
        manager.wait()
        assert bool((got == before).all())


def check_a_captured_call_replays(world: World) -> None:
    """T7's kind: 20 replays, eager calls in between."""
    with world.group(compressor="int8") as pg:
        x = torch.ones(MI, device="cuda")
        dist.all_reduce(x, group=pg)  # what grows, grows before the capture
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            dist.all_reduce(x, group=pg)
            work = dist.all_reduce(x, group=pg, async_op=True)
            work.wait()
        for k in range(1, 21):
            x.fill_(k)
            graph.replay()
            eager = call(pg, "all_reduce", torch.ones(1000 * k, device="cuda"))
            assert bool((x == k * world.size**2).all()), k
            assert bool((eager == world.size).all())
        # NCCL does not end a communicator that a graph still holds.
        torch.cuda.synchronize()
        graph.reset()


# -- training --------------------------------------------------------------------------------------


def _model() -> nn.Sequential:
    torch.manual_seed(7)
    layers = [nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)]
    return nn.Sequential(*layers).cuda()


def _train(model: nn.Module, steps: int, ranks: list[int]) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        parts = []
        for rank in ranks:
            generator = torch.Generator().manual_seed(1000 * step + rank)
            x = torch.randn(16, 64, generator=generator).cuda()
            parts.append(nn.functional.mse_loss(model(x), torch.sin(2 * x[:, :8])))
        loss = torch.stack(parts).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().double())
    return float(torch.stack(losses[-20:]).mean())


def _mean(value: float) -> float:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return sum(values) / len(values)


def check_ddp_trains_as_one_process_would(world: World) -> None:
    """R2 and G1."""
    expected = _train(_model(), 200, list(range(world.size)))
    for settings, tolerance in (({}, 1e-3), ({"compressor": "int8h"}, 0.01)):
        with world.group(**settings) as pg:
            model = nn.parallel.DistributedDataParallel(
                _model(), process_group=pg, bucket_cap_mb=0.1
            )
            loss = _mean(_train(model, 200, [world.rank]))
            assert abs(loss / expected - 1) < tolerance, (settings, loss, expected)
            assert same_on_all_ranks([sha(p.detach()) for p in model.parameters()])
            assert (coccl.stats().all_reduce.calls >= 200) == bool(settings)
            del model


def check_fsdp2_trains_as_one_process_would(world: World) -> None:
    """G1."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    expected = _train(_model(), 60, list(range(world.size)))
    both = "reduce_scatter:int8h,all_gather:int8h"
    for compressor, tolerance in (("off", 1e-3), ("int8h", 0.01), (both, 0.05)):
        with world.group(compressor=compressor) as pg:
            mesh = DeviceMesh.from_group(pg, "cuda")
            model = _model()
            for layer in model:
                if isinstance(layer, nn.Linear):
                    fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            loss = _mean(_train(model, 60, [world.rank]))
            assert abs(loss / expected - 1) < tolerance, (compressor, loss, expected)
            assert (coccl.stats().reduce_scatter.calls > 0) == (compressor != "off")
            assert (coccl.stats().all_gather.calls > 0) == (compressor == both)
            del model


# -- the rest --------------------------------------------------------------------------------------


def check_the_counters_tell_calls_ratio_and_reasons(world: World) -> None:
    """S2."""
    with world.group(compressor="int8h", min_bytes=MI) as pg:
        dist.all_reduce(torch.randn(16 * MI, device="cuda"), group=pg)
        dist.all_reduce(torch.ones(MI, dtype=torch.int64, device="cuda"), group=pg)
        dist.all_reduce(torch.ones(100, device="cuda"), group=pg)
        stats = coccl.stats().all_reduce
        assert stats.calls == 1
        assert stats.bypasses == {"dtype": 1, "size": 1}
        assert abs(stats.ratio / (32 / 8.25) - 1) < 0.02, stats
    with world.group(compressor="int8h", min_bytes=MI, strict=True) as pg:
        for x in (torch.ones(MI, dtype=torch.int64), torch.ones(100)):
            with pytest.raises(coccl.UnsupportedError):
                dist.all_reduce(x.cuda(), group=pg)


def check_there_is_one_libnccl(_: World) -> None:
    """G7."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    libraries = {line.split()[-1] for line in maps if "libnccl.so" in line}
    # torch opens its own by path, also where another one was preloaded.
    preloaded = set(os.environ.get("LD_PRELOAD", "").split(":"))
    assert len(libraries - preloaded) == 1, libraries


CHECKS: list[Callable[[World], None]] = [
    value for name, value in list(globals().items()) if name.startswith("check_")
]


def run_checks() -> int:
    """Runs every check, or those named on the command line, as one rank; the exit code."""
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("coccl", timeout=timedelta(seconds=60))
    world = World()
    failed = []
    chosen = [check for check in CHECKS if check.__name__ in sys.argv[1:]] or CHECKS
    for check in chosen:
        start, failure = time.monotonic(), ""
        try:
            check(world)
            torch.cuda.synchronize()
        except Exception:
            failure = traceback.format_exc()
            # At once: a rank that fails alone may leave the others waiting for ever.
            print(f"{check.__name__} on rank {world.rank}: {failure}", flush=True)
        failures: list[Any] = [None] * world.size
        dist.all_gather_object(failures, failure)
        if any(failures):
            failed.append(check.__name__)
        if world.rank == 0:
            seconds = time.monotonic() - start
            print(f"{'FAILED' if any(failures) else 'ok'} {check.__name__} {seconds:.1f} s")
    if world.rank == 0:
        print(f"failed: {failed}" if failed else f"all {len(chosen)} checks hold", flush=True)
    dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_checks())
