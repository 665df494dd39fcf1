"""Full passes over the data: everything a certificate needs, and the step of the batch method.

The rows are walked in tiles small enough to stay in cache, so a tile is read from memory once
though it is used twice: for the margins of its rows and for its share of r.
"""

import numpy as np

from ._jit import helper, jit
from .blocks import (
    add_block,
    block_margins,
    loss_conjugate,
    loss_derivative,
    loss_value,
    move_dual,
    owned_entries,
)
from .rows import add_row, column, dot, entry, rows_of
from .spans import conjugate_span, value_span
from .team import barrier, share

TILE = 128
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _value_at(blocks, loss, block, x, scratch):
    first, last = rows_of(blocks, block)
    z = scratch[: (last - first) * blocks.outputs]
    block_margins(blocks, block, x, z)
    return loss_value(loss, block, first, z)


@helper
def _conjugate_of(blocks, loss, block, y):
    first, last = rows_of(blocks, block)
    own = y[first * blocks.outputs : last * blocks.outputs]
    return loss_conjugate(loss, block, first, own)


@helper
def _add_dual(blocks, block, y, r, left, right):
    first, last = rows_of(blocks, block)
    mass = blocks.mass[block * blocks.mass_stride]
    if mass != 0.0:
        own = y[first * blocks.outputs : last * blocks.outputs]
        add_block(blocks, block, mass / blocks.n, own, r, left, right)


@jit
def evaluate_rows(blocks, loss, x, other, y, r, sums, tile, team):
    """``evaluate`` for blocks of one row and one output, without the detour over buffers."""
    rows, mass, count = blocks.rows, blocks.mass, blocks.n
    total, z = np.uint64(y.size), np.empty(tile)
    left, right = share(team, np.uint64(r.size))
    r[left:right] = 0.0
    for number in range(np.uint64(sums.shape[0])):
        begin = number * tile
        end = min(begin + tile, total)
        if number % team.size == team.member:
            for row in range(begin, end):
                z[row - begin] = dot(rows, row, x)
            sums[number, 0] = value_span(blocks, loss, z, begin, end)
            if other.size > 0:
                for row in range(begin, end):
                    z[row - begin] = dot(rows, row, other)
                sums[number, 1] = value_span(blocks, loss, z, begin, end)
            sums[number, 2] = conjugate_span(blocks, loss, y, begin, end)
        for row in range(begin, end):
            move = mass[row * blocks.mass_stride] * y[row] / count
            if move == 0.0:
                continue
            if team.size == _ONE:
                add_row(rows, row, move, r)
            else:
                first, last = owned_entries(rows, row, left, right)
                for position in range(first, last):
                    j = column(rows, position)
                    if left <= j < right:
                        r[j] += move * entry(rows, row, position)


@jit
def evaluate(blocks, loss, x, other, y, r, sums, scratch, tile, team):
    """Loss at x, loss at ``other``, conjugate of y (one row of ``sums`` a tile), and r from y.

    ``other`` may be empty: then its loss is 0.

    Sums of a tile are weighted by ``mass``; the caller divides by ``count``. ``r`` is recomputed
    from nothing.
    """
    members = np.uint64(blocks.mass.size) if blocks.mass_stride == _ONE else _ZERO
    total = np.uint64(y.size) // blocks.outputs
    if blocks.start.size > 0:
        total = np.uint64(blocks.start.size) - _ONE
    elif members > _ZERO:
        total = members
    features = np.uint64(r.size) // blocks.outputs
    left, right = share(team, features)
    r[left * blocks.outputs : right * blocks.outputs] = 0.0
    own = scratch[team.member]
    for number in range(np.uint64(sums.shape[0])):
        begin = number * tile
        end = min(begin + tile, total)
        if number % team.size == team.member:
            at_x, at_other, conjugate = 0.0, 0.0, 0.0
            for block in range(begin, end):
                mass = blocks.mass[block * blocks.mass_stride]
                if mass != 0.0:
                    at_x += mass * _value_at(blocks, loss, block, x, own)
                    if other.size > 0:
                        at_other += mass * _value_at(blocks, loss, block, other, own)
                    conjugate += mass * _conjugate_of(blocks, loss, block, y)
            sums[number, 0], sums[number, 1], sums[number, 2] = at_x, at_other, conjugate
        for block in range(begin, end):
            _add_dual(blocks, block, y, r, left, right)


@jit
def row_values_at_zero(blocks, loss, total, sums, tile):
    """``values_at_zero`` for blocks of one row and one output."""
    z = np.zeros(tile)
    for number in range(np.uint64(sums.shape[0])):
        begin = number * tile
        sums[number, 0] = value_span(blocks, loss, z, begin, min(begin + tile, np.uint64(total)))


@jit
def values_at_zero(blocks, loss, total, sums, tile, scratch):
    """Losses at z = 0, one sum a tile; the matrix is not looked at."""
    for number in range(np.uint64(sums.shape[0])):
        begin = number * tile
        at_zero = 0.0
        for block in range(begin, min(begin + tile, np.uint64(total))):
            mass = blocks.mass[block * blocks.mass_stride]
            if mass != 0.0:
                first, last = rows_of(blocks, block)
                z = scratch[: (last - first) * blocks.outputs]
                z[:] = 0.0
                at_zero += mass * loss_value(loss, block, first, z)
        sums[number, 0] = at_zero


@jit
def evaluate_with_intercept(blocks, loss, features, x, y, r, sums, tile):
    """Sums of losses at x (column 0) and of conjugates of y (2), and r from y; one row a block.

    x and r hold the intercepts last, one per output.
    """
    outputs = blocks.outputs
    z = np.zeros(outputs)
    total = np.uint64(y.size) // outputs
    r[:] = 0.0
    for number in range(np.uint64(sums.shape[0])):
        begin = number * tile
        at_x, conjugate = 0.0, 0.0
        for row in range(begin, min(begin + tile, total)):
            mass = blocks.mass[row * blocks.mass_stride]
            if mass == 0.0:
                continue
            block_margins(blocks, row, x, z)
            for k in range(outputs):
                z[k] += x[features * outputs + k]
                r[features * outputs + k] += mass * y[row * outputs + k] / blocks.n
            at_x += mass * loss_value(loss, row, row, z)
            conjugate += mass * _conjugate_of(blocks, loss, row, y)
            _add_dual(blocks, row, y, r, _ZERO, features)
        sums[number, 0], sums[number, 2] = at_x, conjugate


@jit
def dual_sum(blocks, y, r):
    """``r = (1/count) sum_i mass_i A_i y_i``."""
    total = np.uint64(y.size) // blocks.outputs
    if blocks.start.size > 0:
        total = np.uint64(blocks.start.size) - _ONE
    features = np.uint64(r.size) // blocks.outputs
    r[:] = 0.0
    for block in range(total):
        _add_dual(blocks, block, y, r, _ZERO, features)


@jit
def batch_step(blocks, loss, steps, x, y, r, scratch, tile, team):
    """Move every dual block by its prox at the margins of x, then ``r`` from the new y."""
    total = np.uint64(steps.sigma.size)
    features = np.uint64(r.size) // blocks.outputs
    left, right = share(team, features)
    r[left * blocks.outputs : right * blocks.outputs] = 0.0
    half = np.uint64(scratch.shape[1]) // np.uint64(3)
    own = scratch[team.member]
    passed = 1
    for begin in range(_ZERO, total, tile):
        end = min(begin + tile, total)
        low, high = share(team, end - begin)
        for block in range(begin + low, begin + high):
            block_margins(blocks, block, x, own)
            move_dual(
                blocks,
                loss,
                block,
                False,
                steps.sigma[block],
                own,
                y,
                own[half:],
                own[np.uint64(2) * half :],
            )
        passed = barrier(team, passed)
        for block in range(begin, end):
            _add_dual(blocks, block, y, r, left, right)


@helper
def answer_at_zero(blocks, loss, block, y, scratch):
    """``y_i = argmin phi_i*``: the optimum of a block whose A_i is zero."""
    first, last = rows_of(blocks, block)
    own = y[first * blocks.outputs : last * blocks.outputs]
    z = scratch[: own.size]
    z[:] = 0.0
    loss_derivative(loss, block, first, z, own)


@jit
def rows_feasible(blocks, loss, y):
    """Whether the duals of all rows, each a block of one coordinate, are inside the domain."""
    return np.isfinite(conjugate_span(blocks, loss, y, _ZERO, np.uint64(y.size)))


@jit
def feasible_start(blocks, loss, y, scratch):
    """Give every block whose present dual value is outside the domain the answer to z = 0."""
    total = np.uint64(y.size) // blocks.outputs
    if blocks.start.size > 0:
        total = np.uint64(blocks.start.size) - _ONE
    for block in range(total):
        if not np.isfinite(_conjugate_of(blocks, loss, block, y)):
            answer_at_zero(blocks, loss, block, y, scratch)


@jit
def answers_at_zero(blocks, loss, chosen, y, scratch):
    """``answer_at_zero`` for all blocks in ``chosen``."""
    for block in chosen:
        answer_at_zero(blocks, loss, np.uint64(block), y, scratch)
