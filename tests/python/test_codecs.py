"""Every codec of the build against the NumPy reference: table, bytes, values and sums."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from passes import (
    COUNTS,
    INFO,
    NAMES,
    PRIME,
    as_bytes,
    as_float,
    coded_inputs,
    decode,
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


# --------------------------------------------------------------------------------------- the table


def test_the_reference_has_every_compressor_and_the_same_numbers():
    assert sorted(REFERENCE) == sorted(NAMES)
    for name, info in INFO.items():
        codec = REFERENCE[name]
        for field in ("block", "block_bytes", "group", "rotated"):
            assert getattr(info, field) == getattr(codec, field), (name, field)
        assert info.tolerance == pytest.approx(codec.tolerance, rel=1e-6)
        assert info.bits_per_element == 8 * codec.block_bytes / codec.block
        assert info.method


def test_compressors_are_sorted_by_name():
    assert sorted(NAMES) == NAMES


# ------------------------------------------------------------------------------- bytes and values


@each_codec
@each_type
def test_payload_is_the_references_byte_for_byte(device, name, dtype):
    """V14: with device "cuda", GPU and host payloads are both the reference's."""
    for count in [*COUNTS, PRIME]:
        x = random_raw(count, dtype, device=device)
        expect_bytes(encode(name, x), REFERENCE[name].encode(as_float(x)))


@each_codec
@each_type
def test_decode_is_the_references_bit_for_bit(device, name, dtype):
    codec = REFERENCE[name]
    for count in [*COUNTS, PRIME]:
        wire = codec.encode(as_float(random_raw(count, dtype)))
        got = decode(name, torch.from_numpy(wire).to(device), dtype, count)
        expect_raw(got, codec.decode(wire, count))


@each_codec
@each_type
def test_a_warp_of_32_lanes_writes_the_bytes_of_the_host_loop(name, dtype):
    for count in [*COUNTS, 10007]:
        x = random_raw(count, dtype)
        emulated = Guarded(REFERENCE[name].bytes(count), torch.uint8, "cpu")
        _core.encode_emulated(name, address(x), address(emulated.tensor), count, TYPE_OF[dtype])
        emulated.check()
        expect_bytes(emulated.tensor, as_bytes(encode(name, x)))


@each_codec
def test_a_million_and_three_values(device, name):
    count = 1000003
    x = random_raw(count, torch.bfloat16, device=device)
    wire = encode(name, x)
    expect_bytes(wire, REFERENCE[name].encode(as_float(x)))
    expect_raw(decode(name, wire, x.dtype, count), REFERENCE[name].decode(as_bytes(wire), count))


# -------------------------------------------------------------------------------------------- sums


@each_codec
@each_type
def test_raw_data_and_one_to_nine_payloads_are_summed_in_order(device, name, dtype):
    codec = REFERENCE[name]
    for inputs, with_raw, count in product(range(1, 10), [False, True], [129, 1543]):
        wires, coded = coded_inputs(name, count, inputs, dtype, gap=48)
        coded = coded.to(device)
        raw = random_raw(count, dtype, seed=99, device=device) if with_raw else None
        host_raw = as_float(raw) if with_raw else None
        sources = {"coded": coded, "coded_stride": coded.stride(0), "inputs": inputs}
        if with_raw:
            sources["raw_in"] = raw

        reduced = Guarded(count, dtype, device)
        run(name, device, dtype, count, **sources, raw_out=reduced.tensor)
        reduced.check()
        expect_raw(reduced.tensor, codec.decode_reduce(wires, host_raw, count))

        expected = codec.decode_reduce_encode(wires, host_raw)
        coded_out = Guarded(codec.bytes(count), torch.uint8, device)
        run(name, device, dtype, count, **sources, coded_out=coded_out.tensor)
        coded_out.check()
        expect_bytes(coded_out.tensor, expected)

        both = Guarded(codec.bytes(count), torch.uint8, device)
        raw_out = Guarded(count, dtype, device)
        outputs = {"coded_out": both.tensor, "raw_out": raw_out.tensor}
        run(name, device, dtype, count, **sources, **outputs)
        both.check()
        raw_out.check()
        expect_bytes(both.tensor, expected)
        expect_raw(raw_out.tensor, codec.decode(expected, count))


@each_codec
@each_type
def test_encode_can_leave_what_others_will_decode(device, name, dtype):
    count = 1543
    x = random_raw(count, dtype, device=device)
    raw_out = Guarded(count, dtype, device)
    wire = encode(name, x, raw_out=raw_out.tensor)
    raw_out.check()
    expect_bytes(wire, REFERENCE[name].encode(as_float(x)))
    expect_raw(raw_out.tensor, REFERENCE[name].decode(as_bytes(wire), count))


@each_codec
@pytest.mark.parametrize("scale", [0.5, 1 / 3, -2.0])
def test_the_scale_multiplies_the_sum_before_it_is_encoded_or_stored(device, name, scale):
    codec, count, dtype = REFERENCE[name], 1543, torch.float32
    wires, coded = coded_inputs(name, count, 3, dtype)
    raw = random_raw(count, dtype, seed=99, device=device)
    coded_out = Guarded(codec.bytes(count), torch.uint8, device)
    raw_out = Guarded(count, dtype, device)
    coded = coded.to(device)
    sources = {"coded": coded, "coded_stride": coded.stride(0), "inputs": 3, "raw_in": raw}
    run(name, device, dtype, count, **sources, coded_out=coded_out.tensor, scale=scale)
    run(name, device, dtype, count, **sources, raw_out=raw_out.tensor, scale=scale)
    expect_bytes(coded_out.tensor, codec.decode_reduce_encode(wires, as_float(raw), scale))
    expect_raw(raw_out.tensor, codec.decode_reduce(wires, as_float(raw), count, scale))
