"""The tests of tests/python again, with `device` "cuda"."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))


@pytest.fixture(scope="session")
def device():
    torch = pytest.importorskip("torch")
    core = pytest.importorskip("coccl._core")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if not core.build["cuda"]:
        pytest.skip("coccl was built without CUDA")
    return "cuda"
