"""What torch.distributed's coalescing manager does between its start and its end."""

from __future__ import annotations

from typing import Any

import torch
from torch._C._distributed_c10d import ProcessGroup, Work

from coccl.torch.work import JoinedWork


class Coalescing:
    """The works of one coalescing block on a device, and NCCL's group around its messages.

    NCCL's group must hold the stock group's calls alone: a coded call consists of several groups
    and kernels in between. So it is opened by the first message and closed by a coded call.
    """

    def __init__(self, stock: ProcessGroup, device: torch.device) -> None:
        self._stock = stock
        self._device = device
        self._open = False
        self._works: list[Work] = []

    def before_message(self) -> None:
        """Opens NCCL's group where it is not open; gloo has none."""
        if self._device.type == "cuda" and not self._open:
            self._stock._start_coalescing(self._device)
            self._open = True

    def before_coded(self) -> None:
        """Closes NCCL's group where it is open."""
        if self._open:
            self._open = False
            self.add(self._stock._end_coalescing(self._device))

    def add(self, work: Any) -> None:
        """Makes a work part of the block; None is a call that is over already."""
        if work is not None:
            self._works.append(work)

    def end(self) -> Work:
        """Closes the block; waiting for the result waits for all of it."""
        self.before_coded()
        return JoinedWork(self._works)
