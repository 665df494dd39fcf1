"""One dual block at a time: its loss, its next dual value, its effect on the iterate."""

import numpy as np
from numba.extending import overload

from .._containers import BuiltinLoss, Dense, UserLoss
from . import losses
from ._jit import helper
from .rows import (
    add_row_to_pair,
    column,
    entries,
    entry,
    margins,
    margins_of_pair,
    place_of_e,
    place_of_w,
    rows_of,
)

_ONE = np.uint64(1)
_DIFFERENCE = 1e-5
"""Half the distance, relative to z, at which the slope of a user's loss is compared."""


# --- losses: built-in by number, or a user's compiled functions -----------------------------------


def loss_value(loss, block, row, z):  # pragma: no cover - replaced by its overload
    """``phi_block(z)``; ``row`` is the first row of the block."""
    raise NotImplementedError


def loss_conjugate(loss, block, row, y):  # pragma: no cover
    """``phi_block*(y)``."""
    raise NotImplementedError


def loss_derivative(loss, block, row, z, out):  # pragma: no cover
    """``out = grad phi_block(z)``."""
    raise NotImplementedError


def loss_prox(loss, block, row, z, y, sigma, out):  # pragma: no cover
    """``out = argmin_u phi_block*(u) - <z, u> + |u - y|^2 / (2 sigma)``."""
    raise NotImplementedError


def _kind(loss):
    if loss.instance_class is BuiltinLoss:
        return "builtin"
    return "user" if loss.instance_class is UserLoss else "block"


@helper
def _own_targets(loss, row, size):
    start = row * loss.per_row
    return loss.target[start : start + (_ONE if loss.single else np.uint64(size))]


@overload(loss_value)
def _loss_value(loss, block, row, z):
    kind = _kind(loss)

    def builtin(loss, block, row, z):
        k = block * loss.stride
        targets = loss.target[row * loss.per_row :]
        return losses.block_value(loss.code[k], loss.a[k], loss.b[k], z, targets)

    def user(loss, block, row, z):
        total = 0.0
        for k in range(np.uint64(z.size)):
            total += loss.functions[1](z[k], loss.target[row * loss.per_row + k])
        return total

    def whole(loss, block, row, z):
        return loss.functions[1](z, _own_targets(loss, row, z.size))

    return {"builtin": builtin, "user": user, "block": whole}[kind]


@overload(loss_conjugate)
def _loss_conjugate(loss, block, row, y):
    kind = _kind(loss)

    def builtin(loss, block, row, y):
        k = block * loss.stride
        targets = loss.target[row * loss.per_row :]
        return losses.block_conjugate(loss.code[k], loss.a[k], loss.b[k], y, targets)

    def user(loss, block, row, y):
        total = 0.0
        for k in range(np.uint64(y.size)):
            total += loss.functions[2](y[k], loss.target[row * loss.per_row + k])
        return total

    def whole(loss, block, row, y):
        return loss.functions[2](y, _own_targets(loss, row, y.size))

    return {"builtin": builtin, "user": user, "block": whole}[kind]


@overload(loss_prox)
def _loss_prox(loss, block, row, z, y, sigma, out):
    kind = _kind(loss)

    def builtin(loss, block, row, z, y, sigma, out):
        k = block * loss.stride
        targets = loss.target[row * loss.per_row :]
        losses.block_prox(loss.code[k], loss.a[k], loss.b[k], z, y, sigma, targets, out)

    def user(loss, block, row, z, y, sigma, out):
        for k in range(np.uint64(z.size)):
            target = loss.target[row * loss.per_row + k]
            out[k] = loss.functions[3](y[k] + sigma * z[k], sigma, target)

    def whole(loss, block, row, z, y, sigma, out):
        loss.functions[3](y + sigma * z, sigma, _own_targets(loss, row, z.size), out)

    return {"builtin": builtin, "user": user, "block": whole}[kind]


@overload(loss_derivative)
def _loss_derivative(loss, block, row, z, out):
    kind = _kind(loss)

    def builtin(loss, block, row, z, out):
        k = block * loss.stride
        targets = loss.target[row * loss.per_row :]
        losses.block_derivative(loss.code[k], loss.a[k], loss.b[k], z, targets, out)

    def user(loss, block, row, z, out):
        for k in range(np.uint64(z.size)):
            out[k] = loss.functions[4](z[k], loss.target[row * loss.per_row + k])

    def whole(loss, block, row, z, out):
        loss.functions[4](z, _own_targets(loss, row, z.size), out)

    return {"builtin": builtin, "user": user, "block": whole}[kind]


def scalar_proposal(loss, row, z, y, sigma, gradient):  # pragma: no cover
    """The next dual value of a block of one coordinate, without a detour through arrays."""
    raise NotImplementedError


@overload(scalar_proposal, jit_options={"forceinline": True})
def _scalar_proposal(loss, row, z, y, sigma, gradient):
    if _kind(loss) == "builtin":

        def builtin(loss, row, z, y, sigma, gradient):
            k = row * loss.stride
            target = loss.target[row]
            if gradient:
                return losses.derivative(loss.code[k], loss.a[k], loss.b[k], z, target)
            return losses.prox(loss.code[k], loss.a[k], loss.b[k], z, y, sigma, target)

        return builtin

    def user(loss, row, z, y, sigma, gradient):
        if gradient:
            return loss.functions[4](z, loss.target[row])
        return loss.functions[3](y + sigma * z, sigma, loss.target[row])

    return user


def scalar_value(loss, row, z):  # pragma: no cover
    """``phi(z)`` of a block of one coordinate."""
    raise NotImplementedError


def scalar_conjugate(loss, row, y):  # pragma: no cover
    """``phi*(y)`` of a block of one coordinate."""
    raise NotImplementedError


@overload(scalar_value)
def _scalar_value(loss, row, z):
    if _kind(loss) != "builtin":
        return lambda loss, row, z: loss.functions[1](z, loss.target[row])

    def builtin(loss, row, z):
        k = row * loss.stride
        return losses.value(loss.code[k], loss.a[k], loss.b[k], z, loss.target[row])

    return builtin


@overload(scalar_conjugate)
def _scalar_conjugate(loss, row, y):
    if _kind(loss) != "builtin":
        return lambda loss, row, y: loss.functions[2](y, loss.target[row])

    def builtin(loss, row, y):
        k = row * loss.stride
        return losses.conjugate(loss.code[k], loss.a[k], loss.b[k], y, loss.target[row])

    return builtin


def scalar_expansion(loss, row, z):  # pragma: no cover
    """``phi(z)``, its slope and its curvature, of a block of one coordinate."""
    raise NotImplementedError


def scalar_nearest(loss, row, y):  # pragma: no cover
    """The point of the domain of ``phi*`` that is closest to y (a user's loss: y itself)."""
    raise NotImplementedError


@overload(scalar_expansion)
def _scalar_expansion(loss, row, z):
    if _kind(loss) == "builtin":

        def builtin(loss, row, z):
            k = row * loss.stride
            return losses.expansion(loss.code[k], loss.a[k], loss.b[k], z, loss.target[row])

        return builtin

    def user(loss, row, z):
        t = loss.target[row]
        reach = _DIFFERENCE * (1.0 + abs(z))
        rise = loss.functions[4](z + reach, t) - loss.functions[4](z - reach, t)
        return loss.functions[1](z, t), loss.functions[4](z, t), max(0.5 * rise / reach, 0.0)

    return user


@overload(scalar_nearest)
def _scalar_nearest(loss, row, y):
    if _kind(loss) != "builtin":
        return lambda loss, row, y: y

    def builtin(loss, row, y):
        k = row * loss.stride
        return losses.nearest(loss.code[k], loss.a[k], loss.b[k], y, loss.target[row])

    return builtin


# --- one block of a batch -------------------------------------------------------------------------


@helper
def move_dual(blocks, loss, block, gradient, sigma, z, y, scratch, delta):
    """Move ``y`` of one block given its margins ``z``; ``delta`` receives mass times the move."""
    first, last = rows_of(blocks, block)
    start = first * blocks.outputs
    width = (last - first) * blocks.outputs
    own = y[start : start + width]
    new = scratch[:width]
    if gradient:
        loss_derivative(loss, block, first, z[:width], new)
    else:
        loss_prox(loss, block, first, z[:width], own, sigma, new)
    mass = blocks.mass[block * blocks.mass_stride]
    for k in range(width):
        delta[k] = mass * (new[k] - own[k])
        own[k] = new[k]


@helper
def block_margins(blocks, block, x, out):
    """``out = A_block^T x``."""
    first, last = rows_of(blocks, block)
    for row in range(first, last):
        start = (row - first) * blocks.outputs
        margins(blocks.rows, row, blocks.outputs, x, out[start : start + blocks.outputs])


@helper
def block_margins_of_pair(blocks, block, pair, scale, out):
    """``out = A_block^T (w + scale * e)``."""
    first, last = rows_of(blocks, block)
    for row in range(first, last):
        start = (row - first) * blocks.outputs
        own = out[start : start + blocks.outputs]
        margins_of_pair(blocks.rows, row, blocks.outputs, pair, scale, own)


def owned_entries(rows, row, left, right):  # pragma: no cover - replaced by its overload
    """Positions of a row that may lie in the features ``left`` to ``right``."""
    raise NotImplementedError


@overload(owned_entries, inline="always")
def _owned_entries(rows, row, left, right):
    if rows.instance_class is Dense:
        return lambda rows, row, left, right: (np.uint64(left), np.uint64(right))
    return lambda rows, row, left, right: entries(rows, row)


@helper
def add_block_to_pair(blocks, block, one, two, delta, pair, left, right, whole):
    """``w += one * A_block delta``, ``e += two * A_block delta``, features ``left`` to ``right``.

    ``whole`` says that this is all of them, which spares the test of every index.
    """
    first, last = rows_of(blocks, block)
    outputs = blocks.outputs
    half = np.uint64(pair.size) >> _ONE
    for row in range(first, last):
        start = (row - first) * outputs
        if whole and outputs == _ONE:
            move = delta[start]
            add_row_to_pair(blocks.rows, row, one * move, two * move, pair)
            continue
        begin, end = owned_entries(blocks.rows, row, left, right)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            if left <= j < right:
                value = entry(blocks.rows, row, position)
                for k in range(outputs):
                    move = delta[start + k]
                    c = j * outputs + k
                    pair[place_of_w(blocks.rows, c, half)] += one * move * value
                    pair[place_of_e(blocks.rows, c, half)] += two * move * value


@helper
def add_block(blocks, block, scale, delta, x, left, right):
    """``x += scale * A_block delta`` for the features ``left`` to ``right``."""
    first, last = rows_of(blocks, block)
    outputs = blocks.outputs
    for row in range(first, last):
        start = (row - first) * outputs
        begin, end = owned_entries(blocks.rows, row, left, right)
        if outputs == _ONE:
            move = scale * delta[start]
            for position in range(begin, end):
                j = column(blocks.rows, position)
                if left <= j < right:
                    x[j] += move * entry(blocks.rows, row, position)
            continue
        for position in range(begin, end):
            j = column(blocks.rows, position)
            if left <= j < right:
                value = entry(blocks.rows, row, position)
                for k in range(outputs):
                    x[j * outputs + k] += scale * delta[start + k] * value
