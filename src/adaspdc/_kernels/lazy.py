"""Primal-dual iterations for any regulariser, late for coordinates the sampled rows leave alone.

Between two visits a coordinate sees a constant r_j, so the steps it missed can be made up for at
its next visit: in closed form for l1 and box terms, in a two-dimensional recurrence for groups, one
by one for a user's own. ``last[unit]`` is the time a coordinate (or group) has been brought to;
times count from 0 at the start of a call and all are brought up to date at its end.
"""

import numpy as np
from numba.extending import overload

from .._containers import Grouped
from ._jit import helper, jit
from .blocks import block_margins, move_dual
from .catch_up import catch_up, catch_up_constant, catch_up_group
from .regularizers import norm_of_members, separable_prox, shrinkage
from .rows import column, entries, entry, rows_of
from .team import barrier, share

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


# --- what is late together: a coordinate, or a group ----------------------------------------------


def unit(reg, c):  # pragma: no cover - replaced by its overload
    """The unit of coordinate c."""
    raise NotImplementedError


def unit_count(reg, size):  # pragma: no cover
    """Number of units of an iterate of ``size`` coordinates."""
    raise NotImplementedError


def bring(reg, c, time, x, previous, r, last, steps, decay):  # pragma: no cover
    """Bring the unit of c to ``time``; ``previous`` receives its value one step before."""
    raise NotImplementedError


def bring_constant(reg, c, time, x, r, last, steps):  # pragma: no cover
    """Bring the unit of c to ``time`` under a step size that does not change."""
    raise NotImplementedError


def move_unit(reg, c, time, x, previous, r, push, last, tau):  # pragma: no cover
    """The primal step ``time`` of the unit of c, with the batch term ``push``; done once."""
    raise NotImplementedError


@overload(unit, inline="always")
def _unit(reg, c):
    if reg.instance_class is Grouped:
        return lambda reg, c: np.uint64(reg.group[c])
    return lambda reg, c: c


@overload(unit_count)
def _unit_count(reg, size):
    if reg.instance_class is Grouped:
        return lambda reg, size: np.uint64(reg.weight.size)
    return lambda reg, size: np.uint64(size)


@helper
def group_step(reg, g, x, previous, force, tau):
    """One literal step of group g along ``force``; ``previous`` keeps where it was."""
    first, last = np.uint64(reg.start[g]), np.uint64(reg.start[g + _ONE])
    for k in range(first, last):
        j = np.uint64(reg.members[k])
        previous[j] = x[j]
        x[j] -= tau * force[j]
    kept = shrinkage(norm_of_members(reg, g, x), tau * reg.weight[g]) / (1.0 + reg.lam * tau)
    for k in range(first, last):
        x[np.uint64(reg.members[k])] *= kept


@overload(bring)
def _bring(reg, c, time, x, previous, r, last, steps, decay):
    def grouped(reg, c, time, x, previous, r, last, steps, decay):
        g = np.uint64(reg.group[c])
        if last[g] < time:
            tau = steps.tau
            late = np.int64(time) - 1
            catch_up_group(reg, g, x, r, np.int64(last[g]), late, tau)
            group_step(reg, g, x, previous, r, tau[late])
            last[g] = time

    def separable(reg, c, time, x, previous, r, last, steps, decay):
        if last[c] < time:
            tau = steps.tau
            late = np.int64(time) - 1
            value = catch_up(reg, c, x[c], r[c], np.int64(last[c]), late, tau, decay)
            previous[c] = value
            x[c] = separable_prox(reg, c, value - tau[late] * r[c], tau[late])
            last[c] = time

    return grouped if reg.instance_class is Grouped else separable


@overload(bring_constant)
def _bring_constant(reg, c, time, x, r, last, steps):
    def grouped(reg, c, time, x, r, last, steps):
        g = np.uint64(reg.group[c])
        if last[g] < time:
            catch_up_group(reg, g, x, r, np.int64(last[g]), np.int64(time), steps.tau[0])
            last[g] = time

    def separable(reg, c, time, x, r, last, steps):
        if last[c] < time:
            late = np.int64(time) - np.int64(last[c])
            x[c] = catch_up_constant(reg, c, x[c], r[c], late, steps.tau[0])
            last[c] = time

    return grouped if reg.instance_class is Grouped else separable


@overload(move_unit)
def _move_unit(reg, c, time, x, previous, r, push, last, tau):
    def grouped(reg, c, time, x, previous, r, push, last, tau):
        g = np.uint64(reg.group[c])
        if last[g] == time:
            for k in range(np.uint64(reg.start[g]), np.uint64(reg.start[g + _ONE])):
                j = np.uint64(reg.members[k])
                push[j] += r[j]
            group_step(reg, g, x, previous, push, tau)
            for k in range(np.uint64(reg.start[g]), np.uint64(reg.start[g + _ONE])):
                push[np.uint64(reg.members[k])] = 0.0
            last[g] = time + _ONE

    def separable(reg, c, time, x, previous, r, push, last, tau):
        if last[c] == time:
            previous[c] = x[c]
            x[c] = separable_prox(reg, c, x[c] - tau * (r[c] + push[c]), tau)
            push[c] = 0.0
            last[c] = time + _ONE

    return grouped if reg.instance_class is Grouped else separable


# --- the two orders -------------------------------------------------------------------------------


@helper
def _extrapolated_margins(blocks, block, theta, x, previous, out):
    """Margins of a block at ``x + theta (x - previous)``."""
    first, last = rows_of(blocks, block)
    outputs = blocks.outputs
    for row in range(first, last):
        start = (row - first) * outputs
        out[start : start + outputs] = 0.0
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            value = entry(blocks.rows, row, position)
            for k in range(outputs):
                c = j * outputs + k
                out[start + k] += value * (x[c] + theta * (x[c] - previous[c]))


@helper
def _bring_block(blocks, reg, block, time, x, previous, r, last, steps, decay, left, right):
    """Bring all units on the rows of a block, from ``left`` to ``right``, to ``time``."""
    first, end_row = rows_of(blocks, block)
    for row in range(first, end_row):
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            for k in range(blocks.outputs):
                c = j * blocks.outputs + k
                if left <= unit(reg, c) < right:
                    bring(reg, c, time, x, previous, r, last, steps, decay)


@helper
def _accumulate(blocks, reg, block, delta, to_r, to_push, r, push, left, right):
    """``r += to_r A delta`` and ``push += to_push A delta`` on the units of this thread."""
    first, end_row = rows_of(blocks, block)
    outputs = blocks.outputs
    for row in range(first, end_row):
        start = (row - first) * outputs
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            value = entry(blocks.rows, row, position)
            for k in range(outputs):
                c = j * outputs + k
                if left <= unit(reg, c) < right:
                    move = value * delta[start + k]
                    r[c] += to_r * move
                    push[c] += to_push * move


@helper
def _move_block(blocks, reg, block, time, x, previous, r, push, last, tau, left, right):
    """The primal step of all units on the rows of a block, each once."""
    first, end_row = rows_of(blocks, block)
    for row in range(first, end_row):
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            for k in range(blocks.outputs):
                c = j * blocks.outputs + k
                if left <= unit(reg, c) < right:
                    move_unit(reg, c, time, x, previous, r, push, last, tau)


@jit
def extrapolated(blocks, loss, reg, steps, batches, y, vectors, last, decay, work, theta, team):
    """AdaSPDC, SPDC and SAGA for any regulariser; ``vectors`` holds x, its predecessor, r and push.

    ``theta`` is that of the iteration before the first one (an array of one, updated).
    """
    x, previous, r, push = vectors[0], vectors[1], vectors[2], vectors[3]
    left, right = share(team, unit_count(reg, x.size))
    width = work.width
    size = np.uint64(batches.shape[1])
    low, high = share(team, size)
    scratch = work.scratch[team.member]
    iterations = np.uint64(batches.shape[0])
    old_theta = theta[0]
    passed = 1
    for t in range(iterations):
        batch = batches[t]
        for s in range(size):
            _bring_block(blocks, reg, batch[s], t, x, previous, r, last, steps, decay, left, right)
        passed = barrier(team, passed)
        for s in range(low, high):
            block = batch[s]
            sigma = steps.sigma[block]
            delta = work.delta[0, s * width : (s + _ONE) * width]
            _extrapolated_margins(blocks, block, old_theta, x, previous, scratch)
            move_dual(
                blocks, loss, block, steps.gradient, sigma, scratch, y, scratch[width:], delta
            )
        passed = barrier(team, passed)
        for s in range(size):
            block = batch[s]
            to_push = steps.weight[block * steps.weight_stride] - 1.0 / blocks.n
            delta = work.delta[0, s * width : (s + _ONE) * width]
            _accumulate(blocks, reg, block, delta, 1.0 / blocks.n, to_push, r, push, left, right)
        for s in range(size):
            _move_block(
                blocks,
                reg,
                batch[s],
                t,
                x,
                previous,
                r,
                push,
                last,
                steps.tau[t * steps.moving],
                left,
                right,
            )
        old_theta = steps.theta[t * steps.moving]
        passed = barrier(team, passed)
    _bring_all(reg, iterations, x, previous, r, last, steps, decay, team)
    passed = barrier(team, passed)
    if team.member == _ZERO:
        theta[0] = old_theta


@helper
def _bring_all(reg, time, x, previous, r, last, steps, decay, team):
    left, right = share(team, unit_count(reg, x.size))
    for c in range(np.uint64(x.size)):
        if left <= unit(reg, c) < right:
            bring(reg, c, time, x, previous, r, last, steps, decay)
    for u in range(left, right):
        last[u] = 0


@helper
def _bring_block_constant(blocks, reg, block, time, x, r, last, steps, left, right):
    first, end_row = rows_of(blocks, block)
    for row in range(first, end_row):
        begin, end = entries(blocks.rows, row)
        for position in range(begin, end):
            j = column(blocks.rows, position)
            for k in range(blocks.outputs):
                c = j * blocks.outputs + k
                if left <= unit(reg, c) < right:
                    bring_constant(reg, c, time, x, r, last, steps)


@jit
def compensated(blocks, loss, reg, steps, batches, y, vectors, last, work, team):
    """SPDHG for any regulariser; ``vectors`` holds x (less the trace) and r.

    As in the L2 kernel the step -tau q of the next iteration is taken at once, before its prox.
    """
    x, r = vectors[0], vectors[1]
    left, right = share(team, unit_count(reg, x.size))
    width = work.width
    size = np.uint64(batches.shape[1])
    low, high = share(team, size)
    scratch = work.scratch[team.member]
    iterations = np.uint64(batches.shape[0])
    passed = 1
    for t in range(iterations):
        batch = batches[t]
        for s in range(size):
            _bring_block_constant(blocks, reg, batch[s], t + _ONE, x, r, last, steps, left, right)
        passed = barrier(team, passed)
        for s in range(low, high):
            block = batch[s]
            delta = work.delta[0, s * width : (s + _ONE) * width]
            block_margins(blocks, block, x, scratch)
            move_dual(
                blocks,
                loss,
                block,
                steps.gradient,
                steps.sigma[block],
                scratch,
                y,
                scratch[width:],
                delta,
            )
            work.factor[0, s] = (
                steps.tau[0] * steps.theta[0] * steps.weight[block * steps.weight_stride]
            )
        passed = barrier(team, passed)
        for s in range(size):
            block = batch[s]
            kick = work.factor[0, s]
            delta = work.delta[0, s * width : (s + _ONE) * width]
            _accumulate(blocks, reg, block, delta, 1.0 / blocks.n, -kick, r, x, left, right)
        passed = barrier(team, passed)
    for c in range(np.uint64(x.size)):
        if left <= unit(reg, c) < right:
            bring_constant(reg, c, iterations, x, r, last, steps)
    for u in range(left, right):
        last[u] = 0
