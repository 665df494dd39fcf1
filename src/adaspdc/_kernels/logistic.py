"""The logistic loss's proximal step, and Wright's omega function, which starts its search."""

import math

from ._jit import helper
from .clip import clip

LARGEST = 1e305  # stands for infinity where a sum of two of them must stay finite
EXP_UNDERFLOW = -746.0  # exp of anything below is 0
SIGMOID_IS_ONE = 40.0  # the sigmoid of anything above rounds to 1


@helper
def wright_omega(x):
    """The solution w > 0 of w + log(w) = x."""
    if x > 1e10:
        return x - math.log(x)
    if x < -12.0:
        e = math.exp(x)
        return e * (1.0 - e * (1.0 - 1.5 * e))
    base = x if x > 40.0 else math.log1p(math.exp(x))
    w = base * (1.0 - math.log1p(base) / (2.0 + base))  # within 3 %
    for _ in range(2):  # fourth-order steps of Fritsch, Shafer and Crowley (1973)
        r = x - w - math.log(w)
        p = 2.0 * (1.0 + w) * (1.0 + w + r * (2.0 / 3.0))
        w *= 1.0 + r / (1.0 + w) * (p - r) / (p - 2.0 * r)
    return w


@helper
def _logit_guess(c, u0, sigma):
    """Within about 1 of the root s of sigmoid(s) + sigma s = u0 - sigma c."""
    w = u0 - sigma * c
    if w > 0.5:  # mirrored, with 1 - w spelled out for the sake of its digits
        return -_logit_guess_below((1.0 - u0) + sigma * c, sigma)
    return _logit_guess_below(w, sigma)


@helper
def _logit_guess_below(w, sigma):
    # For s < 0 the sigmoid u is nearly exp(s), and u + sigma log(u) = w is Wright's equation.
    x = wright_omega(w / sigma - math.log(sigma))
    if x < 1.0:
        return w / sigma - x
    u = min(sigma * x, 0.5)
    return math.log(u / (1.0 - u))


@helper
def logistic_prox(c, u0, sigma):
    """argmin_u u log(u) + (1-u) log(1-u) + c u + (u - u0)^2 / (2 sigma) over [0, 1].

    Solves f(s) = s + c + (sigmoid(s) - u0) / sigma = 0 for s = logit(u), from s = logit(u0) where
    sigma is small (there u hardly moves), else from s = -c (exact at a fixed point u = u0). Steps
    are of fourth order, and the sigmoid follows a step by multiplication: one logarithm or
    exponential is all it takes near the end of a run. What is not settled in three steps is left
    to `_logistic_search`.
    """
    inverse = 1.0 / sigma
    if not (abs(c) < 30.0 and 1e-12 < u0 < 1.0 - 1e-12):
        return _logistic_search(c, u0, inverse)
    rest0 = 1.0 - u0
    if u0 * rest0 > sigma:
        u, rest = u0, rest0
        e = rest / u
        force = c - math.log(e)
    else:
        e = math.exp(c)
        u = 1.0 / (1.0 + e)
        rest = e * u
        force = (u - u0 if c > 0.0 else rest0 - rest) * inverse
    moved = 0.0
    start = force if u == u0 else 0.0  # s + c at the first s
    for _ in range(3):
        slope = u * rest
        q = 1.0 / (1.0 + slope * inverse)
        newton = -force * q
        share = slope * inverse * q
        bend = rest - u
        k2 = 0.5 * bend
        a2 = share * k2
        if abs(newton) < 0.05:
            k3 = (1.0 - 6.0 * slope) * (1.0 / 6.0)
            k4 = bend * (1.0 - 12.0 * slope) * (1.0 / 24.0)
            a3, a4 = share * k3, share * k4
            cubic = 2.0 * a2 * a2 - a3
            quartic = 5.0 * a2 * (a3 - a2 * a2) - a4
            step = newton * (1.0 + newton * (newton * (cubic + newton * quartic) - a2))
            if abs(newton) < 3e-4:
                return u + slope * step * (1.0 + step * (k2 + step * (k3 + step * k4)))
            e *= _small_exp(-step)
        elif abs(newton) < 2.0:
            step = newton / (1.0 + a2 * newton)
            e *= math.exp(-step)
        else:
            break
        moved += step
        u = 1.0 / (1.0 + e)
        rest = e * u
        force = start + moved + (u - u0 if e > 1.0 else rest0 - rest) * inverse
    return _logistic_search(c, u0, inverse)


@helper
def _small_exp(x):
    """exp(x) for abs(x) < 0.07, to rounding."""
    x2 = x * x
    low = 1.0 + x + x2 * (0.5 + x * (1.0 / 6.0))
    high = (1.0 / 24.0 + x * (1.0 / 120.0)) + x2 * (1.0 / 720.0 + x * (1.0 / 5040.0))
    return low + x2 * x2 * (high + x2 * x2 * (1.0 / 40320.0 + x * (1.0 / 362880.0)))


@helper
def _logistic_search(c, u0, inverse):
    """The same anywhere: a bracketed search with steps of fourth order."""
    if u0 < 0.0:  # the same problem with a starting point inside the domain
        c, u0 = c - u0 * inverse, 0.0
    elif u0 > 1.0:
        c, u0 = c - (u0 - 1.0) * inverse, 1.0
    c = clip(c, -LARGEST, LARGEST)
    low = -c - (1.0 - u0) * inverse
    high = -c + u0 * inverse
    if high < EXP_UNDERFLOW:
        return 0.0
    if low > SIGMOID_IS_ONE:
        return 1.0
    s, u, guessed = -c, 0.5, False
    for _ in range(100):
        e = math.exp(-abs(s))
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        slope = smaller * larger
        u = smaller if s < 0.0 else larger
        travelled = (
            u - u0 if s < 0.0 else (1.0 - u0) - smaller
        )  # without cancellation at either end
        force = (s + c) + travelled * inverse
        stiffness = 1.0 + slope * inverse
        newton = -force / stiffness
        if force > 0.0:
            high = s
        else:
            low = s
        if abs(newton) <= 0.5:
            share = slope * inverse / stiffness
            second = 0.5 * share * (1.0 - 2.0 * u)
            third = share * (1.0 - 6.0 * slope) / 6.0
            step = newton * (1.0 + second * newton)
            step /= 1.0 + newton * (2.0 * second + third * newton)
            if abs(step) < 1e-4:  # what is left is step^4; take this step without another exp
                growth = step * (1.0 + step * (0.5 + step * (1.0 / 6.0 + step / 24.0)))
                return min(u * (1.0 + growth) / (1.0 + u * growth), 1.0)
            following = s + step
        elif guessed:
            following = s + newton
        else:
            following, guessed = _logit_guess(c, u0, 1.0 / inverse), True
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == s:
            break
        s = following
    return u
