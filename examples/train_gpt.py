"""Trains a small GPT twice, with exact and with compressed collectives, and compares the two.

    torchrun --nproc-per-node 2 examples/train_gpt.py

Both runs start from the same seed and see the same data; only the process group differs: first
gloo (CPU) or nccl (CUDA), then coccl. The text is the Python standard library's own source code,
byte by byte: any machine that runs this has it already, and the PSF License permits its use.
Prints the losses side by side, the bytes handled and sent, and the time per step; draws the loss
curves. Uses the GPU that LOCAL_RANK names, if there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from comparison import Comparison, Run, Traffic
from gpt import GPT, Block, Shape
from stdlib_text import Text, load, windows
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

import coccl

WARM_UP_STEPS = 20
VALIDATION_BATCHES = 16
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Job:
    """What both runs have in common."""

    text: Text
    shape: Shape
    device: torch.device
    dtype: torch.dtype
    fsdp: bool
    steps: int
    batch: int  # sequences of a rank in a step
    learning_rate: float
    seed: int


def read_arguments() -> argparse.Namespace:
    """The command line; what cannot work ends in one line and exit code 2."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    given = os.environ.get
    add("--compressor", default=given("COCCL_COMPRESSOR", "int8h"), help="of the coded run")
    add("--algorithm", default=given("COCCL_ALGORITHM", "auto"), help="of the coded run")
    add("--fsdp", action="store_true", help="FSDP2 instead of DDP")
    add("--dtype", choices=DTYPES, default="float32", help="of the arithmetic; weights stay fp32")
    add("--steps", type=int, default=200)
    add("--batch", type=int, default=8, help="sequences of a rank in a step")
    add("--layers", type=int, default=Shape.layers)
    add("--width", type=int, default=Shape.width)
    add("--context", type=int, default=Shape.context, help="bytes that the model sees at most")
    add("--learning-rate", type=float, default=1.5e-3)
    add("--seed", type=int, default=1)
    add("--report-every", type=int, default=20, help="steps in a line of the table")
    add("--exact-backend", help="of the first run (nccl on CUDA, otherwise gloo)")
    add("--coded-backend", default="coccl", help="of the second run")
    add("--png", type=Path, default=Path("train_gpt.png"), help="where the loss curves are drawn")
    add("--json", type=Path, help="where all results are written")
    arguments = parser.parse_args()
    for name in ("steps", "batch", "report_every"):
        if getattr(arguments, name) < 1:
            flag = name.replace("_", "-")
            parser.error(f"--{flag} {getattr(arguments, name)}; expected at least 1")
    try:
        Shape(arguments.layers, arguments.width, arguments.context)
    except ValueError as error:
        parser.error(str(error))
    for file in filter(None, (arguments.png, arguments.json)):
        if not file.parent.is_dir():
            parser.error(f"no folder {file.parent} for {file}")
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR") if name not in os.environ]
    if missing:
        parser.error(
            f"{missing[0]} is not set; start with torchrun --nproc-per-node 2 examples/train_gpt.py"
        )
    return arguments


def choose_device(local_rank: int) -> torch.device:
    """The GPU of this rank, or the CPU with a fair share of its cores."""
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        return device
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks_here))
    return torch.device("cpu")


@contextmanager
def process_group(backend: str, store: Store, rank: int, size: int) -> Iterator[None]:
    """The default group, for the time of one run; a store serves one group only."""
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield
        dist.barrier()
    finally:
        dist.destroy_process_group()


def build(job: Job) -> nn.Module:
    """The model with the initial parameters of the seed, spread over the ranks."""
    torch.manual_seed(job.seed)
    model = GPT(job.shape).to(job.device)
    if not job.fsdp:
        devices = None if job.device.type == "cpu" else [job.device.index]
        return DistributedDataParallel(model, device_ids=devices)
    mesh = init_device_mesh(job.device.type, (dist.get_world_size(),))
    precision = MixedPrecisionPolicy(param_dtype=job.dtype, reduce_dtype=torch.float32)
    for module in model.modules():
        if isinstance(module, Block):
            fully_shard(module, mesh=mesh, mp_policy=precision)
    fully_shard(model, mesh=mesh, mp_policy=precision)
    return model


def make_optimizer(model: nn.Module, learning_rate: float) -> torch.optim.AdamW:
    """AdamW that decays matrices and leaves vectors alone."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)


def schedule(steps: int) -> Callable[[int], float]:
    """Linear warm-up, then a cosine down to a tenth of the learning rate."""

    def factor(step: int) -> float:
        progress = min(1.0, step / max(1, steps))
        cosine = 0.55 + 0.45 * math.cos(math.pi * progress)
        return min(1.0, (step + 1) / WARM_UP_STEPS) * cosine

    return factor


def train(job: Job, name: str, report_every: int) -> Run:
    """One whole run in the current process group. Every rank returns the same losses."""
    rank = dist.get_rank()
    model = build(job)
    optimizer = make_optimizer(model, job.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule(job.steps))
    draws = torch.Generator().manual_seed(job.seed * 100_003 + rank)
    losses, times = [], []
    for step in range(1, job.steps + 1):
        begun = time.perf_counter()
        tokens, targets = draw_batch(job, job.text.train, draws)
        loss = loss_of(model, job, tokens, targets)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        times.append(time.perf_counter() - begun)
        if rank == 0 and step % report_every == 0:
            recent = sum(losses[-report_every:]) / report_every
            print(f"{name}: step {step} of {job.steps}, loss {recent:.3f}", flush=True)
    return Run(
        name=name,
        losses=mean_over_ranks(losses, job.device),
        validation_loss=validate(model, job),
        step_seconds=sorted(times)[len(times) // 2],
        ranks_agree=None if job.fsdp else ranks_agree(model),
    )


def loss_of(model: nn.Module, job: Job, tokens: Tensor, targets: Tensor) -> Tensor:
    """The loss of a batch, computed in the job's dtype."""
    with torch.autocast(job.device.type, job.dtype, enabled=job.dtype != torch.float32):
        loss: Tensor = model(tokens, targets)
    return loss


def draw_batch(job: Job, text: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random windows of the text, on the job's device."""
    starts = torch.randint(len(text) - job.shape.context, (job.batch,), generator=draws)
    tokens, targets = windows(text, starts, job.shape.context)
    return tokens.to(job.device), targets.to(job.device)


@torch.no_grad()
def validate(model: nn.Module, job: Job) -> float:
    """Mean loss over windows that are spread evenly over the validation text."""
    model.eval()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    last = len(job.text.validation) - job.shape.context - 1
    starts = torch.linspace(0, last, VALIDATION_BATCHES * job.batch * ranks).long()[rank::ranks]
    losses = []
    for some in torch.split(starts, job.batch):
        tokens, targets = windows(job.text.validation, some, job.shape.context)
        losses.append(loss_of(model, job, tokens.to(job.device), targets.to(job.device)).item())
    return sum(mean_over_ranks(losses, job.device)) / len(losses)


def mean_over_ranks(values: list[float], device: torch.device) -> list[float]:
    """The mean of each value; in fp64, which no backend compresses."""
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    means: list[float] = (total / dist.get_world_size()).tolist()
    return means


def ranks_agree(model: nn.Module) -> bool:
    """Whether every parameter has the same bits on every rank."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    digests: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(digests, digest.hexdigest())
    return len(set(digests)) == 1


def read_traffic() -> list[Traffic]:
    """What this rank's coccl groups sent, of every collective that was used."""
    stats = coccl.stats()
    collectives = {
        "all_reduce": stats.all_reduce,
        "reduce_scatter": stats.reduce_scatter,
        "all_gather": stats.all_gather,
    }
    return [
        Traffic(name, one.calls, one.raw_bytes, one.wire_bytes, dict(one.bypasses))
        for name, one in collectives.items()
        if one.calls or one.bypasses
    ]


def circumstances(device: torch.device, size: int) -> dict[str, Any]:
    """Where, when and with what a comparison was made."""
    cuda = device.type == "cuda"
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "ranks": size,
        "device": torch.cuda.get_device_name(device) if cuda else f"CPU, {os.cpu_count()} cores",
        "torch": torch.__version__,
        "coccl": coccl.__version__,
    }


def main() -> None:
    """Runs the job twice and reports on rank 0."""
    arguments = read_arguments()
    device = choose_device(int(os.environ.get("LOCAL_RANK", "0")))
    job = Job(
        text=load(),
        shape=Shape(arguments.layers, arguments.width, arguments.context),
        device=device,
        dtype=DTYPES[arguments.dtype],
        fsdp=arguments.fsdp,
        steps=arguments.steps,
        batch=arguments.batch,
        learning_rate=arguments.learning_rate,
        seed=arguments.seed,
    )
    # What a user would set in the shell; only the coccl backend reads it.
    os.environ["COCCL_COMPRESSOR"] = arguments.compressor
    os.environ["COCCL_ALGORITHM"] = arguments.algorithm
    # The model is small, and so are its messages: code those too that rarely pay on a real link.
    os.environ.setdefault("COCCL_MIN_BYTES", "64K")
    exact_backend = arguments.exact_backend or ("nccl" if device.type == "cuda" else "gloo")
    store, rank, size = next(rendezvous("env://", timeout=timedelta(minutes=5)))
    if rank == 0:
        parameters = sum(parameter.numel() for parameter in GPT(job.shape).parameters())
        print(
            f"text: {job.text.files} files of the Python standard library, "
            f"{len(job.text.train):,} bytes to train, {len(job.text.validation):,} to validate\n"
            f"model: {parameters:,} parameters; {size} ranks, "
            f"{'FSDP2' if job.fsdp else 'DDP'}, {device.type}, {arguments.dtype}",
            flush=True,
        )

    every = min(arguments.report_every, job.steps)
    # Made once for nothing, so that a wrong name is refused now and not after the first run.
    with process_group(arguments.coded_backend, PrefixStore("check", store), rank, size):
        pass
    with process_group(exact_backend, PrefixStore("exact", store), rank, size):
        exact = train(job, exact_backend, every)
    coccl.reset_stats()
    with process_group(arguments.coded_backend, PrefixStore("coded", store), rank, size):
        coded = train(job, f"{arguments.coded_backend} {arguments.compressor}", every)
    if rank == 0:
        settings = {**circumstances(device, size), **vars(arguments)}
        comparison = Comparison(exact, coded, read_traffic(), settings)
        print(f"\n{comparison.table(every)}\n")
        drawn = comparison.draw(arguments.png)
        print(f"wrote {arguments.png}" if drawn else "no picture: matplotlib is not installed")
        if arguments.json is not None:
            comparison.write(arguments.json)
            print(f"wrote {arguments.json}")


if __name__ == "__main__":
    main()
