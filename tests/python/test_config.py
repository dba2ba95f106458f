from __future__ import annotations

import pytest

from coccl import ArgumentError, Config
from coccl.config import node_name, parse_bytes, parse_switch

KNOWN = {"all_reduce": ["two_shot", "ring"], "reduce_scatter": ["ring"], "all_gather": ["direct"]}


def test_nothing_is_coded_by_default() -> None:
    config = Config.from_environment({})
    assert config == Config()
    assert config.compressors() == {}
    assert config.min_bytes == 4 * 2**20
    assert not config.strict


def test_one_name_codes_the_reductions_alone() -> None:
    config = Config.from_environment({"COCCL_COMPRESSOR": "int8h"})
    assert config.compressors() == {"all_reduce": "int8h", "reduce_scatter": "int8h"}


def test_collectives_are_named_one_by_one() -> None:
    config = Config(compressor="all_reduce:int8h, all_gather:int8,reduce_scatter:off")
    assert config.compressors() == {"all_reduce": "int8h", "all_gather": "int8"}


@pytest.mark.parametrize("text", ["", "off", " off ", "all_reduce:off"])
def test_off_codes_nothing(text: str) -> None:
    assert Config(compressor=text).compressors() == {}


@pytest.mark.parametrize(
    "text", ["all_reduce:", "broadcast:int8", "int8,int4", "all_reduce:int8,all_reduce:int4", ","]
)
def test_unreadable_compressors_are_refused_by_variable_and_value(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"COCCL_COMPRESSOR=.*all_reduce") as caught:
        Config(compressor=text)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("65536", 65536),
        ("64K", 65536),
        ("64k", 65536),
        ("1M", 2**20),
        ("1MiB", 2**20),
        ("8MB", 2**23),
        ("2G", 2**31),
        ("100B", 100),
    ],
)
def test_bytes_take_units(text: str, number: int) -> None:
    assert parse_bytes("COCCL_MIN_BYTES", text) == number
    assert Config.from_environment({"COCCL_MIN_BYTES": text}).min_bytes == number


@pytest.mark.parametrize("text", ["", "-1", "1.5M", "64Q", "many", "0x10"])
def test_unreadable_bytes_are_refused_by_variable_and_value(text: str) -> None:
    with pytest.raises(ArgumentError, match="COCCL_MIN_BYTES") as caught:
        Config.from_environment({"COCCL_MIN_BYTES": text})
    assert f'"{text}"' in str(caught.value)


def test_negative_bytes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="-1"):
        Config(min_bytes=-1)


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), ("0", False), ("", False)]
)
def test_switches_take_zero_and_one(text: str, value: bool) -> None:
    assert parse_switch("COCCL_STRICT", text) is value
    assert Config.from_environment({"COCCL_STRICT": text}).strict is value
    assert Config.from_environment({"COCCL_POISON_SCRATCH": text}).poison_scratch is value


def test_other_switches_are_refused() -> None:
    with pytest.raises(ArgumentError, match='COCCL_STRICT="maybe": expected 0 or 1'):
        Config.from_environment({"COCCL_STRICT": "maybe"})


def test_unknown_compressors_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r'"int3x".*known: off, int8, int4'):
        Config(compressor="int3x").validate(["int8", "int4"], KNOWN)


def test_unknown_algorithms_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match='"spiral"; known: auto, direct, ring, two_shot'):
        Config(algorithm="spiral").validate([], KNOWN)
    with pytest.raises(ArgumentError, match='"two_shot" for all_gather; known: auto, direct'):
        Config(algorithm="all_gather:two_shot").validate([], KNOWN)


def test_one_algorithm_serves_the_collectives_that_have_it() -> None:
    config = Config(
        compressor="all_reduce:int8,reduce_scatter:int8,all_gather:int8", algorithm="ring"
    )
    assert config.validate(["int8"], KNOWN) == {
        "all_reduce": ("int8", "ring"),
        "reduce_scatter": ("int8", "ring"),
        "all_gather": ("int8", "auto"),
    }


def test_algorithms_are_named_one_by_one() -> None:
    chosen = Config(algorithm="all_reduce:ring").algorithms()
    assert chosen == {"all_reduce": "ring", "reduce_scatter": "auto", "all_gather": "auto"}


def test_equal_configurations_have_equal_settings() -> None:
    short = Config(compressor="int8", min_bytes=1024)
    long = Config(compressor="reduce_scatter:int8,all_reduce:int8", min_bytes=parse_bytes("", "1K"))
    assert short.settings() == long.settings()
    assert short.settings() != Config(compressor="int4", min_bytes=1024).settings()


def test_the_settings_read_back_as_the_configuration() -> None:
    config = Config("all_gather:int4", "all_reduce:ring", 17, strict=True, poison_scratch=True)
    assert Config.from_environment(config.settings()).settings() == config.settings()


def test_the_host_id_variable_names_the_node() -> None:
    assert node_name({"NCCL_HOSTID": "a"}) == "a"
    assert node_name({}) == node_name({})
    assert node_name({}) not in ("", "a")
