"""The published error bounds of compressed collectives; tests hold every result to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from coccl.reference import Codec, forward_factor

_SMALLEST_SCALE = float(np.finfo(np.float32).tiny)


def error_bound(
    codec: Codec, inputs: npt.ArrayLike, encodings: int, scale: float = 1
) -> npt.NDArray[np.float64]:
    """The published bound of a compressed sum, one number for each group.

    `inputs` [ranks, count] are what the ranks contributed (one row: a gather), `encodings` the
    times that one element is encoded on its way. The error of every element of the group stays
    below the number; of a rotated codec, the 2-norm of the errors of the group does.
    """
    rows = np.atleast_2d(np.asarray(inputs, np.float32))
    ranks = len(rows)
    domain = np.stack([codec.load(row) for row in rows]).astype(np.float64)
    amax = np.abs(domain).reshape(ranks, domain[0].size // codec.group, codec.group).max(axis=2)
    total = amax.sum(axis=0) * abs(scale)
    growth = (1 + codec.tolerance) ** encodings
    # fp32 arithmetic: each addition, a few operations an encoding, the butterflies there and back
    operations = ranks + 4 * encodings + (16 if codec.rotated else 0)
    bound = total * (growth - 1) + total * growth * operations * 2.0**-24
    # a scale is never subnormal, so tiny groups have a floor instead of a relative bound
    bound += ranks * encodings * growth * _SMALLEST_SCALE * (codec.tolerance > 0)
    # √group values of that size have this norm once they are rotated back
    norm = 1 / forward_factor(codec.group) if codec.rotated else 1.0
    return np.asarray(bound * norm, np.float64)


def error_size(codec: Codec, got: npt.ArrayLike, exact: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """What `error_bound` bounds: each group's largest error, or 2-norm of them if rotated."""
    error = np.asarray(got, np.float64).ravel() - np.asarray(exact, np.float64).ravel()
    groups = np.zeros((-(-error.size // codec.block) * codec.block // codec.group, codec.group))
    groups.reshape(-1)[: error.size] = error
    size = np.linalg.norm(groups, axis=1) if codec.rotated else np.abs(groups).max(axis=1)
    return np.asarray(size, np.float64)
