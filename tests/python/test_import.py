from __future__ import annotations

import subprocess
import sys

import pytest


def _python(code: str, **environ: str) -> str:
    import os

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("order", ["torch, coccl", "coccl, torch"])
def test_either_import_order_works_with_at_most_one_libnccl(order: str) -> None:
    """G7."""
    code = f"""
import {order}
import torch.distributed as dist
import coccl.torch
assert "COCCL" in dist.Backend._plugins or torch.__version__ >= "2.14"
print(len({{line.split()[-1] for line in open("/proc/self/maps") if "libnccl" in line}}))
"""
    assert int(_python(code)) <= 1


def test_import_coccl_is_light() -> None:
    code = """
import sys, coccl
coccl.stats()
print([name for name in ("torch", "numpy", "coccl._core") if name in sys.modules])
"""
    assert _python(code) == "[]"


def test_the_version_is_that_of_the_core() -> None:
    code = "import coccl, coccl._core; print(coccl.__version__ == coccl._core.__version__)"
    assert _python(code) == "True"


def test_unknown_attributes_are_an_attribute_error() -> None:
    code = """
import coccl
try:
    coccl.statistics
except AttributeError as error:
    print("statistics" in str(error))
"""
    assert _python(code) == "True"


def test_an_entry_point_that_fails_leaves_torch_alone() -> None:
    code = """
import sys
sys.modules["torch.distributed"] = None  # what importing a broken torch.distributed looks like
from coccl._torch_autoload import autoload
print(autoload())
"""
    assert _python(code) == "None"
