"""Dual coordinate ascent (SDCA): the iterate is ``x = grad g*(-r)``, read off r where needed."""

import numpy as np
from numba.extending import overload

from .._containers import Grouped
from ._jit import REASSOCIATE, helper, jit
from .blocks import add_block, move_dual
from .regularizers import separable_conjugate_gradient
from .rows import column, entries, entry, rows_of
from .team import barrier, share

_ONE = np.uint64(1)


def primal_entry(reg, c, r, shrink):  # pragma: no cover - replaced by its overload
    """Coordinate c of ``grad g*(-r)``."""
    raise NotImplementedError


def refresh(reg, c, r, shrink):  # pragma: no cover
    """Recompute what ``primal_entry`` keeps about the unit of c after r has changed."""
    raise NotImplementedError


@overload(primal_entry, inline="always")
def _primal_entry(reg, c, r, shrink):
    if reg.instance_class is Grouped:
        return lambda reg, c, r, shrink: -r[c] * shrink[np.uint64(reg.group[c])]
    return lambda reg, c, r, shrink: separable_conjugate_gradient(reg, c, -r[c])


@overload(refresh)
def _refresh(reg, c, r, shrink):
    def grouped(reg, c, r, shrink):
        g = np.uint64(reg.group[c])
        square = 0.0
        for k in range(np.uint64(reg.start[g]), np.uint64(reg.start[g + _ONE])):
            square += r[np.uint64(reg.members[k])] ** 2
        norm = np.sqrt(square)
        kept = norm - reg.weight[g]
        shrink[g] = kept / (norm * reg.lam) if kept > 0.0 else 0.0

    def separable(reg, c, r, shrink):
        pass

    return grouped if reg.instance_class is Grouped else separable


@jit
def refresh_all(reg, r, shrink):
    """``refresh`` for every coordinate."""
    for c in range(np.uint64(r.size)):
        refresh(reg, c, r, shrink)


@helper(fastmath=REASSOCIATE)
def _margins(blocks, reg, block, r, shrink, out):
    first, last = rows_of(blocks, block)
    outputs = blocks.outputs
    for row in range(first, last):
        start = (row - first) * outputs
        begin, end = entries(blocks.rows, row)
        if outputs == _ONE:
            total = 0.0
            for position in range(begin, end):
                c = column(blocks.rows, position)
                total += entry(blocks.rows, row, position) * primal_entry(reg, c, r, shrink)
            out[start] = total
            continue
        out[start : start + outputs] = 0.0
        for position in range(begin, end):
            c = column(blocks.rows, position) * outputs
            value = entry(blocks.rows, row, position)
            for k in range(outputs):
                out[start + k] += value * primal_entry(reg, c + k, r, shrink)


@helper
def _refresh_block(blocks, reg, block, r, shrink):
    first, last = rows_of(blocks, block)
    for row in range(first, last):
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            start = column(blocks.rows, position) * blocks.outputs
            for k in range(blocks.outputs):
                refresh(reg, start + k, r, shrink)


@jit
def ascent(blocks, loss, reg, steps, batches, y, r, shrink, work, team):
    """``y_i = prox at z = A_i^T grad g*(-r)``, then ``r += (1/n) sum mass A dy``."""
    features = np.uint64(r.size) // blocks.outputs
    left, right = share(team, features)
    width = work.width
    size = np.uint64(batches.shape[1])
    low, high = share(team, size)
    scratch = work.scratch[team.member]
    passed = 1
    for t in range(np.uint64(batches.shape[0])):
        batch = batches[t]
        for s in range(low, high):
            block = batch[s]
            delta = work.delta[0, s * width : (s + _ONE) * width]
            _margins(blocks, reg, block, r, shrink, scratch)
            move_dual(
                blocks,
                loss,
                block,
                False,
                steps.sigma[block],
                scratch,
                y,
                scratch[width:],
                delta,
            )
        passed = barrier(team, passed)
        for s in range(size):
            delta = work.delta[0, s * width : (s + _ONE) * width]
            add_block(blocks, batch[s], 1.0 / blocks.n, delta, r, left, right)
        passed = barrier(team, passed)
        if shrink.size > 0:
            if team.member == np.uint64(0):
                for s in range(size):
                    _refresh_block(blocks, reg, batch[s], r, shrink)
            passed = barrier(team, passed)
