"""Compiled losses: value, conjugate, derivative and proximal step of the conjugate.

The loss travels as an integer (see ``_codes``), so one compilation serves them all. ``t`` is the
target of a coordinate (a number, or the label -1/+1), ``a`` and ``b`` are the loss's parameters.
"""

import math

import numpy as np

from .._codes import (
    FIRST_VECTOR_CODE,
    HUBER,
    LOGISTIC,
    MULTINOMIAL,
    SMOOTH_EPSILON_INSENSITIVE,
    SMOOTH_HINGE,
    SMOOTH_PINBALL,
    SQUARED_EPSILON_INSENSITIVE,
    SQUARED_HINGE,
)
from ._jit import helper, jit
from .clip import clip
from .elementary import exp_of_negative, log1p_of_unit, log_of_positive
from .logistic import logistic_prox
from .vector_losses import (
    crammer_singer_point,
    crammer_singer_value,
    multinomial_derivative,
    multinomial_prox,
    multinomial_value,
    vector_conjugate,
)

# --- One number: the logistic loss, and those whose conjugate is a quadratic on an interval ---


@helper(inline=True)
def _soft(x, threshold):
    if x > threshold:
        return x - threshold
    if x < -threshold:
        return x + threshold
    return 0.0 * x


@helper(inline=True)
def _quadratic_form(code, a, b, t):
    """(sign, shift, low, high, epsilon, gamma) such that, with q = sign y,

    phi*(y) = shift q + epsilon |q| + gamma/2 q^2 on low <= q <= high, where low <= 0 <= high.
    """
    of_margin = code == SMOOTH_HINGE or code == SQUARED_HINGE
    sign, shift = (t, 1.0) if of_margin else (1.0, t)
    low, high, epsilon, gamma = -np.inf, np.inf, 0.0, 1.0  # SQUARED
    if code == SMOOTH_HINGE:
        low, high, gamma = -1.0, 0.0, a
    elif code == SQUARED_HINGE:
        high = 0.0
    elif code == HUBER:
        low, high = -a, a
    elif code == SMOOTH_PINBALL:
        low, high, gamma = -a, 1.0 - a, b
    elif code == SMOOTH_EPSILON_INSENSITIVE:
        low, high, epsilon, gamma = -1.0, 1.0, a, b
    elif code == SQUARED_EPSILON_INSENSITIVE:
        epsilon = a
    return sign, shift, low, high, epsilon, gamma


# Both kinds are written out for themselves: loops over many rows choose between them beforehand.


@helper(inline=True)
def _quadratic_size(force, q, epsilon, gamma):
    """phi where phi' is q: 0 exactly where q is, however large the force."""
    size = abs(q)
    at = size * ((abs(force) - epsilon) - 0.5 * gamma * size)
    return at if q != 0.0 else 0.0


@helper(inline=True)
def quadratic_value(code, a, b, z, t):
    sign, shift, low, high, epsilon, gamma = _quadratic_form(code, a, b, t)
    force = sign * z - shift
    return _quadratic_size(force, clip(_soft(force, epsilon) / gamma, low, high), epsilon, gamma)


@helper(inline=True)
def logistic_value(z, t):
    margin = t * z
    return log1p_of_unit(exp_of_negative(-abs(margin))) - min(margin, 0.0)


@helper(inline=True)
def quadratic_conjugate(code, a, b, y, t):
    sign, shift, low, high, epsilon, gamma = _quadratic_form(code, a, b, t)
    q = sign * y
    own = q * (shift + 0.5 * gamma * q) + epsilon * abs(q)
    return own if q >= low and q <= high else np.inf


@helper(inline=True)
def logistic_conjugate(y, t):
    u = -t * y
    inside = u >= 0.0 and u <= 1.0
    u = u if inside else 0.0
    own = u * log_of_positive(u) + (1.0 - u) * log1p_of_unit(-u)
    return own if inside else np.inf


@helper(inline=True)
def quadratic_expansion(code, a, b, z, t):
    sign, shift, low, high, epsilon, gamma = _quadratic_form(code, a, b, t)
    force = sign * z - shift
    free = _soft(force, epsilon) / gamma
    q = clip(free, low, high)
    curved = free >= low and free <= high and not (epsilon > 0.0 and free == 0.0)
    at = _quadratic_size(force, q, epsilon, gamma)
    return at, sign * q, 1.0 / gamma if curved else 0.0


@helper(inline=True)
def logistic_expansion(z, t):
    margin = t * z
    e = exp_of_negative(-abs(margin))
    larger = 1.0 / (1.0 + e)
    smaller = e * larger
    slope = -t * (smaller if margin > 0.0 else larger)
    return log1p_of_unit(e) - min(margin, 0.0), slope, smaller * larger


@helper(inline=True)
def quadratic_nearest(code, a, b, y, t):
    sign, _, low, high, _, _ = _quadratic_form(code, a, b, t)
    return sign * clip(sign * y, low, high)


@helper(inline=True)
def logistic_nearest(y, t):
    return -t * clip(-t * y, 0.0, 1.0)


@helper
def value(code, a, b, z, t):
    """phi(z)."""
    return logistic_value(z, t) if code == LOGISTIC else quadratic_value(code, a, b, z, t)


@helper
def conjugate(code, a, b, y, t):
    """phi*(y), which is +inf outside its domain, without any tolerance."""
    return logistic_conjugate(y, t) if code == LOGISTIC else quadratic_conjugate(code, a, b, y, t)


@helper
def expansion(code, a, b, z, t):
    """phi(z), phi'(z) and phi''(z): of the two curvatures at a kink of phi' the larger."""
    return logistic_expansion(z, t) if code == LOGISTIC else quadratic_expansion(code, a, b, z, t)


@helper
def nearest(code, a, b, y, t):
    """The point of the domain of phi* that is closest to y."""
    return logistic_nearest(y, t) if code == LOGISTIC else quadratic_nearest(code, a, b, y, t)


@helper
def derivative(code, a, b, z, t):
    """phi'(z), always a point of the domain of phi*."""
    if code == LOGISTIC:
        margin = t * z
        e = math.exp(-abs(margin))
        return -t * (e if margin > 0.0 else 1.0) / (1.0 + e)
    sign, shift, low, high, epsilon, gamma = _quadratic_form(code, a, b, t)
    return sign * clip(_soft(sign * z - shift, epsilon) / gamma, low, high)


@helper
def prox(code, a, b, z, y, sigma, t):
    """argmin_u phi*(u) - z u + (u - y)^2 / (2 sigma)."""
    if code == LOGISTIC:
        return -t * logistic_prox(t * z, -t * y, sigma)
    sign, shift, low, high, epsilon, gamma = _quadratic_form(code, a, b, t)
    force = sign * z - shift
    if sigma < 1.0:  # the same quotient twice, in the form that cannot overflow
        q = _soft(sign * y + sigma * force, sigma * epsilon) / (1.0 + gamma * sigma)
    else:
        inverse = 1.0 / sigma
        q = _soft(sign * y * inverse + force, epsilon) / (inverse + gamma)
    return sign * clip(q, low, high)


# --- Blocks: 1-D arrays z, y, out; t has one target per coordinate, or the class index alone ---


@helper
def block_value(code, a, b, z, t):
    """phi(z) of a block."""
    if code < FIRST_VECTOR_CODE:
        total = 0.0
        for j in range(z.shape[0]):
            total += value(code, a, b, z[j], t[j])
        return total
    if code == MULTINOMIAL:
        return multinomial_value(z, int(t[0]))
    return crammer_singer_value(a, z, int(t[0]))


@helper
def block_conjugate(code, a, b, y, t):
    """phi*(y) of a block; +inf outside the domain."""
    if code < FIRST_VECTOR_CODE:
        total = 0.0
        for j in range(y.shape[0]):
            total += conjugate(code, a, b, y[j], t[j])
        return total
    return vector_conjugate(code, a, y, int(t[0]))


@helper
def block_derivative(code, a, b, z, t, out):
    """The gradient of phi at z, written to ``out`` (which must not be ``z``)."""
    if code < FIRST_VECTOR_CODE:
        for j in range(z.shape[0]):
            out[j] = derivative(code, a, b, z[j], t[j])
    elif code == MULTINOMIAL:
        multinomial_derivative(z, int(t[0]), out)
    else:
        crammer_singer_point(z, z, 1.0 / a, 0.0, int(t[0]), out)


@helper
def block_prox(code, a, b, z, y, sigma, t, out):
    """argmin_u phi*(u) - <z, u> + |u - y|^2 / (2 sigma), written to ``out`` (may be ``y``)."""
    if code < FIRST_VECTOR_CODE:
        for j in range(z.shape[0]):
            out[j] = prox(code, a, b, z[j], y[j], sigma, t[j])
    elif code == MULTINOMIAL:
        multinomial_prox(z, y, sigma, int(t[0]), out)
    elif sigma < 1.0:
        scale = 1.0 / (1.0 + a * sigma)
        crammer_singer_point(z, y, sigma * scale, scale, int(t[0]), out)
    else:
        scale = 1.0 / (1.0 / sigma + a)
        crammer_singer_point(z, y, scale, scale / sigma, int(t[0]), out)


# --- Many rows at once, for the public methods: z, y, v, out are (n, q); t is (n, q) or (n, 1) ---


@jit
def rows_value(code, a, b, z, t, out):
    """out[i] = phi_i(z[i])."""
    for i in range(z.shape[0]):
        out[i] = block_value(code, a, b, z[i], t[i])


@jit
def rows_conjugate(code, a, b, y, t, out):
    """out[i] = phi_i*(y[i])."""
    for i in range(y.shape[0]):
        out[i] = block_conjugate(code, a, b, y[i], t[i])


@jit
def rows_derivative(code, a, b, z, t, out):
    """out[i] = gradient of phi_i at z[i]."""
    for i in range(z.shape[0]):
        block_derivative(code, a, b, z[i], t[i], out[i])


@jit
def rows_prox(code, a, b, v, sigma, t, out):
    """out[i] = argmin_u sigma[i] phi_i*(u) + |u - v[i]|^2 / 2."""
    nothing = np.zeros(v.shape[1])
    for i in range(v.shape[0]):
        block_prox(code, a, b, nothing, v[i], sigma[i], t[i], out[i])
