"""Checked arguments of the step rules, and a check of their results."""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ._sizes import FloatArray

_Number = TypeVar("_Number", float, FloatArray)

_TINY = float(np.finfo(np.float64).tiny)


def usable(name: str, value: _Number) -> _Number:
    """Refuse a quantity that under- or overflowed: the answer would be silently wrong."""
    low, high = float(np.min(value)), float(np.max(value))
    if not (low >= _TINY and high < math.inf):
        raise ValueError(
            f"the step rule's {name} leaves the range of float64 (from {low:g} to {high:g}): the "
            "norms of the blocks, gamma and lam are too far apart; rescale the data"
        )
    return value


def checked_blocks(values: ArrayLike, gamma: ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
    """One positive number per block, and gamma as an array of dimension 0 or 1."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {values.shape}")
    _refuse_nonpositive(name, values, "leave out blocks of norm zero, rescale infinite ones")
    return values, checked_gamma(gamma, values.size)


def checked_gamma(gamma: ArrayLike, n: int) -> FloatArray:
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.shape not in ((), (n,)):
        raise ValueError(f"gamma must be one number or have shape ({n},), got {gamma.shape}")
    _refuse_nonpositive("gamma", gamma, "the rule needs strongly convex conjugates: smooth losses")
    return gamma


def _refuse_nonpositive(name: str, values: FloatArray, remedy: str) -> None:
    if not (np.min(values) > 0.0 and np.max(values) < math.inf):
        wrong = int(np.flatnonzero(~((values > 0.0) & (values < math.inf)))[0])
        raise ValueError(
            f"{name}[{wrong}]={values.flat[wrong]} must be positive and finite: {remedy}"
        )


def checked_inclusion(inclusion: ArrayLike, n: int) -> FloatArray:
    pi = np.asarray(inclusion, dtype=np.float64)
    if pi.shape not in ((), (n,)):
        raise ValueError(f"inclusion must be one number or have shape ({n},), got {pi.shape}")
    if not (np.min(pi) > 0.0 and np.max(pi) <= 1.0):
        raise ValueError(
            f"inclusion lies in {np.min(pi)}..{np.max(pi)}: probabilities of inclusion must be "
            "positive, or the block is never visited, and at most 1"
        )
    return pi


def checked_lam(lam: float) -> float:
    if not 0.0 < lam < math.inf:
        raise ValueError(
            f"lam={lam!r} must be positive and finite: the rule needs a strongly convex "
            "regulariser, e.g. lam=1e-6"
        )
    return float(lam)


def checked_batch(batch_size: int, n: int) -> int:
    if not 1 <= batch_size <= n:
        raise ValueError(f"batch_size={batch_size!r} must lie in 1..{n}, the number of blocks")
    return int(batch_size)


def largest_coupling(norms: FloatArray, gamma: FloatArray) -> float:
    with np.errstate(all="ignore"):
        return usable("coupling", float(np.max(norms / np.sqrt(gamma))))
