"""Tasks the solver cannot take as they are: losses with corners, penalties without an L2 term.

Corners are rounded by a ``gamma`` and a missing ``lam`` is made up for; both shrink from stage to
stage, each of which starts where the last one ended. What counts is the gap of the task itself
(`_bounds`), and the run ends when *that* is within the tolerance. Rounding by gamma costs at most
gamma/2 max y^2, a ridge term lam/2 |x|^2, so both have a value at which they cost a quarter of the
tolerance; nothing smaller is tried first.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from ..losses import Loss
from ..result import Status
from ._bounds import Bounds
from ._newton import is_cornered, is_small, is_unpenalised, newton
from ._solve import Options, Solution, as_solution, by_newton, minimise_smooth, scale_of
from ._task import Array, Corner, Penalty, Pinball, Task

_STAGES = 40
_SHRINK = 0.1
_LEAST_SLACK = 1e-3
_SHARE = 0.25
"""What rounding and ridge may each take of the tolerance."""


class _Continuation:
    def __init__(self, task: Task, options: Options, start: Solution | None) -> None:
        self.task, self.options, self.start = task, options, start
        self.begun = perf_counter()
        self.bounds = Bounds(task)
        self.scale = scale_of(task)
        self.tolerance = options.tol * self.scale
        self.passes, self.stopped = 0.0, False
        self.slack = 1.0
        small = options.method == "auto" and is_small(self._rounded(1.0, 1.0))
        self.method = "newton" if small else "auto"
        assert isinstance(task.penalty, Penalty)
        self.corner = None if isinstance(task.loss, Loss) else task.loss
        self.ridge = task.penalty.lam == 0.0
        self.gamma, self.lam = self._first()

    def _first(self) -> tuple[float, float]:
        task = self.task
        gamma = 1.0
        if self.corner is not None and task.loss.kind == "regression":
            gamma = max(float(task.share @ np.abs(task.target)), 1e-300)
        curvature = 1.0 / (gamma if self.corner is not None else task.loss.gamma)  # type: ignore[union-attr]
        return gamma, 0.01 * curvature * self._mean_square()

    def _mean_square(self) -> float:
        X, share = self.task.X, self.task.share
        if isinstance(X, np.ndarray):
            return max(float(share @ np.einsum("ij,ij->i", X, X)), 1e-300)
        return max(float(share @ np.asarray(X.multiply(X).sum(axis=1)).ravel()), 1e-300)

    def _rounded(self, gamma: float, lam: float) -> Task:
        task = self.task
        assert isinstance(task.penalty, Penalty)
        loss = task.loss if isinstance(task.loss, Loss) else task.loss.smooth(gamma)
        penalty = task.penalty if task.penalty.lam > 0.0 else replace(task.penalty, lam=lam)
        return task.with_loss(loss, penalty)

    def _gamma_wanted(self) -> float:
        """Rounding by this costs the allowed share of the tolerance."""
        return 2.0 * _SHARE * self.tolerance / _largest_dual(self.task.loss) ** 2

    def _lam_wanted(self, x: Array) -> float:
        size = float(np.vdot(x, x))
        return 2.0 * _SHARE * self.tolerance / size if size > 0.0 else np.inf

    def run(self) -> Solution:
        best = self.start
        if self.corner is None and self._suits_newton():
            best = by_newton(self.task, self.options, best, lam=0.0)
            self.passes += best.result.passes
            self.bounds.offer(best.x, best.b, best.y)
        for _ in range(_STAGES):
            if self.bounds.gap <= self.tolerance:
                break
            best = self._stage(best, self.lam)
            done = self.bounds.gap <= self.tolerance or self._exhausted()
            if done or not self._shrink(best.x):
                break
        seconds = perf_counter() - self.begun
        return as_solution(
            self.bounds, self.options, self.passes, seconds, self.method, interrupted=self.stopped
        )

    def _suits_newton(self) -> bool:
        suits = is_small(self.task) or is_cornered(self.task) or is_unpenalised(self.task)
        return self.options.method == "auto" and suits

    def _stage(self, start: Solution | None, lam: float) -> Solution:
        task = self._rounded(self.gamma, lam)
        if self.method == "newton":
            point = newton(task, None if start is None else (start.x, start.b))
            self.passes += point.steps
            found = Solution(point.x, point.b, point.y, None)  # type: ignore[arg-type]
        else:
            found = minimise_smooth(task, self._stage_options(), start)
            self.passes += found.result.passes
            self.stopped = found.result.status is Status.STOPPED
        self.bounds.offer(found.x, found.b, found.y)
        return found

    def _stage_options(self) -> Options:
        options = self.options
        rounding = 0.0 if self.corner is None else self.gamma / 8.0 / self.scale
        seconds = options.max_seconds
        if seconds is not None:
            seconds = max(0.0, seconds - (perf_counter() - self.begun))
        return replace(
            options,
            tol=max(_SHARE * options.tol, 0.1 * rounding),
            max_passes=max(1.0, options.max_passes - self.passes),
            max_seconds=seconds,
        )

    def _exhausted(self) -> bool:
        limit, spent = self.options.max_seconds, perf_counter() - self.begun
        out_of_passes = self.method != "newton" and self.passes >= self.options.max_passes
        return self.stopped or out_of_passes or (limit is not None and spent >= limit)

    def _shrink(self, x: Array) -> bool:
        """The next gamma and lam; False if both are so small that they are not what is amiss."""
        gamma, lam = self.gamma, self.lam
        while self.slack >= _LEAST_SLACK:
            if self.corner is not None:
                self.gamma = max(_SHRINK * gamma, min(gamma, self.slack * self._gamma_wanted()))
            if self.ridge:
                self.lam = max(_SHRINK * lam, min(lam, self.slack * self._lam_wanted(x)))
            if (self.gamma, self.lam) != (gamma, lam):
                return True
            self.slack *= _SHRINK
        return False


def _largest_dual(loss: Loss | Corner) -> float:
    """Bound on abs(y) in the domain of the conjugate."""
    if isinstance(loss, Pinball):
        return max(loss.quantile, 1.0 - loss.quantile)
    return 1.0


def minimise_by_stages(task: Task, options: Options, start: Solution | None = None) -> Solution:
    """A task with corners or without an L2 term, to a gap of its own within the tolerance."""
    return _Continuation(task, options, start).run()
