"""The group that torch would have made without coccl, for whatever is not coded."""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from coccl.torch.membership import Membership

_RELEASED_AFTER_S = 1.0
_BackendType = c10d.ProcessGroup.BackendType


def have_nccl() -> bool:
    """Whether CUDA tensors can be served."""
    return torch.cuda.is_available() and dist.is_nccl_available()


class StockBackends:
    """torch's own gloo for CPU tensors and, on a machine with a GPU, its NCCL for CUDA tensors.

    nccl_options: a ProcessGroupNCCL.Options to use instead of the defaults.
    """

    def __init__(self, member: Membership, nccl_options: Any, global_ranks: list[int]) -> None:
        self._backends: list[tuple[torch.device, Any, Any]] = []
        gloo = c10d.ProcessGroupGloo(
            c10d.PrefixStore("coccl/gloo", member.store),
            member.rank,
            member.size,
            timeout=member.timeout,
        )
        gloo._set_sequence_number_for_group()
        self._backends.append((torch.device("cpu"), _BackendType.GLOO, gloo))
        if have_nccl():
            options = nccl_options or dist.ProcessGroupNCCL.Options()
            options._timeout = member.timeout
            options.global_ranks_in_group = global_ranks
            nccl = dist.ProcessGroupNCCL(
                c10d.PrefixStore("coccl/nccl", member.store), member.rank, member.size, options
            )
            nccl._set_sequence_number_for_group()
            self._backends.append((torch.device("cuda"), _BackendType.NCCL, nccl))

    def release_later(self) -> None:
        """Keeps the backends until their threads are surely idle; to be called when a group ends.

        What drops the last reference to a gloo backend waits for gloo's threads. If that is
        torch's DDP, it does so holding the interpreter's lock, and a thread that is about to free
        a finished call's tensor waits for that lock.
        """
        # No daemon: the process may not end while this thread is inside gloo, or it aborts.
        timer = threading.Timer(_RELEASED_AFTER_S, self._backends.clear)
        timer.start()

    def register(self, group: c10d.ProcessGroup) -> None:
        """Lets `group` serve each device by its backend."""
        # One type for each: two backends of one type would silently become one.
        group._set_default_backend(self._backends[-1][1])
        for device, backend_type, backend in self._backends:
            group._register_backend(device, backend_type, backend)
