"""Real text that every machine with Python already has: the standard library's own source files.

Python's licence (PSF License Agreement, section 2) permits to use, copy and analyse them.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

VALIDATION_EVERY = 10


@dataclass(frozen=True)
class Text:
    """Bytes of whole files, 1-D uint8: no file is in both parts."""

    train: Tensor
    validation: Tensor
    files: int


def load(folder: Path | None = None) -> Text:
    """The modules at the top of the standard library (or of `folder`), in the order of their names.

    Every tenth file is for validation: the same split on every rank and in every run.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    files = sorted(folder.glob("*.py"))
    if len(files) < VALIDATION_EVERY:
        raise FileNotFoundError(
            f"{len(files)} .py files in {folder}; expected the standard library's sources"
        )
    validation = files[VALIDATION_EVERY - 1 :: VALIDATION_EVERY]
    train = [file for file in files if file not in validation]
    return Text(_joined(train), _joined(validation), len(files))


def _joined(files: list[Path]) -> Tensor:
    return torch.frombuffer(bytearray(b"\n".join(map(Path.read_bytes, files))), dtype=torch.uint8)


def windows(text: Tensor, starts: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Tokens and next tokens, int64 (len(starts), context), read from `text` at each start."""
    rows = text[starts[:, None] + torch.arange(context + 1)].long()
    return rows[:, :-1], rows[:, 1:]
