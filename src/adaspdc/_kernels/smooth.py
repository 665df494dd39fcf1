"""Full walks over the rows for methods that use the curvature of the losses.

Every block is one row with one output. A walk that writes into a vector of d numbers gives each of
some fixed parts of the rows a vector of its own and adds these up in the end, so the bits of a
result do not depend on the number of threads.
"""

import math

import numpy as np

from ._jit import helper, jit
from .rows import add_row, column, dot, entries, entry
from .spans import conjugate_span, expand_span, model_sums, nearest_span
from .team import barrier, share

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _mass(blocks, row):
    return blocks.mass[row * blocks.mass_stride]


@helper
def _tile(number, tiles, size):
    """The half-open range of ``size`` items that makes up tile ``number`` of ``tiles``."""
    return (size * number) // tiles, (size * (number + _ONE)) // tiles


@jit
def expand(blocks, loss, z, dz, step, slope, curvature, sums, team):
    """Losses at ``z + step dz``: phi' and phi'' of every row, and three sums a tile.

    The sums are of phi and of its first and second derivative along dz, weighted by mass.
    """
    tiles, size = np.uint64(sums.shape[0]), np.uint64(slope.size)
    for number in range(team.member, tiles, team.size):
        begin, end = _tile(number, tiles, size)
        value, first, second = expand_span(blocks, loss, z, dz, step, slope, curvature, begin, end)
        sums[number, 0], sums[number, 1], sums[number, 2] = value, first, second


@helper
def _offset(features, x):
    """The intercept in x."""
    return x[features] if np.uint64(x.size) > features else 0.0


@jit
def push(blocks, features, x, z, team):
    """``z_i = <a_i, x>``."""
    low, high = share(team, np.uint64(z.size))
    offset = _offset(features, x)
    for row in range(low, high):
        z[row] = dot(blocks.rows, row, x) + offset


@jit
def push_flat(blocks, features, curvature, x, z, team):
    """``push`` for the rows of no curvature, which ``curve`` leaves out."""
    low, high = share(team, np.uint64(z.size))
    offset = _offset(features, x)
    for row in range(low, high):
        if curvature[row] == 0.0:
            z[row] = dot(blocks.rows, row, x) + offset


@helper
def _add_up(parts, team):
    """``parts[0]`` becomes the sum of all parts."""
    left, right = share(team, np.uint64(parts.shape[1]))
    for k in range(_ONE, np.uint64(parts.shape[0])):
        part, total = parts[k], parts[_ZERO]
        for j in range(left, right):
            total[j] += part[j]


@jit
def pull(blocks, features, u, cuts, parts, team):
    """``parts[0] = (1/n) sum_i mass_i u_i a_i``."""
    for k in range(team.member, np.uint64(parts.shape[0]), team.size):
        out = parts[k]
        out[:] = 0.0
        total = 0.0
        for row in range(np.uint64(cuts[k]), np.uint64(cuts[k + _ONE])):
            scale = _mass(blocks, row) * u[row] / blocks.n
            if scale != 0.0:
                add_row(blocks.rows, row, scale, out)
                total += scale
        if np.uint64(out.size) > features:
            out[features] = total
    barrier(team, 1)
    _add_up(parts, team)


@jit
def curve(blocks, features, curvature, p, q, cuts, parts, team):
    """``q_i = <a_i, p>`` and ``parts[0] = (1/n) sum_i mass_i phi_i'' q_i a_i``, in one walk."""
    offset = _offset(features, p)
    for k in range(team.member, np.uint64(parts.shape[0]), team.size):
        out = parts[k]
        out[:] = 0.0
        total = 0.0
        for row in range(np.uint64(cuts[k]), np.uint64(cuts[k + _ONE])):
            bend = curvature[row]
            if bend != 0.0:
                along = dot(blocks.rows, row, p) + offset
                q[row] = along
                scale = _mass(blocks, row) * bend * along / blocks.n
                if scale != 0.0:
                    add_row(blocks.rows, row, scale, out)
                    total += scale
        if np.uint64(out.size) > features:
            out[features] = total
    barrier(team, 1)
    _add_up(parts, team)


@jit
def curvature_of_columns(blocks, features, curvature, cuts, parts, team):
    """``parts[0]_j = (1/n) sum_i mass_i phi_i'' a_ij^2``: the diagonal of the Hessian."""
    for k in range(team.member, np.uint64(parts.shape[0]), team.size):
        out = parts[k]
        out[:] = 0.0
        total = 0.0
        for row in range(np.uint64(cuts[k]), np.uint64(cuts[k + _ONE])):
            scale = _mass(blocks, row) * curvature[row] / blocks.n
            if scale != 0.0:
                total += scale
                first, last = entries(blocks.rows, row)
                for place in range(first, last):
                    value = np.float64(entry(blocks.rows, row, place))
                    out[column(blocks.rows, place)] += scale * value * value
        if np.uint64(out.size) > features:
            out[features] = total
    barrier(team, 1)
    _add_up(parts, team)


@jit
def propose_dual(blocks, loss, slope, curvature, dz, step, shift, y, sums, team):
    """``y_i``, the point of the domain nearest to ``phi_i' + phi_i'' (step dz_i + shift)``.

    That is what the quadratic models of the losses say about the dual at the end of a step. Four
    sums a tile: of phi*, of y (which has to vanish where there is an intercept), of phi'' over the
    rows that were not moved into the domain (its derivative by ``shift``), and how many were.
    """
    tiles, size = np.uint64(sums.shape[0]), np.uint64(slope.size)
    for number in range(team.member, tiles, team.size):
        begin, end = _tile(number, tiles, size)
        nearest_span(blocks, loss, slope, curvature, dz, step, shift, y, begin, end)
        level, free, moved = model_sums(blocks, slope, curvature, dz, step, shift, y, begin, end)
        sums[number, 0] = conjugate_span(blocks, loss, y, begin, end)
        sums[number, 1], sums[number, 2], sums[number, 3] = level, free, moved


# --- the matrix (1/n) sum_i weight_i a_i a_i^T ---


@jit
def fill_tile(blocks, features, chosen, weight, begin, end, tile):
    """``sqrt(weight_i) a_i`` as the rows of ``tile``, for the rows ``chosen[begin:end]``."""
    for k in range(np.uint64(begin), np.uint64(end)):
        row = np.uint64(chosen[k])
        scale = math.sqrt(weight[k])
        out = tile[k - np.uint64(begin)]
        out[:] = 0.0
        first, last = entries(blocks.rows, row)
        for position in range(first, last):
            out[column(blocks.rows, position)] = scale * entry(blocks.rows, row, position)
        if np.uint64(out.size) > features:
            out[features] = scale


@jit
def add_outer_products(blocks, features, chosen, weight, begin, end, matrix):
    """``matrix += sum weight_i a_i a_i^T``, its lower triangle where columns increase in a row.

    Where they do not, an entry may land in the upper triangle instead: the sum of both counts.
    """
    rows = blocks.rows
    for k in range(np.uint64(begin), np.uint64(end)):
        row = np.uint64(chosen[k])
        first, last = entries(rows, row)
        for position in range(first, last):
            scale = weight[k] * entry(rows, row, position)
            out = matrix[column(rows, position)]
            for other in range(first, position + _ONE):
                out[column(rows, other)] += scale * entry(rows, row, other)
        if np.uint64(matrix.shape[0]) > features:
            out = matrix[features]
            for position in range(first, last):
                out[column(rows, position)] += weight[k] * entry(rows, row, position)
            out[features] += weight[k]


@jit
def gather(rows, order, indptr, indices, data, team):
    """Copy sparse rows together; ``indptr`` says where each goes."""
    low, high = share(team, np.uint64(order.size))
    for k in range(low, high):
        row = np.uint64(order[k])
        first, last = entries(rows, row)
        start = np.uint64(indptr[k])
        for position in range(first, last):
            indices[start + position - first] = rows.indices[position]
            data[start + position - first] = rows.data[position]


@jit
def gather_dense(values, order, out, team):
    """Copy dense rows together."""
    low, high = share(team, np.uint64(order.size))
    for k in range(low, high):
        row = np.uint64(order[k])
        for j in range(np.uint64(out.shape[1])):
            out[k, j] = values[row, j]
