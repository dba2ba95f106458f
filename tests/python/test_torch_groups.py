"""Groups: how they are made, configured, split and ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch_world import World, group, init_group, run_alone

import coccl
from coccl import _core


def _join(rank: int, size: int, directory: str) -> tuple[str, float]:
    """Why the group was refused, if it was, and after how many seconds."""
    start = time.monotonic()
    refusal = ""
    try:
        init_group(rank, size, directory)
        dist.destroy_process_group()
    except coccl.ArgumentError as error:
        refusal = str(error)
    return refusal, time.monotonic() - start


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("COCCL_MIN_BYTES", ["1M", "8M"]),
        ("COCCL_COMPRESSOR", ["int8", "int4"]),
        ("COCCL_COMPRESSOR", ["int8", "off"]),
        ("COCCL_ALGORITHM", ["ring", "auto"]),
        ("COCCL_STRICT", ["0", "1"]),
    ],
)
def test_different_configurations_are_refused_on_every_rank(key: str, values: list[str]) -> None:
    """R4: within 10 s, naming the key and both values."""
    shown = {"1M": "1048576", "8M": "8388608"}
    for ok, (text, seconds) in run_alone(_join, 2, [{key: value} for value in values]):
        assert ok
        assert f"ranks disagree on {key}" in text
        assert all(shown.get(value, value) in text for value in values)
        assert "on rank 0" in text
        assert "on rank 1" in text
        assert seconds < 10


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("COCCL_COMPRESSOR", [c.name for c in _core.compressors()]),
        ("COCCL_ALGORITHM", ["auto", *(a.name for a in _core.algorithms())]),
    ],
)
@pytest.mark.parametrize("wrong", [[0, 1, 2], [1]], ids=["all", "one"])
def test_unknown_names_are_refused_on_every_rank(
    key: str, known: list[str], wrong: list[int]
) -> None:
    """Also on the ranks whose own names are fine: none is left waiting."""
    environs = [{key: "int3x"} if rank in wrong else {} for rank in range(3)]
    for ok, (text, _) in run_alone(_join, 3, environs):
        assert ok
        assert f"rank {wrong[0]}: {key}: unknown" in text
        assert '"int3x"' in text
        assert all(name in text for name in known)


@pytest.mark.parametrize(
    ("key", "value"),
    [("COCCL_MIN_BYTES", "12X"), ("COCCL_STRICT", "maybe"), ("COCCL_COMPRESSOR", "a,b")],
)
def test_unreadable_values_are_refused_on_every_rank(key: str, value: str) -> None:
    for ok, (text, _) in run_alone(_join, 2, [{}, {key: value}]):
        assert ok
        assert f'rank 1: {key}="{value}"' in text


def test_equal_configurations_are_accepted() -> None:
    environs = [
        {"COCCL_COMPRESSOR": "int8", "COCCL_MIN_BYTES": "4096K"},
        {"COCCL_COMPRESSOR": "reduce_scatter:int8,all_reduce:int8", "COCCL_STRICT": "0"},
    ]
    assert [refusal for _, (refusal, _) in run_alone(_join, 2, environs)] == ["", ""]


def _environment(rank: int, size: int, directory: str) -> None:
    init_group(rank, size, directory)
    x = torch.full((5000,), rank + 1.0)
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((5000,), 3.0))
    assert coccl.stats().all_reduce.calls == 1
    plain = dist.new_group(backend="coccl", pg_options=coccl.Config())
    dist.all_reduce(x, group=plain)
    assert coccl.stats().all_reduce.bypasses == {"no_compressor": 1}
    inherited = dist.new_group()
    dist.all_reduce(x, group=inherited)
    assert coccl.stats().all_reduce.calls == 2
    dist.destroy_process_group()


def test_groups_follow_the_environment_unless_told_otherwise() -> None:
    environ = {"COCCL_COMPRESSOR": "int8", "COCCL_MIN_BYTES": "16K"}
    for ok, text in run_alone(_environment, 2, [environ, environ]):
        assert ok, text


def _subgroups() -> None:
    rank = dist.get_rank()
    for ranks in ([0, 2], [1, 2, 3], [3, 0]):
        with group(ranks, compressor="int8", min_bytes=0) as pg:
            if rank in ranks:
                x = torch.full((5000,), float(rank))
                dist.all_reduce(x, group=pg)
                assert torch.allclose(x, torch.full((5000,), float(sum(ranks))))
                assert coccl.stats().all_reduce.calls == 1


def test_subgroups_sum_over_their_members(torch_world: Callable[[int], World]) -> None:
    """G3."""
    torch_world(4).run(_subgroups)


def _split() -> None:
    rank = dist.get_rank()
    with group(compressor="int8", min_bytes=0) as pg:
        for ranks in ([[0, 1], [2, 3]], [[3, 1], [0, 2]]):
            (mine,) = [r for r in ranks if rank in r]
            part = pg.split_group(mine)
            assert (part.rank(), part.size()) == (mine.index(rank), 2)
            x = torch.full((5000,), float(rank))
            part.allreduce([x]).wait()
            assert torch.allclose(x, torch.full((5000,), float(sum(mine))))
            part.shutdown()
        others = pg.split_group([0, 1])
        assert (others is None) == (rank >= 2)


def test_a_group_splits_into_groups_like_it(torch_world: Callable[[int], World]) -> None:
    torch_world(4).run(_split)


def _identity() -> None:
    with group(compressor="int8", min_bytes=0) as pg:
        assert dist.get_backend(pg) == "coccl"
        assert pg.getBackendName() == "coccl"
        assert pg._get_backend(torch.device("cpu")) is pg
        assert pg.get_group_store() is not None
        assert (pg.supports_splitting, pg.supports_coalescing) == (False, False)
        assert {device.type for device in pg._device_types} >= {"cpu"}
        pg.set_timeout(timedelta(seconds=20))
        dist.barrier(group=pg, async_op=True).wait()


def test_a_group_tells_who_it_is(torch_world: Callable[[int], World]) -> None:
    torch_world(2).run(_identity)


SCRIPT = r"""
import sys
import torch
import torch.distributed as dist
dist.init_process_group("coccl")
x = torch.full((100_000,), dist.get_rank() + 1.0)
dist.all_reduce(x)
assert torch.equal(x, torch.full_like(x, 3.0))
calls = sys.modules["coccl"].stats().all_reduce.calls
sys.stdout.write(f"{dist.get_backend()} {calls}\n")  # at once, since both ranks write here
dist.destroy_process_group()
"""


def test_torchrun_needs_no_import_of_coccl(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(script)],
        env={
            **os.environ,
            "COCCL_COMPRESSOR": "int8",
            "COCCL_MIN_BYTES": "0",
            "OMP_NUM_THREADS": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["coccl", "1"] * 2


def _dead_peer(rank: int, size: int, directory: str) -> str:
    options = coccl.Config("int8", min_bytes=0)
    init_group(rank, size, directory, pg_options=options)
    x = torch.ones(50_000)
    dist.all_reduce(x)
    if rank == 1:
        os._exit(0)
    try:
        dist.all_reduce(x)
    except coccl.TransportError as error:
        return str(error)
    return "no error"


def test_a_dead_peer_is_an_error_that_names_the_call() -> None:
    """G4 on the CPU, where gloo notices the closed connection."""
    (ok, text), _ = run_alone(_dead_peer, 2)
    assert ok, text
    assert "all_reduce of 200000 bytes with int8 failed after" in text


def _pending(rank: int, size: int, directory: str) -> str:
    init_group(rank, size, directory, pg_options=coccl.Config("int8", min_bytes=0))
    for _ in range(20):
        dist.all_reduce(torch.ones(200_000), async_op=True)
    dist.destroy_process_group()
    return "destroyed"


def test_a_group_can_be_destroyed_with_calls_in_flight() -> None:
    """G5."""
    assert run_alone(_pending, 2) == [(True, "destroyed")] * 2


EXITS = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("coccl")
for _ in range(5):
    dist.all_reduce(torch.ones(200_000), async_op=True)
sys.exit(0)
"""


def _exit_codes(script: Path, worlds: int) -> list[int]:
    """Of two ranks in each of so many worlds at once, coded by int8."""
    environ = {
        **os.environ,
        "COCCL_COMPRESSOR": "int8",
        "COCCL_MIN_BYTES": "0",
        "MASTER_ADDR": "127.0.0.1",
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    processes = []
    for _ in range(worlds):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            environ["MASTER_PORT"] = str(free.getsockname()[1])
        processes += [
            subprocess.Popen([sys.executable, str(script)], env={**environ, "RANK": str(rank)})
            for rank in range(2)
        ]
    return [process.wait(60) for process in processes]


def test_processes_end_without_destroying_their_groups(tmp_path: Path) -> None:
    """G5: no destroy, calls in flight."""
    script = tmp_path / "script.py"
    script.write_text(EXITS)
    start = time.monotonic()
    assert _exit_codes(script, 1) == [0, 0]
    assert time.monotonic() - start < 30


ENDS = """
import time
import torch
import torch.distributed as dist
dist.init_process_group("coccl")
for _ in range(8):
    group = dist.new_group(backend="coccl")
    for _ in range(20):
        dist.all_reduce(torch.ones(2000), group=group)
    dist.destroy_process_group(group)
    time.sleep(0.12)
dist.destroy_process_group()
"""


def test_processes_end_right_after_their_groups(tmp_path: Path) -> None:
    """G5: on a busy machine, where a thread may be late."""
    script = tmp_path / "script.py"
    script.write_text(ENDS)
    assert _exit_codes(script, 3) == [0] * 6
