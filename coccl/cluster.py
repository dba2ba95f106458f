"""A virtual cluster: many ranks of a program on one machine, spread over make-believe hosts.

    python -m coccl.cluster "a a b b" -- python3 train.py --steps 100

One name a rank says which host the rank believes it is on: here two hosts of two ranks. All ranks
share GPU 0 if there is one (NCCL takes every host name for a machine of its own and talks between
hosts through sockets; ranks of one host on one GPU need NCCL 2.30 or newer), or the CPU with gloo.
Every rank gets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, so that
`init_process_group` works as under torchrun.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from coccl.errors import ArgumentError
from coccl.mps import mps_server

TIMEOUT_EXIT_CODE = 124
_GRACE_S = 5.0
_POLL_S = 0.02


def parse_layout(layout: str) -> list[str]:
    """The host of every rank, from a layout such as "a a b b"; ArgumentError if it names none."""
    hosts = layout.split()
    if not hosts:
        raise ArgumentError(f'empty layout "{layout}"; expected one host a rank, such as "a a b b"')
    for host in hosts:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", host):
            raise ArgumentError(
                f'bad host "{host}" in layout "{layout}"; '
                "a host is made of letters, digits, '.', '_' and '-', with spaces between hosts"
            )
    return hosts


def rank_environments(
    hosts: Sequence[str], base: Mapping[str, str], port: int, nccl: str | None = None
) -> list[dict[str, str]]:
    """The environment of every rank; `base` wins where a variable is only a default.

    nccl: path of an NCCL library to preload instead of the one that the program would load.
    """
    defaults = {
        # The blocks of all ranks must be resident at once, or they wait for each other for ever.
        "NCCL_MAX_CTAS": "8",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // len(hosts))),
        "PYTHONUNBUFFERED": "1",
    }
    cluster = {
        "WORLD_SIZE": str(len(hosts)),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_IB_DISABLE": "1",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    }
    shared = {**defaults, **base, **cluster}
    if nccl is not None:
        preloaded = [nccl, base["LD_PRELOAD"]] if base.get("LD_PRELOAD") else [nccl]
        shared["LD_PRELOAD"] = ":".join(preloaded)
    return [{**shared, "RANK": str(rank), "NCCL_HOSTID": host} for rank, host in enumerate(hosts)]


def run(
    hosts: Sequence[str], command: Sequence[str], *, nccl: str | None = None, timeout_s: float = 600
) -> int:
    """Runs `command` as one process a rank and waits for all of them.

    Output goes to stdout and stderr with the rank before every line. The first rank that fails ends
    the others. Returns 0, the exit code of that rank (128 + n if signal n ended it), or 124 after
    timeout_s seconds.
    """
    if not command:
        raise ArgumentError("no command; write it after --")
    if not timeout_s > 0:
        raise ArgumentError(f"timeout {timeout_s} s; expected more than 0")
    if nccl is not None:
        if not Path(nccl).is_file():
            raise ArgumentError(f'no NCCL library at "{nccl}"; expected the path of a libnccl.so.2')
        nccl = str(Path(nccl).resolve())
    with mps_server(os.environ) as mps, contextlib.ExitStack() as stack:
        environments = rank_environments(hosts, {**os.environ, **mps}, _free_port(), nccl)
        processes: list[subprocess.Popen[str]] = []
        # Leaving, in this order: the ranks are ended, then the readers see the end of the output.
        readers = stack.enter_context(_Readers())
        stack.callback(_end, processes)
        for rank, environment in enumerate(environments):
            process = _start(command, environment)
            processes.append(process)
            readers.follow(rank, process)
        return _wait(processes, time.monotonic() + timeout_s, timeout_s)


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that a rank ends together with its own children
        )
    except OSError as error:
        raise ArgumentError(f'cannot start "{command[0]}": {error.strerror}') from error


def _wait(processes: Sequence[subprocess.Popen[str]], deadline: float, timeout_s: float) -> int:
    while True:
        codes = [process.poll() for process in processes]
        for rank, code in enumerate(codes):
            if code:
                told = f"was ended by {_signal_name(-code)}" if code < 0 else f"exited with {code}"
                print(f"cluster: rank {rank} {told}; ending the others", file=sys.stderr)
                return 128 - code if code < 0 else code
        if None not in codes:
            return 0
        if time.monotonic() > deadline:
            running = [str(rank) for rank, code in enumerate(codes) if code is None]
            print(
                f"cluster: still running after {timeout_s:g} s: rank {', '.join(running)}; ending",
                file=sys.stderr,
            )
            return TIMEOUT_EXIT_CODE
        time.sleep(_POLL_S)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Ends every rank and what it started: politely, and after the grace period without asking."""
    _signal(processes, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    _signal(processes, signal.SIGKILL)
    for process in processes:
        process.wait()


def _signal(processes: Sequence[subprocess.Popen[str]], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


class _Readers:
    """Threads that copy the output of the ranks line by line, each with its rank before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> _Readers:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join(_GRACE_S)

    def follow(self, rank: int, process: subprocess.Popen[str]) -> None:
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert source is not None
            thread = threading.Thread(target=self._copy, args=(rank, source, target), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _copy(self, rank: int, source: IO[str], target: IO[str]) -> None:
        with source:
            for line in source:
                text = line.removesuffix("\n")
                with self._lock:
                    target.write(f"[{rank}] {text}\n")
                    target.flush()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _terminate(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        prog="python -m coccl.cluster",
        usage='%(prog)s "a a b b" [--nccl PATH] [--timeout S] -- command ...',
        description="Runs a command as many ranks on this machine, spread over make-believe hosts.",
    )
    parser.add_argument("layout", help='one host a rank: "a a b b" is two hosts of two ranks')
    parser.add_argument("--nccl", metavar="PATH", help="an NCCL library to preload in every rank")
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=float,
        default=600,
        help="end the ranks after S seconds (600)",
    )
    options = parser.parse_args(given[:split])
    ending = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, _terminate) for number in ending]
    try:
        return run(
            parse_layout(options.layout),
            given[split + 1 :],
            nccl=options.nccl,
            timeout_s=options.timeout,
        )
    except ArgumentError as error:
        parser.error(str(error))
    finally:
        for number, handler in zip(ending, previous, strict=True):
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
