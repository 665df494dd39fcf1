"""Runs made into curves: suboptimality against passes, mean and spread over the runs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._jobs import TOLERANCE

Record = dict[str, Any]


@dataclass(frozen=True)
class Curve:
    """The suboptimality of one method after each number of passes of a grid."""

    key: str
    step: float | None
    passes: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    runs: int

    @property
    def last(self) -> float:
        """The mean at the end."""
        return float(self.mean[-1])

    def at(self, passes: float) -> float:
        """The mean after so many passes, between checks along a straight line of the figure."""
        return float(np.exp(np.interp(passes, self.passes, _log(self.mean))))

    def passes_to(self, level: float) -> float:
        """The first number of passes with a mean of at most ``level``; infinity if never."""
        below = np.flatnonzero(self.mean <= level)
        if below.size == 0:
            return float("inf")
        k = int(below[0])
        if k == 0:
            return float(self.passes[0])
        logs = _log(self.mean[k - 1 : k + 1])
        share = (logs[0] - np.log(level)) / (logs[0] - logs[1]) if np.isfinite(logs[0]) else 1.0
        return float(self.passes[k - 1] + share * (self.passes[k] - self.passes[k - 1]))


@dataclass(frozen=True)
class Optimum:
    """What is known of J(x*): it lies in [value - gap, value]. ``scale`` is |J(0)|."""

    value: float
    gap: float
    scale: float
    passes: float

    @property
    def relative(self) -> float:
        """The gap, relative to |J(0)|."""
        return self.gap / self.scale

    @property
    def floor(self) -> float:
        """Suboptimality below which nothing can be told apart."""
        return max(self.gap, np.finfo(float).eps * self.scale)


def optimum(certified: Record, others: Iterable[Record]) -> Optimum:
    """The bracket of a certified run, tightened by whatever another run came to."""
    records = [certified, *others]
    value = min(record["primal"] for record in records if np.isfinite(record["primal"]))
    dual = max(record["dual"] for record in records if np.isfinite(record["dual"]))
    scale = certified["tolerance"] / TOLERANCE
    return Optimum(value, max(0.0, value - dual), scale, certified["run_passes"])


def check_grid(passes: float) -> np.ndarray:
    """The passes at which ``solve`` checks."""
    grid = [0.0]
    while grid[-1] < passes:
        grid.append(min(passes, grid[-1] + min(5.0, max(1.0, grid[-1] // 4))))
    return np.array(grid)


def curve(
    key: str, records: Sequence[Record], best: Optimum, passes: float, step: float | None = None
) -> Curve:
    """The mean and the extremes of several runs of one method."""
    grid = check_grid(passes)
    runs = np.array([_on_grid(record, best, grid) for record in records])
    return Curve(
        key, step, grid, runs.mean(axis=0), runs.min(axis=0), runs.max(axis=0), len(records)
    )


def _on_grid(record: Record, best: Optimum, grid: np.ndarray) -> np.ndarray:
    """One run at the passes of the grid; after its end it stays at the point it returned."""
    at, values = np.array(record["passes"]), np.array(record["objective"], dtype=float)
    if at[0] > 0.0:  # Newton's first check comes after some passes; before them is x = 0
        at, values = np.append(0.0, at), np.append(best.scale, values)
    above = values - best.value
    above = np.where(np.isfinite(above), np.maximum(above, best.floor), np.inf)
    drawn = np.exp(np.interp(grid, at, _log(above)))
    if record["status"] == "converged":
        drawn[grid > at[-1]] = max(record["primal"] - best.value, best.floor)
    return np.asarray(drawn)


def _log(values: np.ndarray) -> np.ndarray:
    """Logarithms that interpolate: what has overflowed counts as the largest number."""
    logs: np.ndarray = np.log(np.minimum(values, 1e300))
    return logs


def write_csv(path: Path, panels: Iterable[tuple[dict[str, Any], Iterable[Curve]]]) -> None:
    """All curves of a figure, one row per method and check."""
    head = ("method", "step", "passes", "mean", "low", "high", "runs")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for number, (labels, curves) in enumerate(panels):
            if number == 0:
                writer.writerow((*labels, *head))
            for line in curves:
                step = "" if line.step is None else f"{line.step:g}"
                for row in zip(line.passes, line.mean, line.low, line.high, strict=True):
                    at, *values = (f"{value:.10g}" for value in row)
                    writer.writerow((*labels.values(), line.key, step, at, *values, line.runs))
