"""Losses of many rows at once, every row a block of one coordinate.

Where all rows have the same built-in loss, these are loops without branches, which the compiler
turns into vector instructions: five to fifteen times as fast as one row after the other. Every loop
is written once; which loss it is, and whether there are weights, is decided outside of it.

Sums are weighted by mass. Rows of no mass do not count, whatever their values.
"""

import numpy as np
from numba.extending import overload

from .._codes import LOGISTIC
from .._containers import BuiltinLoss
from . import losses
from ._jit import REASSOCIATE, helper
from .blocks import scalar_conjugate, scalar_expansion, scalar_nearest, scalar_value

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@helper(inline=True)
def _counted(mass, term):
    """``mass * term``, and 0 where there is no mass."""
    return mass * term if mass != 0.0 else 0.0


@helper(inline=True)
def _mass(blocks, row):
    return blocks.mass[row * blocks.mass_stride]


@helper(inline=True)
def _alike(loss):
    """Whether one loss serves all rows."""
    return loss.stride == _ZERO


# --- values, slopes and curvatures ---


@helper(inline=True, fastmath=REASSOCIATE)
def _expand(
    logistic, code, a, b, target, weighted, mass, z, dz, step, slope, curvature, begin, end
):
    value, first, second = 0.0, 0.0, 0.0
    for row in range(begin, end):
        own = mass[row] if weighted else 1.0
        along = dz[row]
        ahead = z[row] + step * along
        if logistic:
            at, tilt, bend = losses.logistic_expansion(ahead, target[row])
        else:
            at, tilt, bend = losses.quadratic_expansion(code, a, b, ahead, target[row])
        slope[row] = tilt
        curvature[row] = bend
        value += _counted(own, at)
        first += _counted(own, tilt * along)
        second += _counted(own, bend * along * along)
    return value, first, second


@helper
def _expand_singly(blocks, loss, z, dz, step, slope, curvature, begin, end):
    value, first, second = 0.0, 0.0, 0.0
    for row in range(begin, end):
        own = _mass(blocks, row)
        along = dz[row]
        at, tilt, bend = scalar_expansion(loss, row, z[row] + step * along)
        slope[row] = tilt
        curvature[row] = bend
        value += _counted(own, at)
        first += _counted(own, tilt * along)
        second += _counted(own, bend * along * along)
    return value, first, second


def expand_span(blocks, loss, z, dz, step, slope, curvature, begin, end):  # pragma: no cover
    """Fill slope and curvature at ``z + step dz``; sums of phi and its derivatives along dz."""
    raise NotImplementedError


@overload(expand_span)
def _expand_span(blocks, loss, z, dz, step, slope, curvature, begin, end):
    if loss.instance_class is not BuiltinLoss:
        return _expand_singly.py_func

    def alike(blocks, loss, z, dz, step, slope, curvature, begin, end):
        if not _alike(loss):
            return _expand_singly(blocks, loss, z, dz, step, slope, curvature, begin, end)
        code, a, b, t = loss.code[0], loss.a[0], loss.b[0], loss.target
        mass = blocks.mass
        if blocks.mass_stride == _ONE:
            if code == LOGISTIC:
                return _expand(
                    True, code, a, b, t, True, mass, z, dz, step, slope, curvature, begin, end
                )
            return _expand(
                False, code, a, b, t, True, mass, z, dz, step, slope, curvature, begin, end
            )
        if code == LOGISTIC:
            value, first, second = _expand(
                True, code, a, b, t, False, mass, z, dz, step, slope, curvature, begin, end
            )
        else:
            value, first, second = _expand(
                False, code, a, b, t, False, mass, z, dz, step, slope, curvature, begin, end
            )
        return mass[0] * value, mass[0] * first, mass[0] * second

    return alike


# --- values ---


@helper(inline=True, fastmath=REASSOCIATE)
def _value(logistic, code, a, b, target, weighted, mass, z, begin, end):
    total = 0.0
    for k in range(end - begin):
        own = mass[begin + k] if weighted else 1.0
        t = target[begin + k]
        if logistic:
            at = losses.logistic_value(z[k], t)
        else:
            at = losses.quadratic_value(code, a, b, z[k], t)
        total += _counted(own, at)
    return total


@helper
def _value_singly(blocks, loss, z, begin, end):
    total = 0.0
    for row in range(begin, end):
        total += _counted(_mass(blocks, row), scalar_value(loss, row, z[row - begin]))
    return total


def value_span(blocks, loss, z, begin, end):  # pragma: no cover
    """The sum of phi over the rows ``begin`` to ``end``, whose margins are ``z[0]`` and on."""
    raise NotImplementedError


@overload(value_span)
def _value_span(blocks, loss, z, begin, end):
    if loss.instance_class is not BuiltinLoss:
        return _value_singly.py_func

    def alike(blocks, loss, z, begin, end):
        if not _alike(loss):
            return _value_singly(blocks, loss, z, begin, end)
        code, a, b, t = loss.code[0], loss.a[0], loss.b[0], loss.target
        mass = blocks.mass
        if blocks.mass_stride == _ONE:
            if code == LOGISTIC:
                return _value(True, code, a, b, t, True, mass, z, begin, end)
            return _value(False, code, a, b, t, True, mass, z, begin, end)
        if code == LOGISTIC:
            return _counted(mass[0], _value(True, code, a, b, t, False, mass, z, begin, end))
        return _counted(mass[0], _value(False, code, a, b, t, False, mass, z, begin, end))

    return alike


# --- conjugates ---


@helper(inline=True, fastmath=REASSOCIATE)
def _conjugate(logistic, code, a, b, target, weighted, mass, y, begin, end):
    total = 0.0
    for row in range(begin, end):
        own = mass[row] if weighted else 1.0
        if logistic:
            at = losses.logistic_conjugate(y[row], target[row])
        else:
            at = losses.quadratic_conjugate(code, a, b, y[row], target[row])
        total += _counted(own, at)
    return total


@helper
def _conjugate_singly(blocks, loss, y, begin, end):
    total = 0.0
    for row in range(begin, end):
        total += _counted(_mass(blocks, row), scalar_conjugate(loss, row, y[row]))
    return total


def conjugate_span(blocks, loss, y, begin, end):  # pragma: no cover
    """The sum of phi* over the rows ``begin`` to ``end``."""
    raise NotImplementedError


@overload(conjugate_span)
def _conjugate_span(blocks, loss, y, begin, end):
    if loss.instance_class is not BuiltinLoss:
        return _conjugate_singly.py_func

    def alike(blocks, loss, y, begin, end):
        if not _alike(loss):
            return _conjugate_singly(blocks, loss, y, begin, end)
        code, a, b, t = loss.code[0], loss.a[0], loss.b[0], loss.target
        mass = blocks.mass
        if blocks.mass_stride == _ONE:
            if code == LOGISTIC:
                return _conjugate(True, code, a, b, t, True, mass, y, begin, end)
            return _conjugate(False, code, a, b, t, True, mass, y, begin, end)
        if code == LOGISTIC:
            return _counted(mass[0], _conjugate(True, code, a, b, t, False, mass, y, begin, end))
        return _counted(mass[0], _conjugate(False, code, a, b, t, False, mass, y, begin, end))

    return alike


# --- dual points of quadratic models ---


@helper(inline=True)
def _nearest(logistic, code, a, b, target, slope, curvature, dz, step, shift, y, begin, end):
    for row in range(begin, end):
        model = slope[row] + curvature[row] * (step * dz[row] + shift)
        if logistic:
            y[row] = losses.logistic_nearest(model, target[row])
        else:
            y[row] = losses.quadratic_nearest(code, a, b, model, target[row])


@helper
def _nearest_singly(blocks, loss, slope, curvature, dz, step, shift, y, begin, end):
    for row in range(begin, end):
        model = slope[row] + curvature[row] * (step * dz[row] + shift)
        y[row] = scalar_nearest(loss, row, model)


def nearest_span(blocks, loss, slope, curvature, dz, step, shift, y, begin, end):
    """``y_i``, the point of the domain of phi* nearest to ``phi_i' + phi_i'' (step dz_i + shift)``.

    That is what the quadratic models of the losses say about the dual at the end of a step.
    """
    raise NotImplementedError  # pragma: no cover


@overload(nearest_span)
def _nearest_span(blocks, loss, slope, curvature, dz, step, shift, y, begin, end):
    if loss.instance_class is not BuiltinLoss:
        return _nearest_singly.py_func

    def alike(blocks, loss, slope, curvature, dz, step, shift, y, begin, end):
        if not _alike(loss):
            _nearest_singly(blocks, loss, slope, curvature, dz, step, shift, y, begin, end)
            return
        code, a, b, t = loss.code[0], loss.a[0], loss.b[0], loss.target
        if code == LOGISTIC:
            _nearest(True, code, a, b, t, slope, curvature, dz, step, shift, y, begin, end)
        else:
            _nearest(False, code, a, b, t, slope, curvature, dz, step, shift, y, begin, end)

    return alike


@helper(fastmath=REASSOCIATE)
def model_sums(blocks, slope, curvature, dz, step, shift, y, begin, end):
    """Three sums: of y, of phi'' over the rows that were not moved, and how many were."""
    level, free, moved = 0.0, 0.0, 0.0
    for row in range(begin, end):
        model = slope[row] + curvature[row] * (step * dz[row] + shift)
        own = _mass(blocks, row)
        stays = y[row] == model
        level += _counted(own, y[row])
        free += _counted(own, curvature[row]) if stays else 0.0
        moved += 0.0 if stays or own == 0.0 else 1.0
    return level, free, moved
