"""Steps of a regulariser that were skipped, made up for when a coordinate is needed.

While r_j is constant, many proximal steps of one coordinate are one formula, and those of a group a
recurrence of two numbers. ``tau`` is one step size for all steps, or an array with one per step.
Built like `regularizers`: one name, with a body per container. NaN passes through.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from .._containers import Separable, UserSeparable
from ._jit import helper, jit
from .clip import clip
from .regularizers import (
    EXACT,
    bounds,
    norm_of_members,
    only_compiled,
    prox_scalar,
    separable_prox,
    shrinkage,
)

_LITERAL_STEPS = 2
"""Up to this many skipped steps are taken one by one: cheaper than one exponential."""


# ---------------------------------------------------------------- the clock


def _tau_at(tau, k):
    raise only_compiled("tau_at")


def _elapsed(lam, tau, decay, s, t):
    raise only_compiled("elapsed")


def _first_step_reaching(lam, tau, decay, s, t, target):
    raise only_compiled("first_step_reaching")


@overload(_tau_at, jit_options=EXACT)
def _tau_at_body(tau, k):
    if isinstance(tau, types.Array):
        return lambda tau, k: tau[np.uint64(k)]
    return lambda tau, k: tau


@overload(_elapsed, jit_options=EXACT)
def _elapsed_body(lam, tau, decay, s, t):
    """Sum of ``log1p(lam tau[k])`` over k = s..t-1."""
    if isinstance(tau, types.Array):
        return lambda lam, tau, decay, s, t: decay[np.uint64(t)] - decay[np.uint64(s)]
    return lambda lam, tau, decay, s, t: (t - s) * math.log1p(lam * tau)


@overload(_first_step_reaching, jit_options=EXACT)
def _first_step_reaching_body(lam, tau, decay, s, t, target):
    """Smallest k in s+1..t with ``elapsed(s, k) >= target``; t if there is none."""
    if isinstance(tau, types.Array):

        def bisect(lam, tau, decay, s, t, target):
            first, last = s + 1, t
            while first < last:
                middle = (first + last) // 2
                if decay[middle] - decay[s] >= target:
                    last = middle
                else:
                    first = middle + 1
            return first

        return bisect

    def divide(lam, tau, decay, s, t, target):
        steps = math.ceil(min(target / math.log1p(lam * tau), float(t - s)))
        return s + max(np.int64(steps), 1)

    return divide


# ---------------------------------------------------------------- one coordinate


@helper
def _glide(lam, x, slope, elapsed):
    """Applies steps ``x <- (x - tau slope) / (1 + lam tau)`` whose log1p(lam tau) sum to elapsed.

    Written without ``slope/lam + x``: the fixed point may be larger than x by many decades.
    """
    if elapsed < 0.5:
        lost = -math.expm1(-elapsed)
        kept = 1.0 - lost
    else:
        kept = math.exp(-elapsed)
        lost = 1.0 - kept
    return x * kept - slope * (lost / lam)


@helper
def _catch_up_long(lam, l1, low, high, x, r, s, t, tau, decay):
    """Many steps at once.

    Each step is a proximal step on ``g_j(x) + r x``, so x moves monotonically towards its
    minimiser and never past it. Hence a bound or a zero at which the minimiser sits can be applied
    after the fact, and only a zero that is crossed has to be located.
    """
    if x < low or x > high:  # a start outside the interval
        x = prox_scalar(lam, l1, low, high, x - _tau_at(tau, s) * r, _tau_at(tau, s))
        s += 1
    if l1 == 0.0:
        return clip(_glide(lam, x, r, _elapsed(lam, tau, decay, s, t)), low, high)
    while s < t:
        if x == 0.0 and abs(r) <= l1:
            return 0.0
        side = math.copysign(1.0, x if x != 0.0 else -r)
        slope = r + side * l1
        end = _glide(lam, x, slope, _elapsed(lam, tau, decay, s, t))
        stays = not side * end < 0.0  # also when it is NaN
        if x == 0.0 or stays or low >= 0.0 or high <= 0.0:
            return clip(end, low, high)
        if side * r <= l1:  # the minimiser is 0
            return 0.0
        k = _first_step_reaching(lam, tau, decay, s, t, math.log1p(lam * x / slope))
        if k - 1 > s:
            x = _glide(lam, x, slope, _elapsed(lam, tau, decay, s, k - 1))
            x = side * max(side * x, 0.0)
        step = _tau_at(tau, k - 1)
        x = prox_scalar(lam, l1, low, high, x - step * r, step)
        s = k
    return x


@helper
def _catch_up_builtin(reg, j, x, r, s, t, tau, decay):
    low, high = bounds(reg, j)
    if x == 0.0 and abs(r) <= reg.l1 and low <= 0.0 <= high:
        return 0.0
    if t - s > _LITERAL_STEPS:
        return _catch_up_long(reg.lam, reg.l1, low, high, x, r, s, t, tau, decay)
    for k in range(s, t):
        step = _tau_at(tau, k)
        x = prox_scalar(reg.lam, reg.l1, low, high, x - step * r, step)
    return x


def _catch_up_user(reg, j, x, r, s, t, tau):
    raise only_compiled("catch_up_user")


@overload(_catch_up_user, jit_options=EXACT)
def _catch_up_user_body(reg, j, x, r, s, t, tau):
    """Literal steps; a smaller tau moves x less, so after an idle step only a larger one counts."""

    def literal(reg, j, x, r, s, t, tau):
        idle = -1.0  # the largest tau that left this x where it was
        for k in range(s, t):
            step = _tau_at(tau, k)
            if step <= idle:
                continue
            moved = separable_prox(reg, j, x - step * r, step)
            idle = step if moved == x else -1.0
            x = moved
        return x

    return literal


def catch_up(reg, j, x, r, s, t, tau, decay):
    """Coordinate j after the steps ``x <- prox_{tau[k] g_j}(x - tau[k] r)``, k = s..t-1.

    ``decay[k] = sum_{i<k} log1p(lam tau[i])``, from `accumulate_decay`. Its differences have an
    absolute error, so the result is off by some ``eps (1 + decay[t]) (|x| + (|r| + l1)/lam)`` at
    worst: restart ``decay`` before it grows large. A user's regulariser takes the steps one by one
    and ignores ``decay``.
    """
    raise only_compiled("catch_up")


@overload(catch_up, jit_options=EXACT)
def _catch_up(reg, j, x, r, s, t, tau, decay):
    if reg.instance_class is Separable:

        def builtin(reg, j, x, r, s, t, tau, decay):
            if s == t:
                return x
            return _catch_up_builtin(reg, j, x, r, np.int64(s), np.int64(t), tau, decay)

        return builtin
    if reg.instance_class is UserSeparable:

        def user(reg, j, x, r, s, t, tau, decay):
            return _catch_up_user(reg, j, x, r, np.int64(s), np.int64(t), tau)

        return user
    return None


def catch_up_constant(reg, j, x, r, steps, tau):
    """Coordinate j after ``steps`` times ``x <- prox_{tau g_j}(x - tau r)``."""
    raise only_compiled("catch_up_constant")


@overload(catch_up_constant, jit_options=EXACT)
def _catch_up_constant(reg, j, x, r, steps, tau):
    return lambda reg, j, x, r, steps, tau: catch_up(reg, j, x, r, 0, steps, tau, 0.0)


@jit
def accumulate_decay(lam, tau, decay):
    """Writes ``decay[k] = sum_{i<k} log1p(lam tau[i])``, each rounded once (Neumaier's sum)."""
    total, lost = 0.0, 0.0
    decay[0] = 0.0
    for k in range(tau.shape[0]):
        term = math.log1p(lam * tau[k])
        grown = total + term
        lost += (total - grown) + term if total >= term else (term - grown) + total
        total = grown
        decay[k + 1] = total + lost


# ---------------------------------------------------------------- one group


@helper
def catch_up_group(reg, g, x, r, s, t, tau):
    """Takes the steps s..t-1 on the members of group g, in place; ``tau`` is an array or a number.

    They stay in the plane of x_g and r_g. Its basis is orthonormal (r_g/|r_g| and the rest of x_g),
    because the norm of a short vector from inner products of long ones would lose half its digits.
    """
    if s == t:
        return
    threshold = reg.weight[g]
    size = norm_of_members(reg, g, r)
    along = 0.0  # x_g = along * r_g/|r_g| + share * rest
    if size > 0.0:
        for k in range(reg.start[g], reg.start[g + 1]):
            j = reg.members[k]
            along += x[j] * (r[j] / size)
        for k in range(reg.start[g], reg.start[g + 1]):
            j = reg.members[k]
            x[j] -= along * (r[j] / size)
    rest = norm_of_members(reg, g, x)
    share = 1.0
    for k in range(s, t):
        step = _tau_at(tau, k)
        along -= step * size
        kept = shrinkage(math.hypot(along, share * rest), step * threshold)
        kept /= 1.0 + reg.lam * step
        along *= kept
        share *= kept
        if kept == 0.0 and size <= threshold:  # zero, and it stays there
            break
    for k in range(reg.start[g], reg.start[g + 1]):
        j = reg.members[k]
        x[j] = share * x[j] + (along * (r[j] / size) if size > 0.0 else 0.0)
