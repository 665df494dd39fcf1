"""Samples of rows: for a first rough solution, and for a rough Hessian."""

from __future__ import annotations

import numpy as np

_ROWS_A_COLUMN = 20
"""A sample with fewer rows a column fits its own noise."""
_SHARES = (64, 16, 4)


def nested_samples(n: int, d: int, rng: np.random.Generator) -> list[tuple[np.ndarray, float]]:
    """Growing sets of rows, the last of them all, each with what a row of it then counts for."""
    sizes = [n // share for share in _SHARES if n // share >= _ROWS_A_COLUMN * d]
    everything = (np.arange(n, dtype=np.uint32), 1.0)
    if not sizes:
        return [everything]
    shuffled = rng.permutation(n).astype(np.uint32)
    return [*((np.sort(shuffled[:size]), n / size) for size in sizes), everything]


def curvature_sample(
    order: np.ndarray, weight: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """About ``count`` of the rows in ``order`` and weights that keep sums right on average.

    A row is kept with probability proportional to its weight, and for certain where that would be
    more than one; weightless rows are left out.
    """
    positive = np.flatnonzero(weight)
    if positive.size <= count:
        return order[positive], weight[positive]
    own = weight[positive]
    level = _level(own, count)
    kept = rng.random(own.size) * level < own
    return order[positive[kept]], np.maximum(own[kept], level)


def _level(weight: np.ndarray, count: int) -> float:
    """The weight from which on rows are kept for certain, so that about ``count`` are kept."""
    level = float(weight.sum()) / count
    for _ in range(20):
        large = weight >= level
        rest = count - int(np.count_nonzero(large))
        if rest <= 0:
            level *= 1.5
            continue
        following = float(weight[~large].sum()) / rest
        if abs(following - level) <= 1e-3 * level:
            break
        level = following
    return max(level, 1e-300)
