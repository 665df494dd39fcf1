"""Logistic regression without a penalty: Newton's method, and whether there is a minimiser at all.

A dual point must here be orthogonal to every column. ``y_i = phi'(z_i)`` is not, but with Newton's
step, which moves the scores by dz, ``y_i + phi''(z_i) dz_i`` is; and it stays in the domain of the
conjugate where no score moves by more than one, since phi'' = u (1 - u) for the share u of a class.

Where no score moves by more than a half, all shares of that point are positive, which proves that
there is a minimiser. Where the steps go on longer than that and take no row towards a wrong class,
they follow a direction of separation, along which the loss falls for ever, as it does in the
direction of coefficients that classify every row. Then there is no minimiser, and the bounds are
about the infimum: the dual point is the one at the end of that direction, where the shares that
fall are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from .._interrupt import Interrupt
from ..losses import Logistic, Multinomial
from ._bounds import Bounds
from ._corner_model import solver_of
from ._newton import MOST_STEPS, Newton, State, first_point, is_small, point_of
from ._solve import Options, Solution, as_solution, scale_of
from ._task import Array, Penalty, Task

_REFINEMENTS = 4
_LONG = 0.5
"""A step that moves a score by more than this has not settled."""
_AWAY = 0.1
"""A score that moves by this share of the limit or more, to the right side, is on its way."""
_ASIDE = 1e-6
"""Share of a step along a direction of separation that may lead to a wrong class: rounding."""
_NEVER = 1e9
"""A score so far on the right side that nothing is left of the share."""
_PATIENCE = 3


def may_lack_a_minimiser(task: Task) -> bool:
    """Whether the loss may fall for ever."""
    return task.penalty == Penalty(0.0) and isinstance(task.loss, Logistic | Multinomial)


class _Walk:
    """Newton's method with the bounds that come with its steps."""

    def __init__(self, task: Task, start: Solution | None) -> None:
        self.task, self.newton, self.bounds = task, Newton(task, 0.0), Bounds(task)
        self.everything = [np.arange(self.newton.width)] * task.n_outputs
        self.w = first_point(self.newton, None if start is None else (start.x, start.b))
        self.state = self.newton.state(self.w)
        point = point_of(task, self.w, replace(self.state, slope=np.zeros_like(self.state.z)), 0)
        self.bounds.offer(point.x, point.b, point.y)  # no loss is below zero
        self.settled = False
        self.leaving = np.zeros(self.state.z.shape, dtype=bool)
        """The scores that follow a direction of separation."""

    @property
    def separated(self) -> int:
        """Rows that can be pushed ever further to the right side."""
        return int(np.count_nonzero(self.leaving.any(axis=1) & (self.task.share > 0.0)))

    def offer(self, steps: int) -> Array:
        """Show the present point to the certificate; returns Newton's step."""
        state = self.state
        solve = self._solver(state)
        step = -solve(state.force)
        self._judge(self.newton.scores(step))
        if self.separated:
            state = self._limit()
            solve = self._solver(state)
        y = state.slope
        for _ in range(_REFINEMENTS):  # the first is Newton's step, the others its rounding
            y = y - self._bent(state.z, self.newton.scores(solve(self.newton.force(y))))
        point = point_of(self.task, self.w, replace(state, slope=y), steps)
        self.bounds.offer(point.x, point.b, point.y)
        return step

    def _solver(self, state: State) -> Callable[[Array], Array]:
        solve = solver_of(self.newton.model(state, self.everything)[0])
        return lambda force: solve(force.T.ravel()).reshape(force.T.shape).T

    def _bent(self, z: Array, dz: Array) -> Array:
        """phi''(z) dz of every row."""
        if not self.task.vector:
            tail = np.exp(-np.abs(z))
            return tail / (1.0 + tail) ** 2 * dz
        u = np.exp(z - z.max(axis=1, keepdims=True))
        u /= u.sum(axis=1, keepdims=True)
        return u * (dz - np.sum(u * dz, axis=1, keepdims=True))

    def _judge(self, dz: Array) -> None:
        """Whether the scores have settled, or else follow a direction of separation."""
        gain, margin = _ahead(self.task, dz), _ahead(self.task, self.state.z)
        used = gain[self.task.share > 0.0]
        longest = float(np.nanmax(np.abs(used)))
        self.settled = longest <= _LONG
        self.leaving[:] = False
        if np.nanmin(margin[self.task.share > 0.0]) > 0.0:
            self.leaving = margin > 0.0
        elif not self.settled and np.nanmin(used) >= -_ASIDE * longest:
            self.leaving = gain > _AWAY

    def _limit(self) -> State:
        """At the end of the direction of separation."""
        far = -_NEVER if self.task.vector else _NEVER * self.task.target[:, None]
        z = np.where(self.leaving, far, self.state.z)
        slope = self.newton.slope(z)
        return State(self.state.value, z, slope, self.newton.force(slope))


def _ahead(task: Task, z: Array) -> Array:
    """By how much the score of the row's own class exceeds each other; NaN for itself."""
    if not task.vector:
        return np.asarray(task.target[:, None] * z)
    own = task.target.astype(int)[:, None]
    ahead = np.take_along_axis(z, own, axis=1) - z
    np.put_along_axis(ahead, own, np.nan, axis=1)
    return ahead


def minimise_unpenalised(task: Task, options: Options, start: Solution | None = None) -> Solution:
    """The minimiser with its certificate; or a point near the infimum, and a remark on that."""
    begun, scale = perf_counter(), scale_of(task)
    tolerance = options.tol * scale
    aim = min(tolerance, 1e-13 * scale) if is_small(task) else tolerance
    limit = np.inf if options.max_seconds is None else options.max_seconds
    walk, steps, fruitless = _Walk(task, start), 0, 0
    with Interrupt() as interrupt:
        while True:
            before = walk.bounds.gap
            step = walk.offer(steps)
            fruitless = fruitless + 1 if walk.bounds.gap > 0.5 * before else 0
            enough = aim if walk.settled and fruitless < _PATIENCE else tolerance
            done = walk.bounds.gap <= enough and (walk.settled or walk.separated > 0)
            out = perf_counter() - begun >= limit or interrupt.requested
            if done or out or steps >= min(MOST_STEPS, options.max_passes):
                break
            moved = walk.newton.move(walk.w, step, walk.state)
            if moved is None:
                break
            walk.w, walk.state, steps = moved, walk.newton.state(moved), steps + 1
    seconds, stopped = perf_counter() - begun, interrupt.requested
    found = as_solution(walk.bounds, options, max(1, steps), seconds, "newton", interrupted=stopped)
    return replace(found, remark=_remark(task, found, walk.separated)) if walk.separated else found


def with_remark(task: Task, found: Solution) -> Solution:
    """A solution found in another way, told apart from a minimiser where it is none."""
    z = task.scores(found.x, found.b).reshape(task.n, -1)
    used = task.share > 0.0
    if np.nanmin(_ahead(task, z)[used]) > 0.0:
        return replace(found, remark=_remark(task, found, int(np.count_nonzero(used))))
    if found.result.converged:
        return found
    return replace(found, remark="little bounds the optimum without a penalty: take a finite C")


def _remark(task: Task, found: Solution, separated: int) -> str:
    used, size = int(np.count_nonzero(task.share > 0.0)), float(np.linalg.norm(found.x))
    return (
        f"found classes that can be separated: growing coefficients push {separated} of {used} "
        "rows ever further to the right side and none to a wrong one, so that without a penalty "
        f"none minimise the loss. These, of norm {size:.3g}, are within {found.result.gap:.1e} of "
        "its infimum; take a finite C for an answer that does not depend on the tolerance"
    )
