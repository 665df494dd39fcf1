"""Lower and upper bound on the optimum of a task: its own loss and penalty, nothing rounded.

A dual point y is feasible if ``sum_i m_i y_i = 0`` (where there is an intercept) and, with
``r = sum_i m_i a_i y_i``, if ``|r_j| <= l1`` where lam = 0; up to rounding, without any penalty.
Points that nearly are get repaired: the domain of every conjugate with a corner is convex and holds
0, so shrinking y stays inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import SmoothPinball
from ._task import Array, EpsilonInsensitive, Penalty, Pinball, Task, times_transposed

_LARGEST_GRAM = 2000
"""Features up to which a dual point can be made orthogonal to all columns."""


@dataclass
class Bounds:
    """The best pair seen: the optimum lies between ``dual`` and ``primal``."""

    task: Task
    primal: float = np.inf
    dual: float = -np.inf
    x: Array | None = None
    b: Any = 0.0
    y: Array | None = None

    @property
    def gap(self) -> float:
        """Distance of the two, not below zero: what is missing there is rounding."""
        return max(0.0, self.primal - self.dual)

    def offer(self, x: Array, b: Any, y: Array) -> None:
        """Evaluate a pair afresh and keep what is better than before."""
        primal = primal_value(self.task, x, b)
        if primal < self.primal:
            self.primal, self.x, self.b = primal, np.array(x), np.array(b)[()]
        feasible = repaired(self.task, np.array(y))
        if feasible is not None and (dual := dual_value(self.task, feasible)) > self.dual:
            self.dual, self.y = dual, feasible


def primal_value(task: Task, x: Array, b: Any) -> float:
    """The objective."""
    with np.errstate(all="ignore"):
        return task.mean_loss(task.scores(x, b)) + float(task.penalty.value(x))


def dual_value(task: Task, y: Array) -> float:
    """The dual objective at a feasible point."""
    with np.errstate(all="ignore"):
        loss = float(task.share @ task.loss.conjugate(y, task.target))
        value = -loss - _penalty_conjugate(task, task.pull(y))
    return value if np.isfinite(value) else -np.inf


def _penalty_conjugate(task: Task, r: Array) -> float:
    penalty = task.penalty
    if not isinstance(penalty, Penalty):
        return float(penalty.conjugate(-r))
    force = -r if penalty.positive else np.abs(r)
    excess = np.maximum(force - penalty.l1, 0.0)
    return float(np.vdot(excess, excess)) / (2.0 * penalty.lam) if penalty.lam > 0.0 else 0.0


def repaired(task: Task, y: Array) -> Array | None:
    """A feasible point close to y, or None where there is no way to one."""
    penalty = task.penalty
    if not isinstance(penalty, Penalty) or penalty.lam > 0.0:
        return _balanced(task, y) if task.intercept else y
    if penalty.l1 == 0.0:
        classes = task.loss.kind in ("binary", "multiclass")
        return _stationary(task, y) if classes else _orthogonal(task, y)
    if task.intercept:
        balanced = _balanced(task, y)
        if balanced is None:
            return None
        y = balanced
    r = task.pull(y)
    largest = float(np.max(-r if penalty.positive else np.abs(r), initial=0.0))
    if largest > penalty.l1:
        y *= penalty.l1 / largest * (1.0 - 1e-15)
    return y


def _balanced(task: Task, y: Array) -> Array | None:
    """``sum_i m_i y_i = 0``, by shrinking the values of the sign that outweighs the other."""
    if task.vector:
        return _balanced_outputs(task, y)
    share = task.share
    above = float(share @ np.maximum(y, 0.0))
    below = float(share @ np.maximum(-y, 0.0))
    if above > below:
        y[y > 0.0] *= below / above
    elif below > above:
        y[y < 0.0] *= above / below
    return y


def _balanced_outputs(task: Task, y: Array) -> Array | None:
    """Every column sums to zero: shifted for squares; for classes shares of each are rescaled."""
    if task.loss.kind == "multioutput":
        return y - task.share @ y
    classes = task.target.astype(int)
    probability = y.copy()
    probability[np.arange(task.n), classes] += 1.0
    wanted = np.bincount(classes, weights=task.share, minlength=task.n_outputs)
    for _ in range(20):  # Sinkhorn's iteration: rows sum to one, columns to the shares
        probability *= wanted / np.maximum(task.share @ probability, 1e-300)
        sums = probability.sum(axis=1, keepdims=True)
        if np.abs(sums - 1.0).max() < 1e-15:
            break
        probability /= sums
    probability[np.arange(task.n), classes] -= 1.0
    return probability


_ROUNDING = 1e-12
"""Of a sum over the rows, relative to what Cauchy and Schwarz allow it to be."""


def _stationary(task: Task, y: Array) -> Array:
    """Without any penalty: y where it is orthogonal to every column, else zero, which always is."""
    square = times_transposed(task.X * task.X, task.share)
    size = np.sqrt(np.multiply.outer(square, task.share @ (y * y)))
    good = bool((np.abs(task.pull(y)) <= _ROUNDING * size).all())
    if task.intercept:
        total, most = np.abs(task.share @ y), np.sqrt(task.share @ (y * y))
        good &= bool((total <= _ROUNDING * most).all())
    return y if good else np.zeros_like(y)


def _orthogonal(task: Task, y: Array) -> Array | None:
    """Without any penalty: y orthogonal to every column, shrunk back into the domain."""
    if task.d > _LARGEST_GRAM or task.loss.kind not in ("regression", "multioutput"):
        return None
    for _ in range(2):  # the second time removes what rounding left
        y = y - projection(task, y)
    outside = _outside(task, y)
    return y / outside if outside > 1.0 else y


def projection(task: Task, y: Array) -> Array:
    """The part of y in the span of the columns (and of the constant), in the inner product m."""
    mean = task.share @ y if task.intercept else 0.0
    centre, inverse = task.span
    right = task.pull(y) - (np.multiply.outer(centre, mean) if task.intercept else 0.0)
    solution = inverse @ right
    return task.scores(solution, mean - centre @ solution)


def _outside(task: Task, y: Array) -> float:
    """The factor by which y has left the domain of the conjugate."""
    loss = task.loss
    if isinstance(loss, Pinball | SmoothPinball):
        return max(float(y.max()) / (1.0 - loss.quantile), -float(y.min()) / loss.quantile)
    if isinstance(loss, EpsilonInsensitive):
        return float(np.abs(y).max())
    bound = getattr(loss, "delta", np.inf)
    return float(np.abs(y).max()) / bound
