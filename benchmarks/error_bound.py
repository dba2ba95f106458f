"""How much of a codec's published error bound a result uses up.

With A the sum over the ranks of a group's largest magnitude, t the codec's tolerance for one
encoding and e the encodings of an element, every element of the group is within
A ((1 + t)^e - 1); after a rotation that holds in the rotated group, for the 2-norm: the whole group
is within sqrt(G) A ((1 + t)^e - 1). The rounding of the fp32 sum and of the output come on top.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor


class Codec(Protocol):
    """What the bound needs to know of a compressor."""

    @property
    def group(self) -> int: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def rotated(self) -> bool: ...


def relative_error(output: Tensor, reference: Tensor) -> float:
    """The 2-norm of the error over that of the reference (fp64)."""
    return float((output.double() - reference).norm() / reference.norm())


def bound_used(codec: Codec, encodings: int, contributions: Tensor, output: Tensor) -> float:
    """The largest error as a fraction of the bound, over all groups: above 1 is a violation.

    contributions: [ranks, count] fp64, what was summed; output: [count], what came out. `count`
    is a multiple of the codec's group, and groups start at multiples of it.
    """
    ranks, size = len(contributions), codec.group
    error = (output.double() - contributions.sum(0)).view(-1, size)
    inputs = contributions.view(ranks, -1, size)
    in_domain = inputs @ hadamard(size, inputs) if codec.rotated else inputs
    amax = in_domain.abs().amax(-1).sum(0)
    growth = (1 + codec.tolerance) ** encodings - 1

    def length(groups: Tensor) -> Tensor:
        return groups.norm(dim=-1) if codec.rotated else groups.abs().amax(-1)

    coding = amax * growth * (size**0.5 if codec.rotated else 1)
    half_ulp = torch.finfo(output.dtype).eps / 2 * length(output.double().view(-1, size))
    # fp32 rounds once for every rank's addition, and a few times in decoding and rotating.
    fp32 = (ranks + 16) * 2.0**-24 * (1 + growth) * length(inputs).sum(0)
    errors, bounds = length(error), coding + half_ulp + fp32
    fraction = float(torch.where(errors == 0, 0.0, errors / bounds).max())
    return math.inf if math.isnan(fraction) else fraction


def hadamard(size: int, like: Tensor) -> Tensor:
    """The orthonormal Hadamard matrix of a power of two, in Sylvester order."""
    matrix = torch.ones(1, 1, dtype=like.dtype, device=like.device)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix.mul(size**-0.5)
