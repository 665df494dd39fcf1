"""Where along a direction a convex function is least, about."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite

_FLAT = 0.3
"""The slope at the end, as a share of the slope at the beginning, that is flat enough."""
_LONGER = 4.0
_MOST = 60

Along = Callable[[float], tuple[float, float, float]]


def search(along: Along, value: float, slope: float) -> tuple[float, float]:
    """A step s > 0 and the value there; (0, value) if nothing below ``value`` was found.

    ``along(s)`` gives value, slope and curvature. Steps are Newton's, kept inside the bracket of
    slopes of both signs; the last call of ``along`` is for the step returned.
    """
    low, high, step = 0.0, inf, 1.0
    for _ in range(_MOST):
        at, tilt, bend = along(step)
        rounding = 1e-12 * abs(value)
        if isfinite(at) and abs(tilt) <= _FLAT * abs(slope) and at <= value + rounding:
            return step, at
        if isfinite(tilt) and tilt < 0.0:
            low = step
        else:
            high = step
        if high - low <= 1e-12 * high:
            break
        step = _next(step, tilt, bend, low, high)
    if low > 0.0:
        return low, along(low)[0]
    along(0.0)
    return 0.0, value


def _next(step: float, tilt: float, bend: float, low: float, high: float) -> float:
    following = step - tilt / bend if isfinite(tilt) and bend > 0.0 else inf
    if low < following < high:
        return min(following, _LONGER * step)
    if high == inf:
        return _LONGER * step
    return 0.5 * (low + high) if low > 0.0 else 0.1 * high
