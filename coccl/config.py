"""The configuration of a process group, and the one place where Python reads the environment.

| variable | meaning | default |
|---|---|---|
| COCCL_COMPRESSOR | a compressor's name codes the reductions, all_reduce and reduce_scatter; `all_reduce:int8h,all_gather:int8` names collectives one by one; `off` or nothing codes nothing | off |
| COCCL_ALGORITHM | an algorithm's name for every collective that has it, or one for each as above; `auto` chooses by size and topology | auto |
| COCCL_MIN_BYTES | calls on smaller tensors are left uncoded; takes K, M, G, KiB, MiB, GiB (all powers of 1024) | 4M |
| COCCL_STRICT | 1: leaving a call uncoded is an error wherever its collective has a compressor | 0 |
| COCCL_POISON_SCRATCH | 1: scratch memory is filled with NaN before every call (debugging) | 0 |
"""  # noqa: E501

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coccl.counters import COLLECTIVES
from coccl.errors import ArgumentError

OFF = "off"
AUTO = "auto"
# With four network ranks on one H200, 2026-12-01, int8h on bf16 has 0.91 to 1.17 times NCCL's speed
# at 1 MiB, depending on the collective, and 1.06 to 1.14 times at 4 MiB.
DEFAULT_MIN_BYTES = 4 * 2**20
_REDUCTIONS = ("all_reduce", "reduce_scatter")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SWITCHES = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("", "0", "false", "no", "off"), False),
}


@dataclass(frozen=True)
class Config:
    """What one process group compresses, and how; the same on all of its ranks.

    The fields are the COCCL_ variables of this module, in the same syntax. Pass one as
    `pg_options=` to `init_process_group` or `new_group` to configure a group apart from the
    environment. Raises ArgumentError where a field cannot be read; names of compressors and
    algorithms are checked by `validate()`, when a group is made.
    """

    compressor: str = OFF
    algorithm: str = AUTO
    min_bytes: int = DEFAULT_MIN_BYTES
    strict: bool = False
    poison_scratch: bool = False

    def __post_init__(self) -> None:
        self.compressors()
        self.algorithms()
        if self.min_bytes < 0:
            raise ArgumentError(f"COCCL_MIN_BYTES={self.min_bytes}: expected 0 or more bytes")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Config:
        """The configuration that `environ`, by default the process's environment, describes."""
        get = (os.environ if environ is None else environ).get
        return cls(
            compressor=get("COCCL_COMPRESSOR", OFF),
            algorithm=get("COCCL_ALGORITHM", AUTO),
            min_bytes=parse_bytes(
                "COCCL_MIN_BYTES", get("COCCL_MIN_BYTES", f"{DEFAULT_MIN_BYTES}")
            ),
            strict=parse_switch("COCCL_STRICT", get("COCCL_STRICT", "0")),
            poison_scratch=parse_switch("COCCL_POISON_SCRATCH", get("COCCL_POISON_SCRATCH", "0")),
        )

    def compressors(self) -> dict[str, str]:
        """The compressor's name of every collective that is coded."""
        chosen = _per_collective("COCCL_COMPRESSOR", self.compressor, OFF, _REDUCTIONS)
        return {collective: name for collective, name in chosen.items() if name != OFF}

    def algorithms(self) -> dict[str, str]:
        """The algorithm's name of every collective.

        One name given for all of them may be unknown to some, which then mean `auto`.
        """
        chosen = _per_collective("COCCL_ALGORITHM", self.algorithm, AUTO, COLLECTIVES)
        return {collective: chosen.get(collective, AUTO) for collective in COLLECTIVES}

    def validate(
        self, compressors: Sequence[str], algorithms: Mapping[str, Sequence[str]]
    ) -> dict[str, tuple[str, str]]:
        """The (compressor, algorithm) of every coded collective, by collective.

        compressors: all known names; algorithms: all known names of each collective. Raises
        ArgumentError with the known names where one is unknown.
        """
        chosen = self.algorithms()
        for_all = ":" not in self.algorithm
        for collective, name in chosen.items():
            if name == AUTO or name in algorithms[collective]:
                continue
            if not for_all:
                raise ArgumentError(
                    f'COCCL_ALGORITHM: unknown algorithm "{name}" for {collective}; '
                    f"known: {', '.join([AUTO, *algorithms[collective]])}"
                )
            if not any(name in known for known in algorithms.values()):
                every = sorted({name for known in algorithms.values() for name in known})
                raise ArgumentError(
                    f'COCCL_ALGORITHM: unknown algorithm "{name}"; '
                    f"known: {', '.join([AUTO, *every])}"
                )
            chosen[collective] = AUTO
        for collective, name in self.compressors().items():
            if name not in compressors:
                raise ArgumentError(
                    f'COCCL_COMPRESSOR: unknown compressor "{name}" for {collective}; '
                    f"known: {', '.join([OFF, *compressors])}"
                )
        return {
            collective: (name, chosen[collective])
            for collective, name in self.compressors().items()
        }

    def settings(self) -> dict[str, str]:
        """Every setting as text, by its variable; equal where two configurations are."""
        return {
            "COCCL_COMPRESSOR": _text(self.compressors()) or OFF,
            "COCCL_ALGORITHM": _text(self.algorithms()),
            "COCCL_MIN_BYTES": str(self.min_bytes),
            "COCCL_STRICT": str(int(self.strict)),
            "COCCL_POISON_SCRATCH": str(int(self.poison_scratch)),
        }


def parse_bytes(key: str, text: str) -> int:
    """A number of bytes such as 65536, 64K or 1MiB; ArgumentError names `key` and `text`."""
    match = re.fullmatch(r"\s*(\d+)\s*([KMG]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if not match:
        raise ArgumentError(
            f'{key}="{text}": expected a number of bytes, such as 65536, 64K, 1M or 1MiB'
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def parse_switch(key: str, text: str) -> bool:
    """True or False from 1 or 0 (true, yes, on; false, no, off); ArgumentError otherwise."""
    switch = _SWITCHES.get(text.strip().lower())
    if switch is None:
        raise ArgumentError(f'{key}="{text}": expected 0 or 1')
    return switch


def node_name(environ: Mapping[str, str] | None = None) -> str:
    """What tells this host from others: NCCL_HOSTID, or the host's name and boot id."""
    name = (os.environ if environ is None else environ).get("NCCL_HOSTID", "")
    if name:
        return name
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()}/{boot_id.read_text().strip() if boot_id.exists() else ''}"


def _per_collective(key: str, text: str, default: str, whole: Sequence[str]) -> dict[str, str]:
    """`name`, meant for the collectives in `whole`, or `collective:name,…` as a dictionary."""
    text = text.strip()
    if ":" not in text and "," not in text:
        return dict.fromkeys(whole, text or default)
    chosen: dict[str, str] = {}
    for part in text.split(","):
        collective, colon, name = (word.strip() for word in part.partition(":"))
        if not colon or not name or collective not in COLLECTIVES or collective in chosen:
            raise ArgumentError(
                f'{key}="{text}": cannot read "{part.strip()}"; expected one name, or '
                f"collective:name once for each of {', '.join(COLLECTIVES)}"
            )
        chosen[collective] = name
    return chosen


def _text(chosen: Mapping[str, str]) -> str:
    return ",".join(f"{collective}:{chosen[collective]}" for collective in sorted(chosen))
