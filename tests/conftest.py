"""What is marked `gpu` is skipped where there is no CUDA device."""

from __future__ import annotations

from pathlib import Path

import pytest


def has_cuda_device() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent / "gpu"
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.gpu)
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and not has_cuda_device():
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
