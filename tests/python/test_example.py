"""examples/train_gpt.py as a user runs it, with a model that is small enough for a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coccl import _core

pytest.importorskip("torch", reason="the example trains with torch")
pytest.importorskip("torch.distributed.fsdp", reason="this torch was built without distributed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_gpt.py"
STEPS = 30
SMALL = [
    f"--steps={STEPS}",
    *("--layers=2", "--width=64", "--context=32", "--batch=8"),
    *("--learning-rate=3e-3", "--report-every=10"),
]
CLUSTER = ["coccl.cluster", "a b", "--", sys.executable]
TORCHRUN = ["torch.distributed.run", "--standalone", "--nproc-per-node=2"]

pytestmark = pytest.mark.timeout(180)


def start(
    launcher: list[str], *flags: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The example under a launcher, without the variables of the tests' own surroundings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COCCL")}
    with subprocess.Popen(
        [sys.executable, *(["-m", *launcher] if launcher else []), str(EXAMPLE), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, **(environment or {})},
    ) as process:
        try:
            output, errors = process.communicate()
        finally:
            # A launcher that is asked to end ends its ranks; one that is killed leaves them behind.
            process.terminate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def train(launcher: list[str], folder: Path, *flags: str) -> tuple[dict[str, Any], str]:
    """The results of a run, and what it printed."""
    files = [f"--png={folder / 'losses.png'}", f"--json={folder / 'results.json'}"]
    done = start(launcher, *SMALL, *files, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "results.json").read_text()), done.stdout


@pytest.mark.parametrize(
    ("launcher", "flags"),
    [(TORCHRUN, []), (TORCHRUN, ["--fsdp"]), (CLUSTER, [])],
    ids=["torchrun-ddp", "torchrun-fsdp", "cluster-ddp"],
)
def test_a_coded_run_learns_as_well_as_the_exact_one_from_fewer_bytes(
    launcher: list[str], flags: list[str], tmp_path: Path
) -> None:
    """CASES G1, R2."""
    results, printed = train(launcher, tmp_path, *flags)
    exact, coded = results["exact"], results["coded"]
    for run in (exact, coded):
        assert len(run["losses"]) == STEPS
        assert run["losses"][0] > 5
        assert run["validation_loss"] < 4
        assert run["ranks_agree"] is (None if flags else True)
        assert run["step_seconds"] > 0
    assert coded["losses"] != exact["losses"]
    assert coded["validation_loss"] == pytest.approx(exact["validation_loss"], rel=0.01)

    (int8h,) = (row for row in _core.compressors() if row.name == "int8h")
    coded_calls = [one for one in results["traffic"] if one["coded_calls"]]
    assert [one["collective"] for one in coded_calls] == [
        "reduce_scatter" if flags else "all_reduce"
    ]
    assert coded_calls[0]["coded_calls"] >= STEPS
    ratio = coded_calls[0]["handled_bytes"] / coded_calls[0]["wire_bytes"]
    # Small gradients lose a little: the last block of each is padded.
    assert ratio == pytest.approx(32 / int8h.bits_per_element, rel=0.04)

    assert f"{coded['validation_loss']:.4f}" in printed
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("flags", [[], ["--fsdp"]], ids=["ddp", "fsdp"])
def test_without_a_compressor_the_two_runs_are_equal_to_the_last_bit(
    flags: list[str], tmp_path: Path
) -> None:
    """CASES G1."""
    results, _ = train(TORCHRUN, tmp_path, "--compressor=off", *flags)
    assert results["coded"]["losses"] == results["exact"]["losses"]
    assert results["coded"]["validation_loss"] == results["exact"]["validation_loss"]
    assert not any(one["coded_calls"] for one in results["traffic"])


def test_bfloat16_learns_too(tmp_path: Path) -> None:
    results, _ = train(TORCHRUN, tmp_path, "--dtype=bfloat16")
    exact, coded = results["exact"], results["coded"]
    assert coded["validation_loss"] < 4
    assert coded["validation_loss"] == pytest.approx(exact["validation_loss"], rel=0.01)


def test_a_missing_matplotlib_costs_the_picture_only(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('matplotlib')\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    picture = tmp_path / "losses.png"
    flags = [*SMALL, "--steps=2", f"--png={picture}"]
    done = start(TORCHRUN, *flags, environment={"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert "no picture: matplotlib is not installed" in done.stdout
    assert "validation loss" in done.stdout
    assert not picture.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "RANK is not set; start with torchrun"),
        (["--steps=0"], "--steps 0; expected at least 1"),
        (["--width=100"], "width 100; expected a multiple of 32"),
        (["--json=/no/such/folder/x.json"], "no folder /no/such/folder"),
        (["--dtype=int8"], "invalid choice: 'int8'"),
    ],
)
def test_a_bad_command_line_ends_in_one_clear_error(flags: list[str], message: str) -> None:
    done = start([], *flags)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_unknown_compressor_is_named_before_any_training() -> None:
    done = start(TORCHRUN, *SMALL, "--compressor=int3x")
    assert done.returncode != 0
    assert 'unknown compressor "int3x"' in done.stderr
    assert "step" not in done.stdout
