"""The intercepts that are best for given margins.

They are not penalised, so the dual has the constraint ``sum_i mass_i y_i = 0`` and is minus
infinity wherever that is not met. At the best intercepts ``y = phi'(z)`` meets it: finding them, a
problem of a few numbers and no walk over the matrix, is what makes a certificate possible.
"""

from __future__ import annotations

import numpy as np

from ._walks import Expansion, OutputWalks, Walks

_MOST = 100
_ROUNDING = 4e-16


def centre(walks: Walks, z: np.ndarray, at: Expansion) -> np.ndarray:
    """Add to the margins z the numbers, returned, that make the loss least; leaves ``at`` there."""
    if isinstance(walks, OutputWalks):
        return _centre_outputs(walks, z, at)
    ones = np.ones(z.size)
    delta, low, high = 0.0, -np.inf, np.inf
    for _ in range(_MOST):
        _, slope, curvature = walks.expand(z, ones, delta, at)
        if abs(slope) <= _noise(walks, at):
            break
        if slope < 0.0:
            low = delta
        else:
            high = delta
        following = _next(delta, slope, curvature, low, high)
        if following == delta:
            break
        delta = following
    z += delta
    return np.array([delta])


def _noise(walks: Walks, at: Expansion) -> float:
    """What rounding makes of a sum of the slopes that should be zero."""
    slope = at.slope
    return _ROUNDING * float(np.linalg.norm(slope) / np.sqrt(slope.size))


def _next(delta: float, slope: float, curvature: float, low: float, high: float) -> float:
    reach = 4.0 * max(1.0, abs(delta))
    step = -slope / curvature if curvature > 0.0 else -np.copysign(reach, slope)
    following = delta + float(np.clip(step, -reach, reach))
    if low < following < high:
        return following
    return 0.5 * (low + high)


def _centre_outputs(walks: OutputWalks, z: np.ndarray, at: Expansion) -> np.ndarray:
    outputs = walks.outputs
    total, nothing = np.zeros(outputs), np.zeros(z.size)
    value = walks.expand(z, nothing, 0.0, at)[0]
    for _ in range(_MOST):
        gradient = level(walks, at)
        if np.abs(gradient).max() <= _noise(walks, at):
            break
        step = -np.linalg.lstsq(walks.intercept_hessian(at), gradient, rcond=1e-13)[0]
        along = np.tile(step, z.size // outputs)
        length, trial = 1.0, walks.expand(z, along, 1.0, at)[0]
        while not trial <= value and length > 1e-8:
            length *= 0.25
            trial = walks.expand(z, along, length, at)[0]
        if not trial <= value:
            break
        z += length * along
        total += length * step
        better, value = trial < value, trial
        if not better and np.abs(level(walks, at)).max() >= np.abs(gradient).max():
            break
    walks.expand(z, nothing, 0.0, at)
    return total


def level(walks: Walks, at: Expansion) -> np.ndarray:
    """The mean of the slopes, output by output."""
    slopes = at.slope.reshape(-1, walks.outputs)
    weight = walks.blocks.mass
    mean: np.ndarray = (slopes * weight[:, None]).sum(axis=0) / float(walks.blocks.n)
    return mean
