"""Time every compressor's passes on one GPU, as a share of a device copy's bandwidth.

    python benchmarks/codec_kernels.py --json benchmarks/results/codec_kernels.json

For each compressor and raw type: encode, decode, and decode 8 + reduce + encode, on fresh random
data larger than the caches. Bytes are those read plus those written; the copy is timed in the same
run, in turn with the passes. Figures are medians of CUDA-event times. Every compressor is checked
first: its payload is that of the host's loop.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from coccl import _core

TYPES = {"float32": (torch.float32, 7), "bfloat16": (torch.bfloat16, 9)}
INPUTS = 8  # of the reduction
SETS = 4  # buffers in rotation, so that no pass finds its data in the cache


@dataclass(frozen=True)
class Row:
    """One timed pass."""

    compressor: str
    type: str
    operation: str
    bytes: int
    milliseconds: float
    percent_of_copy: float


def median_ms(launch: Callable[[int], None], repeats: int) -> float:
    """Median milliseconds of launch(set) over sets in rotation."""
    for i in range(SETS):
        launch(i)
    times = []
    for i in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        launch(i % SETS)
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in times)


def check(name: str, raw: torch.Tensor, number: int) -> None:
    """The GPU's payload is the host's, byte for byte."""
    info = next(c for c in _core.compressors() if c.name == name)
    count = 100_003
    host = raw[:count].cpu()
    size = -(-count // info.block) * info.block_bytes
    wire, wire_host = (
        torch.empty(size, dtype=torch.uint8, device="cuda"),
        torch.empty(size, dtype=torch.uint8),
    )
    stream = torch.cuda.current_stream().cuda_stream
    _core.run(name, type=number, count=count, raw_in=raw.data_ptr(), coded_out=wire.data_ptr(),
              stream=stream)  # fmt: skip
    _core.run(name, type=number, count=count, raw_in=host.data_ptr(),
              coded_out=wire_host.data_ptr())  # fmt: skip
    if not torch.equal(wire.cpu(), wire_host):
        raise SystemExit(f"{name}: the GPU's payload differs from the host's")


def measure(count: int, repeats: int) -> list[Row]:
    """All rows, for `count` elements."""
    stream = torch.cuda.current_stream().cuda_stream
    rows = []
    for type_name, (dtype, number) in TYPES.items():
        raw = [torch.randn(count, device="cuda").to(dtype) for _ in range(SETS)]
        out = [torch.empty_like(raw[0]) for _ in range(SETS)]
        raw_bytes = count * raw[0].element_size()

        def copy(i: int) -> None:
            out[i].copy_(raw[i])  # noqa: B023

        for info in _core.compressors():
            check(info.name, raw[0], number)
            wire_bytes = -(-count // info.block) * info.block_bytes
            wire = [
                torch.empty(INPUTS * wire_bytes, dtype=torch.uint8, device="cuda")
                for _ in range(SETS)
            ]
            coded = [torch.empty(wire_bytes, dtype=torch.uint8, device="cuda") for _ in range(SETS)]

            def encode(i: int, slot: int = 0) -> None:
                _core.run(info.name, type=number, count=count, raw_in=raw[i].data_ptr(),  # noqa: B023
                          coded_out=wire[i].data_ptr() + slot * wire_bytes, stream=stream)  # noqa: B023  # fmt: skip

            def decode(i: int) -> None:
                _core.run(info.name, type=number, count=count, coded=wire[i].data_ptr(), inputs=1,  # noqa: B023
                          raw_out=out[i].data_ptr(), stream=stream)  # noqa: B023  # fmt: skip

            def reduce(i: int) -> None:
                _core.run(info.name, type=number, count=count, coded=wire[i].data_ptr(),  # noqa: B023
                          inputs=INPUTS, coded_stride=wire_bytes, coded_out=coded[i].data_ptr(),  # noqa: B023
                          stream=stream)  # fmt: skip

            for i in range(SETS):
                for slot in range(INPUTS):
                    encode(i, slot)
            passes = [
                ("encode", encode, raw_bytes + wire_bytes),
                ("decode", decode, raw_bytes + wire_bytes),
                (f"decode {INPUTS} + reduce + encode", reduce, (INPUTS + 1) * wire_bytes),
            ]
            for operation, launch, moved in passes:
                copy_rate = 2 * raw_bytes / median_ms(copy, repeats)
                ms = median_ms(launch, repeats)
                percent = 100 * (moved / ms) / copy_rate
                rows.append(Row(info.name, type_name, operation, moved, ms, percent))
                print(f"{info.name:8} {type_name:9} {operation:28} {ms:8.3f} ms {percent:6.1f} %")
    return rows


def main() -> None:
    """Measure, print and optionally write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebi", type=int, default=128, help="elements, in units of 2^20")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = measure(args.mebi << 20, args.repeats)
    if args.json:
        report = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": " ".join(sys.argv),
            "elements": args.mebi << 20,
            "rows": [asdict(row) for row in rows],
        }
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
