"""Regularisers: value, conjugate and its gradient, and proximal step.

Every public name below is one function with a body per container (``Separable``, ``UserSeparable``,
``Grouped``): numba picks the body by the type of ``reg``. They run inside compiled code only; the
``call_*`` functions at the end are the doors for Python. All of them let NaN through, so that a
broken run is noticed.
"""

import math

import numpy as np
from numba.extending import overload

from .._containers import Grouped, Separable, UserSeparable
from ._jit import REASSOCIATE, helper, jit
from .clip import clip

EXACT = {"error_model": "numpy", "nogil": True, "fastmath": False}
"""How an overload is compiled that keeps IEEE arithmetic, as `helper` does."""

_SUMS = {"error_model": "numpy", "nogil": True, "fastmath": REASSOCIATE}


def only_compiled(name):
    """What the plain function raises that stands for its overloads."""
    return NotImplementedError(f"{name} runs inside compiled code only")


# ---------------------------------------------------------------- one coordinate, built in


@helper
def _soft_threshold(u, threshold):
    excess = abs(u) - threshold
    if excess <= 0.0:
        return 0.0
    return math.copysign(excess, u)


@helper
def bounds(reg, j):
    """The interval of coordinate j of a `Separable`."""
    # Unsigned, because numba checks signed indices for being negative.
    k = np.uint64(j) * np.uint64(reg.stride)
    return reg.low[k], reg.high[k]


@helper
def prox_scalar(lam, l1, low, high, u, tau):
    """``argmin_x lam/2 x^2 + l1 |x| + (x - u)^2 / (2 tau)`` over low..high."""
    return clip(_soft_threshold(u, tau * l1) / (1.0 + lam * tau), low, high)


# ---------------------------------------------------------------- scalar functions of a coordinate


def separable_prox(reg, j, u, tau):
    """``argmin_x g_j(x) + (x - u)^2 / (2 tau)``."""
    raise only_compiled("prox")


def separable_value(reg, j, x):
    """``g_j(x)``, +inf outside the interval."""
    raise only_compiled("value")


def separable_conjugate(reg, j, s):
    """``g_j*(s) = max_x s x - g_j(x)``."""
    raise only_compiled("conjugate")


def separable_conjugate_gradient(reg, j, s):
    """``argmax_x s x - g_j(x)``, the derivative of ``g_j*`` at s."""
    raise only_compiled("conjugate_gradient")


@overload(separable_prox, jit_options=EXACT)
def _separable_prox(reg, j, u, tau):
    if reg.instance_class is Separable:

        def builtin(reg, j, u, tau):
            low, high = bounds(reg, j)
            return prox_scalar(reg.lam, reg.l1, low, high, u, tau)

        return builtin
    if reg.instance_class is UserSeparable:
        return lambda reg, j, u, tau: float(reg.functions[1](u, tau))
    return None


@overload(separable_value, jit_options=EXACT)
def _separable_value(reg, j, x):
    if reg.instance_class is Separable:

        def builtin(reg, j, x):
            low, high = bounds(reg, j)
            if x < low or x > high:
                return math.inf
            return abs(x) * (0.5 * reg.lam * abs(x) + reg.l1)

        return builtin
    if reg.instance_class is UserSeparable:
        return lambda reg, j, x: float(reg.functions[2](x))
    return None


@overload(separable_conjugate, jit_options=EXACT)
def _separable_conjugate(reg, j, s):
    if reg.instance_class is Separable:

        def builtin(reg, j, s):
            x = separable_conjugate_gradient(reg, j, s)
            # s - sign(x) l1 first: these two may nearly cancel, and their difference is exact.
            return x * ((s - math.copysign(reg.l1, x)) - 0.5 * reg.lam * x)

        return builtin
    if reg.instance_class is UserSeparable:
        return lambda reg, j, s: float(reg.functions[3](s))
    return None


@overload(separable_conjugate_gradient, jit_options=EXACT)
def _separable_conjugate_gradient(reg, j, s):
    if reg.instance_class is Separable:

        def builtin(reg, j, s):
            low, high = bounds(reg, j)
            return clip(_soft_threshold(s, reg.l1) / reg.lam, low, high)

        return builtin
    if reg.instance_class is UserSeparable:
        return lambda reg, j, s: float(reg.functions[4](s))
    return None


# ---------------------------------------------------------------- groups


@helper
def norm_of_members(reg, g, x):
    """Euclidean norm of group g of x, rescaled where the squares would leave the float range."""
    first, last = reg.start[g], reg.start[g + 1]
    total = 0.0
    for k in range(first, last):
        total += x[reg.members[k]] ** 2
    if 1e-280 < total < 1e300 or math.isnan(total):
        return math.sqrt(total)
    largest = 0.0
    for k in range(first, last):
        largest = max(largest, abs(x[reg.members[k]]))
    if largest == 0.0 or largest == math.inf:
        return largest
    total = 0.0
    for k in range(first, last):
        total += (x[reg.members[k]] / largest) ** 2
    return largest * math.sqrt(total)


@helper
def shrinkage(norm, threshold):
    """The factor ``max(0, 1 - threshold/norm)`` of block soft-thresholding."""
    if norm <= threshold:
        return 0.0
    return (norm - threshold) / norm


# ---------------------------------------------------------------- whole vectors


def value(reg, x):
    """``g(x)`` of a flat vector, +inf outside the domain."""
    raise only_compiled("value")


def conjugate(reg, s):
    """``g*(s) = max_x <s, x> - g(x)`` of a flat vector."""
    raise only_compiled("conjugate")


def conjugate_gradient(reg, s, out):
    """Writes ``argmax_x <s, x> - g(x)`` into ``out``, which may be s."""
    raise only_compiled("conjugate_gradient")


def prox(reg, u, tau, out):
    """Writes ``argmin_x g(x) + |x - u|^2 / (2 tau)`` into ``out``, which may be u."""
    raise only_compiled("prox")


@overload(value, jit_options=_SUMS)
def _value(reg, x):
    if reg.instance_class is Grouped:

        def grouped(reg, x):
            total = 0.0
            for g in range(reg.weight.shape[0]):
                norm = norm_of_members(reg, g, x)
                total += norm * (0.5 * reg.lam * norm + reg.weight[g])
            return total

        return grouped

    def separable(reg, x):
        total = 0.0
        for j in range(x.shape[0]):
            total += separable_value(reg, j, x[j])
        return total

    return separable


@overload(conjugate, jit_options=_SUMS)
def _conjugate(reg, s):
    if reg.instance_class is Grouped:

        def grouped(reg, s):
            total = 0.0
            for g in range(reg.weight.shape[0]):
                excess = norm_of_members(reg, g, s) - reg.weight[g]
                if not excess <= 0.0:
                    total += excess * (0.5 * excess / reg.lam)
            return total

        return grouped

    def separable(reg, s):
        total = 0.0
        for j in range(s.shape[0]):
            total += separable_conjugate(reg, j, s[j])
        return total

    return separable


@overload(conjugate_gradient, jit_options=EXACT)
def _conjugate_gradient(reg, s, out):
    if reg.instance_class is Grouped:

        def grouped(reg, s, out):
            for g in range(reg.weight.shape[0]):
                kept = shrinkage(norm_of_members(reg, g, s), reg.weight[g])
                for k in range(reg.start[g], reg.start[g + 1]):
                    j = reg.members[k]
                    out[j] = kept * s[j] / reg.lam

        return grouped

    def separable(reg, s, out):
        for j in range(s.shape[0]):
            out[j] = separable_conjugate_gradient(reg, j, s[j])

    return separable


@overload(prox, jit_options=EXACT)
def _prox(reg, u, tau, out):
    if reg.instance_class is Grouped:

        def grouped(reg, u, tau, out):
            for g in range(reg.weight.shape[0]):
                kept = shrinkage(norm_of_members(reg, g, u), tau * reg.weight[g])
                kept /= 1.0 + reg.lam * tau
                for k in range(reg.start[g], reg.start[g + 1]):
                    j = reg.members[k]
                    out[j] = kept * u[j]

        return grouped

    def separable(reg, u, tau, out):
        for j in range(u.shape[0]):
            out[j] = separable_prox(reg, j, u[j], tau)

    return separable


# ---------------------------------------------------------------- doors for Python


@jit
def call_value(reg, x):
    return value(reg, x)


@jit
def call_conjugate(reg, s):
    return conjugate(reg, s)


@jit
def call_conjugate_gradient(reg, s, out):
    conjugate_gradient(reg, s, out)


@jit
def call_prox(reg, u, tau, out):
    prox(reg, u, tau, out)
