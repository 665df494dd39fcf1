"""Losses with corners and few features: an interior-point method on the dual box.

A loss with corners is ``sum_k max over y in [low_k, high_k] of (z - t_k) y``: pinball and hinge
with one such term, the epsilon-insensitive loss with two; l1 times the absolute value of a
coefficient is one more. The logarithms of the distances to the bounds take the place of the
corners, with a weight mu that goes to zero, and both sides of

    z - t = above - below,   (y - low) below = mu,   (high - y) above = mu,
    sum_i m_i a_i y_i + lam x = 0

move together by Newton steps (Mehrotra's predictor and corrector). Some twenty steps reach a gap
that smoothing reaches only for a gamma too small to work with; each takes n d^2 operations, so this
is the way for any number of rows as long as there are not too many features.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .._interrupt import Interrupt
from ._bounds import Bounds
from ._solve import Options, Solution, as_solution, scale_of
from ._task import Array, EpsilonInsensitive, Penalty, Pinball, Task, times, times_transposed

_MOST_FEATURES = 1000
_MOST_WORK = 2e11
_MOST_STEPS = 200
_SMALL = 1e7
"""Operations a step; below, going on to rounding error costs nothing to speak of."""
_BLOCK_ENTRIES = 1 << 21
_DAMPING = 0.95
_PATIENCE = 8
"""Steps that may each win less than a tenth before rounding gets the blame."""


def is_narrow(task: Task) -> bool:
    """Whether this is the way to go."""
    suits = not task.smooth and isinstance(task.penalty, Penalty) and not task.penalty.positive
    return suits and task.d <= _MOST_FEATURES and task.n * task.d**2 <= _MOST_WORK


@dataclass
class _Terms:
    """Terms of one kind, one for each row; ``mass`` is what they weigh."""

    target: Array
    mass: Array
    low: Array
    high: Array
    y: Array
    below: Array
    above: Array

    def start(self, z: Array, mu: float) -> None:
        """The point of the central path that belongs to z: no term is ahead of the others."""
        excess, half = z - self.target, 0.5 * (self.high - self.low)
        share = 2.0 * half * mu
        reach = np.abs(excess) * half
        root = np.hypot(share, reach)
        near = half * (share + share * share / (root + reach)) / (share + root)
        far = 2.0 * half - near
        from_low = np.where(excess > 0.0, far, near)
        self.y = self.low + from_low
        self.below = share / from_low
        self.above = share / np.where(excess > 0.0, near, far)

    @property
    def gap(self) -> float:
        """Complementarity: the gap, once both sides are feasible."""
        return float(
            self.mass @ ((self.y - self.low) * self.below + (self.high - self.y) * self.above)
        )


@dataclass
class _Step:
    """One Newton step of the terms of one kind."""

    dy: Array
    below: Array
    above: Array


def _kinds(task: Task) -> list[_Terms]:
    target, share, none = task.target.astype(np.float64), task.share, np.zeros(0)

    def terms(shift: float, low: Any, high: Any, y: Any) -> _Terms:
        fill = np.zeros(task.n)
        return _Terms(target + shift, share, fill + low, fill + high, fill + y, none, none)

    loss = task.loss
    if isinstance(loss, Pinball):
        return [terms(0.0, -loss.quantile, 1.0 - loss.quantile, 0.0)]
    if isinstance(loss, EpsilonInsensitive):
        up, down = terms(loss.epsilon, 0.0, 1.0, 0.5), terms(-loss.epsilon, -1.0, 0.0, -0.5)
        return [up, down] if loss.epsilon > 0.0 else [terms(0.0, -1.0, 1.0, 0.0)]
    return [terms(0.0, np.minimum(-target, 0.0), np.maximum(-target, 0.0), -0.5 * target)]


class _Interior:
    def __init__(self, task: Task) -> None:
        assert isinstance(task.penalty, Penalty)
        self.task, self.lam, self.l1 = task, task.penalty.lam, task.penalty.l1
        self.x, self.b = np.zeros(task.d), 0.0
        self.kinds = _kinds(task)
        self.z = np.zeros(task.n)
        reach = float(np.mean([k.mass @ np.abs(k.target) for k in self.kinds])) or 1.0
        for kind in self.kinds:
            kind.start(self.z, reach)
        self.corner: _Terms | None = None
        if self.l1 > 0.0:
            bound, zero = np.full(task.d, self.l1), np.zeros(task.d)
            self.corner = _Terms(zero, np.ones(task.d), -bound, bound, zero.copy(), zero, zero)
            self.corner.start(zero, reach)
        self.count = sum(2.0 * float((k.mass * (k.high - k.low)).sum()) for k in self._all())

    def _all(self) -> list[_Terms]:
        return self.kinds + ([] if self.corner is None else [self.corner])

    def step(self) -> None:
        """Predictor, corrector, and as far as the bounds allow."""
        terms = self._all()
        spread = [1.0 / (k.above / (k.high - k.y) + k.below / (k.y - k.low)) for k in terms]
        solve = self._factor(spread)
        dx, db, steps = self._direction(solve, spread, [(0.0, 0.0)] * len(terms))
        primal, dual = self._lengths(steps, 1.0)
        ahead = sum(_gap_after(k, s, primal, dual) for k, s in zip(terms, steps, strict=True))
        now = sum(k.gap for k in terms)
        mu = (max(ahead, 0.0) / now) ** 3 * now / self.count
        products = [
            (mu * (k.high - k.low) - s.dy * s.below, mu * (k.high - k.low) + s.dy * s.above)
            for k, s in zip(terms, steps, strict=True)
        ]
        dx, db, steps = self._direction(solve, spread, products)
        primal, dual = self._lengths(steps, _DAMPING)
        self._move(dx, db, steps, primal, dual)

    def _direction(
        self, solve: Any, spread: list[Array], products: list[tuple[Any, Any]]
    ) -> tuple[Array, float, list[_Step]]:
        terms, task = self._all(), self.task
        at = [self.z] * len(self.kinds) + ([] if self.corner is None else [self.x])
        rests = [
            z - k.target - above / (k.high - k.y) + below / (k.y - k.low)
            for k, z, (below, above) in zip(terms, at, products, strict=True)
        ]
        moved = [k.y + s * r for k, s, r in zip(terms, spread, rests, strict=True)]
        pushed = task.share * sum(moved[: len(self.kinds)])
        right = times_transposed(task.X, pushed) + self.lam * self.x
        if self.corner is not None:
            right += moved[-1]
        dx, db = solve(-right, -float(pushed.sum()))
        dz = times(task.X, dx) + db
        ahead = [dz] * len(self.kinds) + ([] if self.corner is None else [dx])
        steps = []
        for k, s, r, dk, (below, above) in zip(terms, spread, rests, ahead, products, strict=True):
            dy = s * (dk + r)
            from_low, from_high = k.y - k.low, k.high - k.y
            db_low = (below - k.below * (from_low + dy)) / from_low
            db_high = (above - k.above * (from_high - dy)) / from_high
            steps.append(_Step(dy, db_low, db_high))
        return dx, db, steps

    def _factor(self, spread: list[Array]) -> Any:
        """Solver of the normal equations for (dx, db)."""
        task, d = self.task, self.task.d
        bend = task.share * sum(spread[: len(self.kinds)])
        matrix = np.zeros((d + 1, d + 1))
        size = max(1, _BLOCK_ENTRIES // d)
        for a in range(0, task.n, size):
            block = task.X[a : a + size]
            block = (block.toarray() if hasattr(block, "toarray") else block).astype(np.float64)
            weighted = block * bend[a : a + size, None]
            matrix[:d, :d] += block.T @ weighted
            matrix[:d, d] += weighted.sum(axis=0)
        matrix[d, :d], matrix[d, d] = matrix[:d, d], bend.sum()
        diagonal = np.full(d, self.lam) + (0.0 if self.corner is None else spread[-1])
        matrix[np.arange(d), np.arange(d)] += diagonal
        return _solver_of(matrix if task.intercept else matrix[:d, :d], d)

    def _lengths(self, steps: list[_Step], damping: float) -> tuple[float, float]:
        primal = dual = 1.0
        for k, s in zip(self._all(), steps, strict=True):
            dual = min(
                dual, damping * _reach(k.y - k.low, s.dy), damping * _reach(k.high - k.y, -s.dy)
            )
            primal = min(
                primal, damping * _reach(k.below, s.below), damping * _reach(k.above, s.above)
            )
        if self.lam > 0.0:  # x and y meet in one equation
            primal = dual = min(primal, dual)
        return primal, dual

    def _move(self, dx: Array, db: float, steps: list[_Step], primal: float, dual: float) -> None:
        self.x += primal * dx
        self.b += primal * db
        self.z = self.task.scores(self.x, self.b)
        for k, s in zip(self._all(), steps, strict=True):
            k.y += dual * s.dy
            k.below += primal * s.below
            k.above += primal * s.above

    def offer(self, bounds: Bounds) -> None:
        """Show both points to the certificate."""
        y = np.sum([k.y for k in self.kinds], axis=0)
        bounds.offer(self.x, self.b, y)
        if self.corner is not None:  # the same without what is zero but for the barrier
            kept = np.where(self.l1 - np.abs(self.corner.y) > 1e-4 * self.l1, 0.0, self.x)
            bounds.offer(kept, self.b, y)


def _solver_of(matrix: Array, d: int) -> Any:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix * scale * scale[:, None])
    keep = values > 1e-15 * values[-1]
    inverse = np.where(keep, 1.0 / np.where(keep, values, 1.0), 0.0)

    def solve(right: Array, last: float) -> tuple[Array, float]:
        full = np.append(right, last) if matrix.shape[0] > d else right
        found = scale * (vectors @ (inverse * (vectors.T @ (scale * full))))
        return found[:d], float(found[d]) if matrix.shape[0] > d else 0.0

    return solve


def _reach(room: Array, move: Array) -> float:
    shrinking = move < 0.0
    return float(np.min(-room[shrinking] / move[shrinking], initial=np.inf))


def _gap_after(k: _Terms, s: _Step, primal: float, dual: float) -> float:
    low = (k.y - k.low + dual * s.dy) * (k.below + primal * s.below)
    high = (k.high - k.y - dual * s.dy) * (k.above + primal * s.above)
    return float(k.mass @ (low + high))


def minimise_inside(task: Task, options: Options) -> Solution:
    """A task with corners and few features, to a gap of its own within the tolerance."""
    begun = perf_counter()
    used = task if task.weight is None or task.weight.min() > 0.0 else _without_idle_rows(task)
    with Interrupt() as interrupt:
        bounds, steps = _walk(used, options, begun, interrupt)
    if used is not task and bounds.y is not None:
        inside, bounds, y = bounds, Bounds(task), np.zeros(task.n)
        y[task.share > 0.0] = inside.y
        bounds.offer(np.asarray(inside.x), inside.b, y)
    seconds, stopped = perf_counter() - begun, interrupt.requested
    return as_solution(bounds, options, steps, seconds, "interior-point", interrupted=stopped)


def _walk(task: Task, options: Options, begun: float, interrupt: Interrupt) -> tuple[Bounds, int]:
    bounds, method = Bounds(task), _Interior(task)
    scale, steps, fruitless = scale_of(task), 0, 0
    small = task.n * task.d**2 <= _SMALL
    aim = scale * (min(options.tol, 1e-13) if small else options.tol)
    limit = np.inf if options.max_seconds is None else options.max_seconds
    while steps < min(_MOST_STEPS, options.max_passes) and bounds.gap > aim:
        before = bounds.gap
        try:
            with np.errstate(all="ignore"):
                method.step()
        except np.linalg.LinAlgError:  # numbers out of range
            break
        if not np.isfinite(method.x).all():
            break
        steps += 1
        method.offer(bounds)
        fruitless = fruitless + 1 if bounds.gap >= 0.9 * before else 0
        if fruitless >= _PATIENCE or perf_counter() - begun > limit or interrupt.requested:
            break
    return bounds, steps


def _without_idle_rows(task: Task) -> Task:
    assert task.weight is not None
    used = np.flatnonzero(task.weight > 0.0)
    return Task(
        task.X[used],
        task.target[used],
        task.loss,
        task.penalty,
        task.weight[used],
        task.intercept,
        task.n_outputs,
    )
