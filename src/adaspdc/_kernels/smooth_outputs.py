"""``smooth`` for losses of several outputs: one row a block, K margins a row.

Vectors over rows hold K numbers a row, vectors over features K a feature (and K more for the
intercepts). A Hessian of a loss is applied through its slope, which says all there is to know: for
the multinomial loss the probabilities, for Crammer and Singer's which classes are active.
"""

import numpy as np

from .._codes import MULTINOMIAL, SMOOTH_CRAMMER_SINGER
from ._jit import helper, jit
from .blocks import loss_derivative, loss_value
from .rows import column, entries, entry, margins
from .smooth import _add_up, _mass, _tile
from .team import barrier, share

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _own(vector, row, outputs):
    return vector[row * outputs : (row + _ONE) * outputs]


@helper
def _probability(slope, k, label):
    return slope[k] + 1.0 if k == label else slope[k]


@helper
def _bend(loss, row, slope, v, out):
    """``out = H v`` with H the Hessian of the row's loss where its gradient is ``slope``."""
    place = row * loss.stride
    code, gamma = loss.code[place], loss.a[place]
    outputs = np.uint64(v.size)
    if code != MULTINOMIAL and code != SMOOTH_CRAMMER_SINGER:
        for k in range(outputs):
            out[k] = v[k]
        return
    label = np.uint64(loss.target[row * loss.per_row])
    total, members = 0.0, 0.0
    for k in range(outputs):
        p = _probability(slope, k, label)
        weight = p if code == MULTINOMIAL else (1.0 if p > 0.0 else 0.0)
        out[k] = weight
        total += weight * v[k]
        members += weight
    mean = total / members
    scale = 1.0 if code == MULTINOMIAL else 1.0 / gamma
    for k in range(outputs):
        out[k] *= scale * (v[k] - mean)


@helper
def _bend_diagonal(loss, row, slope, out):
    """The diagonal of that Hessian."""
    place = row * loss.stride
    code, gamma = loss.code[place], loss.a[place]
    outputs = np.uint64(out.size)
    if code != MULTINOMIAL and code != SMOOTH_CRAMMER_SINGER:
        out[:] = 1.0
        return
    label = np.uint64(loss.target[row * loss.per_row])
    members = 0.0
    for k in range(outputs):
        p = _probability(slope, k, label)
        out[k] = p if code == MULTINOMIAL else (1.0 if p > 0.0 else 0.0)
        members += out[k]
    scale = 1.0 if code == MULTINOMIAL else 1.0 / gamma
    for k in range(outputs):
        out[k] *= scale * (1.0 - out[k] / members)


@jit
def expand(blocks, loss, z, dz, step, slope, scratch, sums, team):
    """Losses at ``z + step dz``: their gradients, and three sums a tile as in ``smooth``."""
    outputs = blocks.outputs
    point = scratch[team.member, :outputs]
    bent = scratch[team.member, outputs : outputs + outputs]
    tiles, size = np.uint64(sums.shape[0]), np.uint64(z.size) // outputs
    for number in range(team.member, tiles, team.size):
        begin, end = _tile(number, tiles, size)
        value, first, second = 0.0, 0.0, 0.0
        for row in range(begin, end):
            direction, tilt = _own(dz, row, outputs), _own(slope, row, outputs)
            start = row * outputs
            for k in range(outputs):
                point[k] = z[start + k] + step * direction[k]
            loss_derivative(loss, row, row, point, tilt)
            mass = _mass(blocks, row)
            if mass != 0.0:
                value += mass * loss_value(loss, row, row, point)
                _bend(loss, row, tilt, direction, bent)
                for k in range(outputs):
                    first += mass * tilt[k] * direction[k]
                    second += mass * bent[k] * direction[k]
        sums[number, 0], sums[number, 1], sums[number, 2] = value, first, second


@jit
def push(blocks, features, x, z, team):
    """``z_i = x^T a_i``."""
    outputs = blocks.outputs
    free = np.uint64(x.size) > features * outputs
    low, high = share(team, np.uint64(z.size) // outputs)
    for row in range(low, high):
        own = _own(z, row, outputs)
        margins(blocks.rows, row, outputs, x, own)
        if free:
            for k in range(outputs):
                own[k] += x[features * outputs + k]


@helper
def _add(blocks, features, row, scale, u, out):
    """``out += scale * a_row (x) u``."""
    outputs = np.uint64(u.size)
    first, last = entries(blocks.rows, row)
    for position in range(first, last):
        start = column(blocks.rows, position) * outputs
        value = scale * entry(blocks.rows, row, position)
        for k in range(outputs):
            out[start + k] += value * u[k]
    if np.uint64(out.size) > features * outputs:
        for k in range(outputs):
            out[features * outputs + k] += scale * u[k]


@jit
def pull(blocks, features, u, cuts, parts, team):
    """``parts[0] = (1/n) sum_i mass_i a_i (x) u_i``."""
    outputs = blocks.outputs
    for part in range(team.member, np.uint64(parts.shape[0]), team.size):
        parts[part, :] = 0.0
        for row in range(np.uint64(cuts[part]), np.uint64(cuts[part + _ONE])):
            mass = _mass(blocks, row)
            if mass != 0.0:
                _add(blocks, features, row, mass / blocks.n, _own(u, row, outputs), parts[part])
    barrier(team, 1)
    _add_up(parts, team)


@jit
def curve(blocks, loss, features, slope, p, q, scratch, cuts, parts, team):
    """``q_i = p^T a_i`` and ``parts[0] = (1/n) sum_i mass_i a_i (x) H_i q_i``, in one walk."""
    outputs = blocks.outputs
    free = np.uint64(p.size) > features * outputs
    bent = scratch[team.member, :outputs]
    for part in range(team.member, np.uint64(parts.shape[0]), team.size):
        parts[part, :] = 0.0
        for row in range(np.uint64(cuts[part]), np.uint64(cuts[part + _ONE])):
            own = _own(q, row, outputs)
            margins(blocks.rows, row, outputs, p, own)
            if free:
                for k in range(outputs):
                    own[k] += p[features * outputs + k]
            mass = _mass(blocks, row)
            if mass != 0.0:
                _bend(loss, row, _own(slope, row, outputs), own, bent)
                _add(blocks, features, row, mass / blocks.n, bent, parts[part])
    barrier(team, 1)
    _add_up(parts, team)


@jit
def curvatures(blocks, loss, slope, out, team):
    """The diagonals of the Hessians of the losses, K numbers a row."""
    outputs = blocks.outputs
    low, high = share(team, np.uint64(slope.size) // outputs)
    for row in range(low, high):
        _bend_diagonal(loss, row, _own(slope, row, outputs), _own(out, row, outputs))


@jit
def curvature_of_columns(blocks, features, curvature, cuts, parts, team):
    """The diagonal of the Hessian of the mean loss, from what ``curvatures`` gave."""
    outputs = blocks.outputs
    free = np.uint64(parts.shape[1]) > features * outputs
    for part in range(team.member, np.uint64(parts.shape[0]), team.size):
        out = parts[part]
        out[:] = 0.0
        for row in range(np.uint64(cuts[part]), np.uint64(cuts[part + _ONE])):
            scale = _mass(blocks, row) / blocks.n
            own = _own(curvature, row, outputs)
            first, last = entries(blocks.rows, row)
            for place in range(first, last):
                value = np.float64(entry(blocks.rows, row, place))
                start = column(blocks.rows, place) * outputs
                for k in range(outputs):
                    out[start + k] += scale * own[k] * value * value
            if free:
                for k in range(outputs):
                    out[features * outputs + k] += scale * own[k]
    barrier(team, 1)
    _add_up(parts, team)


@jit
def intercept_hessian(blocks, loss, slope, scratch, out):
    """``out = (1/n) sum_i mass_i H_i``: the Hessian in the intercepts."""
    outputs = blocks.outputs
    unit, bent = scratch[0, :outputs], scratch[0, outputs : outputs + outputs]
    out[:, :] = 0.0
    for row in range(np.uint64(slope.size) // outputs):
        mass = _mass(blocks, row)
        for k in range(outputs):
            unit[:] = 0.0
            unit[k] = 1.0
            _bend(loss, row, _own(slope, row, outputs), unit, bent)
            for other in range(outputs):
                out[k, other] += mass * bent[other] / blocks.n
