"""Exponential and logarithm against 40 digits, and loops over many rows against one at a time."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

import builders
import naive
from adaspdc import ERM, regularizers
from adaspdc._kernels._jit import jit
from adaspdc._kernels.elementary import exp_of_negative, log1p_of_unit, log_of_positive
from adaspdc._newton._walks import walks_over
from adaspdc._threads import Threads
from naive import Array

ULP = 2.0**-52
SCALAR = [
    name
    for name, (loss, _, _) in builders.LOSSES.items()
    if loss.kind not in ("multiclass", "multioutput")
]


@jit
def exps(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = exp_of_negative(x[i])


@jit
def logs(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = log_of_positive(x[i])


@jit
def log1ps(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = log1p_of_unit(x[i])


def spread(low: float, high: float, sign: float = 1.0) -> Array:
    return sign * 10.0 ** np.random.default_rng(0).uniform(low, high, 3000)


@pytest.mark.parametrize(
    ("kernel", "exact", "x"),
    [
        (exps, mpmath.exp, spread(-12, 2.85, -1.0)),
        (logs, mpmath.log, spread(-308, 308)),
        (logs, mpmath.log, 1.0 + spread(-12, -0.1)),
        (logs, mpmath.log, 1.0 - spread(-12, -0.1)),
        (log1ps, mpmath.log1p, spread(-300, 0)),
        (log1ps, mpmath.log1p, spread(-300, -1e-3, -1.0)),
    ],
)
def test_within_two_units_in_the_last_place(
    kernel: Callable[[Array, Array], None], exact: Callable[[object], object], x: Array
) -> None:
    out = np.empty(x.size)
    kernel(x, out)
    with mpmath.workdps(40):
        expected = [exact(mpmath.mpf(float(v))) for v in x]
        errors = [
            abs(mpmath.mpf(float(a)) / b - 1) for a, b in zip(out, expected, strict=True) if b
        ]
    assert max(errors) <= 2 * ULP


def test_ends_of_the_range() -> None:
    out = np.empty(4)
    exps(np.array([0.0, -0.0, -np.inf, np.nan]), out)
    np.testing.assert_array_equal(out[:2], 1.0)
    assert 0.0 <= out[2] < 1e-300
    assert np.isnan(out[3])
    logs(np.array([0.0, 5e-324, 1.0, 1e308]), out)
    assert out[0] < -740.0  # finite, so that 0 log 0 is 0
    np.testing.assert_allclose(out[1:], np.log([5e-324, 1.0, 1e308]), rtol=1e-15)
    log1ps(np.array([-1.0, 0.0, 1e-300, 1.0]), out)
    assert np.isfinite(out[0])
    np.testing.assert_allclose(out[1:], np.log1p([0.0, 1e-300, 1.0]), rtol=1e-15)


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("weighted", [True, False])
def test_many_rows_at_once_are_as_one_by_one(name: str, weighted: bool) -> None:
    public, reference, params = builders.LOSSES[name]
    rng, n = np.random.default_rng(4), 1003
    t = np.sign(rng.normal(size=n)) if public.kind == "binary" else rng.normal(size=n)
    s = rng.integers(0, 3, size=n).astype(float) if weighted else np.ones(n)
    z, dz = 4.0 * rng.normal(size=(2, n))
    z[s == 0.0] = np.inf  # does not count
    flat = ERM(np.ones((n, 1)), t, public, regularizers.L2(1.0), s if weighted else None).flatten()
    walks, share, y = walks_over(flat, Threads(1)), s / s.sum(), np.empty(n)
    at, counted = walks.expansion(), s > 0.0
    value, slope, bend = walks.expand(z, dz, 0.25, at)
    oracles = [naive.Loss(reference, np.atleast_1d(v), params) for v in t]
    points = (z + 0.25 * dz)[:, None]
    values = np.array([naive.loss_value(o, v) for o, v in zip(oracles, points, strict=True)])
    slopes = np.array(
        [naive.loss_derivative(o, v)[0] for o, v in zip(oracles, points, strict=True)]
    )
    np.testing.assert_allclose(at.slope[counted], slopes[counted], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(value, share[counted] @ values[counted], rtol=1e-12)
    np.testing.assert_allclose(slope, share[counted] @ (slopes * dz)[counted], rtol=1e-11)
    np.testing.assert_allclose(bend, share[counted] @ (at.curvature * dz**2)[counted], rtol=1e-12)
    conjugate, level, _, _ = walks.propose_dual(at, np.zeros(n), 0.0, 0.0, y)
    np.testing.assert_array_equal(y[counted], at.slope[counted])
    mattering = zip(
        [o for o, keep in zip(oracles, counted, strict=True) if keep], y[counted], strict=True
    )
    duals = np.array([naive.loss_conjugate(o, np.array([v])) for o, v in mattering])
    np.testing.assert_allclose(conjugate, share[counted] @ duals, rtol=1e-11)
    np.testing.assert_allclose(level, share[counted] @ y[counted], rtol=1e-11, atol=1e-15)
