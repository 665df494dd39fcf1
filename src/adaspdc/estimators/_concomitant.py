"""Huber regression with the scale of the errors among the unknowns, as scikit-learn has it.

Minimises over x, b and sigma > 0, with H(z) = z^2 for |z| <= epsilon and 2 epsilon |z| - epsilon^2
beyond,

    sigma + sum_i m_i sigma H((<a_i, x> + b - t_i) / sigma) + strength |x|^2.

For one sigma this is a task with the loss `Huber(epsilon sigma)` and ``lam = sigma strength``, and
the derivative in sigma of what it leaves is ``1 - sum_i m_i min(z_i^2, epsilon^2)``: an increasing
function, whose zero is looked for. The dual of the whole is

    max_u  - sum_i m_i t_i u_i - |sum_i m_i a_i u_i|^2 / (4 strength)

over |u_i| <= 2 epsilon, sum_i m_i u_i^2 <= 4 and, where there is an intercept,
sum_i m_i u_i = 0 (where strength = 0, also sum_i m_i a_i u_i = 0): any u can be shrunk into that,
so every fit bounds the whole problem.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from time import perf_counter

import numpy as np

from ..losses import Huber
from ..result import Status
from ._bounds import Bounds, repaired
from ._continuation import minimise_by_stages
from ._newton import is_small
from ._solve import Options, Solution, as_solution, minimise_smooth
from ._task import Array, Penalty, Task

_FITS = 60
_PRECISION = 1e-11
"""Of log sigma."""
_FLOOR = 1e-3
"""The scale of the errors is not followed below this share of the tolerance times the spread."""


class Concomitant:
    """The search for sigma; the loss and the penalty of ``task`` are replaced at each."""

    def __init__(self, task: Task, epsilon: float, strength: float, options: Options) -> None:
        self.task, self.epsilon, self.strength, self.options = task, epsilon, strength, options
        if strength == 0.0:
            _ = task.span  # every scale needs it, and inherits it
        self.begun, self.passes, self.stopped = perf_counter(), 0.0, False
        spread = self._best_scale(task.target)
        self.at_zero = max(1e-300, self._value(task.target, spread))
        spread = max(spread, float(task.share @ np.abs(task.target)))  # most may be equal
        self.tolerance = options.tol * self.at_zero
        self.lowest = max(_FLOOR * min(options.tol, 1e-3) * spread, 1e-300)
        self.sigma, self.spread = spread, spread
        self.primal, self.dual = np.inf, -np.inf
        self.best: Solution | None = None
        self.y: Array = np.zeros(task.n)

    @property
    def gap(self) -> float:
        """Of the whole problem."""
        return max(0.0, self.primal - self.dual)

    def run(self, start: Solution | None) -> tuple[Solution, float]:
        """The solution and sigma."""
        if self.spread == 0.0:
            return self._finish(), 0.0
        self._search(start)
        return self._finish(), self.sigma

    def _search(self, start: Solution | None) -> None:
        """Bracket the zero of the slope in log sigma, then close in (Illinois)."""
        low, high = log(self.lowest), log(max(self.spread, 2.0 * self.lowest))
        slope_high = self._fit(high, start)
        while slope_high < 0.0 and not self._done():
            high += 1.0
            slope_high = self._fit(high, self.best)
        slope_low = np.nan
        reach = 1.0
        while not self._done():  # down from above: far below, fits take long
            low = max(high - reach, log(self.lowest))
            slope_low = self._fit(low, self.best)
            if slope_low <= 0.0 or low == log(self.lowest):
                break
            high, slope_high, reach = low, slope_low, 2.0 * reach
        if slope_low < 0.0:
            self._close_in(low, high, slope_low, slope_high)

    def _close_in(self, low: float, high: float, slope_low: float, slope_high: float) -> None:
        for _ in range(_FITS):
            if self._done() or high - low <= _PRECISION:
                return
            middle = (low * slope_high - high * slope_low) / (slope_high - slope_low)
            if not low < middle < high:
                middle = 0.5 * (low + high)
            slope = self._fit(middle, self.best)
            if slope == 0.0:
                return
            if slope > 0.0:
                high, slope_high, slope_low = middle, slope, 0.5 * slope_low
            else:
                low, slope_low, slope_high = middle, slope, 0.5 * slope_high

    def _done(self) -> bool:
        out_of_time = (
            self.options.max_seconds is not None
            and perf_counter() - self.begun >= self.options.max_seconds
        )
        small = is_small(self.task)
        enough = min(self.tolerance, 1e-15 * self.at_zero) if small else self.tolerance
        exhausted = not small and self.passes >= self.options.max_passes
        return self.gap <= enough or exhausted or out_of_time or self.stopped

    def _fit(self, log_sigma: float, start: Solution | None) -> float:
        """Solve for one sigma; returns the slope there."""
        sigma = exp(log_sigma)
        task = self._at(sigma)
        minimise = minimise_smooth if self.strength > 0.0 else minimise_by_stages
        found = minimise(task, replace(self.options, tol=0.1 * self.options.tol), start)
        self.passes += found.result.passes
        self.stopped = found.result.status is Status.STOPPED
        residual = task.scores(found.x, found.b) - task.target
        self._offer(found, residual, sigma)
        return 1.0 - float(task.share @ np.minimum((residual / sigma) ** 2, self.epsilon**2))

    def _offer(self, found: Solution, residual: Array, sigma_of_fit: float) -> None:
        sigma = max(self._best_scale(residual), self.lowest)
        primal = self._value(residual, sigma) + self.strength * float(found.x @ found.x)
        if primal < self.primal:
            self.primal, self.best, self.sigma = primal, found, sigma
        u = np.asarray(repaired(self._at(sigma_of_fit), np.array(found.y)))
        u *= 2.0 / sigma_of_fit
        u /= max(1.0, float(0.25 * self.task.share @ (u * u)) ** 0.5)
        r = self.task.pull(u)
        dual = -float((self.task.share * self.task.target) @ u)
        if self.strength > 0.0:  # without a penalty r is zero
            dual -= float(r @ r) / 4.0 / self.strength
        if dual > self.dual:
            self.dual, self.y = dual, u

    def _at(self, sigma: float) -> Task:
        loss, penalty = Huber(self.epsilon * sigma), Penalty(sigma * self.strength)
        return self.task.with_loss(loss, penalty)

    def _value(self, residual: Array, sigma: float) -> float:
        """The objective without the penalty."""
        if sigma == 0.0:
            return 2.0 * self.epsilon * float(self.task.share @ np.abs(residual))
        z = np.abs(residual) / sigma
        curve = np.where(z <= self.epsilon, z * z, self.epsilon * (2.0 * z - self.epsilon))
        return sigma * (1.0 + float(self.task.share @ curve))

    def _best_scale(self, residual: Array) -> float:
        """The sigma that is best for these residuals: the root of the slope."""
        order = np.argsort(np.abs(residual))
        square, share = residual[order] ** 2, self.task.share[order]
        inside = np.cumsum(share * square)
        beyond = np.maximum(1.0 - np.cumsum(share), 0.0)
        # With the k smallest inside the corner, sigma^2 = inside_k / (1 - beyond_k epsilon^2).
        rest = 1.0 - beyond * self.epsilon**2
        candidates = np.where(rest > 1e-12, inside / np.maximum(rest, 1e-12), np.inf)
        corner = self.epsilon**2 * candidates
        following = np.append(square[1:], np.inf)
        fits = (square <= corner * (1 + 1e-12)) & (following >= corner * (1 - 1e-12))
        found = candidates[fits]
        return float(np.sqrt(found[-1])) if found.size else 0.0

    def _finish(self) -> Solution:
        task, seconds = self.task, perf_counter() - self.begun
        if self.best is None:  # one target for all
            zero = np.zeros(task.d)
            bounds = Bounds(task, 0.0, 0.0, zero, 0.0, self.y)
        else:
            bounds = Bounds(task, self.primal, self.dual, self.best.x, self.best.b, self.y)
        passes = max(1.0, self.passes)
        scale, stopped = self.at_zero, self.stopped
        return as_solution(bounds, self.options, passes, seconds, "auto", scale, stopped)
