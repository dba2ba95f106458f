"""Every codec again, in NumPy: an independent reference that the library is compared with.

Raw values are float32 arrays of any count; a payload ("wire") is a uint8 array of whole blocks. A
codec works in its *domain*: the values themselves, or their Hadamard transform in each group. Sums
are taken in the domain, so that a rotation happens once on the way in and once on the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]

BLOCK = 512
GROUP = 128

_FLOAT_MIN = np.finfo(np.float32).smallest_normal
_FLOAT_MAX = np.finfo(np.float32).max
_QUIET_NAN = 0x7FC00000

_quiet = np.errstate(all="ignore")  # non-finite values are data here, not mistakes


@dataclass(frozen=True)
class Codec:
    """One codec.

    `pack` and `unpack` turn domain values [blocks, block] into bytes [blocks, block_bytes] and
    back; the methods do the same for raw values of any count, padded with zeros to whole blocks.
    """

    name: str
    block_bytes: int
    group: int  # elements that share a scale
    tolerance: float  # worst error of one encoding, as a fraction of the group's largest value
    pack: Callable[[F32], U8]
    unpack: Callable[[U8], F32]
    rotated: bool = False
    block: int = BLOCK

    def bytes(self, count: int) -> int:
        """Bytes of the payload of `count` values."""
        return -(-count // self.block) * self.block_bytes

    def load(self, x: npt.ArrayLike) -> F32:
        """Raw values [count] as domain values [blocks, block]."""
        values = np.asarray(x, np.float32).ravel()
        padded: F32 = np.zeros((-(-values.size // self.block), self.block), np.float32)
        padded.reshape(-1)[: values.size] = values
        return rotate(padded, self.group) if self.rotated else padded

    def store(self, domain: F32, count: int) -> F32:
        """Domain values [blocks, block] as raw values [count]."""
        values = unrotate(domain, self.group) if self.rotated else domain
        raw: F32 = values.reshape(-1)[:count].copy()
        return raw

    def encode(self, x: npt.ArrayLike) -> U8:
        """The payload of raw values [count]."""
        return self.pack(self.load(x)).reshape(-1)

    def decode(self, wire: U8, count: int) -> F32:
        """The raw values [count] of a payload."""
        return self.store(self.unpack(self.blocks(wire)), count)

    def blocks(self, wire: U8) -> U8:
        """A payload as rows of one block."""
        rows: U8 = np.ascontiguousarray(wire).reshape(-1, self.block_bytes)
        return rows

    @_quiet
    def reduce(
        self, coded: Sequence[U8], raw: npt.ArrayLike | None = None, scale: float = 1
    ) -> F32:
        """(raw + Σ decode(coded)) · scale in the domain, summed one after another in that order."""
        terms = [] if raw is None else [self.load(raw)]
        terms += [self.unpack(self.blocks(wire)) for wire in coded]
        total: F32 = terms[0]
        for term in terms[1:]:
            total = total + term
        return np.asarray(total * np.float32(scale), np.float32)

    def decode_reduce(
        self, coded: Sequence[U8], raw: npt.ArrayLike | None, count: int, scale: float = 1
    ) -> F32:
        """The sum as raw values [count]."""
        return self.store(self.reduce(coded, raw, scale), count)

    def decode_reduce_encode(
        self, coded: Sequence[U8], raw: npt.ArrayLike | None = None, scale: float = 1
    ) -> U8:
        """The sum as a payload."""
        return self.pack(self.reduce(coded, raw, scale)).reshape(-1)


# ---------------------------------------------------------------------------------------- rotation


def _butterflies(x: F32, group: int) -> F32:
    """The unscaled Sylvester-Hadamard transform of each group, spans 1, 2, 4, … in turn."""
    shape = x.shape
    span = 1
    while span < group:
        pairs = x.reshape(-1, group // (2 * span), 2, span)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        x = np.stack([low + high, low - high], axis=2)
        span *= 2
    return x.reshape(shape)


def forward_factor(group: int) -> float:
    """What `rotate` multiplies by: 1/√group rounded up to a power of two, which is exact."""
    return float(2.0 ** -(int(np.log2(group)) // 2))


@_quiet
def rotate(x: F32, group: int = GROUP) -> F32:
    """The Hadamard transform of each group, scaled by `forward_factor` before the sums."""
    return _butterflies(x * np.float32(forward_factor(group)), group)


@_quiet
def unrotate(x: F32, group: int = GROUP) -> F32:
    """The inverse of `rotate`; both factors are powers of two, whose product is 1/group."""
    return _butterflies(x * np.float32(1 / (group * forward_factor(group))), group)


# ------------------------------------------------------------------------------------------ scales


def largest_scale(qmax: float) -> np.float32:
    """The largest float32 whose product with `qmax` is finite."""
    scale: np.float32 = np.float32(float(_FLOAT_MAX) / qmax)
    while float(scale) * qmax > float(_FLOAT_MAX):
        scale = np.nextafter(scale, np.float32(0))
    return scale


@_quiet
def _scaled(domain: F32, qmax: float) -> tuple[npt.NDArray[np.uint32], F32]:
    """Bits of each group's scale [blocks, groups], and value/scale [blocks, BLOCK].

    The quotients of a group of zeros or with a non-finite value are zeros.
    """
    groups = domain.reshape(len(domain), BLOCK // GROUP, GROUP)
    amax = np.abs(groups).max(axis=2)
    scale = np.clip(amax / np.float32(qmax), _FLOAT_MIN, largest_scale(qmax)).astype(np.float32)
    finite = np.isfinite(groups).all(axis=2)
    used = finite & (amax != 0)
    bits = np.where(used, scale.view(np.uint32), np.where(finite, 0, _QUIET_NAN))
    quotient = groups * (np.float32(1) / scale)[:, :, None]
    quotient = np.where(used[:, :, None], quotient, np.float32(0))
    return bits.astype(np.uint32), quotient.reshape(domain.shape)


def _join(scales: npt.NDArray[np.uint32], payload: npt.NDArray[Any]) -> U8:
    """Blocks of scales (little-endian), then payload."""
    head = np.ascontiguousarray(scales.astype("<u4")).view(np.uint8)
    return np.concatenate([head, payload.view(np.uint8)], axis=1)


def _split(wire: U8) -> tuple[F32, U8]:
    """The scales of each group [blocks, groups, 1] and the payload [blocks, bytes]."""
    head = 4 * (BLOCK // GROUP)
    scales = np.ascontiguousarray(wire[:, :head]).view("<f4").astype(np.float32)
    return scales[:, :, None], wire[:, head:]


@_quiet
def _times(q: F32, scales: F32) -> F32:
    groups = q.reshape(len(q), BLOCK // GROUP, GROUP)
    return (groups * scales).reshape(len(q), BLOCK)


# ----------------------------------------------------------------------------- none, bf16, integers


def _pack_none(domain: F32) -> U8:
    return domain.astype("<f4").view(np.uint8)


def _unpack_none(wire: U8) -> F32:
    return wire.view("<f4").astype(np.float32, copy=False)


def bf16_bits(x: F32) -> npt.NDArray[np.uint16]:
    """Rounds to bfloat16, ties to even; NaN becomes 0x7fff."""
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), 0x7FFF, rounded).astype(np.uint16)


def _pack_bf16(domain: F32) -> U8:
    return bf16_bits(domain).astype("<u2").view(np.uint8)


def _unpack_bf16(wire: U8) -> F32:
    return (wire.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _pack_int8(domain: F32) -> U8:
    scales, quotient = _scaled(domain, 127)
    return _join(scales, np.rint(quotient).astype(np.int8))


def _unpack_int8(wire: U8) -> F32:
    scales, payload = _split(wire)
    return _times(np.ascontiguousarray(payload).view(np.int8).astype(np.float32), scales)


def _pack_int4(domain: F32) -> U8:
    scales, quotient = _scaled(domain, 7)
    nibbles = np.rint(quotient).astype(np.int8).view(np.uint8) & 15
    return _join(scales, nibbles[:, 0::2] | nibbles[:, 1::2] << 4)


def _unpack_int4(wire: U8) -> F32:
    scales, payload = _split(wire)
    nibbles = np.stack([payload & 15, payload >> 4], axis=2).astype(np.int32)
    return _times(np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.float32), scales)


# -------------------------------------------------------------------------------------------- e4m3


def _e4m3_values() -> F32:
    """The values of codes 0 … 127: four bits of exponent (bias 7), three of mantissa."""
    code = np.arange(128)
    exponent, mantissa = code >> 3, code & 7
    normal = np.ldexp(1 + mantissa / 8, exponent - 7)
    values = np.where(exponent == 0, np.ldexp(mantissa / 8, -6), normal)
    values[127] = np.nan
    return values.astype(np.float32)


E4M3 = np.concatenate([_e4m3_values(), -_e4m3_values()])
E4M3_MAX = 448.0
_E4M3_BETWEEN = (E4M3[:126] + E4M3[1:127]) / 2  # where code i ends and i + 1 begins


def e4m3_bits(x: F32) -> U8:
    """Rounds finite values to e4m3, ties to even, saturating at ±448; the sign of zero is kept."""
    size = np.abs(x)
    below = np.searchsorted(_E4M3_BETWEEN, size, side="left")
    above = np.searchsorted(_E4M3_BETWEEN, size, side="right")  # differs from below only in a tie
    size_code = np.where(below % 2 == 0, below, above)
    codes: U8 = (size_code | np.signbit(x) << 7).astype(np.uint8)
    return codes


def _pack_fp8(domain: F32) -> U8:
    scales, quotient = _scaled(domain, E4M3_MAX)
    return _join(scales, e4m3_bits(quotient))


def _unpack_fp8(wire: U8) -> F32:
    scales, payload = _split(wire)
    return _times(E4M3[payload], scales)


# ------------------------------------------------------------------------------------------- table

_INT8_BYTES = 4 * (BLOCK // GROUP) + BLOCK
_INT4_BYTES = 4 * (BLOCK // GROUP) + BLOCK // 2

REFERENCE: dict[str, Codec] = {
    codec.name: codec
    for codec in [
        Codec("none", 4 * BLOCK, 1, 0.0, _pack_none, _unpack_none),
        Codec("bf16", 2 * BLOCK, 1, 2.0**-8, _pack_bf16, _unpack_bf16),
        Codec("int8", _INT8_BYTES, GROUP, 0.5 / 127, _pack_int8, _unpack_int8),
        Codec("int4", _INT4_BYTES, GROUP, 0.5 / 7, _pack_int4, _unpack_int4),
        Codec("int8h", _INT8_BYTES, GROUP, 0.5 / 127, _pack_int8, _unpack_int8, rotated=True),
        Codec("int4h", _INT4_BYTES, GROUP, 0.5 / 7, _pack_int4, _unpack_int4, rotated=True),
        Codec("fp8", _INT8_BYTES, GROUP, 2.0**-4, _pack_fp8, _unpack_fp8),
    ]
}
