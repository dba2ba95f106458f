"""Bad input and failing ranks: errors that name the value, and no rank that waits for ever."""

from __future__ import annotations

import time

import pytest
import torch
from methods import COMPRESSORS, METHODS, each_method, filled
from world import OP, TYPE_OF, World, address, current_stream

from coccl import _core
from coccl.errors import ArgumentError, TransportError

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather"]
each_collective = pytest.mark.parametrize("collective", COLLECTIVES)


@pytest.fixture(scope="session")
def device():
    return "cpu"


def refused(device, collective, **changes):
    """The message with which one of two ranks refuses a call that differs from a good one."""
    x = torch.ones(256, device=device)
    y = torch.ones(256, device=device)
    fields = {
        "input": address(x),
        "output": address(y),
        "count": 128,
        "type": TYPE_OF[torch.float32],
        "op": OP["sum"],
        "stream": current_stream(device),
        "compressor": "int8",
        "algorithm": "auto",
    }
    if collective == "all_gather":
        del fields["op"]
    fields |= changes
    call = getattr(World(2, device).ranks[0].comm, collective)
    with pytest.raises(ArgumentError) as error:
        call(**fields)
    assert torch.equal(y, torch.ones_like(y))
    return str(error.value)


@each_collective
def test_an_unknown_compressor_is_named_with_those_that_are_known(device, collective):
    message = refused(device, collective, compressor="int3x")
    assert '"int3x"' in message
    assert all(name in message for name in COMPRESSORS)


@each_collective
def test_an_unknown_algorithm_is_named_with_those_that_are_known(device, collective):
    message = refused(device, collective, algorithm="butterfly")
    assert '"butterfly"' in message
    assert collective in message
    assert all(m.algorithm in message for m in METHODS if m.collective == collective)


@each_collective
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.uint8])
def test_a_type_that_is_not_compressible_is_named_with_those_that_are(device, collective, dtype):
    message = refused(device, collective, type=TYPE_OF[dtype])
    assert str(dtype).split(".")[-1] in message
    assert all(name in message for name in ("float32", "bfloat16", "float16"))


@each_collective
@pytest.mark.parametrize("number", [-1, 10, 42])
def test_a_number_that_is_no_type_is_named(device, collective, number):
    assert str(number) in refused(device, collective, type=number)


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("op", ["prod", "max", "min"])
def test_an_op_that_cannot_be_compressed_is_named_with_those_that_can(device, collective, op):
    message = refused(device, collective, op=OP[op])
    assert op in message
    assert "sum" in message
    assert "avg" in message


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
def test_a_number_that_is_no_op_is_named(device, collective):
    assert "17" in refused(device, collective, op=17)


@each_collective
@pytest.mark.parametrize("pointer", ["input", "output"])
def test_a_null_pointer_is_named(device, collective, pointer):
    message = refused(device, collective, **{pointer: 0})
    assert "null" in message
    assert pointer in message


@each_collective
@pytest.mark.parametrize("count", [-1, -(2**63), 2**60, 2**63, 2**64, 2**70])
def test_a_negative_or_huge_count_is_named(device, collective, count):
    assert str(count) in refused(device, collective, count=count)


@pytest.mark.parametrize("rank", [-1, 2, 100])
def test_a_rank_out_of_range_is_named_with_the_size(rank):
    with pytest.raises(ArgumentError) as error:
        _core.Communicator.local(_core.LocalHub(2), rank)
    assert str(rank) in str(error.value)
    assert "2" in str(error.value) or "1" in str(error.value)


def test_a_rank_can_be_taken_once():
    hub = _core.LocalHub(2)
    first = _core.Communicator.local(hub, 1)
    with pytest.raises(ArgumentError, match="rank 1"):
        _core.Communicator.local(hub, 1)
    assert first.rank == 1


@pytest.mark.parametrize("size", [0, -3])
def test_a_group_of_no_ranks_is_refused(size):
    with pytest.raises(ArgumentError, match=str(size)):
        _core.LocalHub(size)


def test_nodes_are_one_for_each_rank():
    with pytest.raises(ArgumentError, match="3"):
        _core.LocalHub(2, [0, 0, 1])


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout_s):
    with pytest.raises(ArgumentError):
        _core.LocalHub(2, [], timeout_s)


# ------------------------------------------------------------------------------------ failing ranks


def timed_errors(world, work):
    start = time.monotonic()
    errors = world.errors(work)
    return errors, time.monotonic() - start


@each_method
def test_a_rank_that_fails_wakes_the_others(device, method):
    inputs = [x.to(device) for x in filled(method, 3, 5000, torch.float32)]
    world = World(3, device, timeout_s=60)

    def work(rank):
        compressor = "int3x" if rank.index == 1 else "int8"
        rank.run(method.collective, inputs[rank.index], compressor, method.algorithm)

    errors, seconds = timed_errors(world, work)
    assert seconds < 10
    assert isinstance(errors[1], ArgumentError)
    for rank in (0, 2):
        assert isinstance(errors[rank], TransportError)
        assert "int3x" in str(errors[rank])


@each_collective
def test_a_closed_group_stays_closed_and_says_why(device, collective):
    world = World(2, device)
    x = torch.ones(1024, device=device)
    world.run(lambda rank: rank.run(collective, x, "int8"))
    world.close("the cable was pulled")
    for _ in range(2):
        errors, seconds = timed_errors(world, lambda rank: rank.run(collective, x, "int8"))
        assert seconds < 5
        assert all(isinstance(error, TransportError) for error in errors)
        assert all("the cable was pulled" in str(error) for error in errors)


@each_method
def test_a_rank_that_never_comes_is_a_timeout_that_says_who_is_missing(device, method):
    inputs = [x.to(device) for x in filled(method, 2, 1000, torch.float32)]
    world = World(2, device, timeout_s=0.3)

    def work(rank):
        if rank.index == 0:
            rank.run(method.collective, inputs[0], "int8", method.algorithm)

    errors, seconds = timed_errors(world, work)
    assert seconds < 10
    assert isinstance(errors[0], TransportError)
    assert "rank 1" in str(errors[0])


@each_method
def test_different_counts_are_an_error_on_every_rank(device, method):
    """R5, with counts that differ by whole blocks: nothing outside the buffers is touched."""
    counts = (600, 6000)
    world = World(2, device, timeout_s=2)

    def work(rank):
        x = filled(method, 2, counts[rank.index], torch.float32)[0].to(device)
        rank.run(method.collective, x, "int8", method.algorithm)

    errors, seconds = timed_errors(world, work)
    assert seconds < 10
    assert all(isinstance(error, TransportError) for error in errors), errors


def test_the_first_error_is_raised_with_those_that_followed(device):
    def work(rank):
        if rank.index == 1:
            raise KeyError("mine")
        rank.all_reduce(torch.ones(100, device=device), "int8")

    with pytest.raises(KeyError, match="mine"):
        World(2, device).run(work)
