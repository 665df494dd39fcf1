"""The duality gap, from sums recomputed from scratch, at the best points seen.

For every x and every y in the domain of the conjugates, ``D(y) <= optimum <= P(x)`` with

    P(x) = (1/n) sum_i phi_i(A_i^T x) + g(x),
    D(y) = -(1/n) sum_i phi_i*(y_i) - g*(-r),     r = (1/n) sum_i A_i y_i.

The two best points need not come from the same iteration.

An intercept, where there is one, is the last entry of x (of each output). It is in no g, so g* is
finite only where r vanishes there, which no sum of floating-point numbers does exactly: a level of
1e-12 of the mean of ``|y|`` counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from ._engine import Engine
from ._flat import FlatProblem
from ._iterations import NO_STEP

LEVEL = 1e-12
_ROUNDING = 1e-12
"""A negative gap within this share of the values is rounding, and reported as 0."""


@dataclass
class Check:
    """One evaluation: values at the current points, and the r that belongs to y exactly."""

    objective: float
    other: float
    dual: float
    r: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether the current iterate can be worked with."""
        return isfinite(self.objective) and not np.isnan(self.dual)


class Certificate:
    """Best primal and dual point of a run and the gap between them.

    ``scale`` is |P(0)|: what a relative tolerance is relative to. Where 0 is outside the domain of
    g, the minimiser of g takes its place.
    """

    def __init__(self, problem: FlatProblem, engine: Engine, loss_at_zero: float) -> None:
        from ._kernels import regularizers
        from ._kernels._jit import uncached

        wrap = uncached if problem.user_code else (lambda kernel: kernel)
        self._value, self._prox = wrap(regularizers.call_value), wrap(regularizers.call_prox)
        self._conjugate = wrap(regularizers.call_conjugate)
        self._gradient = wrap(regularizers.call_conjugate_gradient)
        self._problem = problem
        self._engine = engine
        self.primal = np.inf
        self.dual = -np.inf
        self.x: np.ndarray = np.zeros(problem.size)
        self.y: np.ndarray | None = None
        self._offered = False
        at_zero = loss_at_zero + self._regularizer(self.x)
        if at_zero == np.inf:
            lowest = self._lowest()
            loss = engine.evaluate(lowest, lowest, np.zeros(problem.dual_size))[0]
            at_zero = loss + self._regularizer(lowest)
        self.scale = max(abs(at_zero), 1e-300)  # NaN stays NaN

    def _regularizer(self, x: np.ndarray) -> float:
        own = x[: self._problem.dimension]
        return float(self._value(self._problem.regularizer_kernel, own))

    def _lowest(self) -> np.ndarray:
        """The minimiser of g."""
        lowest = np.zeros(self._problem.size)
        own = lowest[: self._problem.dimension]
        self._gradient(self._problem.regularizer_kernel, own, own)
        return lowest

    def move_into_domain(self, x: np.ndarray) -> None:
        """Replace x where g is infinite by the nearest point where it is not."""
        if isfinite(self._regularizer(x)):
            return
        own = x[: self._problem.dimension]
        self._prox(self._problem.regularizer_kernel, own, NO_STEP, own)
        if not isfinite(self._regularizer(x)):  # a user's own, for which so short a step is none
            np.copyto(own, self._lowest()[: own.size])

    def check(self, x: np.ndarray, other: np.ndarray, y: np.ndarray) -> Check:
        """Evaluate the iterate x, a second primal point, and y; keep whatever is best."""
        with np.errstate(all="ignore"):
            at_x, at_other, conjugate, r = self._engine.evaluate(x, other, y)
            check = Check(
                objective=at_x + self._regularizer(x),
                other=at_other + self._regularizer(other),
                dual=0.0 - conjugate - self._conjugate_at_minus(r, y),  # 0, not -0, at y = 0
                r=r,
            )
        self._keep(check, x, other, y)
        return check

    def offer(self, x: np.ndarray, primal: float, y: np.ndarray, dual: float) -> None:
        """Points with values that a method has from running sums; see `confirm`."""
        self._keep(Check(primal, primal, dual, y), x, x, y)
        self._offered = True

    def confirm(self) -> None:
        """Replace values that were offered by values computed from scratch."""
        if not self._offered:
            return
        self._offered = False
        x, y = self.x.copy(), np.zeros(self._problem.dual_size) if self.y is None else self.y.copy()
        self.primal, self.dual = np.inf, -np.inf
        self.check(x, x, y)

    def _conjugate_at_minus(self, r: np.ndarray, y: np.ndarray) -> float:
        """``g*(-r)``, without a second vector."""
        own, levels = r[: self._problem.dimension], r[self._problem.dimension :]
        if levels.size and np.abs(levels).max() > LEVEL * max(float(np.abs(y).mean()), 1e-300):
            return np.inf
        np.negative(own, out=own)
        value = float(self._conjugate(self._problem.regularizer_kernel, own))
        np.negative(own, out=own)
        return value

    def _keep(self, check: Check, x: np.ndarray, other: np.ndarray, y: np.ndarray) -> None:
        for value, point in ((check.objective, x), (check.other, other)):
            if value < self.primal:
                self.primal = value
                np.copyto(self.x, point)
        if self.dual < check.dual < np.inf:
            self.dual = check.dual
            if self.y is None:
                self.y = y.copy()
            else:
                np.copyto(self.y, y)

    @property
    def gap(self) -> float:
        """``P(best x) - D(best y)``; NaN if it is negative by more than rounding explains."""
        gap = self.primal - self.dual
        if gap >= 0.0:
            return gap
        return 0.0 if -gap <= _ROUNDING * max(abs(self.primal), self.scale) else np.nan
