"""All methods on some problems: which runs that takes, and the curves they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._curves import Curve, Optimum, Record, curve, optimum
from ._jobs import Job, Task, certified
from ._lines import LINE, LINES, RIVALS
from ._settings import Settings

Runner = Callable[[Iterable[Job]], dict[Job, Record]]


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes: a problem, its optimum, a curve per method, and the scan of SAG's step."""

    task: Task
    optimum: Optimum
    curves: dict[str, Curve]
    scan: dict[float, float]

    @property
    def adaspdc(self) -> Curve:
        """The paper's method."""
        return self.curves["adaspdc"]

    def best_rival(self, passes: float) -> tuple[str, float]:
        """The best of the methods the paper compares with after so many passes, and its value."""
        key = min(RIVALS, key=lambda name: self.curves[name].at(passes))
        return key, self.curves[key].at(passes)

    def speedup(self) -> float:
        """How many times fewer passes AdaSPDC needs to come as close as the best rival ever does.

        Zero if it never does. Below ten times the certified gap of x* nothing is told apart.
        """
        end = float(self.adaspdc.passes[-1])
        level = max(1.001 * self.best_rival(end)[1], 10.0 * self.optimum.floor)
        rival = min(self.curves[key].passes_to(level) for key in RIVALS)
        return rival / max(self.adaspdc.passes_to(level), 1e-9)


def compare(
    tasks: Sequence[Task], settings: Settings, passes: float, run: Runner
) -> dict[Task, Panel]:
    """Every method on every task, several times; SAG with the best of the steps scanned."""
    jobs = {task: _first_jobs(task, settings, passes) for task in tasks}
    records = run([job for group in jobs.values() for job in group])
    best = {task: _best_step(task, settings, passes, records) for task in tasks}
    sag = {task: _runs("sag", task, settings, passes, best[task]) for task in tasks}
    records = records | run([job for group in sag.values() for job in group])
    return {
        task: _panel(task, settings, passes, best[task], jobs[task] + sag[task], records)
        for task in tasks
    }


def _first_jobs(task: Task, settings: Settings, passes: float) -> list[Job]:
    jobs = [certified(task, settings.optimum_passes)]
    for line in LINES:
        if line.key != "sag":
            jobs += _runs(line.key, task, settings, passes)
    return jobs + [_job("sag", task, passes, 0, step) for step in settings.sag_steps]


def _runs(
    key: str, task: Task, settings: Settings, passes: float, step: float | None = None
) -> list[Job]:
    count = settings.runs if LINE[key].random else 1
    return [_job(key, task, passes, seed, step) for seed in range(count)]


def _job(key: str, task: Task, passes: float, seed: int, step: float | None = None) -> Job:
    line = LINE[key]
    return Job(task, line.method, passes, seed, line.sampling, step)


def _best_step(task: Task, settings: Settings, passes: float, records: dict[Job, Record]) -> float:
    """The step with which SAG ended lowest."""

    def end(step: float) -> float:
        value: float = records[_job("sag", task, passes, 0, step)]["objective"][-1]
        return value if value == value else float("inf")

    return min(settings.sag_steps, key=end)


def _panel(
    task: Task,
    settings: Settings,
    passes: float,
    step: float,
    jobs: list[Job],
    records: dict[Job, Any],
) -> Panel:
    known = records[certified(task, settings.optimum_passes)]
    best = optimum(known, [records[job] for job in jobs])

    def line(key: str, chosen: float | None = None) -> Curve:
        runs = [records[job] for job in _runs(key, task, settings, passes, chosen)]
        return curve(key, runs, best, passes, chosen)

    curves = {key: line(key, step if key == "sag" else None) for key in LINE}
    scan = {
        size: curve("sag", [records[_job("sag", task, passes, 0, size)]], best, passes).last
        for size in settings.sag_steps
    }
    return Panel(task, best, curves, scan)
