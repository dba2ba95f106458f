"""Where a codec's data may lie: strides, misalignment, memory used twice, ends of buffers."""

from __future__ import annotations

import ctypes
import mmap
from itertools import product

import numpy as np
import pytest
import torch
from passes import (
    as_bytes,
    as_float,
    coded_inputs,
    each_codec,
    each_type,
    encode,
    expect_bytes,
    expect_raw,
    random_raw,
    run,
)
from world import TYPE_OF, Guarded, address

from coccl import _core
from coccl.reference import REFERENCE


@pytest.fixture(scope="session")
def device():
    return "cpu"


@each_codec
@each_type
def test_raw_chunks_lie_a_stride_apart_and_the_gaps_are_left_alone(device, name, dtype):
    codec, chunks = REFERENCE[name], 3
    for count, stride in [(1, 3), (513, 513), (701, 1001), (1024, 1031)]:
        x = random_raw(chunks * stride, dtype, device=device)
        layout = {"chunks": chunks, "raw_stride": stride}
        coded_out = Guarded(chunks * codec.bytes(count), torch.uint8, device)
        run(name, device, dtype, count, raw_in=x, coded_out=coded_out.tensor, **layout)
        coded_out.check()
        rows = [as_float(x)[c * stride :][:count] for c in range(chunks)]
        expect_bytes(coded_out.tensor, np.concatenate([codec.encode(row) for row in rows]))

        raw_out = Guarded.copy_of(x.clone(), shift=1)
        coded = {"coded": coded_out.tensor, "inputs": 1}
        run(name, device, dtype, count, **coded, raw_out=raw_out.tensor, **layout)
        raw_out.check()
        expected = as_float(x)
        for c, row in enumerate(rows):
            expected[c * stride :][:count] = codec.decode(codec.encode(row), count)
        expect_raw(raw_out.tensor, expected)


@each_codec
def test_payloads_of_several_chunks_are_summed_chunk_by_chunk(device, name):
    codec, chunks, count, stride, dtype = REFERENCE[name], 3, 701, 703, torch.float32
    x = [random_raw(chunks * stride, dtype, seed, device) for seed in range(3)]
    rows = [[as_float(t)[c * stride :][:count] for c in range(chunks)] for t in x]
    wires = [[codec.encode(row) for row in tensor] for tensor in rows[:2]]
    coded = torch.from_numpy(np.stack([np.concatenate(wire) for wire in wires])).to(device)
    coded_out = Guarded(chunks * codec.bytes(count), torch.uint8, device)
    sources = {"coded": coded, "coded_stride": coded.stride(0), "inputs": 2, "raw_in": x[2]}
    layout = {"chunks": chunks, "raw_stride": stride}
    run(name, device, dtype, count, **sources, coded_out=coded_out.tensor, **layout)
    coded_out.check()
    expected = [
        codec.decode_reduce_encode([wire[c] for wire in wires], rows[2][c]) for c in range(chunks)
    ]
    expect_bytes(coded_out.tensor, np.concatenate(expected))


@each_codec
@each_type
def test_raw_pointers_may_lie_anywhere(device, name, dtype):
    codec = REFERENCE[name]
    for shift, count in product(range(8), [1, 129, 512, 1543]):
        x = random_raw(count, dtype)
        raw_in = Guarded.copy_of(x.to(device), shift)
        wire = encode(name, raw_in.tensor)
        expect_bytes(wire, codec.encode(as_float(x)))
        raw_out = Guarded(count, dtype, device, shift)
        run(name, device, dtype, count, coded=wire, inputs=1, raw_out=raw_out.tensor)
        raw_out.check()
        expect_raw(raw_out.tensor, codec.decode(as_bytes(wire), count))


@each_codec
@each_type
def test_outputs_may_be_the_memory_of_inputs(device, name, dtype):
    codec, count = REFERENCE[name], 1543
    x = random_raw(count, dtype)
    wires, coded = coded_inputs(name, count, 2, dtype)
    in_place = coded.clone().to(device)
    raw = Guarded.copy_of(x.to(device), shift=3)
    stride = coded.stride(0)
    fields = {"coded": in_place, "coded_stride": stride, "inputs": 2, "raw_in": raw.tensor}
    fields |= {"coded_out": in_place, "raw_out": raw.tensor}
    run(name, device, dtype, count, **fields)
    raw.check()
    expected = codec.decode_reduce_encode(wires, as_float(x))
    expect_bytes(in_place[0], expected)
    expect_bytes(in_place[1], wires[1])
    expect_raw(raw.tensor, codec.decode(expected, count))


class FencedMemory:
    """Pages of memory before one that must not be touched: a read past the end ends the process."""

    def __init__(self, capacity):
        page = mmap.PAGESIZE
        self.size = -(-capacity // page) * page
        self._map = mmap.mmap(-1, self.size + page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(base + self.size), ctypes.c_size_t(page), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        self._bytes = np.frombuffer(self._map, np.uint8, self.size)

    def last(self, count, dtype):
        """A tensor of the last `count` elements before the fence."""
        size = count * dtype.itemsize
        return torch.from_numpy(self._bytes[self.size - size :]).view(dtype)


@each_codec
@each_type
def test_nothing_is_read_or_written_past_the_end_of_any_buffer(name, dtype):
    codec = REFERENCE[name]
    fences = [FencedMemory(1 << 15) for _ in range(4)]
    for count in [1, 2, 3, 7, 127, 129, 511, 512, 513, 1543, 4095]:
        x, y = fences[0].last(count, dtype), fences[1].last(count, dtype)
        wire = fences[2].last(codec.bytes(count), torch.uint8)
        out = fences[3].last(codec.bytes(count), torch.uint8)
        x.copy_(random_raw(count, dtype))
        run(name, "cpu", dtype, count, raw_in=x, coded_out=wire)
        run(name, "cpu", dtype, count, coded=wire, inputs=1, raw_out=y)
        expect_raw(y, codec.decode(codec.encode(as_float(x)), count))
        sources = {"coded": wire, "inputs": 1, "raw_in": x}
        run(name, "cpu", dtype, count, **sources, coded_out=out, raw_out=y)
        expect_bytes(out, codec.decode_reduce_encode([as_bytes(wire)], as_float(x)))
        _core.encode_emulated(name, address(x), address(out), count, TYPE_OF[dtype])
        expect_bytes(out, as_bytes(wire))
