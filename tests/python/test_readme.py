"""README says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coccl import config, tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def between(name: str) -> str:
    found = re.search(f"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", README, re.DOTALL)
    assert found, f"README has no markers for {name}"
    return found[1].strip()


@pytest.mark.parametrize("name", ["compressors", "algorithms"])
def test_the_table_is_the_one_that_the_code_prints(name: str) -> None:
    assert between(name) == getattr(tables, name)()


def test_every_option_is_in_the_readme_and_no_other() -> None:
    assert set(re.findall(r"COCCL_[A-Z_]+", between("options"))) == set(config.Config().settings())


def test_every_file_that_the_readme_names_is_there() -> None:
    named = re.findall(r"\]\(([^)#:]+)\)|`((?:benchmarks|examples|docs)/[\w./]+)`", README)
    paths = [a or b for a, b in named]
    assert paths
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing
