"""The NumPy reference checked against arithmetic that is not its own."""

import numpy as np
import pytest

from coccl import bounds, reference
from coccl.reference import E4M3, GROUP, REFERENCE

torch = pytest.importorskip("torch")

CODECS = sorted(REFERENCE)
SCALED = ["int8", "int4", "fp8"]
ROTATED = [name for name in CODECS if REFERENCE[name].rotated]


def round_trip(name, x):
    codec = REFERENCE[name]
    return codec.decode(codec.encode(x), np.size(x))


def decibels(x, y):
    x, y = x.astype(np.float64), y.astype(np.float64)
    return 10 * np.log10((x**2).sum() / ((x - y) ** 2).sum())


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("count", [0, 1, 127, 512, 513, 4095])
def test_a_payload_is_whole_blocks_and_decodes_to_the_count(name, count):
    codec = REFERENCE[name]
    wire = codec.encode(np.ones(count, np.float32))
    assert wire.dtype == np.uint8
    assert wire.size == codec.bytes(count) == -(-count // 512) * codec.block_bytes
    assert codec.block_bytes % 16 == 0
    assert codec.decode(wire, count).shape == (count,)


# The decibels of each codec on Gaussian and Laplace data, as published for this design.
@pytest.mark.parametrize(
    ("name", "gaussian", "laplace"),
    [
        ("int8", 43.8, 41.0),
        ("int8h", 43.8, 43.9),
        ("int4", 18.6, 15.9),
        ("int4h", 18.6, 18.7),
        ("fp8", 31.8, 32.1),
    ],
)
def test_signal_to_noise_is_the_published_one(name, gaussian, laplace):
    rng = np.random.default_rng(0)
    for draw, published in [(rng.standard_normal, gaussian), (rng.laplace, laplace)]:
        x = draw(size=1 << 18).astype(np.float32)
        assert decibels(x, round_trip(name, x)) == pytest.approx(published, abs=0.4)


def test_rotation_helps_integers_on_outliers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4096, GROUP)).astype(np.float32)
    x[:, 17] *= 30
    for plain in ["int8", "int4"]:
        assert decibels(x.ravel(), round_trip(plain + "h", x)) > 5 + decibels(
            x.ravel(), round_trip(plain, x)
        )


def test_all_256_codes_of_e4m3_decode_as_in_torch():
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    expected = codes.view(torch.float8_e4m3fn).float().numpy()
    np.testing.assert_array_equal(E4M3, expected)
    assert list(E4M3[[0x01, 0x08, 0x38, 0x40, 0x7E]]) == [2.0**-9, 2.0**-6, 1.0, 2.0, 448.0]


def test_e4m3_rounds_as_torch_does_within_its_range():
    rng = np.random.default_rng(1)
    spread = np.exp2(rng.uniform(-14, 8.7, 1 << 18)) * rng.choice([-1, 1], 1 << 18)
    ties = (E4M3[:126] + E4M3[1:127]) / 2
    near = np.concatenate([np.nextafter(ties, np.float32(d)) for d in (-1e9, 1e9)])
    x = np.concatenate([spread, ties, -ties, near, E4M3[:127], [0.0, -0.0]]).astype(np.float32)
    x = x[np.abs(x) <= 448]
    expected = torch.from_numpy(x).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    np.testing.assert_array_equal(reference.e4m3_bits(x), expected)


def test_e4m3_saturates():
    x = np.array([449, 470, 1e30, -1e30], np.float32)
    np.testing.assert_array_equal(E4M3[reference.e4m3_bits(x)], [448, 448, 448, -448])


def test_bf16_rounds_as_torch_does():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    bits[:8] = [0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 1, 0x80000000, 0x8000]
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    expected = torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(reference.bf16_bits(x), expected)
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
    assert set(reference.bf16_bits(nans)) == {0x7FFF}


def test_none_keeps_every_bit():
    bits = np.random.default_rng(3).integers(0, 1 << 32, 1000, dtype=np.uint32)
    x = bits.view(np.float32)
    np.testing.assert_array_equal(round_trip("none", x).view(np.uint32), bits)


def test_the_wire_is_scales_first_then_payload_in_order():
    x = np.zeros(512, np.float32)
    x[0], x[1], x[130], x[511] = 127, -3, 7 * 127, -(2.0**-100) * 127
    wire = REFERENCE["int8"].encode(x)
    assert wire[:16].view(np.float32).tolist() == [1, 7, 0, 2.0**-100]
    payload = wire[16:].view(np.int8)
    assert (payload[0], payload[1], payload[130], payload[511]) == (127, -3, 127, -127)
    x[0], x[1] = 7, -3
    wire = REFERENCE["int4"].encode(x)
    assert wire[0:4].view(np.float32)[0] == 1
    assert wire[16] == 0x7 | (0xD << 4)


@pytest.mark.parametrize("name", SCALED)
def test_a_scale_is_clamped_to_normal_and_finite(name):
    codec = REFERENCE[name]
    qmax = {"int8": 127, "int4": 7, "fp8": 448}[name]
    tiny, huge = np.float32(1e-40), np.finfo(np.float32).max
    wire = codec.encode(np.repeat([tiny, huge], 128))
    low, high = wire[:8].view(np.float32)
    assert low == np.finfo(np.float32).smallest_normal
    assert (
        float(high) * qmax
        <= huge
        < np.nextafter(high, np.float32(1e38), dtype=np.float32).astype(float) * qmax
    )
    y = codec.decode(wire, 256)
    assert np.isfinite(y).all()
    assert (np.abs(y[128:] / huge - 1) < 2**-21).all()


@pytest.mark.parametrize("name", CODECS)
def test_zeros_of_either_sign_give_zeros(name):
    y = round_trip(name, np.repeat([0.0, -0.0], 128))
    assert (y == 0).all()
    if REFERENCE[name].group > 1:
        assert not REFERENCE[name].encode(np.repeat([0.0, -0.0], 256)).any()


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_non_finite_group_is_nan_and_the_others_are_untouched(name, value):
    codec = REFERENCE[name]
    x = np.random.default_rng(4).standard_normal(1000).astype(np.float32)
    clean = round_trip(name, x)
    x[300] = value
    y = round_trip(name, x)
    inside = np.zeros(1000, bool)
    inside[300 // codec.group * codec.group :][: codec.group] = True
    np.testing.assert_array_equal(y[~inside], clean[~inside])
    assert not np.isfinite(y[inside]).any()
    if codec.group > 1:
        wire = codec.encode(x)
        assert wire[:16].view(np.uint32)[2] == 0x7FC00000
        payload = wire[16 : codec.block_bytes].reshape(4, -1)[2]
        assert not payload.any()


@pytest.mark.parametrize("group", [2, 4, 128, 256])
def test_rotation_is_the_sylvester_transform(group):
    matrix = np.ones((1, 1))
    while len(matrix) < group:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    x = np.random.default_rng(5).standard_normal((3, group)).astype(np.float32)
    expected = x.astype(np.float64) @ matrix * reference.forward_factor(group)
    np.testing.assert_allclose(reference.rotate(x, group), expected, atol=1e-5)
    np.testing.assert_allclose(reference.unrotate(reference.rotate(x, group), group), x, atol=1e-5)


@pytest.mark.parametrize("name", CODECS)
def test_block_constant_values_are_exact_to_one_ulp(name):
    values = np.random.default_rng(6).standard_normal(300).astype(np.float32)
    if name == "bf16":
        values = REFERENCE[name].decode(REFERENCE[name].encode(values), 300)
    x = np.repeat(values, 512)
    assert (np.abs(x - round_trip(name, x)) <= np.spacing(np.abs(x))).all()


@pytest.mark.parametrize("name", CODECS)
def test_blocks_of_small_counts_are_exact(name):
    x = np.repeat(np.arange(1, 31, dtype=np.float32), 512)
    np.testing.assert_array_equal(round_trip(name, x), x)


@pytest.mark.parametrize("name", CODECS)
def test_one_encoding_stays_within_the_tolerance_and_comes_near_it(name):
    codec = REFERENCE[name]
    rng = np.random.default_rng(7)
    x = (rng.standard_normal(1 << 17) * np.exp2(rng.uniform(-30, 30, 1 << 17))).astype(np.float32)
    x[: 1 << 16] = rng.standard_normal(1 << 16)
    size = bounds.error_size(codec, round_trip(name, x), x)
    bound = bounds.error_bound(codec, x, 1)
    assert (size <= bound).all()
    if name in SCALED:
        assert (size > 0.45 * bound).any()


def test_half_an_ulp_of_the_format_bounds_the_float_codecs():
    x = np.random.default_rng(8).standard_normal(1 << 16).astype(np.float32)
    assert (np.abs(round_trip("bf16", x) - x) <= np.abs(x) * 2.0**-8).all()
    y = round_trip("fp8", x)
    step = np.abs(x).reshape(-1, GROUP).max(axis=1).repeat(GROUP) / 448 * 2.0**-10
    assert (np.abs(y - x) <= np.maximum(np.abs(x) * 2.0**-4, step) * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", ROTATED)
def test_sums_in_the_rotated_domain_are_sums(name):
    codec = REFERENCE[name]
    x = np.random.default_rng(9).standard_normal((4, 1000)).astype(np.float32)
    wires = [codec.encode(row) for row in x[:3]]
    y = codec.decode_reduce(wires, x[3], 1000, scale=0.25)
    one_by_one = (sum(codec.decode(w, 1000).astype(np.float64) for w in wires) + x[3]) / 4
    np.testing.assert_allclose(y, one_by_one, atol=1e-5)
    assert (bounds.error_size(codec, y, x.astype(np.float64).mean(axis=0)) > 0).all()
