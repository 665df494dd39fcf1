"""SPDHG for ``g = lam/2 |x|^2`` with a primal step for every class of coordinates.

As in ``l2``, ``x = w + scale e`` with ``w = -r/lam``; here ``scale`` is a number per class, since
the prox pulls the coordinates of class c towards w by the factor ``1/(1 + lam tau_c)``. The step
along the extra term of the last row is taken at once: e runs ahead of the iterate by that row.
"""

import numpy as np

from ._jit import helper, jit
from .blocks import scalar_proposal
from .prefetch import fetch_entry, fetch_long_row, fetch_start
from .rows import column, entries, entry, place_of_e, place_of_w

_TINY = 1e-100
_AHEAD = np.uint64(6)
_TWICE_AHEAD = np.uint64(12)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@jit
def column_squares(blocks, total, out):
    """``out_j = (1/n) sum_i mass_i a_ij^2``."""
    out[:] = 0.0
    for row in range(np.uint64(total)):
        weight = blocks.mass[row * blocks.mass_stride] / blocks.n
        first, last = entries(blocks.rows, row)
        for k in range(first, last):
            value = np.float64(entry(blocks.rows, row, k))
            out[column(blocks.rows, k)] += weight * value * value


@jit
def row_squares(blocks, factor, out):
    """``out_i = mass_i sum_j factor_j a_ij^2``."""
    for row in range(np.uint64(out.size)):
        first, last = entries(blocks.rows, row)
        total = 0.0
        for k in range(first, last):
            value = np.float64(entry(blocks.rows, row, k))
            total += factor[column(blocks.rows, k)] * value * value
        out[row] = blocks.mass[row * blocks.mass_stride] * total


@helper
def _rebase(rows, pair, kind, scale):
    """``scale e`` takes the place of e, and 1 that of scale."""
    half = np.uint64(pair.size) >> _ONE
    for c in range(half):
        pair[place_of_e(rows, c, half)] *= scale[kind[c]]
    scale[:] = 1.0


@jit
def metric_rows(blocks, loss, lam, order, sigma, weight, tau, theta, y, pair, kind, scale):
    """One row an iteration, in the order of ``l2.compensated_rows``.

    ``tau`` and ``scale`` have an entry per class, ``kind[j]`` is the class of coordinate j.
    """
    rows = blocks.rows
    per_mass = 1.0 / (blocks.n * lam)
    half = np.uint64(pair.size) >> _ONE
    shrink = 1.0 / (1.0 + lam * tau)
    to_e = np.empty(tau.size)
    last = np.uint64(order.size)
    for t in range(last):
        row = np.uint64(order[t])
        if t + _TWICE_AHEAD < last:
            coming = np.uint64(order[t + _AHEAD])
            fetch_long_row(rows, coming)
            fetch_entry(y, coming)
            fetch_entry(sigma, coming)
            fetch_entry(weight, coming)
            fetch_start(rows, np.uint64(order[t + _TWICE_AHEAD]))
        least = 1.0
        for c in range(np.uint64(scale.size)):
            scale[c] *= shrink[c]
            least = min(least, scale[c])
        if least < _TINY:
            _rebase(rows, pair, kind, scale)
        first, end = entries(rows, row)
        z = 0.0
        for k in range(first, end):
            j = column(rows, k)
            x = pair[place_of_w(rows, j, half)] + scale[kind[j]] * pair[place_of_e(rows, j, half)]
            z += entry(rows, row, k) * x
        old = y[row]
        new = scalar_proposal(loss, row, z, old, sigma[row], False)
        if new != old:
            y[row] = new
            move = blocks.mass[row * blocks.mass_stride] * (new - old)
            kick = theta * weight[row]
            for c in range(np.uint64(scale.size)):
                to_e[c] = move * (per_mass - kick * tau[c]) / scale[c]
            to_w = -per_mass * move
            for k in range(first, end):
                j = column(rows, k)
                value = entry(rows, row, k)
                pair[place_of_w(rows, j, half)] += to_w * value
                pair[place_of_e(rows, j, half)] += to_e[kind[j]] * value
