"""A CUDA MPS server for the time of one run, so that many processes compute on one GPU at once."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_CONTROL = "nvidia-cuda-mps-control"
_START_S = 5.0
_POLL_S = 0.02


@contextlib.contextmanager
def mps_server(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A CUDA MPS server of our own, if the machine has one to offer and none is configured.

    Without it the kernels of different ranks take turns of milliseconds on their one GPU.
    Yields the variables that lead the ranks to it.
    """
    if shutil.which(_CONTROL) is None or "CUDA_MPS_PIPE_DIRECTORY" in environment:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True) as directory:
        variables = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{directory}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{directory}/log",
        }
        for path in variables.values():
            Path(path).mkdir()
        if not _start({**environment, **variables}):
            print("cluster: the MPS server did not start; ranks take turns", file=sys.stderr)
            yield {}
            return
        try:
            yield variables
        finally:
            if not _control({**environment, **variables}, ask="quit"):
                print("cluster: the MPS server did not quit", file=sys.stderr)


def _start(environment: Mapping[str, str]) -> bool:
    """Starts the server and waits until it answers."""
    if not _control(environment, "-d"):
        return False
    deadline = time.monotonic() + _START_S
    while not _control(environment, ask="get_server_list"):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _control(environment: Mapping[str, str], *flags: str, ask: str = "") -> bool:
    try:
        # The daemon inherits its streams: pipes would never end, so there are none.
        done = subprocess.run(
            [_CONTROL, *flags],
            env=dict(environment),
            input=f"{ask}\n".encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
