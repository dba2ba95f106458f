"""Ranks as processes: runs a function on every rank of a torch.distributed group.

Functions are sent by name, so they are those of a test module; they take nothing but plain values,
and return such. What a rank raises comes back with its traceback.
"""

from __future__ import annotations

import faulthandler
import multiprocessing as mp
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from coccl import Config, reset_stats
from coccl._torch_autoload import register

GROUP_TIMEOUT = timedelta(seconds=30)
CALL_TIMEOUT_S = 60


class World:
    """Processes of one default group, made with backend="coccl", that serve calls until closed."""

    def __init__(self, size: int, environ: Mapping[str, str] | None = None) -> None:
        self.size = size
        self._directory = tempfile.TemporaryDirectory()
        context = mp.get_context("fork")
        self._pipes: list[Connection] = []
        self._processes = []
        for rank in range(size):
            here, there = context.Pipe()
            arguments = (there, rank, size, self._directory.name, dict(environ or {}))
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    @property
    def broken(self) -> bool:
        return not all(process.is_alive() for process in self._processes)

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of `function(*arguments)`, by rank; AssertionError if a rank raised."""
        for pipe in self._pipes:
            pipe.send_bytes(pickle.dumps((function, arguments)))
        results, failures = [], []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(10 if failures else CALL_TIMEOUT_S):
                failures.append(f"rank {rank} does not answer")
                continue
            ok, result = pickle.loads(pipe.recv_bytes())
            results.append(result)
            if not ok:
                failures.append(f"rank {rank}:\n{result}")
        if failures:
            self.kill()
            raise AssertionError("\n".join(failures))
        return results

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()
        self._directory.cleanup()

    def close(self) -> None:
        """Ends the processes, which must go without complaint unless a failure broke them."""
        if self.broken:
            self.kill()
            return
        for pipe in self._pipes:
            pipe.send_bytes(pickle.dumps(None))
        for process in self._processes:
            process.join(20)
        codes = [process.exitcode for process in self._processes]
        self.kill()
        assert codes == [0] * self.size, f"exit codes {codes}"


def run_alone(
    function: Callable[..., Any],
    size: int,
    environs: list[dict[str, str]] | None = None,
    *arguments: Any,
) -> list[tuple[bool, Any]]:
    """Calls `function(rank, size, directory, *arguments)` in fresh processes that have no group.

    environs: of each rank. Returns (True, result) or (False, traceback) of each.
    """
    context = mp.get_context("fork")
    with tempfile.TemporaryDirectory() as directory:
        pipes, processes = [], []
        for rank in range(size):
            here, there = context.Pipe(duplex=False)
            environ = environs[rank] if environs else {}
            process = context.Process(
                target=_call_alone,
                args=(there, environ, function, (rank, size, directory, *arguments)),
                daemon=True,
            )
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        results = []
        for pipe, process in zip(pipes, processes, strict=True):
            try:
                answered = pipe.poll(CALL_TIMEOUT_S)
                results.append(pickle.loads(pipe.recv_bytes()) if answered else (False, "hangs"))
            except EOFError:
                results.append((False, "died"))
            process.join(20)
            process.kill()
        return results


def init_group(rank: int, size: int, directory: str, **options: Any) -> None:
    """init_process_group("coccl") over a store in `directory`."""
    register()  # what the installed package's entry point does
    dist.init_process_group(
        "coccl",
        init_method=f"file://{Path(directory, 'store')}",
        rank=rank,
        world_size=size,
        timeout=GROUP_TIMEOUT,
        **options,
    )


@contextmanager
def group(ranks: list[int] | None = None, **settings: Any) -> Iterator[dist.ProcessGroup]:
    """A new group with Config(**settings), over counters that start at zero."""
    made = dist.new_group(ranks, backend="coccl", pg_options=Config(**settings))
    reset_stats()
    yield made
    dist.destroy_process_group(made)


def _serve(pipe: Connection, rank: int, size: int, directory: str, environ: dict[str, str]) -> None:
    os.environ.update({"GLOO_SOCKET_IFNAME": "lo", **environ})
    torch.set_num_threads(1)
    init_group(rank, size, directory)
    while (task := _next_task(pipe)) is not None:
        pipe.send_bytes(_result_of(*task))
    dist.destroy_process_group()


def _next_task(pipe: Connection) -> Any:
    parent = os.getppid()
    while not pipe.poll(1):
        if os.getppid() != parent:  # which was killed, and so cannot say good-bye
            os._exit(1)
    return pickle.loads(pipe.recv_bytes())


def _call_alone(
    pipe: Connection,
    environ: dict[str, str],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    os.environ.update({"GLOO_SOCKET_IFNAME": "lo", **environ})
    torch.set_num_threads(1)
    pipe.send_bytes(_result_of(function, arguments))


def _result_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    faulthandler.dump_traceback_later(CALL_TIMEOUT_S - 5)  # says where a rank hangs
    try:
        torch.manual_seed(0)
        return pickle.dumps((True, function(*arguments)))
    except BaseException:
        return pickle.dumps((False, traceback.format_exc()))
    finally:
        faulthandler.cancel_dump_traceback_later()
