"""Newton's method for small tasks, down to rounding error, and for the lasso.

Where the Hessian of all coefficients fits into the cache, a few Newton steps cost less than setting
up anything else, and leave nothing of the tolerance: the model then does not depend on the order of
the rows, or on whether a row was given twice or with weight 2. Corners of the slope (hinges, Huber)
and of the penalty are handled as a semismooth method does: the piece at hand is taken as smooth.

Coefficients that are zero and want to stay so take no part in a step, and of the others at most
`WIDEST` do, those with the largest gradients: with an L1 term, or bounds, that is enough for
problems of any width, even without the L2 term that the solver needs. On sparse columns
coordinate descent on the quadratic model, whose Hessian is then not formed, moves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import losses
from ._corner_model import CornerModel, solved
from ._task import Array, Penalty, Task, times, times_transposed

_MOST_UNKNOWNS = 300
_MOST_WORK = 2e7
MOST_STEPS = 100
WIDEST = 1500
"""Coefficients that move in one step, at most."""
_HALVINGS = 40
_STRAIGHT = 1e-2
_FORCING = 1e-2
"""Coordinate descent ends when a sweep changes so much less than its first."""
_MOST_SWEEPS = 330
_FLAT = (losses.SmoothHinge, losses.SmoothPinball, losses.SmoothEpsilonInsensitive)
_CURVED = (
    losses.Squared,
    losses.SquaredHinge,
    losses.SquaredEpsilonInsensitive,
    losses.Huber,
    losses.Logistic,
)
_VECTOR = (losses.Multinomial, losses.MultiOutputSquared)


def is_known(task: Task) -> bool:
    """Whether Newton's method can be used."""
    return isinstance(task.penalty, Penalty) and isinstance(task.loss, _FLAT + _CURVED + _VECTOR)


def is_small(task: Task) -> bool:
    """Whether it costs next to nothing."""
    unknowns = (task.d + task.intercept) * task.n_outputs
    small = unknowns <= _MOST_UNKNOWNS and task.n * unknowns**2 <= _MOST_WORK
    return is_known(task) and small


def is_cornered(task: Task) -> bool:
    """Whether the penalty keeps coefficients at zero."""
    penalty = task.penalty
    return is_known(task) and isinstance(penalty, Penalty) and (penalty.l1 > 0 or penalty.positive)


def is_unpenalised(task: Task) -> bool:
    """Whether there is no penalty at all, and few enough unknowns to move them all in one step."""
    narrow = (task.d + task.intercept) * task.n_outputs <= WIDEST
    return narrow and is_known(task) and task.penalty == Penalty(0.0)


@dataclass
class Point:
    """Where Newton's method ended, after how many steps (each one pass over the rows)."""

    x: Array
    b: Any
    y: Array
    steps: int


@dataclass
class State:
    """What is known at a point."""

    value: float
    z: Array
    slope: Array
    force: Array
    """Gradient of loss and L2 term, shape (unknowns, outputs)."""


class Newton:
    """The problem in coefficients and intercept as one array of shape (unknowns, outputs)."""

    def __init__(self, task: Task, lam: float) -> None:
        self.task, self.outputs = task, task.n_outputs
        self.width = task.d + task.intercept
        self._columns = task.X if isinstance(task.X, np.ndarray) else task.X.tocsc()
        penalty = task.penalty
        assert isinstance(penalty, Penalty)
        spread = np.repeat((np.arange(self.width) < task.d)[:, None], self.outputs, axis=1)
        self.lam = np.where(spread, lam, 0.0)
        self.l1 = np.where(spread, penalty.l1, 0.0)
        self.bounded = spread & penalty.positive

    def scores(self, w: Array) -> Array:
        """Of all rows and outputs."""
        z = times(self.task.X, w[: self.task.d])
        return z + w[self.task.d] if self.task.intercept else z

    def objective(self, w: Array) -> tuple[float, Array]:
        """The objective, and the scores."""
        z = self.scores(w)
        loss = self.task.mean_loss(z if self.task.vector else z[:, 0])
        return loss + float(np.sum(0.5 * self.lam * w * w + self.l1 * np.abs(w))), z

    def state(self, w: Array) -> State:
        """Everything that a step needs."""
        value, z = self.objective(w)
        slope = self.slope(z)
        return State(value, z, slope, self.force(slope) + self.lam * w)

    def force(self, slope: Array) -> Array:
        """``sum_i m_i a_i y_i``, and ``sum_i m_i y_i`` where there is an intercept."""
        weighted = slope * self.task.share[:, None]
        force = times_transposed(self.task.X, weighted)
        return np.vstack([force, weighted.sum(axis=0)]) if self.task.intercept else force

    def slope(self, z: Array) -> Array:
        """phi' of every row."""
        scores = z if self.task.vector else z[:, 0]
        return np.reshape(self.task.loss.derivative(scores, self.task.target), z.shape)  # type: ignore[union-attr]

    def gradient(self, w: Array, state: State) -> Array:
        """The subgradient of least size: zero at the optimum and nowhere else."""
        force, l1 = state.force, self.l1
        at_zero = np.sign(force) * np.maximum(np.abs(force) - l1, 0.0)
        at_zero = np.where(self.bounded, np.minimum(force + l1, 0.0), at_zero)
        return np.where(w == 0.0, at_zero, force + l1 * np.sign(w))

    def chosen(self, w: Array, gradient: Array) -> list[Array]:
        """The coefficients of each output that take part in the next step."""
        active = w != 0.0
        active[self.task.d :] = True
        rest = np.where(active, 0.0, np.abs(gradient))
        room = WIDEST - int(np.count_nonzero(active))
        if np.count_nonzero(rest) > max(room, 0):
            least = np.partition(rest.reshape(-1), -max(room, 1))[-max(room, 1)]
            rest[rest < least] = 0.0
        return [np.flatnonzero((active | (rest > 0.0))[:, k]) for k in range(self.outputs)]

    def direction(self, w: Array, state: State, chosen: list[Array]) -> Array:
        """To the minimum of the quadratic model of the loss with the penalty as it is."""
        hessian, force = self.model(state, chosen)
        places = [np.stack([c, np.full(c.size, k)]) for k, c in enumerate(chosen)]
        at = tuple(np.concatenate(places, axis=1))
        step = np.zeros_like(w)
        if not self.l1.any() and not self.bounded.any():
            step[at] = -solved(hessian, force)
        else:
            model = CornerModel(hessian, force, w[at], self.l1[at], self.bounded[at])
            step[at] = model.minimiser() - w[at]
        return step

    def descent(self, w: Array, state: State, gradient: Array) -> Array | None:
        """As `direction`, in any number of coefficients, where columns are sparse and cornered.

        None where that is not so, or where the answer is not there after some sweeps and a linear
        system would do.
        """
        cornered = bool(self.l1.any() or self.bounded.any())
        if isinstance(self._columns, np.ndarray) or self.task.vector or not cornered:
            return None
        from .._kernels.descent import descend

        active = (w[:, 0] != 0.0) | (gradient[:, 0] != 0.0)
        active[self.task.d :] = True
        columns, data = np.flatnonzero(active), self._columns
        bend = self.task.share * _bend(self.task, state.z[:, 0])
        curve = np.append(self._squares.T @ bend, bend.sum())[: self.width]
        x, dz = w[:, 0].copy(), np.zeros(self.task.n)
        sides = self.lam[:, 0], self.l1[:, 0], self.bounded[:, 0]
        parts = data.indptr, data.indices, data.data, columns, bend, state.force[:, 0], curve
        done = descend(*parts, *sides, x, dz, _FORCING, _MOST_SWEEPS)
        if not done and columns.size <= WIDEST:
            return None
        return (x - w[:, 0])[:, None]

    @cached_property
    def _squares(self) -> Any:
        data: Any = self._columns
        return data.multiply(data).tocsc()

    def model(self, state: State, chosen: list[Array]) -> tuple[Array, Array]:
        """Hessian and gradient, without the corners, in the chosen coefficients."""
        ends = np.cumsum([0, *(c.size for c in chosen)])
        hessian = np.zeros((ends[-1], ends[-1]))
        parts = [self._part(c) for c in chosen]
        for k, j, bend in self._bends(state.z):
            block = _weighted_product(parts[k], bend, parts[j])
            hessian[ends[k] : ends[k + 1], ends[j] : ends[j + 1]] = block
            hessian[ends[j] : ends[j + 1], ends[k] : ends[k + 1]] = block.T
        diagonal = np.diag(hessian) + np.concatenate([self.lam[c, k] for k, c in enumerate(chosen)])
        # An intercept all of whose rows are on straight pieces: far, and the search cuts it short.
        diagonal[diagonal == 0.0] = _STRAIGHT / self.task.loss.gamma  # type: ignore[union-attr]
        hessian[np.diag_indices_from(hessian)] = diagonal
        return hessian, np.concatenate([state.force[c, k] for k, c in enumerate(chosen)])

    def _part(self, columns: Array) -> Any:
        """Those columns of the data, that of the intercept made up."""
        features = columns[columns < self.task.d]
        part = self._columns[:, features]
        if features.size == columns.size:
            return part
        ones = np.ones((self.task.n, 1), dtype=part.dtype)
        if isinstance(part, np.ndarray):
            return np.hstack([part, ones])
        return sparse.hstack([part, sparse.csc_array(ones)], format="csc")

    def _bends(self, z: Array) -> Iterator[tuple[int, int, Array]]:
        """Second derivatives of the mean loss in the scores, of every pair of outputs."""
        share = self.task.share
        if not isinstance(self.task.loss, losses.Multinomial):
            bend = share if self.task.vector else share * _bend(self.task, z[:, 0])
            yield from ((k, k, bend) for k in range(self.outputs))
            return
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        for k in range(self.outputs):
            for j in range(k + 1):
                yield k, j, share * p[:, k] * ((k == j) - p[:, j])

    def move(self, w: Array, step: Array, state: State) -> Array | None:
        """The longest of w + step, w + step/2, ... that descends; None if there is none."""
        promise = float(np.vdot(state.force, step))
        promise += float(np.sum(self.l1 * (np.abs(w + step) - np.abs(w))))
        slack = 4e-16 * abs(state.value)
        for halving in range(_HALVINGS):
            length = 0.5**halving
            new = w + step if halving == 0 else w + length * step
            if self.objective(new)[0] <= state.value + 1e-4 * length * promise + slack:
                return new
        return None


def _weighted_product(left: Any, bend: Array, right: Any) -> Array:
    """``left^T diag(bend) right`` as a dense array."""
    if not isinstance(left, np.ndarray):
        return (left.T @ (sparse.diags_array(bend) @ right)).toarray()
    total = np.zeros((left.shape[1], right.shape[1]))
    size = max(1, (1 << 21) // max(1, left.shape[1]))
    for a in range(0, left.shape[0], size):
        rows = slice(a, a + size)
        total += left[rows].T @ (right[rows] * bend[rows, None])
    return total


def _bend(task: Task, z: Array) -> Array:
    """phi''(z) of every row; of the two at a corner of phi' either."""
    loss, target = task.loss, task.target
    if isinstance(loss, losses.Logistic):
        p = 1.0 / (1.0 + np.exp(-np.abs(z)))
        return p * (1.0 - p)
    y = np.asarray(loss.derivative(z, target))  # type: ignore[union-attr]
    if isinstance(loss, losses.Squared):
        return np.ones_like(z)
    if isinstance(loss, losses.SquaredHinge):
        return (y != 0.0).astype(float)
    if isinstance(loss, losses.SquaredEpsilonInsensitive):
        return ((y != 0.0) | (loss.epsilon == 0.0)).astype(float)
    if isinstance(loss, losses.Huber):
        return (np.abs(y) < loss.delta).astype(float)
    low, high = -1.0, 1.0
    if isinstance(loss, losses.SmoothPinball):
        low, high = -loss.quantile, 1.0 - loss.quantile
    inside = (y > low) & (y < high)
    if not isinstance(loss, losses.SmoothPinball):  # flat at zero: beside the hinge, in the tube
        inside &= (y != 0.0) | (getattr(loss, "epsilon", 1.0) == 0.0)
    return inside / loss.gamma  # type: ignore[union-attr]


def newton(
    task: Task,
    start: tuple[Array, Any] | None = None,
    lam: float | None = None,
    enough: Callable[[Point], bool] | None = None,
) -> Point:
    """Minimise a task; ``lam`` in the place of the penalty's own.

    Goes on to rounding error, or till the points are ``enough``.
    """
    assert isinstance(task.penalty, Penalty)
    method = Newton(task, task.penalty.lam if lam is None else lam)
    w = first_point(method, start)
    state, steps, best, fruitless = method.state(w), 0, np.inf, 0
    kept = w, state
    while steps < MOST_STEPS and fruitless < 3:
        gradient = method.gradient(w, state)
        size = float(np.abs(gradient).max())
        if size < 0.5 * best:
            fruitless = 0
        else:  # no longer smaller: rounding, unless the objective still falls
            fruitless += state.value >= kept[1].value - 1e-15 * abs(state.value)
        if size < best:
            best, kept = size, (w, state)
        if size == 0.0 or (enough is not None and enough(point_of(task, w, state, steps))):
            break
        step = method.descent(w, state, gradient)
        if step is None:
            step = method.direction(w, state, method.chosen(w, gradient))
        new = method.move(w, step, state)
        if new is None:
            break
        w, steps = new, steps + 1
        state = method.state(w)
    if best < np.inf and state.value >= kept[1].value * (1 - 1e-15):
        w, state = kept
    return point_of(task, w, state, steps)


def first_point(method: Newton, start: tuple[Array, Any] | None) -> Array:
    """Where to begin: at zero, or at coefficients and intercept that fit."""
    task = method.task
    w = np.zeros((method.width, task.n_outputs))
    if start is not None and np.size(start[0]) == task.d * task.n_outputs:
        w[: task.d] = np.reshape(start[0], (task.d, -1))
        if task.intercept:
            w[task.d] = start[1]
    return w


def point_of(task: Task, w: Array, state: State, steps: int) -> Point:
    """A point of the iteration as others see it."""
    b: Any = 0.0
    if task.intercept:
        b = w[task.d] if task.vector else float(w[task.d, 0])
        if task.loss.kind == "multiclass":
            b = b - b.mean()  # a common shift of all classes changes nothing
    if task.vector:
        return Point(w[: task.d], b, state.slope, max(1, steps))
    return Point(w[: task.d, 0], b, state.slope[:, 0], max(1, steps))
