"""One coded collective: which tensors, how, and its execution on a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from coccl._core import Communicator
from coccl.counters import count_call
from coccl.torch.layout import check_dense, check_parts, pack, unpack
from coccl.torch.policy import TYPES, Method


@dataclass(frozen=True)
class Call:
    """A coded collective on one tensor or, packed into one message, on several.

    inputs and outputs: as torch.distributed takes them; the very same tensors for all_reduce.
    Raises ValueError where the tensors' shapes or strides do not fit, before anything is sent.
    """

    collective: str
    inputs: Sequence[torch.Tensor]
    outputs: Sequence[torch.Tensor]
    method: Method
    size: int

    def __post_init__(self) -> None:
        if self.collective == "all_reduce":
            check_dense(self.collective, self.inputs)
        elif self.collective == "reduce_scatter":
            check_parts(self.collective, self.inputs, self.outputs, self.size)
        else:
            check_parts(self.collective, self.outputs, self.inputs, self.size)

    def __str__(self) -> str:
        return f"{self.collective} of {self.bytes} bytes with {self.method.compressor}"

    @property
    def bytes(self) -> int:
        """Bytes of the larger side."""
        whole = self.outputs if self.collective == "all_gather" else self.inputs
        return sum(tensor.numel() * tensor.itemsize for tensor in whole)

    def execute(self, communicator: Communicator, stream: int | None) -> None:
        """Runs the call; on CUDA tensors, on the stream of that handle, the current one."""
        sent = communicator.sent_bytes
        if len(self.inputs) == 1:
            self._launch(communicator, self.inputs[0], self.outputs[0], stream)
        else:
            self._launch_packed(communicator, stream)
        count_call(self.collective, self.bytes, self.size, communicator.sent_bytes - sent)

    @torch.no_grad()
    def _launch_packed(self, communicator: Communicator, stream: int | None) -> None:
        packed_in = pack(self.inputs, self.size if self.collective == "reduce_scatter" else 1)
        if self.collective == "all_reduce":
            packed_out = packed_in
        elif self.collective == "reduce_scatter":
            packed_out = packed_in.new_empty(1, packed_in.shape[1])
        else:
            packed_out = packed_in.new_empty(self.size, packed_in.shape[1])
        self._launch(communicator, packed_in, packed_out, stream)
        unpack(packed_out, self.outputs)

    def _launch(
        self,
        communicator: Communicator,
        source: torch.Tensor,
        target: torch.Tensor,
        stream: int | None,
    ) -> None:
        compressor, algorithm, op = self.method
        addresses = source.data_ptr(), target.data_ptr()
        data_type = TYPES[source.dtype]
        if self.collective == "all_reduce":
            communicator.all_reduce(
                *addresses, source.numel(), data_type, op, stream, compressor, algorithm
            )
        elif self.collective == "reduce_scatter":
            communicator.reduce_scatter(
                *addresses, target.numel(), data_type, op, stream, compressor, algorithm
            )
        else:
            communicator.all_gather(
                *addresses, source.numel(), data_type, stream, compressor, algorithm
            )
