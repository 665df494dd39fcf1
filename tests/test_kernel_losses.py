"""The compiled losses against independent formulas and against the laws of convex duality."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, xlogy

from adaspdc import _codes
from adaspdc._kernels import losses as kernels
from adaspdc._kernels.logistic import wright_omega

Array = NDArray[np.float64]
cp: Any = cvxpy  # its own annotations are incomplete
EXTREME_SIGMAS = [10.0**k for k in (-300, -150, -20, -8, -1, 0, 1, 8, 20, 150, 300)]
few_examples = settings(max_examples=50, deadline=None, derandomize=True)


class Case(NamedTuple):
    """A scalar loss with an independent formula for phi, phi* and the domain of phi*."""

    name: str
    code: int
    a: float
    b: float
    gamma: float
    targets: tuple[float, ...]
    value: Callable[[float, float], float]
    conjugate: Callable[[float, float], float]
    domain: Callable[[float], tuple[float, float]]

    def kernel(self, function: str, *arguments: float) -> float:
        return float(getattr(kernels, function)(self.code, self.a, self.b, *arguments))


def rounded(margin: float, gamma: float, top: float = 1.0) -> float:
    """max(0, top * margin) with its corner replaced by a parabola of curvature 1/gamma."""
    if margin <= 0:
        return 0.0
    if margin <= gamma * top:
        return margin**2 / (2 * gamma)
    return top * margin - gamma * top**2 / 2


def margin_domain(t: float) -> tuple[float, float]:
    return min(-t, 0.0), max(-t, 0.0)


NUMBERS, LABELS = (-1.5, 0.0, 2.0), (-1.0, 1.0)
CASES = [
    Case("squared", _codes.SQUARED, 0, 0, 1, NUMBERS,
         lambda z, t: (z - t) ** 2 / 2, lambda y, t: y**2 / 2 + t * y,
         lambda t: (-math.inf, math.inf)),
    Case("smooth hinge", _codes.SMOOTH_HINGE, 0.3, 0, 0.3, LABELS,
         lambda z, t: rounded(1 - t * z, 0.3), lambda y, t: t * y + 0.15 * y**2, margin_domain),
    Case("logistic", _codes.LOGISTIC, 0, 0, 4, LABELS,
         lambda z, t: float(np.logaddexp(0.0, -t * z)),
         lambda y, t: float(xlogy(-t * y, -t * y) + xlogy(1 + t * y, 1 + t * y)), margin_domain),
    Case("squared hinge", _codes.SQUARED_HINGE, 0, 0, 1, LABELS,
         lambda z, t: max(0.0, 1 - t * z) ** 2 / 2, lambda y, t: t * y + y**2 / 2,
         lambda t: (-math.inf, 0.0) if t > 0 else (0.0, math.inf)),
    Case("huber", _codes.HUBER, 0.7, 0, 1, NUMBERS,
         lambda z, t: (z - t) ** 2 / 2 if abs(z - t) <= 0.7 else 0.7 * abs(z - t) - 0.245,
         lambda y, t: t * y + y**2 / 2, lambda t: (-0.7, 0.7)),
    Case("smooth pinball", _codes.SMOOTH_PINBALL, 0.8, 0.2, 0.2, NUMBERS,
         lambda z, t: rounded(t - z, 0.2, 0.8) + rounded(z - t, 0.2, 1 - 0.8),
         lambda y, t: t * y + 0.1 * y**2, lambda t: (-0.8, 1 - 0.8)),
    Case("smooth epsilon-insensitive", _codes.SMOOTH_EPSILON_INSENSITIVE, 0.25, 0.5, 0.5, NUMBERS,
         lambda z, t: rounded(abs(z - t) - 0.25, 0.5),
         lambda y, t: t * y + 0.25 * abs(y) + 0.25 * y**2, lambda t: (-1.0, 1.0)),
    Case("squared epsilon-insensitive", _codes.SQUARED_EPSILON_INSENSITIVE, 0.25, 0, 1, NUMBERS,
         lambda z, t: max(0.0, abs(z - t) - 0.25) ** 2 / 2,
         lambda y, t: t * y + 0.25 * abs(y) + y**2 / 2, lambda t: (-math.inf, math.inf)),
]  # fmt: skip
POINTS = [-30.0, -3.0, -1.2, -0.4, 0.0, 1e-9, 0.7, 1.0, 2.5, 40.0]
all_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def dual_points(case: Case, t: float) -> list[float]:
    low, high = case.domain(t)
    low, high = max(low, -4.0), min(high, 4.0)
    return [low, high, 0.0, *(low + (high - low) * np.array([1e-12, 0.03, 0.3, 0.5, 0.9, 0.99]))]


def objective(case: Case, u: float, z: float, y: float, sigma: float, t: float) -> float:
    return case.conjugate(u, t) - z * u + (u - y) ** 2 / (2 * sigma)


@all_cases
def test_value_and_conjugate_match_their_formulas(case: Case) -> None:
    for t in case.targets:
        for z in POINTS:
            assert case.kernel("value", z, t) == pytest.approx(case.value(z, t), rel=1e-13)
        for y in dual_points(case, t):
            expected = case.conjugate(y, t)
            assert case.kernel("conjugate", y, t) == pytest.approx(expected, rel=1e-13, abs=1e-15)


@all_cases
def test_conjugate_is_infinite_one_ulp_outside(case: Case) -> None:
    for t in case.targets:
        low, high = case.domain(t)
        for bound, outside in ((low, -math.inf), (high, math.inf)):
            if math.isfinite(bound):
                assert math.isfinite(case.kernel("conjugate", bound, t))
                assert case.kernel("conjugate", float(np.nextafter(bound, outside)), t) == math.inf
        assert not math.isfinite(case.kernel("conjugate", math.nan, t))


@all_cases
def test_fenchel_young(case: Case) -> None:
    for t in case.targets:
        for z in POINTS:
            phi = case.kernel("value", z, t)
            slope = case.kernel("derivative", z, t)
            equal = phi + case.kernel("conjugate", slope, t) - z * slope
            assert equal == pytest.approx(0.0, abs=1e-13 * (1 + abs(phi) + abs(z * slope)))
            for y in dual_points(case, t):
                assert phi + case.kernel("conjugate", y, t) - z * y >= -1e-13 * (1 + abs(phi))


@all_cases
def test_derivative_matches_finite_differences(case: Case) -> None:
    h = 1e-6
    for t in case.targets:
        for z in POINTS:
            rise = case.value(z + h, t) - case.value(z - h, t)
            slope = case.kernel("derivative", z, t)
            assert slope == pytest.approx(rise / (2 * h), abs=2e-6 * (1 + abs(z)))


@all_cases
def test_conjugate_is_gamma_strongly_convex(case: Case) -> None:
    for t in case.targets:
        points = dual_points(case, t)
        for first in points:
            for second in points:
                middle = case.kernel("conjugate", 0.5 * (first + second), t)
                ends = case.kernel("conjugate", first, t) + case.kernel("conjugate", second, t)
                assert middle <= ends / 2 - case.gamma / 8 * (first - second) ** 2 + 1e-14


@all_cases
def test_prox_matches_brute_force(case: Case) -> None:
    for t in case.targets:
        low, high = (max(min(bound, 60.0), -60.0) for bound in case.domain(t))
        for sigma in (1e-3, 0.2, 1.0, 7.0, 1e3):
            for z in (-2.0, 0.3, 1.5):
                for y in dual_points(case, t)[::3]:
                    best = minimize_scalar(
                        lambda u, *at: objective(case, u, *at), args=(z, y, sigma, t),
                        bounds=(low, high), method="bounded", options={"xatol": 1e-11},
                    )  # fmt: skip
                    u = case.kernel("prox", z, y, sigma, t)
                    assert u == pytest.approx(best.x, abs=2e-6 * (1 + abs(best.x)))
                    assert objective(case, u, z, y, sigma, t) <= best.fun + 1e-12 * abs(best.fun)


@all_cases
def test_prox_at_extreme_steps_stays_in_the_domain(case: Case) -> None:
    magnitudes = [0.0, 1e-200, 1e-9, 1.0, 800.0, 1e20, 1e150]
    for t in case.targets:
        for sigma in EXTREME_SIGMAS:
            for z in [sign * size for sign in (-1, 1) for size in magnitudes]:
                for y in dual_points(case, t):
                    u = case.kernel("prox", z, y, sigma, t)
                    assert math.isfinite(case.kernel("conjugate", u, t)), (z, y, sigma, t, u)


@all_cases
def test_prox_limits(case: Case) -> None:
    for t in case.targets:
        for z in POINTS:
            slope = case.kernel("derivative", z, t)
            for y in dual_points(case, t):
                tiny = case.kernel("prox", z, y, 1e-300, t)
                assert tiny == pytest.approx(y, rel=1e-15, abs=1e-290)
                assert case.kernel("prox", z, y, 1e300, t) == pytest.approx(slope, rel=3e-15)


@all_cases
@few_examples
@given(
    z=st.floats(-50, 50), v=st.floats(-20, 20), w=st.floats(-20, 20), power=st.floats(-6, 6)
)  # fmt: skip
def test_prox_is_the_strong_minimum(case: Case, z: float, v: float, w: float, power: float) -> None:
    sigma = 10.0**power
    for t in case.targets:
        low, high = case.domain(t)
        y, other = min(max(v, low), high), min(max(w, low), high)
        u = case.kernel("prox", z, y, sigma, t)
        best, there = (objective(case, x, z, y, sigma, t) for x in (u, other))
        curvature = case.gamma + 1 / sigma
        scale = 1 + abs(best) + abs(there) + abs(z * u) + (1 + abs(y)) ** 2 / sigma
        assert best + curvature / 2 * (other - u) ** 2 <= there + 1e-10 * scale


@all_cases
def test_nan_is_not_hidden(case: Case) -> None:
    t = case.targets[-1]
    assert math.isnan(case.kernel("prox", math.nan, 0.0, 1.0, t))
    assert math.isnan(case.kernel("derivative", math.nan, t))
    assert math.isnan(case.kernel("value", math.nan, t))


@pytest.mark.parametrize("z", [-1e150, -1e9, 1e9, 1e150])
@all_cases
def test_value_of_huge_predictions(case: Case, z: float) -> None:
    for t in case.targets:
        assert case.kernel("value", z, t) == pytest.approx(case.value(z, t), rel=1e-12)


def relative_error_of_logistic_prox(u: float, c: float, u0: float, sigma: float) -> float:
    """Newton's estimate, in 60 digits, of the relative error of the root u."""
    with mpmath.workdps(60):
        exact = mpmath.mpf(u)
        force = mpmath.log(exact / (1 - exact)) + c + (exact - u0) / mpmath.mpf(sigma)
        return float(abs(force / (1 / (1 - exact) + exact / mpmath.mpf(sigma))))


def test_logistic_prox_has_all_digits() -> None:
    starts = [0.0, 1e-300, 1e-20, 1e-3, 0.3, 0.5, 0.9999, 1.0]
    for sigma in (1e-300, 1e-100, 1e-12, 1e-3, 0.3, 1.0, 1.9, 30.0, 1e5, 1e300):
        for c in (-690.0, -36.0, -1.3, 0.0, 1e-8, 5.0, 50.0, 690.0):
            for u0 in starts:
                u = -float(kernels.prox(_codes.LOGISTIC, 0.0, 0.0, c, -u0, sigma, 1.0))
                if 0.0 < u < 1.0:
                    # u0 - sigma c may cancel: its rounding is not the method's to repair
                    cancelled = 1e-16 * abs(c) / max(1.0, u / sigma)
                    error = relative_error_of_logistic_prox(u, c, u0, sigma)
                    assert error <= 2e-15 + cancelled, (sigma, c, u0, u)
                else:
                    edge = 1 - 2.0**-53 if u == 1.0 else 5e-324
                    force = math.log(edge / (2.0**-53 if u else 1.0)) + c + (edge - u0) / sigma
                    assert force <= 1e-2 if u else force >= 0, (sigma, c, u0, u)


def test_logistic_at_huge_margins() -> None:
    assert kernels.value(_codes.LOGISTIC, 0.0, 0.0, -1e150, 1.0) == 1e150
    assert kernels.value(_codes.LOGISTIC, 0.0, 0.0, 700.0, 1.0) == pytest.approx(math.exp(-700))
    assert kernels.derivative(_codes.LOGISTIC, 0.0, 0.0, 1e150, 1.0) == 0.0


@pytest.mark.parametrize("x", [-1e5, -700.0, -12.1, -11.9, -2.0, 0.0, 1.0, 39.0, 1e9, 1e11, 1e300])
def test_wright_omega(x: float) -> None:
    with mpmath.workdps(340):
        if x > 700:
            w = mpmath.mpf(x) - mpmath.log(x)
            for _ in range(9):
                w = w - (w + mpmath.log(w) - x) / (1 + 1 / w)
        else:
            w = mpmath.lambertw(mpmath.exp(x)).real
        expected = float(w)
    assert wright_omega(x) == pytest.approx(expected, rel=4e-16)


# --- Losses of a vector ---

VECTOR_CASES = [("multinomial", _codes.MULTINOMIAL, 0.0, 2.0)] + [
    (f"crammer-singer {gamma:g}", _codes.SMOOTH_CRAMMER_SINGER, gamma, gamma)
    for gamma in (0.05, 1.0)
]
all_vectors = pytest.mark.parametrize(
    ("code", "a", "gamma"), [case[1:] for case in VECTOR_CASES], ids=[c[0] for c in VECTOR_CASES]
)


def dual_vector(rng: np.random.Generator, size: int, k: int) -> Array:
    """A random point of the simplex, sparse half of the time, minus e_k."""
    u = rng.gamma(0.5, size=size) * (rng.random(size) < 0.7)
    u = u / u.sum() if u.sum() > 0 else np.eye(size)[int(rng.integers(size))]
    others = np.delete(u, k).sum()
    u[k] = -min(others, 1.0)
    return np.asarray(u)


def block(code: int, a: float, function: str, x: Array, k: int) -> float:
    return float(getattr(kernels, f"block_{function}")(code, a, 0.0, x, np.array([float(k)])))


def gradient(code: int, a: float, z: Array, k: int) -> Array:
    out = np.empty_like(z)
    kernels.block_derivative(code, a, 0.0, z, np.array([float(k)]), out)
    return out


def block_prox(code: int, a: float, z: Array, y: Array, sigma: float, k: int) -> Array:
    out = np.empty_like(z)
    kernels.block_prox(code, a, 0.0, z, y, sigma, np.array([float(k)]), out)
    return out


def draws(count: int, sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6)) -> Any:
    rng = np.random.default_rng(7)
    for index in range(count):
        size = sizes[index % len(sizes)]
        k = int(rng.integers(size))
        z = rng.normal(size=size) * 10.0 ** rng.uniform(-2, 2)
        yield rng, size, k, z, dual_vector(rng, size, k)


def formula_value(code: int, gamma: float, z: Array, k: int) -> float:
    if code == _codes.MULTINOMIAL:
        return float(logsumexp(z) - z[k])
    u = cp.Variable(z.size)
    own = np.eye(z.size)[k]
    gain = (1 - own + z) @ u - z[k] - gamma / 2 * cp.sum_squares(u - own)
    return float(cp.Problem(cp.Maximize(gain), [u >= 0, cp.sum(u) == 1]).solve(cp.CLARABEL))


@all_vectors
def test_vector_value_matches_its_formula(code: int, a: float, gamma: float) -> None:
    for _, _, k, z, _ in draws(12):
        tolerance = 1e-13 if code == _codes.MULTINOMIAL else 1e-6
        expected = formula_value(code, gamma, z, k)
        assert block(code, a, "value", z, k) == pytest.approx(expected, rel=tolerance, abs=1e-6)


def test_multinomial_value_keeps_small_losses() -> None:
    tiny = block(_codes.MULTINOMIAL, 0.0, "value", np.array([60.0, 0.0, 1.0]), 0)
    assert tiny == pytest.approx(math.exp(-60) * (1 + math.e), rel=1e-14)
    assert block(_codes.MULTINOMIAL, 0.0, "value", np.array([1e150, -1e150]), 1) == 2e150


@all_vectors
def test_vector_fenchel_young_and_gradient(code: int, a: float, gamma: float) -> None:
    for rng, size, k, z, _ in draws(60):
        phi, slope = block(code, a, "value", z, k), gradient(code, a, z, k)
        gap = phi + block(code, a, "conjugate", slope, k) - z @ slope
        assert gap == pytest.approx(0.0, abs=1e-13 * (1 + np.abs(z).sum()))
        for _ in range(5):
            y = dual_vector(rng, size, k)
            assert phi + block(code, a, "conjugate", y, k) - z @ y >= -1e-12 * (1 + abs(phi))
        direction, h = rng.normal(size=size), 1e-6
        rise = block(code, a, "value", z + h * direction, k) - block(
            code, a, "value", z - h * direction, k
        )
        assert slope @ direction == pytest.approx(rise / (2 * h), abs=1e-4 * (1 + 1 / gamma))


@all_vectors
def test_vector_conjugate_is_strongly_convex(code: int, a: float, gamma: float) -> None:
    for rng, size, k, _, first in draws(100):
        second = dual_vector(rng, size, k)
        middle = block(code, a, "conjugate", (first + second) / 2, k)
        ends = block(code, a, "conjugate", first, k) + block(code, a, "conjugate", second, k)
        assert middle <= ends / 2 - gamma / 8 * np.sum((first - second) ** 2) + 1e-13


@all_vectors
def test_vector_conjugate_is_infinite_outside(code: int, a: float, gamma: float) -> None:
    y = np.array([0.3, -0.5, 0.2])
    assert math.isfinite(block(code, a, "conjugate", y, 1))
    assert block(code, a, "conjugate", y + 1e-8 * np.eye(3)[2], 1) == math.inf
    assert block(code, a, "conjugate", np.array([-1e-15, 1e-15, 0.0]), 1) == math.inf
    assert block(code, a, "conjugate", np.array([0.7, -1.1, 0.4]), 1) == math.inf
    assert block(code, a, "conjugate", np.full(3, math.nan), 1) == math.inf


@all_vectors
def test_vector_prox_is_optimal(code: int, a: float, gamma: float) -> None:
    """No other feasible point is better; the bound also knows the curvature."""

    def objective_at(u: Array) -> float:
        linear, square = float(z @ u), float(np.sum((u - y) ** 2))
        cost: float = sigma * (block(code, a, "conjugate", u, k) - linear) + square / 2
        return cost

    for rng, size, k, z, y in draws(240):
        sigma = 10.0 ** rng.uniform(-8, 8)
        best = block_prox(code, a, z, y, sigma, k)
        others = [dual_vector(rng, size, k) for _ in range(4)]
        others += [best + 1e-3 * (other - best) for other in others]
        others += [y, gradient(code, a, z, k)]
        for other in others:
            growth = (1 + sigma * gamma) / 2 * np.sum((other - best) ** 2)
            scale = 1 + sigma * (1 + np.abs(z).max())
            assert objective_at(best) + growth <= objective_at(other) + 1e-13 * scale


@all_vectors
def test_vector_prox_agrees_with_cvxpy(code: int, a: float, gamma: float) -> None:
    for index, (_, size, k, z, y) in enumerate(draws(6, sizes=(2, 3, 5))):
        z, sigma = np.clip(z, -5, 5), (0.05, 1.0, 20.0)[index % 3]
        u, own = cp.Variable(size), np.eye(size)[k]
        if code == _codes.MULTINOMIAL:
            conjugate: Any = -cp.sum(cp.entr(u))
        else:
            conjugate = -(1 - own) @ u + gamma / 2 * cp.sum_squares(u - own)
        cost = conjugate - z @ u + cp.sum_squares(u - own - y) / (2 * sigma)
        cp.Problem(cp.Minimize(cost), [u >= 0, cp.sum(u) == 1]).solve(cp.CLARABEL)
        np.testing.assert_allclose(block_prox(code, a, z, y, sigma, k), u.value - own, atol=2e-5)


@all_vectors
def test_vector_prox_is_feasible_at_extreme_steps(code: int, a: float, gamma: float) -> None:
    for rng, size, k, z, y in draws(300):
        sigma = 10.0 ** rng.uniform(-12, 12)
        for scale in (1.0, 1e6, 1e100):
            u = block_prox(code, a, scale * z, y, sigma, k)
            assert math.isfinite(block(code, a, "conjugate", u, k))
            assert abs(u.sum()) <= 1e-15 * size


@all_vectors
def test_vector_prox_limits(code: int, a: float, gamma: float) -> None:
    """A step of 1e300 is the derivative (of tiny components too), one of 1e-300 goes nowhere."""
    for _, _, k, z, y in draws(60):
        far = block_prox(code, a, z, y, 1e300, k)
        np.testing.assert_allclose(far, gradient(code, a, z, k), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(block_prox(code, a, z, y, 1e-300, k), y, atol=1e-15)


@all_vectors
def test_vector_prox_accepts_points_outside_the_domain(code: int, a: float, gamma: float) -> None:
    for rng, size, k, z, _ in draws(40):
        for scale in (1.0, 1e3, 1e9):
            far = scale * rng.normal(size=size)
            u = block_prox(code, a, z, far, 1.0, k)
            assert math.isfinite(block(code, a, "conjugate", u, k))


def test_multinomial_prox_solves_its_equation() -> None:
    """log(u_j) + (u_j - u0_j)/sigma - z_j is the same for all j."""
    for rng, _, k, z, y in draws(200, sizes=(2, 4, 6)):
        sigma = 10.0 ** rng.uniform(-2, 8)
        u, u0 = block_prox(_codes.MULTINOMIAL, 0.0, z, y, sigma, k), y.copy()
        u[k] += 1.0
        u0[k] += 1.0
        keep = u > 1e-9  # 1 + y_k loses the digits of a tiny u_k
        force = np.log(u[keep]) + ((u - u0) / sigma - z)[keep]
        assert np.ptp(force) <= 1e-6


def test_two_class_multinomial_is_logistic() -> None:
    for rng, _, _, z, y in draws(50, sizes=(2,)):
        y = np.array([y[0], -y[0]]) if y[0] >= 0 else np.array([-y[0], y[0]])
        sigma = 10.0 ** rng.uniform(-3, 3)
        pair = block_prox(_codes.MULTINOMIAL, 0.0, z, y, sigma, 1)
        # Both coordinates move by the same amount, so the quadratic counts twice.
        single = kernels.prox(_codes.LOGISTIC, 0.0, 0.0, z[1] - z[0], y[1], sigma / 2, 1.0)
        assert pair[1] == pytest.approx(single, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("code", [_codes.SQUARED, _codes.LOGISTIC, *(c[1] for c in VECTOR_CASES)])
def test_prox_may_overwrite_its_input(code: int) -> None:
    k = np.array([1.0])
    z = np.array([0.3, -0.7, 2.0])
    y, t = np.array([0.1, -0.4, 0.3]), k if code >= _codes.FIRST_VECTOR_CODE else np.ones(3)
    out = np.empty(3)
    kernels.block_prox(code, 0.5, 0.0, z, y, 0.8, t, out)
    kernels.block_prox(code, 0.5, 0.0, z, y, 0.8, t, y)
    np.testing.assert_array_equal(out, y)


def test_block_of_a_scalar_loss_adds_coordinates() -> None:
    z, t = np.array([0.3, -2.0, 5.0]), np.array([1.0, -1.0, 1.0])
    code, out = _codes.LOGISTIC, np.empty(3)
    kernels.block_derivative(code, 0.0, 0.0, z, t, out)
    pairs = list(zip(z, t, strict=True))
    np.testing.assert_array_equal(out, [kernels.derivative(code, 0.0, 0.0, *p) for p in pairs])
    total = sum(kernels.value(code, 0.0, 0.0, *pair) for pair in pairs)
    assert kernels.block_value(code, 0.0, 0.0, z, t) == pytest.approx(total)
