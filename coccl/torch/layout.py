"""Tensors as the plain memory that the core takes: which are, and packing those that are not."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a range of memory, each once, in whatever order (channels_last)."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length == 1:
            continue
        if stride != expected:
            return False
        expected *= length
    return True


def check_dense(collective: str, tensors: Sequence[torch.Tensor]) -> None:
    """ValueError unless an elementwise collective can work on each tensor's memory in place."""
    for tensor in tensors:
        if not is_dense(tensor):
            raise ValueError(
                f"{collective} needs tensors that fill their memory without gaps or overlap, got "
                f"shape {list(tensor.shape)} with strides {list(tensor.stride())}"
            )


def check_parts(
    collective: str, wholes: Sequence[torch.Tensor], parts: Sequence[torch.Tensor], size: int
) -> None:
    """ValueError unless each whole is the contiguous concatenation of `size` such parts."""
    if len(wholes) != len(parts):
        raise ValueError(f"{collective} got {len(wholes)} tensors for {len(parts)}")
    for whole, part in zip(wholes, parts, strict=True):
        for tensor in (whole, part):
            if not tensor.is_contiguous():
                raise ValueError(
                    f"{collective} needs contiguous tensors, got shape {list(tensor.shape)} "
                    f"with strides {list(tensor.stride())}"
                )
        if whole.dtype != part.dtype or whole.device != part.device:
            raise ValueError(
                f"{collective} needs one dtype and device, got {whole.dtype} on {whole.device} "
                f"and {part.dtype} on {part.device}"
            )
        if whole.numel() != size * part.numel():
            raise ValueError(
                f"{collective} over {size} ranks needs {size} x the elements of shape "
                f"{list(part.shape)}, got shape {list(whole.shape)}"
            )


def pack(tensors: Sequence[torch.Tensor], rows: int) -> torch.Tensor:
    """One contiguous (rows, n) tensor: row i holds the i-th equal part of each tensor."""
    return torch.cat([tensor.reshape(rows, tensor.numel() // rows) for tensor in tensors], dim=1)


def unpack(packed: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copies what `pack` would have packed back into `tensors`."""
    rows = packed.shape[0]
    pieces = torch.split(packed, [tensor.numel() // rows for tensor in tensors], dim=1)
    for tensor, piece in zip(tensors, pieces, strict=True):
        tensor.copy_(piece.reshape(tensor.shape))
