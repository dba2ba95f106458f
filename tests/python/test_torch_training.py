"""Training over coded collectives: DDP, FSDP2 and DTensor on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch_world import World, group, init_group, run_alone

import coccl

REDUCTIONS = {"compressor": "int8h", "min_bytes": 0}


def _model() -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 96), nn.Tanh(), nn.Linear(96, 8)
    )


def _batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(16, 32, generator=torch.Generator().manual_seed(1000 * step + rank))
    return x, torch.sin(x[:, :8] * 2)


def _train(model: nn.Module, steps: int, ranks: Iterable[int]) -> list[float]:
    """Losses of SGD on the mean over the batches of `ranks`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        loss = torch.stack(
            [nn.functional.mse_loss(model(x), y) for x, y in (_batch(step, r) for r in ranks)]
        ).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def _hash(parameters: Iterable[torch.Tensor]) -> str:
    state = hashlib.sha256()
    for parameter in parameters:
        whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
        state.update(whole.detach().numpy().tobytes())
    return state.hexdigest()


def _mean(losses: list[float], pg: Any) -> float:
    total = torch.tensor(losses[-20:], dtype=torch.float64).mean()
    dist.all_reduce(total, group=pg)
    return float(total) / dist.get_world_size(pg)


def _ddp(settings: dict[str, Any], steps: int, options: dict[str, Any]) -> tuple[str, float, float]:
    with group(**settings) as pg:
        size, rank = pg.size(), pg.rank()
        model = DistributedDataParallel(_model(), process_group=pg, **options)
        loss = _mean(_train(model, steps, [rank]), pg)
        calls = coccl.stats().all_reduce.calls
        assert (calls >= steps) == (settings != {})
        single = _model()
        expected = _mean(_train(single, steps, range(size)), pg)
        if not settings:
            for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        return _hash(model.parameters()), loss, expected


def test_ranks_hold_the_same_parameters_after_200_steps(
    torch_world: Callable[[int], World],
) -> None:
    """R2, and G1's loss."""
    one, two = torch_world(2).run(_ddp, REDUCTIONS, 200, {})
    assert one == two
    _, loss, expected = one
    assert loss == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"bucket_cap_mb": 0.01},
        {"gradient_as_bucket_view": True, "static_graph": True},
        {"find_unused_parameters": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("settings", [{}, REDUCTIONS], ids=["exact", "coded"])
def test_ddp_trains_as_one_process_would(
    torch_world: Callable[[int], World], settings: dict[str, Any], options: dict[str, Any]
) -> None:
    """G1."""
    one, two = torch_world(2).run(_ddp, settings, 20, options)
    assert one == two
    _, loss, expected = one
    assert loss == pytest.approx(expected, rel=1e-5 if not settings else 0.01)


def _fsdp2(settings: dict[str, Any], steps: int) -> tuple[str, float, float]:
    with group(**settings) as pg:
        size, rank = pg.size(), pg.rank()
        mesh = DeviceMesh.from_group(pg, "cpu")
        model = _model()
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        losses = _train(model, steps, [rank])
        stats = coccl.stats()
        gathers = "all_gather" in settings.get("compressor", "")
        assert (stats.reduce_scatter.calls > 0) == (settings != {})
        assert (stats.all_gather.calls > 0) == gathers
        expected = _mean(_train(_model(), steps, range(size)), pg)
        loss = _mean(losses, pg)
    return _hash_in_plain_group(model), loss, expected


def _hash_in_plain_group(model: nn.Module) -> str:
    """Of the sharded parameters, gathered uncoded through the default group."""
    parts = [p.to_local().detach().numpy().tobytes() for p in model.parameters()]
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, parts)
    return hashlib.sha256(repr(everyone).encode()).hexdigest()


@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        ({}, 1e-5),
        (REDUCTIONS, 0.01),
        ({"compressor": "reduce_scatter:int8h,all_gather:int8h", "min_bytes": 0}, 0.05),
    ],
    ids=["exact", "gradients", "parameters too"],
)
def test_fsdp2_trains_as_one_process_would(
    torch_world: Callable[[int], World], settings: dict[str, Any], tolerance: float
) -> None:
    """G1: parameters are gathered exactly unless all_gather is named."""
    one, two = torch_world(2).run(_fsdp2, settings, 40)
    assert one == two
    _, loss, expected = one
    assert loss == pytest.approx(expected, rel=tolerance)


def _dtensor(rank: int, size: int, directory: str, settings: dict[str, Any]) -> None:
    init_group(rank, size, directory, pg_options=coccl.Config(**settings))
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.randn(128, 64, generator=torch.Generator().manual_seed(3))
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(sharded.full_tensor(), whole)
    assert torch.equal(sharded.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
    total = (sharded * sharded).sum().redistribute(mesh, [Replicate()]).to_local()
    torch.testing.assert_close(total, (whole * whole).sum(), rtol=0.01, atol=0)
    product = sharded.redistribute(mesh, [Shard(1)]) @ distribute_tensor(
        whole.t(), mesh, [Shard(0)]
    )
    torch.testing.assert_close(
        product.full_tensor(), whole @ whole.t(), rtol=0.01, atol=1e-4 if not settings else 1
    )


@pytest.mark.parametrize("settings", [{}, REDUCTIONS], ids=["exact", "coded"])
def test_dtensors_are_redistributed(settings: dict[str, Any]) -> None:
    assert run_alone(_dtensor, 2, None, settings) == [(True, None)] * 2


def _tensor_parallel(rank: int, size: int, directory: str, settings: dict[str, Any]) -> None:
    init_group(rank, size, directory, pg_options=coccl.Config(**settings))
    mesh = init_device_mesh("cpu", (size,))
    model = _model()
    x, _ = _batch(0, 0)
    expected = model(x)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    error = (model(x) - expected).norm() / expected.norm()
    assert error < (0.02 if settings else 1e-6)
    model(x).sum().backward()
    assert (coccl.stats().all_reduce.calls > 0) == (settings != {})


@pytest.mark.parametrize("settings", [{}, REDUCTIONS], ids=["exact", "coded"])
def test_tensor_parallel_layers_agree_with_whole_ones(settings: dict[str, Any]) -> None:
    """G1."""
    assert run_alone(_tensor_parallel, 2, None, settings) == [(True, None)] * 2


def _mesh() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = _model()
    fully_shard(model, mesh=mesh)
    losses = _train(model, 3, [dist.get_rank()])
    with ExitStack() as stack:
        pg = stack.enter_context(group())
        expected = _mean(_train(_model(), 3, range(4)), pg)
        assert _mean(losses, pg) == pytest.approx(expected, rel=1e-5)


def test_two_dimensional_meshes_work(torch_world: Callable[[int], World]) -> None:
    """G3: hybrid sharding over groups that torch makes itself."""
    torch_world(4).run(_mesh)
