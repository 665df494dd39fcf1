"""Batches and blocks: what m rows an iteration cost in passes, and what threads give back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from ._context import Context
from ._curves import Optimum, Record, curve, optimum
from ._jobs import Job, Task, certified
from ._lines import LINE
from ._materials import paper_material, ridge_material
from ._pictures import new_figure, save
from ._report import Claim, Figure, Grid, Report, short, times

_LEVEL = 1e-4
"""The accuracy that counts, relative to |J(0)|."""
_MOST_RUNS = 3


@dataclass(frozen=True)
class Cell:
    """One way to take ``m`` rows an iteration, and what it took to reach the accuracy.

    ``kind`` is "batch" for m single rows, "blocks" for one block of m rows.
    """

    kind: str
    m: int
    threads: int
    passes: float
    seconds: float


def parallel(context: Context) -> Report:
    """Run, draw and judge what the paper says about several rows at a time."""
    settings = context.settings
    problems = {
        "ridge, λ = 1e-4": Task(ridge_material(settings), "squared", 1e-4),
        "logistic loss, λ = 1e-5": Task(paper_material("w8a", settings), "logistic", 1e-5),
    }
    measured, loads = {}, []
    for title, task in problems.items():
        name = f"{task.material.title}, {title}" if task.loss != "squared" else title
        measured[name], load = _measure(task, context)
        loads.append(load)
    report = Report("parallel", "Several rows at a time", settings.to_dict())
    report.intro = (
        "Algorithm 1 with m rows an iteration, as a batch of m single rows and as one block of m "
        f"rows with its spectral norm: passes and seconds until J(x) − J(x*) is {short(_LEVEL)} of "
        "|J(0)|. One run at a time; seconds are those of this machine, without compiling."
    )
    report.claims = [_amenable(measured), _blocks(measured)]
    report.tables = [_table(name, cells) for name, cells in measured.items()]
    report.figures = [_picture(context, measured)]
    report.notes = [
        "By the step rule the passes grow like √m where λ is small. Taking m rows an iteration "
        "pays off only where threads, or faster arithmetic on blocks, gain more than the passes "
        "cost.",
        _busy(max(loads)),
    ]
    return report


def _busy(load: float) -> str:
    """Whether other programs may have been in the way of the threads."""
    cores = os.cpu_count() or 1
    text = f"The load of the machine, of {cores} cores, was up to {load:.1f}"
    if load < cores + 0.5:
        return f"{text}."
    return f"{text}: it was busy with other work, and the seconds mean little."


def _measure(task: Task, context: Context) -> tuple[list[Cell], float]:
    """All ways to take m rows, and the greatest load of the machine meanwhile."""
    settings = context.settings
    runs = min(_MOST_RUNS, settings.runs)
    sizes = settings.batches
    ways = [("batch", m, threads) for m in sizes for threads in (1, 2)]
    ways += [("blocks", m, 1) for m in sizes if m > 1]
    jobs = {
        way: [_job(task, way, seed, settings.batch_passes) for seed in range(runs)] for way in ways
    }
    wanted = [
        certified(task, settings.optimum_passes),
        *(job for group in jobs.values() for job in group),
    ]
    records = context.run(wanted, "parallel", processes=1)
    best = optimum(records[wanted[0]], [])
    load = max(record["load"] for record in records.values())
    cells = [_cell(way, [records[job] for job in group], best) for way, group in jobs.items()]
    return cells, load


def _job(task: Task, way: tuple[str, int, int], seed: int, passes: float) -> Job:
    kind, m, threads = way
    single = kind == "batch"
    return Job(
        task,
        "adaspdc",
        passes,
        seed,
        batch_size=m if single else 1,
        block_size=1 if single else m,
        n_threads=threads,
        tol=_LEVEL / 10.0,
    )


def _cell(way: tuple[str, int, int], records: Sequence[Record], best: Optimum) -> Cell:
    level = _LEVEL * best.scale
    passes, seconds = [], []
    for record in records:
        line = curve("adaspdc", [record], best, record["passes"][-1])
        reached = line.passes_to(level)
        passes.append(reached)
        clock = np.array(record["seconds"]) - record["seconds"][0]
        at = float(np.interp(reached, record["passes"], clock))
        seconds.append(at if np.isfinite(reached) else float("inf"))
    return Cell(*way, float(np.mean(passes)), float(np.min(seconds)))


def _least(cells: Sequence[Cell], **wanted: Any) -> Cell:
    group = [c for c in cells if all(getattr(c, key) == value for key, value in wanted.items())]
    return min(group, key=lambda cell: cell.seconds)


def _amenable(measured: dict[str, list[Cell]]) -> Claim:
    gains, parts = [], []
    for name, cells in measured.items():
        one = _least(cells, kind="batch", threads=1)
        two = _least([c for c in cells if c.m > 1], kind="batch", threads=2)
        gains.append(_ratio(one.seconds, two.seconds))
        parts.append(
            f"{name}: {_shown(two.seconds)} s with m = {two.m}, against {_shown(one.seconds)} s "
            f"with m = {one.m} on one thread"
        )
    return Claim(
        "Choosing several coordinates an iteration directly enables parallel processing",
        f"best time on two threads with m > 1, against the best on one thread: {'; '.join(parts)} "
        f"({', '.join(map(times, gains))} times as fast; holds if above 1 on both)",
        min(gains) > 1.0,
    )


def _blocks(measured: dict[str, list[Cell]]) -> Claim:
    ratios: list[float] = []
    parts = []
    for name, cells in measured.items():
        batch = {c.m: c.passes for c in cells if c.kind == "batch" and c.threads == 1}
        blocks = {c.m: c.passes for c in cells if c.kind == "blocks"}
        factors = {m: _ratio(batch[m], passes) for m, passes in blocks.items()}
        ratios += factors.values()
        fewer = ", ".join(f"{times(factor)} at m = {m}" for m, factor in factors.items())
        parts.append(f"{name}: {fewer}")
    return Claim(
        "The spectral norm of each block models the coupling with the primal variable",
        f"times fewer passes with blocks of m rows than with m single rows: {'; '.join(parts)} "
        "(holds if above 1 for all m)",
        min(ratios) > 1.0,
    )


def _ratio(first: float, second: float) -> float:
    """How many times more the first is; 1 where neither was reached."""
    return 1.0 if first == second else first / second


def _shown(number: float) -> str:
    if not np.isfinite(number):
        return "not reached"
    return f"{number:.0f}" if number >= 10.0 else f"{number:.2g}"


def _table(name: str, cells: Sequence[Cell]) -> Grid:
    batch = {(c.m, c.threads): c for c in cells if c.kind == "batch"}
    blocks = {c.m: c for c in cells if c.kind == "blocks"}
    first = batch[min(batch)]
    rows = []
    for m in sorted({cell.m for cell in cells}):
        one, two = batch[m, 1], batch[m, 2]
        block = blocks.get(m)
        rows.append(
            (
                f"{m}",
                _shown(one.passes),
                f"{times(_ratio(one.passes, first.passes))} ({sqrt(m):.2g})",
                _shown(one.seconds),
                _shown(two.seconds),
                _shown(block.passes) if block else "",
                _shown(block.seconds) if block else "",
            )
        )
    head = (
        "m",
        "passes, m single rows",
        "relative to m = 1 (√m)",
        "seconds, 1 thread",
        "seconds, 2 threads",
        "passes, blocks of m",
        "seconds, blocks",
    )
    return Grid(name, head, tuple(rows))


def _picture(context: Context, measured: dict[str, list[Cell]]) -> Figure:
    path = context.out / "parallel-figure.png"
    _draw(path, measured)
    head = "problem,kind,m,threads,passes,seconds"
    lines = [
        f'"{name}",{c.kind},{c.m},{c.threads},{c.passes:.6g},{c.seconds:.6g}'
        for name, cells in measured.items()
        for c in cells
    ]
    text = "\n".join([head, *lines]) + "\n"
    (context.out / "parallel-figure.csv").write_text(text, encoding="utf-8")
    settings = {
        "settings": context.settings.to_dict(),
        "level, relative to |J(0)|": _LEVEL,
        "cells": {name: [asdict(cell) for cell in cells] for name, cells in measured.items()},
    }
    context.write_json("parallel-figure.settings.json", settings)
    return Figure(
        path.name,
        "Passes and seconds against m",
        f"Until the suboptimality is {short(_LEVEL)} of |J(0)|. Seconds: the best of "
        f"{min(_MOST_RUNS, context.settings.runs)} runs, passes their mean.",
        ("parallel-figure.csv", "parallel-figure.settings.json"),
    )


_WAYS = (
    ("batch", 1, "m single rows, 1 thread", "-", "full"),
    ("batch", 2, "m single rows, 2 threads", "--", "left"),
    ("blocks", 1, "blocks of m rows, 1 thread", ":", "none"),
)


def _draw(path: Path, measured: dict[str, list[Cell]]) -> None:
    picture = new_figure(9.4, 3.0 * len(measured) + 0.6)
    axes = picture.subplots(len(measured), 2, squeeze=False)
    for row, (name, cells) in zip(axes, measured.items(), strict=True):
        for place, quantity in zip(row, ("passes", "seconds"), strict=True):
            _draw_ways(place, cells, quantity)
            place.set_title(fill(name, 42), fontsize=9)
            place.set_ylabel(quantity)
    for place in axes[-1]:
        place.set_xlabel("rows per iteration, m")
    picture.suptitle("AdaSPDC with m rows an iteration", fontsize=12)
    handles, labels = axes[0][0].get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside right upper", frameon=False, handlelength=3.2, fontsize=9
    )
    save(picture, path)


def _draw_ways(place: Any, cells: Sequence[Cell], quantity: str) -> None:
    from matplotlib.ticker import LogLocator

    look = LINE["adaspdc"]
    for kind, threads, label, dashes, filled in _WAYS:
        group = [c for c in cells if (c.kind, c.threads) == (kind, threads)]
        values = [getattr(c, quantity) for c in group]
        place.loglog(
            [c.m for c in group],
            [value if np.isfinite(value) else np.nan for value in values],
            label=label,
            color=look.colour,
            linestyle=dashes,
            marker=look.marker,
            fillstyle=filled,
            markersize=6,
        )
    sizes = sorted({c.m for c in cells})
    start = next(c for c in cells if (c.m, c.threads) == (1, 1))
    guide = [getattr(start, quantity) * sqrt(m) for m in sizes]
    place.loglog(sizes, guide, color="#999999", linewidth=0.8, label="√m times m = 1")
    place.set_xticks(sizes, [str(m) for m in sizes])
    place.minorticks_off()
    place.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    place.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    place.tick_params(labelsize=8)
    place.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
