"""What is installed: its version, its entry points, and what the extension leans on."""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import coccl
from coccl import _core

ROOT = Path(__file__).parents[2]
EXTENSION = Path(_core.__file__)


def test_the_version_is_one() -> None:
    written = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert written
    assert coccl.__version__ == _core.__version__ == metadata.version("coccl") == written[1]


def test_a_compressor_is_named_as_its_file() -> None:
    files = sorted(file.stem for file in (ROOT / "src/codecs").glob("*.cpp"))
    assert [compressor.name for compressor in _core.compressors()] == files


@pytest.mark.parametrize("group", ["torch.backends", "torch.distributed.backends"])
def test_torch_finds_the_backend_by_an_entry_point(group: str) -> None:
    (entry,) = metadata.entry_points(group=group, name="coccl")
    assert callable(entry.load())


def elf(*command: str) -> str:
    return subprocess.run(
        [*command, str(EXTENSION)], check=True, capture_output=True, text=True
    ).stdout


def test_the_extension_needs_neither_torch_nor_nccl_nor_a_cuda_runtime() -> None:
    needed = re.findall(r"NEEDED.*\[(.+?)\]", elf("readelf", "-d"))
    assert "libc.so.6" in needed
    assert not [name for name in needed if re.match(r"lib(torch|c10|nccl|cuda|nvidia)", name)]


def test_the_extension_exports_its_init_function_and_none_of_what_it_holds() -> None:
    exported = re.findall(r" [TDBR] (\S+)", elf("nm", "-D", "--defined-only"))
    assert exported == ["PyInit__core"]
