"""From data and a choice of loss to tasks, and from their solutions to coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..result import Status
from ._fit import minimise
from ._solve import Options, Solution
from ._task import Array, Task


def signs(index: Array, positive: int = 1) -> Array:
    """+1 where the class is this one, -1 elsewhere."""
    return np.where(index == positive, 1.0, -1.0)


def one_against_rest(task: Task, index: Array, classes: int) -> list[Task]:
    """One task of two classes for each class; for two classes just one."""
    if classes == 2:
        return [replace(task, target=signs(index))]
    rows = task.rows
    tasks = [replace(task, target=signs(index, k)) for k in range(classes)]
    for each in tasks:
        each.__dict__["rows"] = rows
    return tasks


def solve_all(
    tasks: list[Task], options: Options, starts: list[Solution] | None = None, chain: bool = False
) -> list[Solution]:
    """The solutions of some tasks; with ``chain`` each starts where the one before ended."""
    solutions: list[Solution] = []
    for k, task in enumerate(tasks):
        if solutions and solutions[-1].result.status is Status.STOPPED:
            options = replace(options, max_seconds=0.0)  # the others get what takes no time
        start = starts[k] if starts is not None and len(starts) == len(tasks) else None
        if start is None and chain and solutions:
            start = solutions[-1]
        solutions.append(minimise(task, options, start))
    return solutions


def stacked(solutions: list[Solution], flat: bool) -> tuple[Array, Any]:
    """``coef_`` of shape (outputs, d) and ``intercept_`` of shape (outputs,); (d,) and a float
    where there is one output and ``flat``.
    """
    columns = [np.reshape(s.x, (s.x.shape[0], -1)) for s in solutions]
    coef = np.ascontiguousarray(np.hstack(columns).T)
    outputs = coef.shape[0]
    offsets = [np.broadcast_to(s.b, (c.shape[1],)) for s, c in zip(solutions, columns, strict=True)]
    intercept = np.concatenate(offsets).astype(np.float64)
    return (coef[0], float(intercept[0])) if flat and outputs == 1 else (coef, intercept)
