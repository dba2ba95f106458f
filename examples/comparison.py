"""The results of an exact and a coded run beside each other: a table, a picture, a JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """What one training run gave; losses in nats per byte, one a step, averaged over the ranks."""

    name: str
    losses: list[float]
    validation_loss: float
    step_seconds: float
    ranks_agree: bool | None  # None: parameters are sharded, no two ranks hold the same

    def smoothed(self, every: int) -> list[tuple[int, float]]:
        """(step, mean loss of the `every` steps that end there)."""
        return [
            (step, sum(self.losses[step - every : step]) / every)
            for step in range(every, len(self.losses) + 1, every)
        ]


@dataclass(frozen=True)
class Traffic:
    """What one collective did on one rank in the coded run."""

    collective: str
    coded_calls: int
    handled_bytes: int  # what the coded calls would have sent uncoded
    wire_bytes: int  # what they sent
    bypasses: dict[str, int]  # calls that were left uncoded, by reason


@dataclass(frozen=True)
class Comparison:
    """Two runs of the same job, and how it was started."""

    exact: Run
    coded: Run
    traffic: list[Traffic]
    settings: dict[str, Any]

    def table(self, every: int) -> str:
        """The runs side by side, a line for `every` steps, then what coding saved and cost."""
        exact, coded = self.exact, self.coded
        width = max(len(exact.name), len(coded.name), 10)
        lines = [f"{'step':>17s}  {exact.name:>{width}s}  {coded.name:>{width}s}"]

        def add(label: str, left: str, right: str, note: str = "") -> None:
            lines.append(f"{label:>17s}  {left:>{width}s}  {right:>{width}s}  {note}".rstrip())

        def add_losses(label: str, left: float, right: float) -> None:
            add(label, f"{left:.4f}", f"{right:.4f}", f"{right / left - 1:+.2%}")

        rows = zip(exact.smoothed(every), coded.smoothed(every), strict=True)
        for (step, left), (_, right) in rows:
            add_losses(str(step), left, right)
        add_losses("validation loss", exact.validation_loss, coded.validation_loss)
        left, right = exact.step_seconds * 1e3, coded.step_seconds * 1e3
        add("time per step", f"{left:.1f} ms", f"{right:.1f} ms", f"{right / left - 1:+.1%}")
        if coded.ranks_agree is not None:
            words = {True: "yes", False: "NO"}
            add("ranks equal", words[exact.ranks_agree is True], words[coded.ranks_agree])
        return "\n".join([*lines, "", *map(_describe, self.traffic)])

    def draw(self, path: Path) -> bool:
        """Both loss curves as a PNG; False if matplotlib is not installed."""
        try:
            import matplotlib
        except ModuleNotFoundError:
            return False
        matplotlib.use("agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        every = max(1, len(self.exact.losses) // 60)
        for run, style in ((self.exact, "-"), (self.coded, "--")):
            steps, losses = zip(*run.smoothed(every), strict=True)
            label = f"{run.name}: validation {run.validation_loss:.3f}"
            axes.plot(steps, losses, style, label=label, linewidth=1.6)
        axes.set(xlabel="step", ylabel="training loss (nats per byte)")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        figure.savefig(path, dpi=140)
        pyplot.close(figure)
        return True

    def write(self, path: Path) -> None:
        """All of it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, default=str) + "\n")


def _describe(traffic: Traffic) -> str:
    handled, wire = traffic.handled_bytes, traffic.wire_bytes
    saved = f", saved {(handled - wire) / 1e6:.1f} MB ({1 - wire / handled:.1%})" if handled else ""
    bypasses = ", ".join(f"{number} {why}" for why, number in sorted(traffic.bypasses.items()))
    return (
        f"{traffic.collective}: {traffic.coded_calls} coded calls handled {handled / 1e6:.1f} MB, "
        f"put {wire / 1e6:.1f} MB on the wire{saved}"
        + (f"; left uncoded: {bypasses}" if bypasses else "")
    )
