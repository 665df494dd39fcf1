"""What every part works with: settings, a folder, and someone to do the jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._version import __version__
from ._compare import Panel
from ._curves import Record, write_csv
from ._jobs import TOLERANCE, Job
from ._lines import LINES
from ._pictures import panels_figure
from ._pool import run_jobs
from ._report import Figure, Grid, scientific, short
from ._settings import Settings
from ._store import Store


@dataclass(frozen=True)
class Context:
    """Settings, the folder for what is produced, the store of runs, and how many at a time."""

    settings: Settings
    out: Path
    store: Store
    processes: int

    def run(
        self, jobs: Iterable[Job], label: str, processes: int | None = None
    ) -> dict[Job, Record]:
        """The records of some jobs."""
        return run_jobs(jobs, self.store, processes or self.processes, label)

    def comparison(
        self, name: str, title: str, panels: Sequence[Panel], passes: float, columns: int
    ) -> Figure:
        """A figure of some panels, its numbers as CSV and its settings as JSON beside it."""
        panels_figure(self.out / f"{name}.png", title, panels, columns)
        curves = [({"lam": short(panel.task.lam)}, panel.curves.values()) for panel in panels]
        write_csv(self.out / f"{name}.csv", curves)
        self.write_json(f"{name}.settings.json", self._exact(panels, passes))
        beside = (f"{name}.csv", f"{name}.settings.json")
        return Figure(f"{name}.png", title, _caption(panels, self.settings), beside)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a file for people and programs."""
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (self.out / name).write_text(text + "\n", encoding="utf-8")

    def _exact(self, panels: Sequence[Panel], passes: float) -> dict[str, Any]:
        """Everything that the numbers of a figure depend on."""
        task = panels[0].task
        return {
            "adaspdc": __version__,
            "settings": self.settings.to_dict(),
            "data": {"title": task.material.title, **task.material.identity()},
            "bias": "none" if task.loss == "squared" else "column of ones, regularised",
            "loss": task.loss,
            "passes": passes,
            "coordinates per iteration": 1,
            "seeds": list(range(self.settings.runs)),
            "methods": [
                {"line": line.label, "method": line.method, "sampling": line.sampling}
                for line in LINES
            ],
            "panels": [
                {
                    "lam": panel.task.lam,
                    "sag step, multiple of 1/L": panel.curves["sag"].step,
                    "sag scan, suboptimality at the end": panel.scan,
                    "optimum": asdict(panel.optimum),
                }
                for panel in panels
            ],
        }


def _caption(panels: Sequence[Panel], settings: Settings) -> str:
    steps = {short(panel.task.lam): panel.curves["sag"].step for panel in panels}
    if len(set(steps.values())) == 1:
        text = f"{next(iter(steps.values())):g}/L"
    else:
        text = ", ".join(f"{size:g}/L at λ = {lam}" for lam, size in steps.items())
    return (
        f"Mean of {settings.runs} runs, bands from the least to the greatest. "
        f"Best step of SAG: {text}."
    )


def optimum_table(panels: Iterable[Panel]) -> Grid:
    """How well each optimum is known."""
    rows = []
    for panel in panels:
        best, task = panel.optimum, panel.task
        reached = "" if best.relative <= TOLERANCE else " (what rounding or patience allowed)"
        rows.append(
            (
                task.material.title,
                short(task.lam),
                f"{best.value:.15g}",
                scientific(best.gap),
                f"{scientific(best.relative)}{reached}",
                f"{best.passes:.0f}",
            )
        )
    head = ("data", "λ", "J(x*)", "certified gap", "relative to |J(0)|", "passes")
    return Grid("The optima, each from a certified run", head, tuple(rows))
