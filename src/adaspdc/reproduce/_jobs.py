"""One run of one method on one problem: described, carried out, written down."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import losses, regularizers
from ..methods import Method
from ..problem import ERM, SaddlePoint
from ..result import ConvergenceWarning, Result, Status
from ..solver import solve
from ._materials import Material, design

TOLERANCE = 1e-14
"""Relative gap at which a run counts as finished: the optimum, and every line of a figure."""

_LOSSES = {
    "squared": losses.Squared,
    "hinge": lambda: losses.SmoothHinge(1.0),
    "logistic": losses.Logistic,
}


@dataclass(frozen=True)
class Task:
    """A problem: data, loss, weight of the L2 term."""

    material: Material
    loss: str
    lam: float

    @property
    def entries(self) -> float:
        """Roughly how many numbers a pass reads."""
        material = self.material
        share = 1.0 if material.name == "ridge" else material.density or 0.1
        return material.rows * (material.columns * share + 1.0)


@dataclass(frozen=True)
class Job:
    """A run. ``method`` None is the default of ``solve``.

    An iteration takes ``batch_size`` rows, or blocks of ``block_size`` consecutive rows. With
    ``persist`` a run that misses its tolerance is continued by SPDHG.
    """

    task: Task
    method: str | None
    passes: float
    seed: int = 0
    sampling: str | None = None
    step: float | None = None
    watch: bool = False
    batch_size: int = 1
    block_size: int = 1
    n_threads: int = 1
    tol: float = TOLERANCE
    persist: bool = False

    @property
    def cost(self) -> float:
        """Work relative to other jobs, for the time left."""
        return self.task.entries * self.passes + 1e6

    def identity(self) -> dict[str, Any]:
        """Everything the result depends on."""
        return {**asdict(self), "task": {**asdict(self.task), **self._material()}}

    def _material(self) -> dict[str, Any]:
        return {"material": self.task.material.identity()}


@lru_cache(maxsize=1)
def build(task: Task, block_size: int = 1) -> ERM | SaddlePoint:
    """The problem of a task; the last one is kept."""
    X, y = design(task.material)
    problem = ERM(X, y, _LOSSES[task.loss](), regularizers.L2(task.lam))
    return problem if block_size == 1 else problem.as_saddle_point(block_size)


def perform(job: Job) -> dict[str, Any]:
    """Carry a job out; plain values that a JSON file can hold."""
    problem = build(job.task, job.block_size)
    options: dict[str, Any] = {}
    if job.method is not None:
        options["method"] = Method(job.method, job.sampling, job.step, watch=job.watch)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # Running out of passes is the point of a comparison; the record says who did.
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(
            problem,
            tol=job.tol,
            max_passes=job.passes,
            random_state=job.seed,
            batch_size=job.batch_size,
            n_threads=job.n_threads,
            **options,
        )
        if job.persist and result.status not in (Status.CONVERGED, Status.STOPPED):
            result = _continued(problem, result, job)
    return _record(result)


def certified(task: Task, passes: float) -> Job:
    """The run that tells what the optimum is."""
    return Job(task, None, passes, persist=True)


def _continued(problem: ERM | SaddlePoint, first: Result, job: Job) -> Result:
    """The better of a result and of what SPDHG makes of it; with the work of both."""
    second = solve(
        problem,
        Method("spdhg"),
        tol=job.tol,
        max_passes=job.passes,
        random_state=job.seed,
        warm_start=first,
    )
    best = min(first, second, key=lambda result: result.gap)
    events = (*first.events, f"continued by SPDHG from a gap of {first.gap:.1e}", *second.events)
    return replace(
        best,
        passes=first.passes + second.passes,
        seconds=first.seconds + second.seconds,
        status=second.status,
        events=events,
        history=first.history,
    )


def _record(result: Result) -> dict[str, Any]:
    history = result.history
    return {
        "method": result.method,
        "status": str(result.status),
        "events": list(result.events),
        "primal": result.primal,
        "dual": result.dual,
        "gap": result.gap,
        "tolerance": result.tol,
        "run_passes": result.passes,
        "run_seconds": result.seconds,
        "passes": history.passes,
        "objective": history.objective,
        "best": history.primal,
        "seconds": history.seconds,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
    }
