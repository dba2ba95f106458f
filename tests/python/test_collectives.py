"""Compressed collectives: values and bounds, for every method and codec."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from methods import (
    METHODS,
    SMALL,
    each_compressor,
    each_method,
    each_reduction,
    exact_outputs,
    exact_places,
    filled,
    randoms,
    within_bound,
)
from world import RAW_TYPES, World, same_bits, sha256

from coccl.reference import REFERENCE

F32, BF16 = torch.float32, torch.bfloat16


@pytest.fixture(scope="session")
def device():
    return "cpu"


each_size = pytest.mark.parametrize("size", [2, 3, 4])
ALL_REDUCES = [method for method in METHODS if method.collective == "all_reduce"]
GATHERS = [method for method in METHODS if not method.reduces]
V9_COUNTS = [1, 2, 3, 7, 127, 128, 129, 255, 257, 511, 513, 4095]


def groups_of(compressor, place, count):
    """A mask of the elements that share a scale with `place`."""
    group = REFERENCE[compressor].group
    return (torch.arange(count) // group) == place // group


# ------------------------------------------------------------------------------------------ values


@each_method
@each_compressor
@each_size
def test_ones_sum_to_the_world_size(device, method, compressor, size):
    """V9: exactly, but for a rotated codec's last, partial group, which keeps to the bound."""
    world = World(size, device)
    for index, count in enumerate(sorted({*V9_COUNTS, size - 1, size, size + 1})):
        dtype = RAW_TYPES[(index + size) % 3]
        inputs = filled(method, size, count, dtype)
        outputs = method.run(world, inputs, compressor)
        assert within_bound(method, compressor, inputs, outputs), count
        part = exact_places(compressor, count)
        for out, exact in zip(outputs, exact_outputs(method, inputs), strict=True):
            parts = [(out, exact)]
            if not method.reduces:
                parts = list(zip(out.chunk(size), exact.chunk(size), strict=True))
            for got, expected in parts:
                assert torch.equal(got[part].double(), expected[part]), count


@each_method
@each_compressor
def test_ones_sum_to_the_world_size_across_nodes(device, method, compressor):
    """V9, V11: with scratch full of NaN bytes."""
    for size, nodes in method.layouts:
        world = World(size, device, nodes, poison_scratch=True)
        for count in [1, 129, 513, 4096]:
            inputs = filled(method, size, count, F32)
            outputs = method.run(world, inputs, compressor)
            assert within_bound(method, compressor, inputs, outputs, nodes), (size, count)
            if count == 4096:
                for out, exact in zip(outputs, exact_outputs(method, inputs), strict=True):
                    assert torch.equal(out.double(), exact)


@each_compressor
@pytest.mark.parametrize("method", [m for m in ALL_REDUCES if m.algorithm == "two_shot"], ids=str)
def test_ones_sum_to_the_world_size_at_a_large_prime(device, method, compressor):
    """V9, n = 10556587."""
    count = 10556587
    inputs = filled(method, 2, count, BF16)
    outputs = method.run(World(2, device), inputs, compressor)
    exact = exact_places(compressor, count)
    for out in outputs:
        assert bool((out[exact] == 2).all())
    rest = slice(exact.stop, count)
    inputs, outputs = [x[rest] for x in inputs], [x[rest] for x in outputs]
    assert within_bound(method, compressor, inputs, outputs)


@each_method
@each_compressor
def test_a_huge_value_harms_its_own_scale_group_alone(device, method, compressor):
    """V1."""
    inputs = filled(method, 2, 1024, BF16)
    inputs[0][0] = 1e30
    outputs = method.run(World(2, device), inputs, compressor)
    assert within_bound(method, compressor, inputs, outputs)
    expected = exact_outputs(method, inputs)
    for out, exact in zip(outputs, expected, strict=True):
        assert torch.isfinite(out).all()
        others = ~groups_of(compressor, 0, out.numel())
        assert torch.equal(out[others].double(), exact[others])


@each_method
@each_compressor
def test_zeros_and_subnormal_values_give_no_nan(device, method, compressor):
    """V2."""
    values = torch.tensor([0.0, 1.0, 1e-40, -0.0]).repeat_interleave(512)
    repeat = 2 if method.collective == "reduce_scatter" else 1
    inputs = [values.repeat(repeat) for _ in range(2)]
    for out, exact in zip(
        method.run(World(2, device), inputs, compressor),
        exact_outputs(method, inputs),
        strict=True,
    ):
        assert torch.isfinite(out).all()
        small = (exact != 0) & (exact < 1e-30)
        assert int(small.sum()) % 512 == 0 < int(small.sum())
        assert ((out[small].double() - exact[small]).abs() <= 2e-40).all()
        assert torch.equal(out[~small].double(), exact[~small])


@each_method
@each_compressor
@pytest.mark.parametrize("layout", [(2, ()), (4, (0, 0, 1, 1))])
def test_a_non_finite_value_shows_on_every_rank_and_only_in_its_group(
    device, method, compressor, layout
):
    """V3."""
    size, nodes = layout
    for value in (float("nan"), float("inf"), float("-inf")):
        inputs = filled(method, size, 4096, F32)
        clean = exact_outputs(method, inputs)
        inputs[1][7] = value
        outputs = method.run(World(size, device, nodes), inputs, compressor)
        for rank, (out, exact) in enumerate(zip(outputs, clean, strict=True)):
            place = 4096 + 7 if method.collective == "all_gather" else 7
            if method.collective == "reduce_scatter" and rank != 0:
                assert torch.equal(out.double(), exact)
                continue
            assert not torch.isfinite(out[place])
            others = ~groups_of(compressor, place, out.numel())
            assert torch.equal(out[others].double(), exact[others])
        holders = [0] if method.collective == "reduce_scatter" else range(size)
        assert len({sha256(torch.isfinite(outputs[rank])) for rank in holders}) == 1


@each_reduction
def test_without_a_codec_sums_and_averages_are_exact(device, method):
    """V4: and bit-equal on all ranks; integers keep float32 arithmetic exact in any order."""
    for size, nodes in method.layouts:
        world = World(size, device, nodes)
        rng = np.random.default_rng(size)
        length = method.input_count(1543, size)
        inputs = [torch.from_numpy(rng.integers(-999, 999, length)).float() for _ in range(size)]
        for op in ("sum", "avg"):
            expected = exact_outputs(method, inputs, op)
            for out, exact in zip(method.run(world, inputs, "none", op=op), expected, strict=True):
                if op == "sum" or size in (2, 4, 8):
                    assert torch.equal(out.double(), exact)
                else:
                    assert torch.allclose(out.double(), exact, rtol=2**-23, atol=0)


@each_reduction
@each_compressor
def test_two_and_three_average_to_two_and_a_half(device, method, compressor):
    """V4, AVG."""
    inputs = filled(method, 2, 512, F32, lambda rank: rank + 2.0)
    for out in method.run(World(2, device), inputs, compressor, op="avg"):
        assert (out - 2.5).abs().max() <= 2 * np.spacing(np.float32(2.5))


@each_method
@each_compressor
def test_one_rank_is_a_copy(device, method, compressor):
    """V10."""
    world = World(1, device)
    for dtype in RAW_TYPES:
        for count in (1, 31, 33, 1025):
            inputs = randoms(method, 1, count, dtype)
            for op in ("sum", "avg") if method.reduces else ("sum",):
                options = {"op": op} if method.reduces else {}
                for in_place in (False, True):
                    [out] = method.run(world, inputs, compressor, in_place=in_place, **options)
                    assert same_bits(out, inputs[0])
    assert world.ranks[0].comm.sent_bytes == 0


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
def test_one_rank_is_a_copy_of_a_million_and_three(device, collective):
    """V10."""
    x = torch.randn(1000003, generator=torch.Generator().manual_seed(0)).to(device)
    [out] = World(1, device).run(lambda rank: rank.run(collective, x, "int4h"))
    assert same_bits(out, x)


@each_method
@each_compressor
def test_unwritten_scratch_is_never_read(device, method, compressor):
    """V11: scratch is full of NaN bytes before every call."""
    for size, nodes in SMALL:
        world = World(size, device, nodes, poison_scratch=True)
        for count in (129, 128 * 5, 1543):
            inputs = filled(method, size, count, F32)
            outputs = method.run(world, inputs, compressor)
            assert all(bool(torch.isfinite(out).all()) for out in outputs)
            assert within_bound(method, compressor, inputs, outputs)


# ---------------------------------------------------------------------------------------- the bound


def any_values(rng, length, dtype):
    kind = rng.integers(5)
    if kind == 0:
        x = rng.standard_normal(length)
    elif kind == 1:
        x = rng.laplace(size=length)
    elif kind == 2:
        x = rng.standard_normal(length) * np.where(rng.random(length) < 0.02, 100, 1)
    elif kind == 3:
        x = rng.uniform(0, 1, length) * np.exp2(rng.integers(-9, 6))
    else:
        x = np.exp2(rng.uniform(-9, 6, length // 64 + 1)).repeat(64)[:length]
        x = x * rng.standard_normal(length)
    reach = 3 if dtype == torch.float16 else 60
    return torch.from_numpy(np.clip(x, -2000, 2000) * 2.0 ** rng.integers(-reach, reach)).to(dtype)


@each_method
@each_compressor
def test_the_published_bound_is_never_exceeded(device, method, compressor):
    """V13: thousands of draws over all methods and codecs."""
    rng = np.random.default_rng(0)
    for size, nodes in method.layouts:
        world = World(size, device, nodes)
        edges = [1, size - 1, size, size + 1, 511, 512, 513, 511 * size, 513 * size]
        counts = [*rng.choice(edges, 3), *rng.integers(1, 3000, 3)]
        for count in map(int, counts):
            dtype = RAW_TYPES[rng.integers(3)]
            length = method.input_count(count, size)
            inputs = [any_values(rng, length, dtype) for _ in range(size)]
            op = str(rng.choice(["sum", "avg"])) if method.reduces else "sum"
            options = {"op": op} if method.reduces else {}
            outputs = method.run(world, inputs, compressor, **options)
            assert within_bound(method, compressor, inputs, outputs, nodes, op), (size, count, op)


@each_compressor
def test_one_shot_is_the_references_sum_of_payloads_in_rank_order(device, compressor):
    [method] = [m for m in METHODS if str(m) == "all_reduce-one_shot"]
    codec = REFERENCE[compressor]
    for size in (2, 3, 4):
        for op, scale in (("sum", 1), ("avg", np.float32(1) / np.float32(size))):
            inputs = randoms(method, size, 1543, F32)
            wires = [codec.encode(x.numpy()) for x in inputs]
            expected = torch.from_numpy(codec.decode_reduce(wires, None, 1543, scale))
            for out in method.run(World(size, device), inputs, compressor, op=op):
                assert same_bits(out, expected)


@pytest.mark.parametrize("method", GATHERS, ids=str)
@each_compressor
def test_all_gather_decodes_what_was_sent_and_the_owners_part_too(device, method, compressor):
    codec = REFERENCE[compressor]
    for size, nodes in method.layouts:
        world = World(size, device, nodes)
        for dtype, count in zip(RAW_TYPES, (1, 129, 1543), strict=True):
            inputs = randoms(method, size, count, dtype)
            decoded = [codec.decode(codec.encode(x.float().numpy()), count) for x in inputs]
            expected = torch.from_numpy(np.concatenate(decoded)).to(dtype)
            for in_place in (False, True):
                for out in method.run(world, inputs, compressor, in_place=in_place):
                    assert same_bits(out, expected)
