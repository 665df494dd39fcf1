"""Quadratics with corners at zero: what a Newton step minimises under an L1 term or bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ._task import Array

_SWEEPS = 5
_ROUNDS = 60
_STILL = 1e-14
"""A sweep that moves coefficients by less than the root of this, relatively, moves none."""
_JITTERS = (1e-13, 1e-12, 1e-11)
"""Added to a Hessian of unit diagonal, which a common shift of all classes leaves singular: the
first that outweighs rounding."""


def solved(matrix: Array, right: Array) -> Array:
    """``matrix^-1 right`` with what no row and no penalty determines left where it is."""
    return solver_of(matrix)(right) if right.size else right


def solver_of(matrix: Array) -> Callable[[Array], Array]:
    """`solved` for one matrix and several right sides."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * scale * scale[:, None]
    for jitter in _JITTERS:
        scaled[np.diag_indices_from(scaled)] += jitter
        try:
            factor = cho_factor(scaled, lower=True, check_finite=False)
        except LinAlgError:
            continue
        return lambda right: scale * cho_solve(factor, scale * right, check_finite=False)
    return lambda right: np.linalg.lstsq(matrix, right, rcond=1e-13)[0]


class CornerModel:
    """``force (x - here) + (x - here) hessian (x - here) / 2 + sum_j l1_j |x_j|``.

    The x_j that are ``bounded`` must not be negative.
    """

    def __init__(
        self, hessian: Array, force: Array, here: Array, l1: Array, bounded: Array
    ) -> None:
        self.hessian, self.l1, self.bounded = hessian, l1, bounded
        self.x, self.force = np.array(here), np.array(force)
        self.bend = np.maximum(np.diag(hessian), 1e-300)
        self.cornered = (l1 > 0.0) | bounded

    def minimiser(self) -> Array:
        """By coordinate descent, which finds the zeros, and linear systems for the others."""
        everything = range(self.x.size)
        for _ in range(_SWEEPS):
            self._sweep(everything)
            if self._sweep(np.flatnonzero((self.x != 0.0) | ~self.cornered).tolist()):
                break
        for _ in range(_ROUNDS):
            if self._jump() and self._sweep(everything):
                break
        return self.x

    def _sweep(self, order: Iterable[int]) -> bool:
        """Each coefficient in turn to its best value; whether that moved none to speak of."""
        x, force, bend, largest = self.x, self.force, self.bend, 0.0
        bounded, l1 = self.bounded, self.l1
        for j in order:
            aim, threshold = x[j] - force[j] / bend[j], l1[j] / bend[j]
            new = max(aim - threshold, 0.0) if bounded[j] else _shrunk(aim, threshold)
            move = new - x[j]
            if move != 0.0:
                force += move * self.hessian[j]
                x[j] = new
                largest = max(largest, move * move * bend[j])
        return bool(largest <= _STILL * np.max(x * x * bend, initial=1e-300))

    def _jump(self) -> bool:
        """To the minimum with the present zeros and signs, or the first corner on the way."""
        x = self.x
        kept = np.flatnonzero((x != 0.0) | ~self.cornered)
        rest = self.force[kept] + self.l1[kept] * np.sign(x[kept])
        move = -solved(self.hessian[np.ix_(kept, kept)], rest)
        crossing = self.cornered[kept] & (x[kept] * (x[kept] + move) < 0.0)
        shares = np.where(crossing, -x[kept] / np.where(crossing, move, 1.0), np.inf)
        share = min(1.0, float(shares.min(initial=np.inf)))
        self.force += self.hessian[:, kept] @ (share * move)
        x[kept] += share * move
        x[kept[shares <= share]] = 0.0
        return share == 1.0


def _shrunk(value: float, threshold: float) -> float:
    if value > threshold:
        return value - threshold
    return min(value + threshold, 0.0)
