"""Reading and writing along one row: the only code that knows dense rows from sparse ones.

A coordinate of the iterate is numbered ``j * outputs + k`` for feature j and output k. All indices
are unsigned: numba checks signed ones for being negative on every access.
"""

import numpy as np
from numba.extending import overload

from .._containers import Dense
from ._jit import REASSOCIATE, helper

_ONE = np.uint64(1)


def entries(rows, row):  # pragma: no cover - replaced by its overload
    """First and last-plus-one position of the entries of ``row``."""
    raise NotImplementedError


def column(rows, position):  # pragma: no cover
    """The feature of the entry at ``position``."""
    raise NotImplementedError


def entry(rows, row, position):  # pragma: no cover
    """The value of the entry at ``position`` of ``row``."""
    raise NotImplementedError


@overload(entries, inline="always")
def _entries(rows, row):
    if rows.instance_class is Dense:
        return lambda rows, row: (np.uint64(0), np.uint64(rows.values.shape[1]))
    return lambda rows, row: (
        np.uint64(rows.indptr[row]),
        np.uint64(rows.indptr[row + _ONE]),
    )


@overload(column, inline="always")
def _column(rows, position):
    if rows.instance_class is Dense:
        return lambda rows, position: position
    return lambda rows, position: np.uint64(rows.indices[position])


@overload(entry, inline="always")
def _entry(rows, row, position):
    if rows.instance_class is Dense:
        return lambda rows, row, position: rows.values[row, position]
    return lambda rows, row, position: rows.data[position]


def dot(rows, row, x):  # pragma: no cover - replaced by its overload
    """``<a_row, x>``."""
    raise NotImplementedError


@helper(inline=True)
def _dot_loop(rows, row, x):
    first, last = entries(rows, row)
    total = 0.0
    for k in range(first, last):
        total += entry(rows, row, k) * x[column(rows, k)]
    return total


_dot_vectors = helper(_dot_loop.py_func, fastmath=REASSOCIATE, inline=True)


@overload(dot, jit_options={"forceinline": True})
def _dot(rows, row, x):
    # Reordering the sum pays for dense rows; for sparse ones it would bring slow gather
    # instructions.
    if rows.instance_class is Dense:
        return lambda rows, row, x: _dot_vectors(rows, row, x)
    return lambda rows, row, x: _dot_loop(rows, row, x)


# --- two vectors (w, e) in one flat array ---------------------------------------------------------


def place_of_w(rows, c, half):  # pragma: no cover - replaced by its overload
    """Where the array of a pair keeps coordinate c of w; ``half`` is the length of w."""
    raise NotImplementedError


def place_of_e(rows, c, half):  # pragma: no cover
    """Where it keeps coordinate c of e."""
    raise NotImplementedError


# Side by side for sparse rows: one cache line serves both. One after the other for dense rows, so
# that either can be read and written in whole vectors.


@overload(place_of_w, inline="always")
def _place_of_w(rows, c, half):
    if rows.instance_class is Dense:
        return lambda rows, c, half: c
    return lambda rows, c, half: c << _ONE


@overload(place_of_e, inline="always")
def _place_of_e(rows, c, half):
    if rows.instance_class is Dense:
        return lambda rows, c, half: c + half
    return lambda rows, c, half: (c << _ONE) + _ONE


def dot_pair(rows, row, pair):  # pragma: no cover - replaced by its overload
    """``<a_row, w>`` and ``<a_row, e>`` in one walk along the row."""
    raise NotImplementedError


@helper(inline=True)
def _dot_pair_loop(rows, row, pair):
    first, last = entries(rows, row)
    half = np.uint64(pair.size) >> _ONE
    one = 0.0
    two = 0.0
    for k in range(first, last):
        j = column(rows, k)
        value = entry(rows, row, k)
        one += value * pair[place_of_w(rows, j, half)]
        two += value * pair[place_of_e(rows, j, half)]
    return one, two


_dot_pair_vectors = helper(_dot_pair_loop.py_func, fastmath=REASSOCIATE, inline=True)


@overload(dot_pair, jit_options={"forceinline": True})
def _dot_pair(rows, row, pair):
    if rows.instance_class is Dense:
        return lambda rows, row, pair: _dot_pair_vectors(rows, row, pair)
    return lambda rows, row, pair: _dot_pair_loop(rows, row, pair)


@helper(inline=True)
def add_row(rows, row, scale, x):
    """``x += scale * a_row``."""
    first, last = entries(rows, row)
    for k in range(first, last):
        x[column(rows, k)] += scale * entry(rows, row, k)


@helper(inline=True)
def add_row_to_pair(rows, row, to_w, to_e, pair):
    """``w += to_w * a_row`` and ``e += to_e * a_row``."""
    first, last = entries(rows, row)
    half = np.uint64(pair.size) >> _ONE
    for k in range(first, last):
        j = column(rows, k)
        value = entry(rows, row, k)
        pair[place_of_w(rows, j, half)] += to_w * value
        pair[place_of_e(rows, j, half)] += to_e * value


@helper(inline=True)
def add_row_to_w(rows, row, scale, pair):
    """``w += scale * a_row``."""
    first, last = entries(rows, row)
    half = np.uint64(pair.size) >> _ONE
    for k in range(first, last):
        pair[place_of_w(rows, column(rows, k), half)] += scale * entry(rows, row, k)


@helper
def scale_e(rows, scale, left, right, pair):
    """``e *= scale`` for the coordinates ``left`` to ``right``."""
    half = np.uint64(pair.size) >> _ONE
    for c in range(left, right):
        pair[place_of_e(rows, c, half)] *= scale


@helper
def margins(rows, row, outputs, x, out):
    """``out[k] = <a_row, x_k>`` for every output k of the row."""
    if outputs == _ONE:
        out[0] = dot(rows, row, x)
        return
    out[:] = 0.0
    first, last = entries(rows, row)
    for position in range(first, last):
        start = column(rows, position) * outputs
        value = entry(rows, row, position)
        for k in range(outputs):
            out[k] += value * x[start + k]


@helper
def margins_of_pair(rows, row, outputs, pair, scale, out):
    """``out[k] = <a_row, (w + scale * e)_k>`` for every output k of the row."""
    if outputs == _ONE:
        one, two = dot_pair(rows, row, pair)
        out[0] = one + scale * two
        return
    out[:] = 0.0
    first, last = entries(rows, row)
    half = np.uint64(pair.size) >> _ONE
    for position in range(first, last):
        start = column(rows, position) * outputs
        value = entry(rows, row, position)
        for k in range(outputs):
            w = pair[place_of_w(rows, start + k, half)]
            out[k] += value * (w + scale * pair[place_of_e(rows, start + k, half)])


@helper
def rows_of(blocks, block):
    """The rows ``first`` to ``last`` (excluded) of a block."""
    if blocks.start.size == 0:
        return np.uint64(block), np.uint64(block) + _ONE
    return np.uint64(blocks.start[block]), np.uint64(blocks.start[block + _ONE])
