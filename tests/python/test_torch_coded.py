"""Coded collectives through torch.distributed, on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch_world import World, group

import coccl
from coccl import _core

ROTATED = {c.name for c in _core.compressors() if c.rotated}
CODECS = [c.name for c in _core.compressors()]
ALGORITHMS = [(a.collective, a.name) for a in _core.algorithms()]
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def _on_all(codec: str) -> str:
    return f"all_reduce:{codec},reduce_scatter:{codec},all_gather:{codec}"


def _sha(x: torch.Tensor) -> str:
    return hashlib.sha256(x.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def _call(pg: Any, collective: str, x: torch.Tensor, op: str = "SUM") -> torch.Tensor:
    """The collective's result; x is every rank's whole input."""
    if collective == "all_reduce":
        out = x.clone()
        dist.all_reduce(out, getattr(dist.ReduceOp, op), group=pg)
    elif collective == "reduce_scatter":
        out = x.new_empty(x.numel() // pg.size())
        dist.reduce_scatter_tensor(out, x, getattr(dist.ReduceOp, op), group=pg)
    else:
        out = x.new_empty(x.numel() * pg.size())
        dist.all_gather_into_tensor(out, x, group=pg)
    return out


def _exact(pg: Any, collective: str, x: torch.Tensor, op: str = "SUM") -> torch.Tensor:
    """The same in doubles over whatever group, and so uncoded."""
    return _call(pg, collective, x.double(), op)


def _ones(codec: str, collective: str, algorithm: str, dtype: torch.dtype) -> None:
    with group(
        compressor=_on_all(codec),
        algorithm=f"{collective}:{algorithm}",
        min_bytes=0,
        poison_scratch=True,
    ) as pg:
        size = pg.size()
        # A rotated codec is exact where whole groups are constant, all others everywhere.
        counts = (size * 512, size * 4096) if codec in ROTATED else (size, 12 * 129, 12 * 4099)
        for count in counts:
            out = _call(pg, collective, torch.ones(count, dtype=dtype))
            expected = 1 if collective == "all_gather" else size
            assert out.dtype == dtype
            assert torch.equal(out, torch.full_like(out, expected)), (count, out)
        average = _call(pg, collective, torch.ones(counts[0], dtype=dtype), "AVG")
        assert torch.equal(average, torch.ones_like(average))
        assert getattr(coccl.stats(), collective).calls == len(counts) + 1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_ones_sum_to_the_number_of_ranks(
    torch_world: Callable[[int], World], collective: str, algorithm: str, codec: str
) -> None:
    """V9's and V11's kind: exact sums out of scratch full of NaN."""
    torch_world(3).run(_ones, codec, collective, algorithm, torch.float32)


def _random(codec: str, dtype: torch.dtype, count: int) -> list[str]:
    hashes = []
    with group(compressor=_on_all(codec), min_bytes=0) as pg:
        x = torch.randn(count, generator=torch.Generator().manual_seed(pg.rank())).to(dtype)
        for collective in ("all_reduce", "reduce_scatter", "all_gather"):
            for op in ("SUM", "AVG"):
                out, exact = _call(pg, collective, x, op), _exact(pg, collective, x, op)
                assert out.dtype == dtype
                error = (out.double() - exact).norm() / exact.norm()
                assert error < {"none": 0.01, "bf16": 0.01, "fp8": 0.1}.get(
                    codec, 0.03 if codec.startswith("int8") else 0.35
                )
                if collective != "reduce_scatter":
                    hashes.append(_sha(out))
    return hashes


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_random_data_come_out_close_and_equal_on_all_ranks(
    torch_world: Callable[[int], World], codec: str, dtype: torch.dtype
) -> None:
    """R1 and V12: one hash, the input's dtype."""
    one, two, three = torch_world(3).run(_random, codec, dtype, 3 * 33_333)
    assert one == two == three


def _ops() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        results = {}
        for op in ("SUM", "PRODUCT", "MIN", "MAX", "AVG"):
            out = _call(pg, "all_reduce", torch.full((1000,), pg.rank() + 2.0), op)
            assert torch.equal(out, torch.full_like(out, float(out[0])))
            results[op] = float(out[0])
        assert results == {"SUM": 5, "PRODUCT": 6, "MIN": 2, "MAX": 3, "AVG": 2.5}
        assert coccl.stats().all_reduce.calls == 2


def test_the_five_ops_have_their_values(torch_world: Callable[[int], World]) -> None:
    """V4."""
    torch_world(2).run(_ops)


def _ratio(codec: str, dtype: torch.dtype) -> None:
    bits = {c.name: c.bits_per_element for c in _core.compressors()}[codec]
    count = pg_count = 512 * 3 * 400
    with group(compressor=_on_all(codec), algorithm="all_reduce:two_shot", min_bytes=0) as pg:
        x = torch.randn(count).to(dtype)
        for collective in ("all_reduce", "reduce_scatter", "all_gather"):
            _call(pg, collective, x)
            stats = getattr(coccl.stats(), collective)
            whole = pg_count * (pg.size() if collective == "all_gather" else 1)
            assert stats.tensor_bytes == whole * dtype.itemsize
            advertised = bits / (8 * dtype.itemsize)
            assert stats.wire_bytes / stats.raw_bytes == pytest.approx(advertised, rel=0.02)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_the_wire_carries_the_advertised_ratio(
    torch_world: Callable[[int], World], codec: str, dtype: torch.dtype
) -> None:
    """V12."""
    torch_world(3).run(_ratio, codec, dtype)


def _strided() -> None:
    with group(compressor=_on_all("int8"), min_bytes=0) as pg:
        x = torch.arange(8.0)[::2]
        with pytest.raises(ValueError, match=r"\[4\] with strides \[2\]"):
            dist.all_reduce(x, group=pg)
        with pytest.raises(ValueError, match="contiguous"):
            pg._allgather_base(torch.empty(8)[::2], torch.ones(2))
        with pytest.raises(ValueError, match=r"3 x the elements|2 x the elements"):
            pg._reduce_scatter_base(torch.empty(3), torch.ones(4))
        with pytest.raises(ValueError, match="one dtype"):
            pg._allgather_base(torch.empty(8), torch.ones(4, dtype=torch.bfloat16))
        overlapping = torch.ones(4).expand(3, 4)
        with pytest.raises(ValueError, match="strides"):
            dist.all_reduce(overlapping, group=pg)
        assert torch.equal(x, torch.arange(8.0)[::2])
        # The group is unharmed.
        assert torch.equal(_call(pg, "all_reduce", torch.ones(9)), torch.full((9,), 2.0))


def test_tensors_with_gaps_are_refused_by_shape_and_stride(
    torch_world: Callable[[int], World],
) -> None:
    """T1, and its kind for the other collectives: refused before anything is sent."""
    torch_world(2).run(_strided)


def _channels_last() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
        strides = x.stride()
        dist.all_reduce(x, group=pg)
        assert torch.equal(x, torch.full((2, 3, 4, 5), 2.0))
        assert x.stride() == strides
        several = [torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.ones(7)]
        dist.all_reduce_coalesced(several, group=pg)
        assert all(torch.equal(t, torch.full(t.shape, 2.0)) for t in several)
        turned = torch.arange(12.0).reshape(3, 4).t()
        dist.all_reduce(turned, group=pg)
        assert (turned - 2 * torch.arange(12.0).reshape(3, 4).t()).abs().max() < 0.5
        assert coccl.stats().all_reduce.calls == 3


def test_dense_layouts_are_coded_in_place(torch_world: Callable[[int], World]) -> None:
    """T2."""
    torch_world(2).run(_channels_last)


def _empty() -> None:
    with group(compressor=_on_all("int8"), min_bytes=0) as pg:
        for shape in ((0,), (3, 0, 2), ()):
            x = torch.ones(shape)
            dist.all_reduce(x, group=pg)
            assert x.shape == torch.Size(shape)
            assert torch.equal(x, torch.full(shape, 2.0))
        out = torch.empty(2)
        dist.all_gather_into_tensor(out, torch.ones(()), group=pg)
        assert torch.equal(out, torch.ones(2))
        gathered = torch.empty(0)
        dist.all_gather_into_tensor(gathered, torch.empty(0), group=pg)
        assert coccl.stats().all_reduce.bypasses == {"size": 2}
        dist.all_reduce_coalesced([torch.empty(0), torch.ones(5), torch.ones(())], group=pg)


def test_empty_and_scalar_tensors_keep_their_shape(torch_world: Callable[[int], World]) -> None:
    """T3."""
    torch_world(2).run(_empty)


def _one_rank() -> None:
    for rank in range(dist.get_world_size()):
        with group([rank], compressor=_on_all("int4"), min_bytes=0, strict=True) as pg:
            if rank != dist.get_rank():
                continue
            for count in (1, 31, 33, 1025, 1_000_003):
                x = torch.randn(count)
                for op in ("SUM", "AVG"):
                    assert torch.equal(_call(pg, "all_reduce", x, op), x)
                    assert torch.equal(_call(pg, "reduce_scatter", x, op), x)
                assert torch.equal(_call(pg, "all_gather", x), x)
            assert coccl.stats().all_reduce.bypasses == {"one_rank": 10}
        dist.barrier()


def test_one_rank_gets_its_input_back(torch_world: Callable[[int], World]) -> None:
    """V10: even from a strict group."""
    torch_world(2).run(_one_rank)


def _counters() -> None:
    mib = 2**20
    with group(compressor="int8", min_bytes=mib) as pg:
        dist.all_reduce(torch.randn(mib), group=pg)
        dist.all_reduce(torch.ones(mib, dtype=torch.int64), group=pg)
        dist.all_reduce(torch.ones(100), group=pg)
        dist.all_gather_into_tensor(torch.empty(2 * mib), torch.ones(mib), group=pg)
        stats = coccl.stats()
        assert stats.all_reduce.calls == 1
        assert stats.all_reduce.ratio == pytest.approx(32 / 8.25, rel=0.02)
        assert stats.all_reduce.bypasses == {"dtype": 1, "size": 1}
        assert stats.all_gather.bypasses == {"no_compressor": 1}
        assert "dtype 1, size 1" in str(stats)


def test_the_counters_tell_calls_ratio_and_reasons(torch_world: Callable[[int], World]) -> None:
    """S2 at 4 MiB."""
    torch_world(2).run(_counters)


def _strict() -> None:
    with group(compressor="int8", min_bytes=1000, strict=True) as pg:
        dist.all_reduce(torch.randn(1000), group=pg)
        with pytest.raises(coccl.UnsupportedError, match=r"int64.*int8.*dtype"):
            dist.all_reduce(torch.ones(1000, dtype=torch.int64), group=pg)
        with pytest.raises(coccl.UnsupportedError, match=r"\[100\].*size"):
            dist.all_reduce(torch.ones(100), group=pg)
        with pytest.raises(coccl.UnsupportedError, match="op"):
            dist.all_reduce(torch.ones(1000), dist.ReduceOp.MAX, group=pg)
        with pytest.raises(coccl.UnsupportedError, match="list_form"):
            dist.reduce_scatter(torch.ones(500), [torch.ones(500)] * 2, group=pg)
        # all_gather has no compressor, so there is nothing to be strict about.
        dist.all_gather_into_tensor(torch.empty(20), torch.ones(10), group=pg)
        dist.broadcast(torch.ones(10), src=0, group=pg)


def test_strict_groups_turn_a_bypass_into_an_error(torch_world: Callable[[int], World]) -> None:
    """S2."""
    torch_world(2).run(_strict)


def _repeat() -> str:
    hashes = set()
    for _ in range(3):
        with group(compressor="int4h", min_bytes=0) as pg:
            x = torch.randn(100_003, generator=torch.Generator().manual_seed(pg.rank()))
            hashes.update(_sha(_call(pg, "all_reduce", x)) for _ in range(50))
    (only,) = hashes
    return only


def test_repeats_give_one_hash_also_in_a_new_group(torch_world: Callable[[int], World]) -> None:
    """R3."""
    assert len(set(torch_world(2).run(_repeat))) == 1
