"""The process group that `init_process_group("coccl")` makes.

A Python subclass of torch's ProcessGroup. Collectives that are coded go to the engines; all else
goes to a stock group, just what torch would have made without coccl, whose Work is handed through.
Nothing that communicates is inherited: torch runs the methods that a subclass leaves to its base
with the interpreter's lock held, which gloo's threads need to make progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import torch
from torch._C import _distributed_c10d as c10d

from coccl.config import Config
from coccl.counters import count_bypass
from coccl.torch.arguments import as_list, options_of
from coccl.torch.call import Call
from coccl.torch.coalescing import Coalescing
from coccl.torch.cuda import CudaEngine
from coccl.torch.host import HostEngine
from coccl.torch.membership import join
from coccl.torch.policy import Method, Policy
from coccl.torch.stock import StockBackends

# torch 2.13 renamed these; a stock group knows one of the two names, or both.
_NEW_NAMES = hasattr(c10d.ProcessGroup, "all_gather_single")
_ALL_GATHER = "all_gather_single" if _NEW_NAMES else "_allgather_base"
_ALL_GATHERS = f"{_ALL_GATHER}_coalesced" if _NEW_NAMES else "allgather_into_tensor_coalesced"
_REDUCE_SCATTER = "reduce_scatter_single" if _NEW_NAMES else "_reduce_scatter_base"
_REDUCE_SCATTERS = (
    f"{_REDUCE_SCATTER}_coalesced" if _NEW_NAMES else "reduce_scatter_tensor_coalesced"
)


def _handed_over(name: str) -> Any:
    """A method that hands its call to the stock group's method of that name."""

    def method(self: CocclProcessGroup, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._stock, name)(*args, **kwargs)

    method.__name__ = name
    return method


class CocclProcessGroup(c10d.ProcessGroup):
    """A process group that compresses the collectives that its Config names.

    pg_options: a Config, else the environment's; or a ProcessGroupNCCL.Options for the NCCL group.
    Raises ArgumentError, on every rank, where a rank's configuration is wrong or differs.
    """

    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False
    supports_shrinking = False

    def __init__(
        self,
        store: c10d.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        pg_options: object = None,
        global_ranks: Sequence[int] = (),
    ) -> None:
        # With the store as first argument torch 2.13 and older make a group without overrides.
        super().__init__(rank, size)  # type: ignore[call-arg]
        self._store = store
        self.config, methods, self._member = join(store, rank, size, timeout, pg_options)
        self._policy = Policy(self.config, size, methods)
        self._host = HostEngine(self._member)
        self._cuda: dict[torch.device, CudaEngine] = {}
        self._coalescing: Coalescing | None = None
        self._splits = 0
        nccl_options = None if isinstance(pg_options, Config) else pg_options
        self._backends = StockBackends(
            self._member, nccl_options, list(global_ranks) or list(range(size))
        )
        self._stock = c10d.ProcessGroup(store, rank, size)
        self._backends.register(self._stock)
        self._backends.register(self)

    # -- what torch asks about a group --------------------------------------------------------

    def getBackendName(self) -> str:  # noqa: N802
        return "coccl"

    def _get_backend(self, device: torch.device) -> Any:  # noqa: ARG002
        return self

    get_backend = _get_backend

    def get_group_store(self) -> c10d.Store:
        return self._store

    # -- coded collectives --------------------------------------------------------------------

    def allreduce(  # type: ignore[override]
        self,
        tensors: torch.Tensor | Sequence[torch.Tensor],
        opts: Any = None,
        timeout: timedelta | None = None,
        *,
        op: Any = None,
    ) -> Any:
        """Sums (or otherwise reduces) one tensor over all ranks, in place."""
        tensors = as_list(tensors)
        opts = options_of(c10d.AllreduceOptions, opts, timeout, op)
        return self._run("all_reduce", tensors, tensors, opts, "allreduce", (tensors,))

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        tensors = as_list(tensors)
        opts = options_of(c10d.AllreduceCoalescedOptions, opts)
        return self._run("all_reduce", tensors, tensors, opts, "allreduce_coalesced", (tensors,))

    def _reduce_scatter_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Any:
        opts = options_of(c10d.ReduceScatterOptions, opts)
        return self._run(
            "reduce_scatter", [input], [output], opts, _REDUCE_SCATTER, (output, input)
        )

    def reduce_scatter_tensor_coalesced(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        opts = options_of(c10d.ReduceScatterOptions, opts)
        arguments = (list(outputs), list(inputs))
        return self._run("reduce_scatter", inputs, outputs, opts, _REDUCE_SCATTERS, arguments)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        opts = options_of(c10d.AllgatherOptions, opts)
        return self._run("all_gather", [input], [output], opts, _ALL_GATHER, (output, input))

    def allgather_into_tensor_coalesced(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        opts = options_of(c10d.AllgatherOptions, opts)
        arguments = (list(outputs), list(inputs))
        return self._run("all_gather", inputs, outputs, opts, _ALL_GATHERS, arguments)

    reduce_scatter_single = _reduce_scatter_base  # type: ignore[assignment]
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced  # type: ignore[assignment]
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced  # type: ignore[assignment]

    # -- never coded, but counted -------------------------------------------------------------

    def allgather(  # type: ignore[override]
        self, outputs: Any, inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        count_bypass("all_gather", self._policy.list_form("all_gather", as_list(inputs)).value)
        return self._stock.allgather(outputs, inputs, *args, **kwargs)

    def reduce_scatter(  # type: ignore[override]
        self, outputs: Any, inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        bypass = self._policy.list_form("reduce_scatter", as_list(outputs))
        count_bypass("reduce_scatter", bypass.value)
        return self._stock.reduce_scatter(outputs, inputs, *args, **kwargs)

    # -- handed over --------------------------------------------------------------------------

    broadcast = _handed_over("broadcast")
    reduce = _handed_over("reduce")
    gather = _handed_over("gather")
    scatter = _handed_over("scatter")
    allgather_coalesced = _handed_over("allgather_coalesced")
    alltoall = _handed_over("alltoall")
    alltoall_base = _handed_over("alltoall_base")
    all_to_all_single = _handed_over("all_to_all_single" if _NEW_NAMES else "alltoall_base")
    barrier = _handed_over("barrier")

    # -- messages, which a coalescing block collects ------------------------------------------

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self._message("send", tensors, peer, tag)

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self._message("recv", tensors, peer, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        return self._message("recv_anysource", tensors, tag)

    def _start_coalescing(self, device: torch.device) -> None:
        self._coalescing = Coalescing(self._stock, device)

    def _end_coalescing(self, device: torch.device) -> Any:  # noqa: ARG002
        coalescing, self._coalescing = self._coalescing, None
        if coalescing is None:
            raise RuntimeError("the end of a coalescing block that was never started")
        return coalescing.end()

    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    # -- life ---------------------------------------------------------------------------------

    def split_group(
        self,
        new_ranks: list[int],
        timeout: timedelta | None = None,
        opts: object = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        *_: Any,
        **__: Any,
    ) -> CocclProcessGroup | None:
        """A group of the ranks in `new_ranks`; None on all others.

        Every rank of this group calls it, in the same order as its other splits.
        """
        self._splits += 1
        if self.rank() not in new_ranks:
            return None
        name = group_name or f"{self._splits}"
        group = CocclProcessGroup(
            c10d.PrefixStore(f"coccl/split/{self._splits}/{min(new_ranks)}", self._store),
            new_ranks.index(self.rank()),
            len(new_ranks),
            timeout or self._member.timeout,
            self.config if opts is None else opts,
        )
        group._set_group_name(name)  # type: ignore[arg-type]
        group._set_group_desc(group_desc or f"split of {new_ranks}")
        return group

    splitGroup = split_group  # noqa: N815

    def set_timeout(self, timeout: timedelta) -> None:
        self._stock.set_timeout(timeout)

    setTimeout = set_timeout  # noqa: N815

    def shutdown(self) -> None:
        """Ends the group; what is still running finishes or fails."""
        self._close("shut down", abort=False)
        self._stock.shutdown()
        self._backends.release_later()

    def abort(self) -> None:
        """Ends the group at once, and with it every call in flight."""
        self._close("aborted", abort=True)
        self._stock.abort()
        self._backends.release_later()

    # -----------------------------------------------------------------------------------------

    def _run(
        self,
        collective: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        opts: Any,
        stock_name: str,
        stock_arguments: tuple[Any, ...],
    ) -> Any:
        """Codes the call, or hands it to the stock group under the name it has there."""
        whole = outputs if collective == "all_gather" else inputs
        choice = self._policy.choose(collective, whole, getattr(opts, "reduceOp", None))
        coalescing = self._coalescing
        if not isinstance(choice, Method):
            count_bypass(collective, choice.value)
            work = getattr(self._stock, stock_name)(*stock_arguments, opts)
        else:
            call = Call(collective, inputs, outputs, choice, self._member.size)
            if coalescing is not None:
                coalescing.before_coded()
            with _profiled(collective):
                work = self._engine(whole[0]).run(call, opts.asyncOp)
        if coalescing is not None:
            coalescing.add(work)
        return work

    def _engine(self, tensor: torch.Tensor) -> HostEngine | CudaEngine:
        if tensor.is_cpu:
            return self._host
        engine = self._cuda.get(tensor.device)
        if engine is None:
            engine = CudaEngine(self._member, tensor.device, len(self._cuda))
            self._cuda[tensor.device] = engine
        return engine

    def _message(self, name: str, *arguments: Any) -> Any:
        coalescing = self._coalescing
        if coalescing is None:
            return getattr(self._stock, name)(*arguments)
        coalescing.before_message()
        work = getattr(self._stock, name)(*arguments)
        coalescing.add(work)
        return work

    def _close(self, reason: str, abort: bool) -> None:
        self._host.close(reason, abort)
        for engine in self._cuda.values():
            engine.close(reason, abort)


def create(options: Any, pg_options: object) -> CocclProcessGroup:
    """What torch.distributed calls to make a group, with its extended backend options."""
    return CocclProcessGroup(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        pg_options,
        options.global_ranks_in_group or (),
    )


def _profiled(collective: str) -> Any:
    if torch._C._autograd._profiler_enabled():
        return torch.profiler.record_function(f"coccl:{collective}")
    return nullcontext()
