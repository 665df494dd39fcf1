"""Samples of rows: for a first rough solution, and for a rough Hessian."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._containers import CSR, BuiltinLoss, Dense
from .._flat import FlatProblem
from .._threads import Threads

_ROWS_A_COLUMN = 5
"""A sample with fewer rows a column fits its own noise."""
_SHARES = (64, 16, 4)


def nested_samples(n: int, d: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Growing sets of rows, in increasing order, each part of the next."""
    sizes = [n // share for share in _SHARES if n // share >= _ROWS_A_COLUMN * d]
    if not sizes:
        return []
    place = rng.random(n, dtype=np.float32)
    drawn = [np.flatnonzero(place < size / n).astype(np.uint32) for size in sizes]
    return [order for order, size in zip(drawn, sizes, strict=True) if 2 * order.size >= size]


def restricted(problem: FlatProblem, order: np.ndarray, threads: Threads) -> FlatProblem:
    """The problem with the mean taken over some of the rows, copied together.

    Rows far apart would be read from memory one wait after the other in every walk.
    """
    blocks, loss = problem.blocks, problem.loss
    rows = _gathered(blocks.rows, order, threads)
    chosen = blocks._replace(
        rows=rows,
        mass=blocks.mass[order] if int(blocks.mass_stride) else blocks.mass,
        n=blocks.n * order.size / problem.total,
    )
    entries = rows.values.size if isinstance(rows, Dense) else rows.data.size
    return replace(
        problem,
        blocks=chosen,
        loss=_losses_of(loss, order),
        total=order.size,
        dual_size=order.size * int(blocks.outputs),
        norms=np.zeros(0),
        active=None,
        idle=np.zeros(0, dtype=np.int64),
        entries=entries,
    )


def _gathered(rows: Dense | CSR, order: np.ndarray, threads: Threads) -> Dense | CSR:
    from .._kernels.smooth import gather, gather_dense

    if isinstance(rows, Dense):
        values = np.empty((order.size, rows.values.shape[1]), rows.values.dtype)
        size = threads.worth(values.size)
        threads.run(lambda team: gather_dense(rows.values, order, values, team), size)
        return Dense(_read_only(values))
    before = np.zeros(order.size + 1, dtype=np.int64)
    np.cumsum((rows.indptr[1:] - rows.indptr[:-1])[order], out=before[1:])
    indptr = before.astype(rows.indptr.dtype)
    data, indices = np.empty(before[-1], rows.data.dtype), np.empty(before[-1], rows.indices.dtype)
    size = threads.worth(data.size)
    threads.run(lambda team: gather(rows, order, indptr, indices, data, team), size)
    return CSR(*(_read_only(array) for array in (data, indices, indptr)))


def _losses_of(loss: Any, order: np.ndarray) -> Any:
    width = int(loss.per_row)
    targets = _read_only(loss.target.reshape(-1, width)[order].reshape(-1))
    loss = loss._replace(target=targets)
    if isinstance(loss, BuiltinLoss) and int(loss.stride):
        return loss._replace(code=loss.code[order], a=loss.a[order], b=loss.b[order])
    return loss


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def curvature_sample(
    weight: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """About ``count`` rows and weights that keep sums right on average.

    A row is kept with probability proportional to its weight, and for certain where that would be
    more than one; weightless rows are left out.
    """
    positive = np.flatnonzero(weight)
    own = weight[positive]
    if positive.size > count:
        level = _level(own, count)
        kept = rng.random(own.size, dtype=np.float32) * level < own
        positive, own = positive[kept], np.maximum(own[kept], level)
    return positive.astype(np.uint32), own


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
