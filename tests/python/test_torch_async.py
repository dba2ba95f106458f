"""Asynchronous calls, futures, coalescing and the group's other faces, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol
from torch_world import World, group

import coccl

ALL = "all_reduce:int8,reduce_scatter:int8,all_gather:int8"


def _overlap() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        size = pg.size()
        tensors = [torch.full((n,), float(n % 7 + 1)) for n in range(1, 200)]
        works = [dist.all_reduce(t, group=pg, async_op=True) for t in tensors]
        late = torch.ones(50)
        dist.all_reduce(late, group=pg)  # takes its turn behind the others
        assert torch.equal(late, torch.full((50,), float(size)))
        assert all(work.is_completed() and work.is_success() for work in works)
        for n, (work, tensor) in enumerate(zip(works, tensors, strict=True), start=1):
            assert work.wait()
            assert work.exception() is None
            assert torch.equal(tensor, torch.full((n,), float(size * (n % 7 + 1))))
            assert work.result()[0].data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("size", [2, 3])
def test_calls_in_flight_keep_their_order(torch_world: Callable[[int], World], size: int) -> None:
    torch_world(size).run(_overlap)


def _freed() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        for _ in range(100):
            x = torch.full((5000,), 3.0)
            dist.all_reduce(x, group=pg, async_op=True)
            del x
            fresh = torch.ones(5000)
            assert torch.equal(fresh, torch.ones(5000))
        dist.all_reduce(torch.ones(1), group=pg)
        assert torch.equal(fresh, torch.ones(5000))


def test_a_call_in_flight_keeps_its_memory(torch_world: Callable[[int], World]) -> None:
    """T4 on the CPU: the Work is dropped unread, too."""
    torch_world(2).run(_freed)


def _futures() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        x = torch.ones(5000)
        future = dist.all_reduce(x, group=pg, async_op=True).get_future()
        halved = future.then(lambda done: done.value()[0] / 2)
        assert torch.equal(halved.wait(), torch.ones(5000))
        work = dist.all_reduce(x, group=pg, async_op=True)
        work.wait()
        assert work.get_future() is work.get_future()
        assert torch.equal(work.get_future().wait()[0], torch.full((5000,), 4.0))

        def again(done: Any) -> torch.Tensor:
            tensor = done.value()[0].clone()
            dist.all_reduce(tensor, group=pg, async_op=True).wait()
            return tensor

        y = torch.ones(5000)
        chained = dist.all_reduce(y, group=pg, async_op=True).get_future().then(again)
        assert torch.equal(chained.wait(), torch.full((5000,), 4.0))


def test_futures_carry_the_tensors_and_may_call_again(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_futures)


def _coalesced() -> None:
    with group(compressor=ALL, min_bytes=0) as pg:
        size, rank = pg.size(), pg.rank()
        shapes = [(5,), (3, 7), (), (1000,)]
        tensors = [torch.ones(shape) for shape in shapes]
        with dist._coalescing_manager(pg):
            for tensor in tensors:
                dist.all_reduce(tensor, group=pg)
        assert all(torch.equal(t, torch.full(t.shape, float(size))) for t in tensors)
        assert coccl.stats().all_reduce.calls == 1

        inputs = [torch.full((n,), rank + 1.0) for n in (4, 600)]
        outputs = [torch.empty(size * n) for n in (4, 600)]
        with dist._coalescing_manager(pg, async_ops=True) as manager:
            for out, one in zip(outputs, inputs, strict=True):
                dist.all_gather_into_tensor(out, one, group=pg)
        manager.wait()
        for out, one in zip(outputs, inputs, strict=True):
            expected = (torch.arange(size) + 1.0).repeat_interleave(one.numel())
            # Both share a scale group, so each is within the codec's tolerance of the largest.
            assert (out - expected).abs().max() <= size * 0.004
        assert coccl.stats().all_gather.calls == 1

        wholes = [torch.arange(size).repeat_interleave(n).float() for n in (4, 600)]
        parts = [torch.empty(n) for n in (4, 600)]
        with dist._coalescing_manager(pg, device=torch.device("cpu"), async_ops=True) as manager:
            for part, whole in zip(parts, wholes, strict=True):
                dist.reduce_scatter_tensor(part, whole, group=pg)
        manager.wait()
        assert all(torch.equal(p, torch.full_like(p, float(size * rank))) for p in parts)
        assert coccl.stats().reduce_scatter.calls == 1


@pytest.mark.parametrize("size", [2, 3])
def test_coalesced_calls_are_one_coded_call(torch_world: Callable[[int], World], size: int) -> None:
    torch_world(size).run(_coalesced)


def _coalesced_messages() -> None:
    with group(compressor=ALL, min_bytes=0) as pg:
        rank, size = pg.rank(), pg.size()
        got = torch.empty(100_000)
        with dist._coalescing_manager(pg, device=torch.device("cpu"), async_ops=True) as manager:
            dist.isend(torch.full((100_000,), float(rank)), (rank + 1) % size, group=pg)
            dist.irecv(got, (rank - 1) % size, group=pg)
        manager.wait()
        assert torch.equal(got, torch.full_like(got, float((rank - 1) % size)))
        with pytest.raises(RuntimeError, match="never started"):
            pg._end_coalescing(torch.device("cpu"))


def test_coalesced_messages_are_waited_for(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_coalesced_messages)


def _functional() -> None:
    with group(compressor=ALL, min_bytes=0) as pg:
        size, rank = pg.size(), pg.rank()
        ones = torch.ones(600)
        assert torch.equal(funcol.all_reduce(ones, "sum", pg).clone(), ones * size)
        assert torch.equal(ones, torch.ones(600))
        gathered = funcol.all_gather_tensor(torch.full((600,), rank + 1.0), 0, pg).clone()
        assert torch.equal(gathered[::600], torch.arange(size) + 1.0)
        part = funcol.reduce_scatter_tensor(torch.ones(600 * size), "avg", 0, pg).clone()
        assert torch.equal(part, torch.ones(600))
        listed = funcol.all_reduce_coalesced([torch.ones(5), torch.ones(600)], "sum", pg)
        assert all(torch.equal(t.clone(), torch.full_like(t, float(size))) for t in listed)
        stats = coccl.stats()
        assert (stats.all_reduce.calls, stats.all_gather.calls) == (2, 1)
        assert stats.reduce_scatter.calls == 1


def test_functional_collectives_are_coded(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_functional)


def _short_forms() -> None:
    with group(compressor=ALL, min_bytes=0) as pg:
        x = torch.full((1000,), pg.rank() + 1.0)
        pg.allreduce(x).wait()
        assert torch.equal(x, torch.full((1000,), 3.0))
        pg.allreduce([x], dist.ReduceOp.MAX).wait()
        pg.allreduce(x, op=dist.ReduceOp.AVG, timeout=timedelta(seconds=9)).wait()
        assert torch.equal(x, torch.full((1000,), 3.0))
        pg.broadcast(x, 0).wait()
        outs = [torch.empty(1000) for _ in range(2)]
        pg.allgather(outs, x).wait()
        assert torch.equal(outs[1], x)
        pg.barrier().wait()


def test_the_short_forms_of_the_methods_work(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_short_forms)


def _profiled() -> None:
    with group(compressor=ALL, min_bytes=0) as pg:
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities) as profile:
            dist.all_reduce(torch.ones(1000), group=pg)
        assert "coccl:all_reduce" in {event.key for event in profile.key_averages()}


def test_the_profiler_shows_coded_calls(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_profiled)


def _closed() -> None:
    pg = dist.new_group(backend="coccl", pg_options=coccl.Config("int8", min_bytes=0))
    dist.all_reduce(torch.ones(10), group=pg)
    dist.destroy_process_group(pg)
    work = pg.allreduce(torch.ones(10))
    with pytest.raises(coccl.TransportError, match=r"all_reduce of 40 bytes.*shut down"):
        work.wait()
    assert isinstance(work.exception(), coccl.TransportError)
    assert work.is_completed()
    assert not work.is_success()
    with pytest.raises(Exception, match="shut down"):
        work.get_future().wait()


def test_a_closed_group_refuses_calls(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_closed)
