"""Compressed collectives: ranks agree, and send what was promised, for every method and codec."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from methods import (
    METHODS,
    SEVERAL_NODES,
    each_compressor,
    each_method,
    filled,
    randoms,
)
from world import World, same_bits, sha256

from coccl import _core
from coccl.reference import REFERENCE

F32, BF16 = torch.float32, torch.bfloat16


@pytest.fixture(scope="session")
def device():
    return "cpu"


ALL_REDUCES = [method for method in METHODS if method.collective == "all_reduce"]


# -------------------------------------------------------------------------------------- ranks agree


@each_method
@each_compressor
def test_all_ranks_end_with_the_same_bits_in_place_or_not(device, method, compressor):
    """R1, at a smaller prime."""
    for size, nodes in method.layouts:
        inputs = randoms(method, size, 4099, BF16)
        world = World(size, device, nodes)
        outputs = method.run(world, inputs, compressor)
        in_place = method.run(world, inputs, compressor, in_place=True)
        assert all(same_bits(*pair) for pair in zip(outputs, in_place, strict=True))
        if method.collective != "reduce_scatter":
            assert len({sha256(out) for out in outputs}) == 1


@each_compressor
@pytest.mark.parametrize("method", ALL_REDUCES, ids=str)
def test_all_ranks_end_with_the_same_bits_at_a_million_and_three(device, method, compressor):
    """R1, n = 1000003."""
    rng = np.random.default_rng(0)
    inputs = [torch.from_numpy(rng.standard_normal(1000003)).to(BF16) for _ in range(3)]
    outputs = method.run(World(3, device), inputs, compressor)
    assert len({sha256(out) for out in outputs}) == 1


@each_method
@each_compressor
def test_repeats_and_a_new_group_give_one_hash(device, method, compressor):
    """R3."""
    size, nodes, hashes = 3, (0, 0, 1), set()
    inputs = [x.to(device) for x in randoms(method, size, 1543, BF16)]

    def repeat(rank, times):
        args = (method.collective, inputs[rank.index], compressor, method.algorithm)
        return {sha256(rank.run(*args)) for _ in range(times)}

    for times in (50, 1):
        world = World(size, device, nodes)
        hashes |= {
            (rank, value)
            for rank, values in enumerate(world.run(lambda rank, n=times: repeat(rank, n)))
            for value in values
        }
    assert len(hashes) == size


# -------------------------------------------------------------------------------------- empty, auto


@each_method
@each_compressor
def test_no_elements_are_no_work(device, method, compressor):
    for size, nodes in method.layouts:
        world = World(size, device, nodes)
        inputs = filled(method, size, 0, F32)
        assert all(out.numel() == 0 for out in method.run(world, inputs, compressor))
        assert [rank.comm.sent_bytes for rank in world.ranks] == [0] * size


def hash_of(collective, inputs, algorithm, rank):
    return sha256(rank.run(collective, inputs[rank.index], "int8", algorithm))


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
def test_auto_is_the_algorithm_that_select_names(device, collective):
    for size, nodes in SEVERAL_NODES:
        known = {m.algorithm: m for m in METHODS if m.collective == collective}
        some = next(iter(known.values()))
        parts = 1 if collective == "all_reduce" else size
        for count in (100, 600_000 // parts):
            inputs = [x.to(device) for x in randoms(some, size, count, BF16)]
            name = _core.select(collective, 2 * count * parts, size, list(nodes))
            assert name in known
            sent, hashes = [], []
            for algorithm in ("auto", name):
                world = World(size, device, nodes)
                work = partial(hash_of, collective, inputs, algorithm)
                hashes.append(world.run(work))
                sent.append([rank.comm.sent_bytes for rank in world.ranks])
            assert hashes[0] == hashes[1]
            assert sent[0] == sent[1]


# -------------------------------------------------------------------------------------------- bytes


@each_method
@each_compressor
def test_ranks_send_what_the_algorithm_and_the_codec_say(device, method, compressor):
    """V12: all ranks together, and each rank where the algorithm treats them alike."""
    codec = REFERENCE[compressor]
    for size, nodes in method.layouts:
        # whole blocks in every slice of an all_reduce; other collectives cut nothing
        count = 2 * 3 * 4 * 5 * 512 if method.collective == "all_reduce" else 2 * 512
        payload = count * codec.block_bytes / codec.block
        world = World(size, device, nodes)
        method.run(world, filled(method, size, count, BF16), compressor)
        sent = [rank.comm.sent_bytes for rank in world.ranks]
        each = payload * (size - 1)
        if method.collective == "all_reduce" and method.algorithm != "one_shot":
            each *= 2 / size
        assert sum(sent) == pytest.approx(size * each, rel=0.02)
        if method.algorithm not in ("tree", "hierarchical"):
            assert sent == pytest.approx([each] * size, rel=0.02)
        elif method.collective == "all_reduce" and method.algorithm == "tree":
            assert max(sent) <= 2 * payload * 1.02


@each_method
def test_scratch_is_kept_and_grows_only_with_the_call(device, method):
    world = World(3, device)
    held = []
    for count in (1543, 1543, 100, 15430):
        method.run(world, randoms(method, 3, count, F32), "int8")
        held.append([rank.comm.scratch_bytes for rank in world.ranks])
    assert held[0] == held[1] == held[2]
    assert all(after > before > 0 for before, after in zip(held[2], held[3], strict=True))
