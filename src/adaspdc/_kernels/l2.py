"""Primal-dual iterations for ``g = lam/2 |x|^2`` that touch only what the sampled rows touch.

The prox of the L2 term pulls the whole iterate towards ``w = -r/lam``, by one factor for all
coordinates. So ``x = w + scale * e`` with vectors w, e and one number ``scale``: a coordinate that
no sampled row contains needs no work at all. ``pair`` holds w and e; see ``place_of_w``.

Both orders leave a trace of the last batch in ``pair`` (see each kernel); ``add_trace`` tells
which.
"""

import numpy as np

from ._jit import helper, jit
from .blocks import add_block, add_block_to_pair, block_margins_of_pair, move_dual, scalar_proposal
from .prefetch import fetch_entry, fetch_row, fetch_start
from .rows import add_row_to_pair, add_row_to_w, dot_pair, scale_e
from .team import barrier, share

_TINY = 1e-100
_AHEAD = np.uint64(4)
_TWICE_AHEAD = np.uint64(8)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@helper
def _propose(blocks, loss, steps, batch, scale, y, pair, work, slot, team):
    """Dual moves of this thread's share of a batch, from the iterate ``w + scale * e``."""
    width = work.width
    low, high = share(team, np.uint64(batch.size))
    scratch = work.scratch[team.member]
    for s in range(low, high):
        block = batch[s]
        block_margins_of_pair(blocks, block, pair, scale, scratch)
        move_dual(
            blocks,
            loss,
            block,
            steps.gradient,
            steps.sigma[block],
            scratch,
            y,
            scratch[width:],
            work.delta[slot, s * width : (s + _ONE) * width],
        )


@jit
def add_trace(blocks, batch, work, slot, sign, x):
    """``x += sign`` times the trace of the last batch."""
    features = np.uint64(x.size) // blocks.outputs
    width = work.width
    for s in range(np.uint64(batch.size)):
        delta = work.delta[slot, s * width : (s + _ONE) * width]
        factor = sign * work.factor[slot, s]
        add_block(blocks, batch[s], factor, delta, x, _ZERO, features)


@jit
def extrapolated(blocks, loss, steps, batches, y, pair, carry, work, team):
    """The order of AdaSPDC and SPDC (and, with theta = 0 and gradients, of SAGA and SAG).

    With a = 1/(1 + lam tau), u_s = mass_s A_s dy_s and xbar = x+ + theta (x+ - x):

        w+ = w - sum u_s / (n lam),   scale+ = a scale,
        e+ = e + sum (1/(n lam) - a tau c_s) u_s / scale+,
        xbar = w+ + reach e+ + theta sum (scale (1/(n lam) - a tau c_s)/scale+ - 1/(n lam)) u_s,

    reach = scale+ + theta (scale+ - scale). The last sum lives on the rows of the batch only: it is
    carried in w (the trace) until the next batch has been read.

    ``carry`` is (scale, reach, slot of the last batch, whether there is one).
    """
    per_mass = 1.0 / (blocks.n * steps.lam)
    scale, reach, slot = carry[0], carry[1], np.int64(carry[2])
    features = (np.uint64(pair.size) >> _ONE) // blocks.outputs
    left, right = share(team, features)
    whole = team.size == _ONE
    width = work.width
    size = np.uint64(batches.shape[1])
    low, high = share(team, size)
    before = work.before
    passed = 1
    for t in range(np.uint64(batches.shape[0])):
        batch = batches[t]
        now = 1 - slot
        _propose(blocks, loss, steps, batch, reach, y, pair, work, now, team)
        passed = barrier(team, passed)
        if carry[3] != 0.0 or t > _ZERO:
            for s in range(size):
                delta = work.delta[slot, s * width : (s + _ONE) * width]
                factor = -work.factor[slot, s]
                if factor != 0.0:
                    add_block_to_pair(
                        blocks, before[s], factor, 0.0, delta, pair, left, right, whole
                    )
        tau, theta = steps.tau[t * steps.moving], steps.theta[t * steps.moving]
        shrink = 1.0 - steps.lam * tau if steps.explicit else 1.0 / (1.0 + steps.lam * tau)
        pull = tau * np.float64(size) / blocks.n if steps.explicit else tau * shrink
        if abs(scale * shrink) < _TINY:
            outputs = blocks.outputs
            scale_e(blocks.rows, scale, left * outputs, right * outputs, pair)
            scale = 1.0
        next_scale = scale * shrink
        for s in range(size):
            block = batch[s]
            weight = steps.weight[block * steps.weight_stride]
            to_e = (per_mass - pull * weight) / next_scale
            trace = theta * (scale * to_e - per_mass)
            delta = work.delta[now, s * width : (s + _ONE) * width]
            add_block_to_pair(
                blocks, block, trace - per_mass, to_e, delta, pair, left, right, whole
            )
            if low <= s < high:
                work.factor[now, s] = trace
        reach = next_scale + theta * (next_scale - scale)
        scale, slot, before = next_scale, now, batch
        passed = barrier(team, passed)
    if team.member == _ZERO:
        carry[0], carry[1], carry[2], carry[3] = scale, reach, np.float64(slot), 1.0


@jit
def extrapolated_rows(rows, loss, steps, mass, mass_stride, count, order, y, pair, carry, work):
    """``extrapolated`` for one row an iteration and one output, without the detour over buffers."""
    per_mass = 1.0 / (count * steps.lam)
    scale, reach = carry[0], carry[1]
    slot = np.int64(carry[2])
    old_row = np.uint64(work.before[0])
    old_trace = work.factor[slot, 0] * work.delta[slot, 0] if carry[3] != 0.0 else 0.0
    trace = 0.0
    move = 0.0
    last = np.uint64(order.size)
    for t in range(last):
        row = np.uint64(order[t])
        if t + _TWICE_AHEAD < last:
            coming = np.uint64(order[t + _AHEAD])
            fetch_row(rows, coming)
            fetch_entry(y, coming)
            fetch_entry(steps.sigma, coming)
            fetch_entry(steps.weight, coming * steps.weight_stride)
            fetch_start(rows, np.uint64(order[t + _TWICE_AHEAD]))
        w, e = dot_pair(rows, row, pair)
        old = y[row]
        sigma = steps.sigma[row]
        new = scalar_proposal(loss, row, w + reach * e, old, sigma, steps.gradient)
        y[row] = new
        move = mass[row * mass_stride] * (new - old)
        if old_trace != 0.0:
            add_row_to_w(rows, old_row, -old_trace, pair)
        tau, theta = steps.tau[t * steps.moving], steps.theta[t * steps.moving]
        shrink = 1.0 - steps.lam * tau if steps.explicit else 1.0 / (1.0 + steps.lam * tau)
        pull = tau / count if steps.explicit else tau * shrink
        if abs(scale * shrink) < _TINY:
            scale_e(rows, scale, _ZERO, np.uint64(pair.size) >> _ONE, pair)
            scale = 1.0
        next_scale = scale * shrink
        to_e = (per_mass - pull * steps.weight[row * steps.weight_stride]) / next_scale
        trace = theta * (scale * to_e - per_mass)
        if move != 0.0:
            add_row_to_pair(rows, row, (trace - per_mass) * move, to_e * move, pair)
        old_row, old_trace = row, trace * move
        reach = next_scale + theta * (next_scale - scale)
        scale = next_scale
    carry[0], carry[1], carry[2], carry[3] = scale, reach, 0.0, 1.0
    work.factor[0, 0] = trace
    work.delta[0, 0] = move


@jit
def compensated(blocks, loss, steps, batches, y, pair, carry, work, team):
    """The order of SPDHG: primal step first, the last change of r counted theta/(n pi) times more.

    The extra term q of the next primal step is known as soon as the batch has moved, and the prox
    applied later is the same contraction for all coordinates, so the step -tau q is taken at once
    (the trace, carried in e):

        scale+ = a scale,   w+ = w - sum u_s / (n lam),
        e+ = e + sum (1/(n lam) - tau theta c_s) u_s / scale+.
    """
    per_mass = 1.0 / (blocks.n * steps.lam)
    scale = carry[0]
    slot = np.int64(carry[2])
    features = (np.uint64(pair.size) >> _ONE) // blocks.outputs
    left, right = share(team, features)
    whole = team.size == _ONE
    width = work.width
    size = np.uint64(batches.shape[1])
    low, high = share(team, size)
    passed = 1
    for t in range(np.uint64(batches.shape[0])):
        batch = batches[t]
        tau, theta = steps.tau[t * steps.moving], steps.theta[t * steps.moving]
        shrink = 1.0 / (1.0 + steps.lam * tau)
        if scale * shrink < _TINY:
            outputs = blocks.outputs
            scale_e(blocks.rows, scale, left * outputs, right * outputs, pair)
            scale = 1.0
            passed = barrier(team, passed)
        scale *= shrink
        _propose(blocks, loss, steps, batch, scale, y, pair, work, slot, team)
        passed = barrier(team, passed)
        for s in range(size):
            block = batch[s]
            kick = tau * theta * steps.weight[block * steps.weight_stride]
            delta = work.delta[slot, s * width : (s + _ONE) * width]
            to_e = (per_mass - kick) / scale
            add_block_to_pair(blocks, block, -per_mass, to_e, delta, pair, left, right, whole)
            if low <= s < high:
                work.factor[slot, s] = kick
        passed = barrier(team, passed)
    if team.member == _ZERO:
        carry[0], carry[3] = scale, 1.0


@jit
def compensated_rows(rows, loss, steps, mass, mass_stride, count, order, y, pair, carry, work):
    """``compensated`` for one row an iteration and one output."""
    per_mass = 1.0 / (count * steps.lam)
    scale = carry[0]
    move = 0.0
    kick = 0.0
    last = np.uint64(order.size)
    for t in range(last):
        row = np.uint64(order[t])
        if t + _TWICE_AHEAD < last:
            coming = np.uint64(order[t + _AHEAD])
            fetch_row(rows, coming)
            fetch_entry(y, coming)
            fetch_entry(steps.sigma, coming)
            fetch_entry(steps.weight, coming * steps.weight_stride)
            fetch_start(rows, np.uint64(order[t + _TWICE_AHEAD]))
        tau, theta = steps.tau[t * steps.moving], steps.theta[t * steps.moving]
        shrink = 1.0 / (1.0 + steps.lam * tau)
        if scale * shrink < _TINY:
            scale_e(rows, scale, _ZERO, np.uint64(pair.size) >> _ONE, pair)
            scale = 1.0
        scale *= shrink
        w, e = dot_pair(rows, row, pair)
        old = y[row]
        new = scalar_proposal(loss, row, w + scale * e, old, steps.sigma[row], steps.gradient)
        move = mass[row * mass_stride] * (new - old)
        kick = tau * theta * steps.weight[row * steps.weight_stride]
        if move != 0.0:
            y[row] = new
            to_e = (per_mass - kick) / scale
            add_row_to_pair(rows, row, -per_mass * move, to_e * move, pair)
    carry[0], carry[2], carry[3] = scale, 0.0, 1.0
    work.factor[0, 0] = kick
    work.delta[0, 0] = move
