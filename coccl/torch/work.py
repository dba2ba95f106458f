"""Handles of calls that were started: what async_op=True returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work

from coccl.errors import TransportError

_NO_TIMEOUT = timedelta(0)


class HostWork(Work):
    """A call on CPU tensors, finished by whichever thread runs it."""

    def __init__(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._name = name
        self._tensors = list(tensors)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._error: Exception | None = None
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None

    def finish(self, error: Exception | None = None) -> None:
        """Marks the call as over, for good or with its error; wakes all waiters."""
        with self._lock:
            self._error = error
            self._done.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Returns once the result is in the tensors, or raises the call's error.

        timeout: TransportError after this time; zero waits for as long as the group's own timeout
        lets the call run.
        """
        limit = timeout.total_seconds() if timeout > _NO_TIMEOUT else None
        if not self._done.wait(limit):
            raise TransportError(f"{self._name} did not finish within {limit} s")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        """The output tensors; waits for them."""
        self.wait()
        return self._tensors

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """A future of the output tensors."""
        with self._lock:
            done = self._done.is_set()
            future = self._future
            if future is None:
                future = self._future = torch.futures.Future()
            else:
                done = False  # settled, or going to be, by finish()
        if done:
            self._settle(future)
        return future

    def _settle(self, future: torch.futures.Future[list[torch.Tensor]]) -> None:
        if self._error is None:
            future.set_result(self._tensors)
        else:
            future.set_exception(self._error)  # type: ignore[arg-type]


class CudaWork(Work):
    """A call on CUDA tensors whose result is there once `end` has happened on the GPU.

    end: None for a call launched on the caller's own stream, which needs no waiting.
    stream: where the call runs. kept: what must outlive the call; emptied when it is waited for,
    since later work of the waiter's stream is ordered behind the call.
    """

    def __init__(
        self,
        name: str,
        tensors: Sequence[torch.Tensor],
        stream: torch.cuda.Stream,
        end: torch.cuda.Event | None = None,
        kept: list[Any] | None = None,
    ) -> None:
        super().__init__()
        self._name = name
        self._tensors = list(tensors)
        self._stream = stream
        self._end = end
        self._kept = kept
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Makes the current stream wait for the result; the host does not wait.

        timeout: when above zero, the host waits, too, and raises TransportError after this time.
        """
        if self._end is None:
            return True
        if timeout > _NO_TIMEOUT:
            self._wait_on_host(timeout.total_seconds())
        torch.cuda.current_stream(self._stream.device).wait_event(self._end)
        if self._kept is not None:
            self._kept.clear()
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._end is None or bool(self._end.query())  # type: ignore[no-untyped-call]

    def is_success(self) -> bool:
        return self.is_completed()

    def exception(self) -> None:
        return None  # an error of the launch was raised by the launch

    def result(self) -> list[torch.Tensor]:
        """The output tensors, ordered behind the call on the stream that it runs on."""
        return self._tensors

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """A future of the output tensors, complete at once and ordered as CUDA futures are."""
        if self._future is None:
            self._future = torch.futures.Future(devices=[self._stream.device])
            with torch.cuda.stream(self._stream):
                self._future.set_result(self._tensors)
        return self._future

    def _wait_on_host(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        assert self._end is not None
        while not self._end.query():  # type: ignore[no-untyped-call]
            if time.monotonic() > deadline:
                raise TransportError(f"{self._name} did not finish within {limit_s} s")
            time.sleep(1e-4)


class JoinedWork(Work):
    """Several handles as one."""

    def __init__(self, works: Sequence[Work]) -> None:
        super().__init__()
        self._works = list(works)

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def synchronize(self) -> None:
        for work in self._works:
            work.synchronize()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def result(self) -> list[torch.Tensor]:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> torch.futures.Future[Any]:
        return torch.futures.collect_all([work.get_future() for work in self._works])
