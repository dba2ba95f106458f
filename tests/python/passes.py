"""What tests of codecs share: random raw data, and passes of a codec over tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from world import RAW_TYPES, TYPE_OF, Guarded, address, current_stream, same_bits

from coccl import _core
from coccl.reference import REFERENCE

INFO = {info.name: info for info in _core.compressors()}
NAMES = list(INFO)
COUNTS = [0, 1, 7, 127, 128, 129, 511, 512, 513, 4095]
PRIME = 104729

each_codec = pytest.mark.parametrize("name", NAMES)
each_type = pytest.mark.parametrize("dtype", RAW_TYPES, ids=lambda t: str(t).split(".")[-1])


def random_raw(count, dtype, seed=0, device="cpu"):
    """Normal values whose size varies widely between groups, with zeros of both signs."""
    rng = np.random.default_rng([seed, count])
    reach = 6 if dtype == torch.float16 else 20
    size = np.exp2(rng.uniform(-reach, reach, count // 128 + 1)).repeat(128)[:count]
    x = rng.standard_normal(count) * size
    if count:
        x[rng.integers(0, count, count // 50)] = 0.0
        x[rng.integers(0, count, count // 50)] = -0.0
    return torch.from_numpy(x).to(dtype).to(device)


def as_float(x):
    """As the library reads raw values: the NaN of float16 is the one that a GPU makes of it."""
    values = x.detach().cpu().float().numpy()
    if x.dtype == torch.float16:
        values.view(np.uint32)[np.isnan(values)] = 0x7FFFFFFF
    return values


def as_raw(x, dtype):
    """Float32 values of the reference as a tensor of a raw type."""
    return torch.from_numpy(np.ascontiguousarray(x)).to(dtype)


def as_bytes(x):
    return x.cpu().numpy()


def run(name, device, dtype, count, **fields):
    """One pass, with tensors for pointers."""
    pointers = ("coded", "raw_in", "coded_out", "raw_out")
    fields |= {field: address(fields[field]) for field in pointers if field in fields}
    _core.run(name, type=TYPE_OF[dtype], count=count, stream=current_stream(device), **fields)


def encode(name, x, **fields):
    out = Guarded(REFERENCE[name].bytes(x.numel()), torch.uint8, x.device.type)
    run(name, x.device.type, x.dtype, x.numel(), raw_in=x, coded_out=out.tensor, **fields)
    out.check()
    return out.tensor


def decode(name, wire, dtype, count, **fields):
    out = Guarded(count, dtype, wire.device.type)
    run(name, wire.device.type, dtype, count, coded=wire, inputs=1, raw_out=out.tensor, **fields)
    out.check()
    return out.tensor


def expect_bytes(wire, expected):
    np.testing.assert_array_equal(as_bytes(wire), expected)


def expect_raw(got, expected):
    """Equal to the bit to the reference's float32 values, rounded to the type of `got`."""
    expected = as_raw(expected, got.dtype)
    assert same_bits(got.cpu(), expected), f"{got.cpu()} is not {expected}"


def coded_inputs(name, count, inputs, dtype, gap=0):
    """Payloads `gap` bytes apart, and as one tensor."""
    codec = REFERENCE[name]
    wires = [codec.encode(as_float(random_raw(count, dtype, seed))) for seed in range(inputs)]
    rows = np.full((inputs, codec.bytes(count) + gap), 0xFF, np.uint8)
    for row, wire in zip(rows, wires, strict=True):
        row[: wire.size] = wire
    return wires, torch.from_numpy(rows)
