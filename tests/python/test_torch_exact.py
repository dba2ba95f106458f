"""With no compressor, and for all that is never coded, results are those of torch's own group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch_world import World, group

import coccl

MANY = 1 << 20  # elements of a large tensor
ALL_CODED = "all_reduce:int4,reduce_scatter:int4,all_gather:int4"
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]
OPS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def _data(dtype: torch.dtype, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1 + dist.get_rank())
    if dtype is torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0, 100, (count,), generator=generator).to(dtype)
    return torch.randn(count, generator=generator, dtype=torch.float64).to(dtype)


def _bits(x: torch.Tensor) -> torch.Tensor:
    real = torch.view_as_real(x) if x.is_complex() else x
    return real.reshape(-1).contiguous().view(torch.uint8)


def _outcome(call: Callable[..., torch.Tensor], *arguments: Any) -> tuple[str, Any]:
    try:
        result = call(*arguments)
    except Exception as error:
        return type(error).__name__, None
    return "ok", _bits(result)


def _all_reduce(pg: dist.ProcessGroup, x: torch.Tensor, op: str) -> torch.Tensor:
    x = x.clone()
    dist.all_reduce(x, getattr(dist.ReduceOp, op), group=pg)
    return x


def _reduce_scatter(pg: dist.ProcessGroup, x: torch.Tensor, op: str) -> torch.Tensor:
    out = torch.empty(x.numel() // pg.size(), dtype=x.dtype)
    dist.reduce_scatter_tensor(out, x, getattr(dist.ReduceOp, op), group=pg)
    return out


def _all_gather(pg: dist.ProcessGroup, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.numel() * pg.size(), dtype=x.dtype)
    dist.all_gather_into_tensor(out, x, group=pg)
    return out


def _all_to_all(pg: dist.ProcessGroup, x: torch.Tensor) -> torch.Tensor:
    outs = [torch.empty(1) for _ in range(pg.size())]
    dist.all_to_all(outs, list(x.split(1)), group=pg)
    return torch.cat(outs)


def _same(one: tuple[str, Any], two: tuple[str, Any]) -> bool:
    if one[1] is None or two[1] is None:
        return one == two
    return torch.equal(one[1], two[1])


def _compare_with_gloo(settings: dict[str, Any], dtype: torch.dtype, count: int) -> None:
    gloo = dist.new_group(backend="gloo")
    with group(**settings) as ours:
        x = _data(dtype, count)
        for op in OPS:
            for collective in (_all_reduce, _reduce_scatter):
                outcomes = [_outcome(collective, pg, x, op) for pg in (ours, gloo)]
                assert _same(*outcomes), (collective.__name__, op, dtype, outcomes)
        outcomes = [_outcome(_all_gather, pg, x) for pg in (ours, gloo)]
        assert _same(*outcomes), ("all_gather", dtype, outcomes)
        assert coccl.stats().all_reduce.calls == 0
    dist.destroy_process_group(gloo)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nothing_is_lossy_without_a_compressor(
    torch_world: Callable[[int], World], dtype: torch.dtype
) -> None:
    torch_world(2).run(_compare_with_gloo, {"min_bytes": 0}, dtype, 40_000)


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d not in (torch.float32, torch.float16, torch.bfloat16)], ids=str
)
def test_only_short_floats_are_ever_coded(
    torch_world: Callable[[int], World], dtype: torch.dtype
) -> None:
    """V7's kind, and V6's complex numbers."""
    settings = {"compressor": ALL_CODED, "min_bytes": 0}
    torch_world(2).run(_compare_with_gloo, settings, dtype, 40_000)


def _other_ops(dtype: torch.dtype) -> None:
    gloo = dist.new_group(backend="gloo")
    with group(compressor="int4", min_bytes=0) as ours:
        x = _data(dtype, MANY)
        for op in ("PRODUCT", "MIN", "MAX", "BXOR"):
            outcomes = [_outcome(_all_reduce, pg, x, op) for pg in (ours, gloo)]
            assert _same(*outcomes), op
        stats = coccl.stats().all_reduce
        assert (stats.calls, dict(stats.bypasses)) == (0, {"op": 4})
    dist.destroy_process_group(gloo)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_other_ops_than_sum_and_avg_are_exact(
    torch_world: Callable[[int], World], dtype: torch.dtype
) -> None:
    """V4 and V6: BXOR on floats is refused as gloo refuses it."""
    torch_world(2).run(_other_ops, dtype)


def _unsupported() -> None:
    with group(compressor="int8", min_bytes=0) as ours:
        premul = dist._make_nccl_premul_sum(0.5)
        with pytest.raises(Exception, match=r"(?i)reduce|premul|support"):
            dist.all_reduce(torch.ones(4096, dtype=torch.bfloat16), premul, group=ours)
        with pytest.raises(ValueError, match="complex"):
            dist.all_reduce(torch.ones(8, dtype=torch.complex64), dist.ReduceOp.MAX, group=ours)
        z = torch.full((MANY,), 1 + 2j, dtype=torch.complex64)
        dist.all_reduce(z, group=ours)
        assert torch.equal(z, torch.full_like(z, 2 + 4j))
        assert coccl.stats().all_reduce.bypasses["dtype"] == 1


def test_what_gloo_cannot_do_is_a_clear_error(torch_world: Callable[[int], World]) -> None:
    """V5 on the CPU, where no engine has PREMUL_SUM; V6."""
    torch_world(2).run(_unsupported)


def _integers() -> None:
    rank = dist.get_rank()
    with group(compressor=ALL_CODED, min_bytes=0) as ours:
        big = torch.full((MANY,), (2**53 + 1) * (1 - rank), dtype=torch.int64)
        dist.all_reduce(big, group=ours)
        assert torch.equal(big, torch.full_like(big, 2**53 + 1))
        small = torch.full((MANY,), 120 if rank else 100, dtype=torch.int8)
        dist.all_reduce(small, group=ours)
        assert torch.equal(small, torch.full_like(small, -36))
        mine = _data(torch.uint8, MANY)
        gathered = _all_gather(ours, mine)
        assert torch.equal(gathered.view(2, -1)[rank], mine)
        fine = torch.full((MANY,), 1 + 2.0**-40, dtype=torch.float64)
        dist.all_reduce(fine, group=ours)
        assert torch.equal(fine, torch.full_like(fine, 2 + 2.0**-39))


def test_integers_and_doubles_are_exact(torch_world: Callable[[int], World]) -> None:
    """V7 at 1 Mi elements."""
    torch_world(2).run(_integers)


def _objects() -> None:
    rank = dist.get_rank()
    with group(compressor=ALL_CODED, min_bytes=0, strict=True) as ours:
        text = chr(ord("a") + rank) * 2_000_000
        texts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(texts, text, group=ours)
        assert texts == [chr(ord("a") + peer) * 2_000_000 for peer in range(len(texts))]
        shared = [{"lr": 0.1, "names": ["x"] * 1000}] if rank == 0 else [None]
        dist.broadcast_object_list(shared, src=0, group=ours)
        assert shared[0]["names"] == ["x"] * 1000
        dist.barrier(group=ours)


@pytest.mark.parametrize("size", [2, 4])
def test_objects_travel_unharmed(torch_world: Callable[[int], World], size: int) -> None:
    """V8: with a lossy codec on everything, in a strict group."""
    torch_world(size).run(_objects)


def _everything_else() -> None:
    """Each operation that is never coded, against values known beforehand."""
    rank, size = dist.get_rank(), dist.get_world_size()
    gloo = dist.new_group(backend="gloo")
    with group(compressor=ALL_CODED, min_bytes=0) as ours:
        x = torch.full((1000,), rank + 0.1)
        dist.broadcast(x, src=1, group=ours)
        assert torch.equal(x, torch.full((1000,), 1.1))

        total = torch.full((1000,), rank + 1.0)
        dist.reduce(total, dst=0, group=ours)
        if rank == 0:
            assert torch.equal(total, torch.full((1000,), size * (size + 1) / 2))

        mine = torch.full((3,), rank + 0.3)
        parts = [torch.empty(3) for _ in range(size)] if rank == 0 else None
        dist.gather(mine, parts, dst=0, group=ours)
        if parts:
            assert torch.equal(torch.stack(parts)[:, 0], torch.arange(size) + 0.3)
        dist.scatter(mine, parts, src=0, group=ours)
        assert torch.equal(mine, torch.full((3,), rank + 0.3))

        listed = [torch.empty(3) for _ in range(size)]
        dist.all_gather(listed, mine, group=ours)
        assert torch.equal(torch.stack(listed)[:, 0], torch.arange(size) + 0.3)
        scattered = torch.empty(3)
        dist.reduce_scatter(scattered, [mine.clone() for _ in range(size)], group=ours)
        assert torch.allclose(scattered, torch.full((3,), sum(p + 0.3 for p in range(size))))

        sent = torch.arange(size, dtype=torch.float32) + 10 * rank
        received = torch.empty(size)
        dist.all_to_all_single(received, sent, group=ours)
        assert torch.equal(received, 10.0 * torch.arange(size) + rank)
        # gloo has this one in newer versions of torch alone.
        outcomes = [_outcome(_all_to_all, pg, sent) for pg in (ours, gloo)]
        assert _same(*outcomes)
        assert outcomes[0][0] == "RuntimeError" or torch.equal(outcomes[0][1], _bits(received))

        after, before = (rank + 1) % size, (rank - 1) % size
        got = torch.empty(5)
        ops = [
            dist.P2POp(dist.isend, torch.full((5,), rank + 0.7), after, ours),
            dist.P2POp(dist.irecv, got, before, ours),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert torch.equal(got, torch.full((5,), before + 0.7))
        if rank == 0:
            dist.send(torch.full((5,), 3.3), 1, group=ours)
        elif rank == 1:
            assert dist.recv(got, group=ours) == 0  # from whoever sends
            assert torch.equal(got, torch.full((5,), 3.3))
        dist.barrier(group=ours)
        assert coccl.stats().all_gather.bypasses == {"list_form": 1}
        assert coccl.stats().reduce_scatter.bypasses == {"list_form": 1}
    dist.destroy_process_group(gloo)


@pytest.mark.parametrize("size", [2, 3])
def test_every_other_operation_is_handed_over(
    torch_world: Callable[[int], World], size: int
) -> None:
    torch_world(size).run(_everything_else)


def _broadcast() -> None:
    with group(compressor=ALL_CODED, min_bytes=0) as ours:
        x = _data(torch.float32, MANY)
        dist.broadcast(x, src=0, group=ours)
        source = torch.randn(
            MANY, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        ).float()
        assert torch.equal(x, source)


def test_broadcast_is_bit_equal_to_the_source(torch_world: Callable[[int], World]) -> None:
    """R6 at 4 MiB."""
    torch_world(2).run(_broadcast)
