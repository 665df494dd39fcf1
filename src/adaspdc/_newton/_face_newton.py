"""Newton's method where g has corners: ``lam/2 |x|^2 + l1 |x|_1`` on intervals.

On the set of points with given signs, and given coordinates at zero or at a bound, g is smooth: a
*face*. Which face to work on, the steepest descent direction says: a coordinate is free unless it
lies at a corner that it does not want to leave. A Newton step on the free coordinates is cut off
where it would leave the face, which puts coordinates at corners. Where the objective does not fall
that way, a proximal gradient step in the metric of the diagonal of the Hessian takes its place, for
which there is always a length at which it does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._smooth_newton import SmoothNewton

_ENOUGH = 1e-4
"""The share of the promised decrease that a step has to achieve."""
_CUTS, _STRAIGHT_CUTS = 3, 12
_PINNINGS = 8
_AT_ONCE = 0.05
"""The share of a step after which leaving the face counts as leaving it at once."""
_FIRST_ORDER_CUTS = 60


class FaceNewton(SmoothNewton):
    """`SmoothNewton` on one face after the other."""

    def _may_sample(self, x: np.ndarray) -> bool:
        return False

    def iterate(self, enough: float, pause: Callable[[], bool]) -> None:
        """Certify the iterate, and unless the gap is within ``enough`` move it."""
        r = self.walks.pull(self._at.slope).copy()
        r[self._penalised :] = 0.0
        if self._settled(r, enough):
            return
        gradient = r + self.term.shift * self.x
        descent, low, high = self._face(gradient)
        free = descent != 0.0
        free |= (self.x > low) & (self.x < high)
        if free.any() and self._newton_step(r, descent, (low, high), free, enough, pause):
            return
        if not self._proximal_step(gradient):
            self._no_progress()

    def _face(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The steepest descent direction, and the interval of every coordinate on the face."""
        term, x = self.term, self.x
        up = gradient + term.l1  # slope of the objective to the right of x_j where x_j >= 0
        down = gradient - term.l1  # and to the left of it where x_j <= 0
        right = np.where(x >= 0.0, up, down)
        left = np.where(x > 0.0, up, down)
        descent = np.where(right < 0.0, -right, np.where(left > 0.0, -left, 0.0))
        descent[(x <= term.low) & (descent < 0.0)] = 0.0
        descent[(x >= term.high) & (descent > 0.0)] = 0.0
        positive = (x > 0.0) | ((x == 0.0) & (descent > 0.0))
        negative = (x < 0.0) | ((x == 0.0) & (descent < 0.0))
        kinked = term.l1 > 0.0
        low = np.where(kinked & ~negative, np.maximum(term.low, 0.0), term.low)
        high = np.where(kinked & ~positive, np.minimum(term.high, 0.0), term.high)
        # A domain away from zero has no kink in it.
        low, high = (
            np.where(term.high < 0.0, term.low, low),
            np.where(term.low > 0.0, term.high, high),
        )
        return descent, np.minimum(low, x), np.maximum(high, x)

    def _newton_step(
        self,
        r: np.ndarray,
        descent: np.ndarray,
        face: tuple[np.ndarray, np.ndarray],
        free: np.ndarray,
        enough: float,
        pause: Callable[[], bool],
    ) -> bool:
        """A step on the free coordinates, cut off at the ends of the face; whether it was good.

        Cutting off may spoil a step where coordinates depend on each other. Then those that would
        leave at once are taken to the end of the face by themselves, and the step is computed
        without them; where no others would leave at once, it goes as far as the first one does.
        """
        x, to_end = self.x, np.zeros_like(self.x)
        for _ in range(_PINNINGS):
            if not free.any():
                return False
            slope = np.where(free, -descent, 0.0)
            dx = self._step_on_face(r, slope, to_end, face, free, enough, pause)
            target = np.clip(x + dx, *face)
            if self._try(target, descent):
                return True
            times = _leaving_times(x, dx, face)
            first = float(times.min())
            if first >= 1.0 or pause():
                return False
            if first > _AT_ONCE:
                self.walks.push(first * dx, self._dz)
                return self._try(np.clip(x + first * dx, *face), descent, _STRAIGHT_CUTS)
            pinned = times <= _AT_ONCE
            to_end[pinned] = np.where(dx > 0.0, face[1], face[0])[pinned] - x[pinned]
            free = free & ~pinned
        return False

    def _step_on_face(
        self,
        r: np.ndarray,
        slope: np.ndarray,
        to_end: np.ndarray,
        face: tuple[np.ndarray, np.ndarray],
        free: np.ndarray,
        enough: float,
        pause: Callable[[], bool],
    ) -> np.ndarray:
        """Newton's step and ``to_end``; leaves the margins of that, cut off, in dz."""
        self._preconditioner.prepare(self._at, self.term.shift, free)
        curved: np.ndarray | None = None
        pinned = to_end.any()
        if pinned:  # what these moves do to the slopes of the others
            bent = self.walks.curve(self._at, to_end, self._q) + self.term.shift * to_end
            slope = slope + np.where(free, bent, 0.0)
        if self._preconditioner.exact:
            dx = -self._preconditioner.solve(slope)
        else:
            dx, curved = self._conjugate_gradients(slope, enough, pause, free)
        if pinned:
            dx += to_end
        cut = np.clip(self.x + dx, *face) - self.x
        whole = not pinned and np.array_equal(cut, self.x + dx - self.x)
        if curved is None or not whole:
            self.walks.push(cut, self._dz)
        if whole and self.certified:
            self._certify_models(None if curved is None else r + curved, 1.0)
        return dx

    def _try(self, target: np.ndarray, descent: np.ndarray, cuts: int = _CUTS) -> bool:
        promise = -float(descent @ (target - self.x))
        return promise < 0.0 and self._go(target, promise, cuts)

    def _proximal_step(self, gradient: np.ndarray) -> bool:
        """Towards the minimum of a model with the diagonal of the Hessian."""
        term, x = self.term, self.x
        metric = self.walks.diagonal(self._at) + self.term.shift
        metric = np.maximum(metric, 1e-12 * max(float(metric.max()), 1e-300))
        point = x - gradient / metric
        soft = np.copysign(np.maximum(np.abs(point) - term.l1 / metric, 0.0), point)
        target = np.clip(soft, term.low, term.high)
        dx = target - x
        promise = float(gradient @ dx) + float(term.l1 @ (np.abs(target) - np.abs(x)))
        if not promise < 0.0:
            return False
        self.walks.push(dx, self._dz)
        return self._go(target, promise, _FIRST_ORDER_CUTS)

    def _go(self, target: np.ndarray, promise: float, cuts: int) -> bool:
        """Move towards ``target``, all the way or less, so that the objective falls."""
        start, length = self.x.copy(), 1.0
        for _ in range(cuts):
            x = target if length == 1.0 else start + length * (target - start)
            loss = self.walks.expand(self.z, self._dz, length, self._next)[0]
            value = loss + self.term.value(x)
            if value <= self.value + _ENOUGH * length * promise:
                self.x[:] = x
                self._arrive(length, value)
                return True
            length *= 0.4
        return False


def _leaving_times(
    x: np.ndarray, dx: np.ndarray, face: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The share of the step after which each coordinate leaves its interval."""
    with np.errstate(divide="ignore", invalid="ignore"):
        times: np.ndarray = np.where(dx > 0.0, (face[1] - x) / dx, (face[0] - x) / dx)
    times[dx == 0.0] = np.inf
    return times
