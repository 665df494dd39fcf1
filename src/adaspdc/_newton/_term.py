"""g as Newton's method sees it: ``sum_j shift_j/2 x_j^2 + l1_j |x_j|`` on intervals.

Intercepts are coordinates of no shift, no l1 and no interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._containers import Separable
from .._flat import FlatProblem


@dataclass(frozen=True)
class Term:
    """One entry per coordinate of x; the first ``penalised`` of them are not intercepts."""

    lam: float
    penalised: int
    shift: np.ndarray
    l1: np.ndarray
    low: np.ndarray
    high: np.ndarray
    smooth: bool

    def at_lam(self, lam: float) -> Term:
        """The same with another lam."""
        return replace(self, lam=lam, shift=np.where(self.shift > 0.0, lam, 0.0))

    def value(self, x: np.ndarray) -> float:
        """``g(x)`` for x in the intervals."""
        own = x[: self.penalised]
        square = 0.5 * self.lam * float(own @ own)
        return square if self.smooth else square + float(self.l1 @ np.abs(x))

    def _answer(self, s: np.ndarray) -> np.ndarray:
        """``argmax_x <s, x> - g(x)``."""
        own = slice(None, self.penalised)
        soft = np.copysign(np.maximum(np.abs(s) - self.l1[own], 0.0), s)
        answer: np.ndarray = np.clip(soft / self.lam, self.low[own], self.high[own])
        return answer

    def conjugate_at_minus(self, r: np.ndarray) -> float:
        """``g*(-r)``, r being zero at the intercepts."""
        own = r[: self.penalised]
        if self.smooth:
            return float(own @ own) / (2.0 * self.lam)
        x = self._answer(-own)
        return float(
            np.sum(-own * x - self.l1[: self.penalised] * np.abs(x) - 0.5 * self.lam * x * x)
        )

    def gap(self, x: np.ndarray, r: np.ndarray) -> float:
        """``g(x) + g*(-r) + <r, x>``, as a sum of terms none of which is negative.

        With ``y = phi'(A x)`` and the r of that y it is the duality gap.
        """
        x, r = x[: self.penalised], r[: self.penalised]
        if self.smooth:
            gradient = r + self.lam * x
            return float(gradient @ gradient) / (2.0 * self.lam)
        best = self._answer(-r)
        change = x - best
        terms = 0.5 * self.lam * change * (x + best) + r * change
        terms += self.l1[: self.penalised] * (np.abs(x) - np.abs(best))
        return float(np.maximum(terms, 0.0).sum())


def term_of(problem: FlatProblem) -> Term | None:
    """The term of a problem, or None where g is of another form."""
    kernel = problem.regularizer_kernel
    if not isinstance(kernel, Separable):
        return None
    size, penalised = problem.size, problem.dimension

    def spread(value: float | np.ndarray, of_intercepts: float) -> np.ndarray:
        full = np.full(size, of_intercepts)
        full[:penalised] = value
        return full

    low, high = spread(kernel.low, -np.inf), spread(kernel.high, np.inf)
    smooth = kernel.l1 == 0.0 and not (np.isfinite(low).any() or np.isfinite(high).any())
    return Term(
        float(kernel.lam),
        penalised,
        spread(float(kernel.lam), 0.0),
        spread(float(kernel.l1), 0.0),
        low,
        high,
        smooth,
    )
