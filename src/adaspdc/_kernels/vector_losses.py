"""Compiled losses of a whole vector z with a class index k: y + e_k runs over the unit simplex.

Everything but `vector_conjugate` is one loss's: of the multinomial, or of Crammer and Singer's.
"""

import math

import numpy as np

from .._codes import MULTINOMIAL
from ._jit import helper
from .logistic import wright_omega

SUM_TOLERANCE = 1e-9  # of the simplex: a sum of floats is never exactly one


# --- Multinomial ---


@helper
def multinomial_value(z, k):
    top = 0
    for j in range(1, z.shape[0]):
        if z[j] > z[top]:
            top = j
    rest = 0.0
    for j in range(z.shape[0]):
        if j != top:
            rest += math.exp(z[j] - z[top])
    return (z[top] - z[k]) + math.log1p(rest)


@helper
def multinomial_derivative(z, k, out):
    top = z.max()
    own = math.exp(z[k] - top)
    others = 0.0
    for j in range(z.shape[0]):
        if j != k:
            out[j] = math.exp(z[j] - top)
            others += out[j]
    total = others + own
    for j in range(z.shape[0]):
        out[j] /= total
    out[k] = -(others / total)


@helper
def _scaled_omega(q, shift, sigma):
    """The solution u of u / sigma + log(u) = q, where shift = log(sigma)."""
    if q - shift < -12.0:  # omega itself would underflow for a huge sigma
        e = math.exp(q - shift)
        return math.exp(q) * (1.0 - e * (1.0 - 1.5 * e))
    return sigma * wright_omega(q - shift)


@helper
def multinomial_prox(z, y, sigma, k, out):
    """u + sigma log(u) = sigma (p - mu) for each coordinate, mu such that the u sum to one.

    The sum is convex and decreasing in mu, so Newton's method started where it is at least one
    approaches the root from that side.
    """
    count = z.shape[0]
    inverse = 1.0 / sigma
    for j in range(count):
        start = y[j] + 1.0 if j == k else y[j]
        out[j] = z[j] + start * inverse
    top = out.max()
    total = 0.0
    for j in range(count):
        out[j] -= top
        total += math.exp(out[j])
    shift = math.log(sigma)
    mu = math.log(total) - inverse
    for _ in range(100):
        total, slope = 0.0, 0.0
        for j in range(count):
            u = _scaled_omega(out[j] - mu, shift, sigma)
            total += u
            slope += u / (1.0 + u * inverse)
        following = mu + (total - 1.0) / slope
        if total - 1.0 <= 1e-15 * count or not following > mu:
            break
        mu = following
    others = 0.0
    for j in range(count):
        out[j] = _scaled_omega(out[j] - mu, shift, sigma) / total
        if j != k:
            others += out[j]
    out[k] = -min(others, 1.0)


# --- Crammer and Singer, smoothed ---


@helper
def _simplex_input(z, y, weight_z, weight_y, k, j):
    """Coordinate j of the point whose projection on the simplex is the answer."""
    own = 1.0 if j == k else 0.0
    return weight_z * (z[j] + 1.0 - own) + weight_y * y[j] + own


@helper
def _simplex_threshold(z, y, weight_z, weight_y, k):
    """(top, tau) such that the projection is max(x - top - tau, 0); Michelot's method.

    Relative to the largest coordinate tau lies in [-1, 0), whatever the size of the input.
    """
    count = z.shape[0]
    top = -np.inf
    for j in range(count):
        top = max(top, _simplex_input(z, y, weight_z, weight_y, k, j))
    tau, active = -1.0, 0
    for _ in range(count + 1):
        total, members = 0.0, 0
        for j in range(count):
            x = _simplex_input(z, y, weight_z, weight_y, k, j) - top
            if x > tau or x == 0.0:
                total += x
                members += 1
        if members == active:
            break
        active = members
        tau = (total - 1.0) / members
    return top, tau


@helper
def crammer_singer_point(z, y, weight_z, weight_y, k, out):
    top, tau = _simplex_threshold(z, y, weight_z, weight_y, k)
    others = 0.0
    for j in range(z.shape[0]):
        if j != k:
            x = _simplex_input(z, y, weight_z, weight_y, k, j) - top
            out[j] = max(x - tau, 0.0)
            others += out[j]
    out[k] = -min(others, 1.0)


@helper
def crammer_singer_value(gamma, z, k):
    weight = 1.0 / gamma
    top, tau = _simplex_threshold(z, z, weight, 0.0, k)
    linear, others, squares = 0.0, 0.0, 0.0
    for j in range(z.shape[0]):
        if j != k:
            x = _simplex_input(z, z, weight, 0.0, k, j) - top
            u = max(x - tau, 0.0)
            linear += u * (z[j] - z[k] + 1.0)
            others += u
            squares += u * u
    return linear - 0.5 * gamma * (squares + others * others)


# --- Both ---


@helper
def vector_conjugate(code, a, y, k):
    total, others, squares, entropy = 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        u = y[j] + 1.0 if j == k else y[j]
        if not u >= 0.0:
            return np.inf
        total += y[j]
        squares += y[j] * y[j]
        if j != k:
            others += y[j]
        if u > 0.0:
            entropy += u * (math.log1p(y[j]) if j == k else math.log(u))
    if not abs(total) <= SUM_TOLERANCE:
        return np.inf
    if code == MULTINOMIAL:
        return entropy
    return 0.5 * a * squares - others
