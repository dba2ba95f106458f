"""Coded calls on CUDA tensors: NCCL moves the bytes, in the order of streams."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import torch

from coccl._core import Communicator, nccl_unique_id
from coccl.errors import Error, TransportError, UnsupportedError
from coccl.nccl import bundled_nccl
from coccl.torch.call import Call
from coccl.torch.membership import Membership
from coccl.torch.work import CudaWork

_EXIT_S = 5.0
_REAPED_PER_CALL = 4


class CudaEngine:
    """Executes coded calls on the tensors of one device; connects when made.

    A synchronous call runs on the caller's current stream, an asynchronous one on a stream of the
    engine's own, behind what the current stream holds. The host waits for neither.
    """

    def __init__(self, member: Membership, device: torch.device, number: int) -> None:
        """number: how many engines the group made before, the same on every rank."""
        unique_id = _shared_unique_id(member, f"coccl/unique_id/{number}")
        self._device = device
        with torch.cuda.device(device):
            self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
            self._communicator: Communicator | None = Communicator.nccl(
                unique_id,
                member.rank,
                member.size,
                nodes=member.nodes,
                timeout_s=member.timeout.total_seconds(),
                library=bundled_nccl(),
                poison_scratch=member.poison_scratch,
            )
            self._caller = torch.cuda.current_stream()  # of the latest call
        self._closed = ""
        self._lock = threading.Lock()  # autograd calls from threads of its own
        # Calls in flight keep their tensors, also where nobody holds or waits for the Work.
        self._in_flight: deque[tuple[torch.cuda.Event, list[Any]]] = deque()

    def run(self, call: Call, asynchronous: bool) -> CudaWork:
        """Launches the call."""
        communicator = self._communicator
        if communicator is None:
            raise TransportError(f"{call}: the group is closed: {self._closed}")
        with self._lock, torch.cuda.device(self._device):
            current = self._caller = torch.cuda.current_stream()
            if not asynchronous:
                call.execute(communicator, current.cuda_stream)
                return CudaWork(str(call), call.outputs, current)
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                call.execute(communicator, self._stream.cuda_stream)
            end = torch.cuda.Event()  # type: ignore[no-untyped-call]
            end.record(self._stream)
            kept: list[Any] = [call]
            # In a graph's capture events cannot be asked, and the graph's memory is its own affair.
            if not torch.cuda.is_current_stream_capturing():
                self._reap()
                self._in_flight.append((end, kept))
            return CudaWork(str(call), call.outputs, self._stream, end, kept)

    def close(self, reason: str, abort: bool) -> None:
        """Ends the engine: later calls raise TransportError.

        abort: fail what is in flight instead of letting it finish within some seconds.
        """
        if self._communicator is None:
            return
        if abort or not self._drained(_EXIT_S):
            self._communicator.close(reason)
        # Without an abort, its end is agreed upon with the peers, who may still be receiving.
        self._communicator = None
        self._closed = reason
        self._in_flight.clear()

    def _drained(self, limit_s: float) -> bool:
        deadline = time.monotonic() + limit_s
        while not (self._stream.query() and self._caller.query()):
            if time.monotonic() > deadline:
                return False
            time.sleep(1e-3)
        return True

    def _reap(self) -> None:
        for _ in range(min(_REAPED_PER_CALL, len(self._in_flight))):
            end, kept = self._in_flight[0]
            if kept and not end.query():  # type: ignore[no-untyped-call]
                return
            self._in_flight.popleft()


def _shared_unique_id(member: Membership, key: str) -> bytes:
    """The id that rank 0 makes for all, or the error that kept it from it, raised on every rank."""
    if member.rank == 0:
        try:
            text = nccl_unique_id(bundled_nccl()).hex()
        except Error as error:
            text = f"!{error}"
        member.store.set(key, text)
    member.store.wait([key], member.timeout)
    text = member.store.get(key).decode()
    if text.startswith("!"):
        raise UnsupportedError(f"rank 0: {text[1:]}")
    return bytes.fromhex(text)
