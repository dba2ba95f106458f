"""Bad input of a pass: errors that name the value and what is accepted."""

from __future__ import annotations

import pytest
import torch
from passes import NAMES
from world import address

from coccl import _core
from coccl.errors import ArgumentError


def bad_pass(**changes):
    x = torch.zeros(512)
    wire = torch.zeros(2048, dtype=torch.uint8)
    name = changes.pop("name", "int8")
    fields = {"type": 7, "count": 512, "raw_in": address(x), "coded_out": address(wire)} | changes
    with pytest.raises(ArgumentError) as error:
        _core.run(name, **fields)
    return str(error.value)


def test_an_unknown_compressor_is_named_with_those_that_are_known():
    message = bad_pass(name="int3x")
    assert 'unknown compressor "int3x"' in message
    assert all(name in message for name in NAMES)


def test_a_type_that_cannot_be_compressed_is_named_with_those_that_can():
    message = bad_pass(type=4)
    assert "int64" in message
    assert all(name in message for name in ("float32", "bfloat16", "float16"))


def test_a_type_of_no_number_is_named():
    assert "42" in bad_pass(type=42)


@pytest.mark.parametrize("fields", [{"raw_in": 0}, {"coded_out": 0}])
def test_a_pass_needs_an_input_and_an_output(fields):
    assert "without" in bad_pass(**fields)


def test_a_negative_number_is_named():
    for field in ("count", "inputs", "chunks"):
        assert "-3" in bad_pass(**{field: -3})


def test_coded_memory_must_be_aligned():
    wire = torch.zeros(4096, dtype=torch.uint8)
    assert "16" in bad_pass(coded_out=address(wire) + 4)
