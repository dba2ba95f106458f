from __future__ import annotations

import subprocess
import sys

from coccl import _core, info


def test_the_report_names_every_compressor_and_algorithm() -> None:
    words = info.report().split()
    for compressor in _core.compressors():
        assert compressor.name in words
    for algorithm in _core.algorithms():
        assert algorithm.name in words
        assert algorithm.collective in words


def test_the_command_prints_build_nccl_and_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "coccl.info"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.split("\n\n")[0].splitlines())
    assert lines["coccl"] == _core.__version__
    assert lines["build"].startswith("CUDA" if _core.build["cuda"] else "host only")
    assert 'backend "coccl" registered' in lines["torch"]
    assert lines["NCCL"]
    assert lines["devices"].startswith("CPU")
