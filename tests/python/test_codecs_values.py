"""Every codec on special values, and the bound of its error."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from passes import (
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
from world import HALF_ULP, RAW_TYPES, Guarded, same_bits

from coccl.bounds import error_bound, error_size
from coccl.reference import REFERENCE


@pytest.fixture(scope="session")
def device():
    return "cpu"


# --------------------------------------------------------------------------------- special values


@each_codec
@each_type
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_non_finite_value_shows_in_its_group_and_nowhere_else(device, name, dtype, value):
    """V3, for one codec: also as one of several payloads that are summed."""
    codec, count = REFERENCE[name], 1543
    x = random_raw(count, dtype)
    clean = decode(name, encode(name, x.to(device)), dtype, count).cpu()
    others, coded = coded_inputs(name, count, 1, dtype)
    for place in [0, 1, 37, 127, 128, 511, 512, 1000, count - 1]:
        bad = x.clone()
        bad[place] = value
        group = slice(place // codec.group * codec.group, (place // codec.group + 1) * codec.group)
        wire = encode(name, bad.to(device))
        expect_bytes(wire, codec.encode(as_float(bad)))
        got = decode(name, wire, dtype, count).cpu()
        assert not torch.isfinite(got[group]).any()
        got[group] = clean[group]
        assert same_bits(got, clean)

        total = Guarded(count, dtype, device)
        sources = {"coded": coded.to(device), "inputs": 1, "raw_in": bad.to(device)}
        run(name, device, dtype, count, **sources, raw_out=total.tensor)
        assert not torch.isfinite(total.tensor[place])
        expect_raw(total.tensor, codec.decode_reduce(others, as_float(bad), count))


@each_codec
def test_zeros_and_subnormal_values_stay_finite(device, name):
    """V2, for one codec."""
    groups = torch.tensor([0.0, 1.0, 1e-40, -0.0]).repeat_interleave(512).to(device)
    wire = encode(name, groups)
    expect_bytes(wire, REFERENCE[name].encode(as_float(groups)))
    got = decode(name, wire, torch.float32, 2048).cpu().reshape(4, 512)
    assert (got[0] == 0).all()
    assert (got[1] == 1).all()
    assert ((got[2] - 1e-40).abs() <= 1e-40).all()
    assert (got[3] == 0).all()


@each_codec
def test_the_largest_floats_never_turn_into_nan_without_a_rotation(device, name):
    """Unrotated, a group up to the largest float decodes within the bound.

    Rotated values are up to √group times as large, and an error adds to values near the end of the
    range: a group of such values may end up non-finite, but what is finite is within the bound.
    """
    largest = torch.finfo(torch.float32).max
    rng = np.random.default_rng(0)
    x = rng.choice([1.0, -1.0, 0.5, 0.0], (6, 512)) * largest
    x[0] = largest
    x[1:3] = 0
    x[1, 5] = x[2, 7] = -largest
    x[3:5] /= 32
    x = torch.from_numpy(x).float()
    codec = REFERENCE[name]
    wire = encode(name, x.reshape(-1).to(device))
    expect_bytes(wire, codec.encode(as_float(x)))
    got = decode(name, wire, torch.float32, x.numel()).cpu().numpy()
    expect_raw(torch.from_numpy(got), codec.decode(as_bytes(wire), x.numel()))
    finite = np.isfinite(got).reshape(-1, codec.group)
    if name == "bf16":  # the largest floats round to infinity, as every cast to bf16 does
        assert not np.isnan(got).any()
        return
    assert finite[3 * 512 // codec.group : 5 * 512 // codec.group].all()
    if not codec.rotated:
        assert finite.all()
    with np.errstate(all="ignore"):
        size = error_size(codec, got, as_float(x))
        bound = error_bound(codec, as_float(x).ravel(), 1)
    within = finite.all(axis=1)
    assert (size[within] <= bound[within]).all()


@each_codec
@each_type
def test_block_constant_data_are_exact_to_one_ulp(device, name, dtype):
    """Of the raw type."""
    values = torch.randn(200, generator=torch.Generator().manual_seed(0)).to(dtype)
    if name == "bf16":
        values = values.bfloat16().to(dtype)
    x = values.repeat_interleave(512)
    got = decode(name, encode(name, x.to(device)), dtype, x.numel()).cpu()
    ulp = 2 * HALF_ULP[dtype][0] * 2.0 ** torch.floor(torch.log2(x.double().abs()))
    assert ((got.double() - x.double()).abs() <= ulp).all()


# ------------------------------------------------------------------------------------- the bound


def draw_values(rng, count, distribution):
    if distribution == "outliers":
        return rng.standard_normal(count) * np.where(rng.random(count) < 0.02, 1000, 1)
    if distribution == "groups":
        return (
            rng.standard_normal(count)
            * np.exp2(rng.integers(-9, 9, count // 64 + 1)).repeat(64)[:count]
        )
    return getattr(rng, distribution)(size=count)


DISTRIBUTIONS = ["standard_normal", "laplace", "uniform", "standard_cauchy", "outliers", "groups"]


@each_codec
@settings(max_examples=300, deadline=None)
@given(
    count=st.integers(1, 2000),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(RAW_TYPES),
    distribution=st.sampled_from(DISTRIBUTIONS),
    exponent=st.integers(-140, 100),
)
def test_the_tolerance_is_never_exceeded(device, name, count, seed, dtype, distribution, exponent):
    """V13, for one encoding."""
    codec = REFERENCE[name]
    values = draw_values(np.random.default_rng(seed), count, distribution)
    if dtype == torch.float16:
        values = np.clip(values, -1000, 1000)
        exponent = max(-12, min(5, exponent))
    x = torch.from_numpy(np.ldexp(values, exponent)).to(dtype)
    got = decode(name, encode(name, x.to(device)), dtype, count).cpu()
    got, x = as_float(got).astype(np.float64), as_float(x)
    relative, absolute = HALF_ULP[dtype]
    slack = error_size(codec, np.abs(got) * relative + absolute, np.zeros(count))
    assert (error_size(codec, got, x) <= error_bound(codec, x, 1) + slack).all()
