"""Coded calls on CPU tensors: gloo moves the bytes."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch._C import _distributed_c10d as c10d

from coccl._core import Communicator
from coccl.errors import ArgumentError, TransportError
from coccl.torch.call import Call
from coccl.torch.membership import Membership
from coccl.torch.work import HostWork

_EXIT_S = 5.0


class GlooTransport:
    """The callbacks of Communicator.external over a gloo group of our own, apart from torch's."""

    def __init__(self, member: Membership) -> None:
        self._group: Any = c10d.ProcessGroupGloo(
            c10d.PrefixStore("coccl/host", member.store),
            member.rank,
            member.size,
            timeout=member.timeout,
        )

    def exchange(
        self, sends: list[tuple[int, int, int]], recvs: list[tuple[int, int, int]]
    ) -> None:
        """Moves (address, bytes, peer) messages; those between two ranks match first to first."""
        works = [self._group.recv([_memory(a, n)], peer, 0) for a, n, peer in recvs]
        works += [self._group.send([_memory(a, n)], peer, 0) for a, n, peer in sends]
        for work in works:
            work.wait()

    def all_gather(self, send: int, recv: int, size: int) -> None:
        """Every rank's `size` bytes at `send`, in rank order, to `recv`."""
        parts = torch.split(_memory(recv, size * self._group.size()), size)
        self._group.allgather([list(parts)], [_memory(send, size)]).wait()


class SerialWorker:
    """Runs jobs one after another in the order given, which must be the same on all ranks.

    A caller that waits anyway runs its job itself when none is before it. A job started by a job
    (a callback of its future) runs at once, as it would wait for itself otherwise. Jobs raise
    nothing.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._runner: int | None = None  # the thread that runs a job now
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Runs the job some time later, in the worker's thread."""
        if self._closed or self._runner == threading.get_ident():
            job()
            return
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                # A daemon: whether the process may end is not for a hanging peer to decide.
                self._thread = threading.Thread(target=self._serve, name="coccl", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def run(self, job: Callable[[], None]) -> None:
        """Runs the job after all that were given before; returns when it is over."""
        me = threading.get_ident()
        if self._closed or self._runner == me:
            job()
            return
        with self._changed:
            idle = not self._jobs and self._runner is None
            if idle:
                self._runner = me
        if not idle:
            over = threading.Event()

            def job_and_tell() -> None:
                job()
                over.set()

            self.submit(job_and_tell)
            over.wait()
            return
        try:
            job()
        finally:
            self._release()

    def close(self) -> None:
        """Waits some seconds for the jobs that are left; later ones run in the caller's thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_EXIT_S)

    def _release(self) -> None:
        with self._changed:
            self._runner = None
            self._changed.notify_all()

    def _serve(self) -> None:
        me = threading.get_ident()
        while True:
            with self._changed:
                while not (self._jobs and self._runner is None):
                    if self._closed and not self._jobs:
                        return
                    self._changed.wait()
                job = self._jobs.popleft()
                self._runner = me
            try:
                job()
            finally:
                self._release()
            del job  # and with it the tensors that it holds


class HostEngine:
    """Executes coded calls on CPU tensors, in order; connects at the first one."""

    def __init__(self, member: Membership) -> None:
        self._member = member
        self._communicator: Communicator | None = None
        self._closed = ""
        self._worker = SerialWorker()
        # Also at exit, where a thread inside gloo must not meet a finished interpreter.
        self._finalizer = weakref.finalize(self, self._worker.close)

    def run(self, call: Call, asynchronous: bool) -> HostWork:
        """Starts the call; a synchronous one is over on return, or raises its error in wait()."""
        work = HostWork(str(call), call.outputs)

        def job() -> None:
            try:
                self._execute(call)
            except Exception as error:
                work.finish(error)
            else:
                work.finish()

        if asynchronous:
            self._worker.submit(job)
        else:
            self._worker.run(job)
        return work

    def close(self, reason: str, abort: bool) -> None:
        """Ends the engine: later calls raise TransportError.

        abort: fail what is running instead of letting it finish within some seconds.
        """
        if abort:
            self._end(reason)
        self._finalizer()
        self._end(reason)

    def _end(self, reason: str) -> None:
        self._closed = reason
        if self._communicator is not None:
            self._communicator.close(reason)

    def _execute(self, call: Call) -> None:
        if self._closed:
            raise TransportError(f"{call}: the group is closed: {self._closed}")
        start = time.monotonic()
        try:
            if self._communicator is None:
                self._communicator = self._connect()
            call.execute(self._communicator, None)
        except ArgumentError:
            raise
        except Exception as error:
            elapsed = time.monotonic() - start
            raise TransportError(f"{call} failed after {elapsed:.1f} s: {error}") from error

    def _connect(self) -> Communicator:
        member = self._member
        transport = GlooTransport(member)
        return Communicator.external(
            transport.exchange,
            transport.all_gather,
            member.rank,
            member.size,
            nodes=member.nodes,
            poison_scratch=member.poison_scratch,
        )


def _memory(address: int, size: int) -> torch.Tensor:
    """`size` bytes at `address`, whose owner outlives the tensor."""
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=torch.uint8)
