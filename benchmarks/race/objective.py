"""What every solver is judged by: the objective and a lower bound, in float64, by NumPy alone.

    P(x) = mean_i phi(<a_i, x>; b_i) + lam/2 |x|^2

Nothing here knows any solver, and nothing is taken from adaspdc.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

Floats = np.ndarray


@dataclass(frozen=True)
class Loss:
    """A loss of margins: value, first and second derivative, conjugate (inf outside its domain)."""

    name: str
    classifies: bool
    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curvature: Callable[[Floats, Floats], Floats]
    conjugate: Callable[[Floats, Floats], Floats]


def _smooth_hinge(z: Floats, b: Floats) -> Floats:
    short = np.maximum(1.0 - b * z, 0.0)
    return np.where(short <= 1.0, 0.5 * short * short, short - 0.5)


def _logistic_conjugate(y: Floats, b: Floats) -> Floats:
    u = -b * y
    return np.where((u >= 0) & (u <= 1), xlogy(u, u) + xlogy(1 - u, 1 - u), np.inf)


def _hinge_conjugate(upper: float) -> Callable[[Floats, Floats], Floats]:
    def conjugate(y: Floats, b: Floats) -> Floats:
        u = -b * y
        return np.where((u >= 0) & (u <= upper), 0.5 * u * u - u, np.inf)

    return conjugate


LOSSES = {
    loss.name: loss
    for loss in (
        Loss(
            "logistic",
            True,
            lambda z, b: np.logaddexp(0.0, -b * z),
            lambda z, b: -b * expit(-b * z),
            lambda z, b: expit(z) * expit(-z),
            _logistic_conjugate,
        ),
        Loss(
            "smooth-hinge",  # width 1
            True,
            _smooth_hinge,
            lambda z, b: -b * np.clip(1.0 - b * z, 0.0, 1.0),
            lambda z, b: ((b * z < 1.0) & (b * z > 0.0)).astype(float),
            _hinge_conjugate(1.0),
        ),
        Loss(
            "squared-hinge",  # with 1/2
            True,
            lambda z, b: 0.5 * np.maximum(1.0 - b * z, 0.0) ** 2,
            lambda z, b: -b * np.maximum(1.0 - b * z, 0.0),
            lambda z, b: (b * z < 1.0).astype(float),
            _hinge_conjugate(np.inf),
        ),
        Loss(
            "squared",  # with 1/2
            False,
            lambda z, b: 0.5 * (z - b) ** 2,
            lambda z, b: z - b,
            lambda z, b: np.ones_like(z),
            lambda y, b: 0.5 * y * y + b * y,
        ),
    )
}


@dataclass(frozen=True)
class Problem:
    """One cell of the race: rows X with the bias column last, targets, a loss, lam."""

    data: str
    X: Any
    b: Floats
    loss: Loss
    lam: float

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Columns, the bias among them."""
        return int(self.X.shape[1])

    def value(self, x: Floats, z: Floats | None = None) -> float:
        """P(x)."""
        z = self.X @ x if z is None else z
        return float(self.loss.value(z, self.b).mean() + 0.5 * self.lam * (x @ x))

    def value_at_zero(self) -> float:
        """P(0), the scale of certified gaps."""
        return float(self.loss.value(np.zeros(self.n), self.b).mean())

    def bound(self, y: Floats) -> float:
        """D(y), a lower bound on the optimum whatever y is (minus infinity if it is no good)."""
        r = np.asarray(self.X.T @ y).ravel() / self.n
        return float(-self.loss.conjugate(y, self.b).mean() - (r @ r) / (2 * self.lam))

    def slope(self, z: Floats) -> Floats:
        """The dual point that belongs to margins z."""
        return self.loss.slope(z, self.b)
