"""Many skipped steps at once against taking them one by one."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from adaspdc import regularizers
from adaspdc._containers import Separable
from adaspdc._kernels import catch_up as kernels
from adaspdc._kernels._jit import jit, uncached

EPS = np.finfo(float).eps
Array = NDArray[np.float64]


@jit
def run_cases(reg, x, r, s, t, tau, decay, out):  # type: ignore[no-untyped-def]
    """Case i is coordinate i, with its own row of steps."""
    for i in range(x.shape[0]):
        out[i] = kernels.catch_up(reg, np.uint32(i), x[i], r[i], s[i], t[i], tau[i], decay[i])


@jit
def run_constant(reg, x, r, steps, tau, out):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        out[i] = kernels.catch_up_constant(reg, np.uint32(i), x[i], r[i], steps[i], tau[i])


class Cases(NamedTuple):
    """Random problems in one coordinate: x, r and the bounds per case, tau (case, step)."""

    reg: Separable
    x: Array
    r: Array
    s: NDArray[np.int64]
    t: NDArray[np.int64]
    tau: Array

    def decay(self) -> Array:
        rows = np.empty((self.tau.shape[0], self.tau.shape[1] + 1))
        for steps, out in zip(self.tau, rows, strict=True):
            kernels.accumulate_decay(self.reg.lam, steps, out)
        return rows

    def lazy(self) -> Array:
        out = np.empty_like(self.x)
        run_cases(self.reg, self.x, self.r, self.s, self.t, self.tau, self.decay(), out)
        return out

    def literal(self) -> tuple[Array, Array]:
        """The result of taking every step, and the largest |x| on the way, in long double."""
        x, r = self.x.astype(np.longdouble), self.r.astype(np.longdouble)
        largest = abs(x)
        for k in range(self.tau.shape[1]):
            tau = self.tau[:, k].astype(np.longdouble)
            u = x - tau * r
            shrunk = np.sign(u) * np.maximum(abs(u) - tau * self.reg.l1, 0)
            moved = np.clip(shrunk / (1 + self.reg.lam * tau), self.reg.low, self.reg.high)
            x = np.where((self.s <= k) & (k < self.t), moved, x)
            largest = np.maximum(largest, abs(x))
        return x.astype(float), largest.astype(float)


def random_bounds(rng: np.random.Generator, scale: Array) -> tuple[Array, Array]:
    """No bound, one-sided, an interval around zero or away from it, or a single point."""
    count = scale.size
    ends = np.sort(scale * rng.normal(size=(2, count)), axis=0)
    low, high = ends
    kind = rng.integers(6, size=count)
    low = np.where((kind == 0) | (kind == 1), -np.inf, np.where(kind == 2, 0.0, low))
    high = np.where((kind == 0) | (kind == 3), np.inf, np.where(kind == 2, abs(high), high))
    high = np.where(kind == 4, low, high)
    return low, high


def random_cases(
    rng: np.random.Generator, count: int, lam_tau: float, l1: float, decades: float = 6.0
) -> Cases:
    """Cases whose lam*tau lie within the given number of decades below ``lam_tau``."""
    lam = 10 ** rng.uniform(-8, 1)
    steps = int(rng.choice([1, 3, 10, 60, 500]))
    tau = lam_tau / lam * 10 ** rng.uniform(-decades, 0, size=(count, steps))
    r = rng.normal(size=count) * 10 ** rng.uniform(-3, 1, size=count)
    r[rng.random(count) < 0.1] = l1  # -r on the edge of the subdifferential at 0
    # From the travel of the steps: then zeros and bounds are reached in the middle of the run.
    travel = (abs(r) + l1) / lam * -np.expm1(-np.log1p(lam * tau).sum(axis=1)) + 1e-300
    x = travel * rng.normal(size=count)
    x[rng.random(count) < 0.15] = 0.0
    low, high = random_bounds(rng, travel)
    feasible = rng.random(count) < 0.8
    x = np.where(feasible, np.clip(x, low, high), x)
    at_bound = rng.random(count) < 0.1
    x = np.where(at_bound & np.isfinite(low), low, x)
    s, t = np.sort(rng.integers(0, steps + 1, size=(2, count)), axis=0)
    whole = rng.random(count) < 0.5
    s, t = np.where(whole, 0, s), np.where(whole, steps, t)
    return Cases(Separable(lam, l1, low, high, 1), x, r, s, t, tau)


# ------------------------------------------------------------------------------- one coordinate


@pytest.mark.parametrize("decades", [0.0, 6.0])
@pytest.mark.parametrize("lam_tau", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("l1", [0.0, 1e-6, 0.1, 1.0])
def test_equals_literal_steps(l1: float, lam_tau: float, decades: float) -> None:
    rng = np.random.default_rng(int(1000 * l1 + 7 * np.log10(lam_tau) + decades + 1000))
    for _ in range(3):
        cases = random_cases(rng, 200, lam_tau, l1, decades)
        lazy, (literal, largest) = cases.lazy(), cases.literal()
        error = abs(lazy - literal)
        # Relative to the longest x on the way: where x passes close to zero its own digits cancel,
        # in the literal steps as well.
        assert np.all(error <= 1e-12 * largest)
        # What the docstring promises; the difference of two entries of decay is why there is decay.
        spent = cases.decay()[np.arange(cases.x.size), cases.t]
        size = abs(cases.x) + (abs(cases.r) + l1) / cases.reg.lam
        assert np.all(error <= 4 * EPS * (1 + spent) * size)


def test_the_random_cases_reach_every_branch() -> None:
    rng = np.random.default_rng(3)
    seen = dict.fromkeys(["crossed", "stuck at 0", "left 0", "hit a bound", "outside", "idle"], 0)
    for _ in range(10):
        cases = random_cases(rng, 300, 1e-3, 0.1)
        end, _ = cases.literal()
        moved = cases.t > cases.s
        outside = (cases.x < cases.reg.low) | (cases.x > cases.reg.high)
        at_bound = (end == cases.reg.low) | (end == cases.reg.high)
        seen["crossed"] += int(np.sum(cases.x * end < 0))
        seen["stuck at 0"] += int(np.sum((cases.x != 0) & (end == 0)))
        seen["left 0"] += int(np.sum((cases.x == 0) & (end != 0)))
        seen["hit a bound"] += int(np.sum(moved & at_bound))
        seen["outside"] += int(np.sum(moved & outside))
        seen["idle"] += int(np.sum(~moved))
    assert min(seen.values()) > 20, seen


@pytest.mark.parametrize("lam_tau", [1e-12, 1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("l1", [0.0, 0.1, 1.0])
def test_constant_step_equals_literal_steps(l1: float, lam_tau: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        cases = random_cases(rng, 200, lam_tau, l1, decades=0.0)
        out = np.empty_like(cases.x)
        steps = cases.t - cases.s
        run_constant(cases.reg, cases.x, cases.r, steps, cases.tau[:, 0].copy(), out)
        literal, largest = cases.literal()
        assert np.all(abs(out - literal) <= 1e-12 * largest)


def test_a_short_stretch_late_in_a_long_run_keeps_the_documented_accuracy() -> None:
    # lam tau = 1e3 first (decay grows to 2000), then 1e-9: the digits of the difference are few.
    lam, tau = 1e-3, np.r_[np.full(300, 1e6), np.full(200, 1e-6)][None, :]
    reg = Separable(lam, 0.0, np.array([-np.inf]), np.array([np.inf]), 0)
    cases = Cases(reg, np.array([1.0]), np.array([2.0]), np.array([310]), np.array([490]), tau)
    literal, _ = cases.literal()
    assert abs(cases.lazy() - literal) <= 4 * EPS * 3000 * (1.0 + 2.0 / lam)


def test_in_pieces_as_in_one_go() -> None:
    rng = np.random.default_rng(8)
    cases = random_cases(rng, 500, 1e-2, 0.3)
    middle = (cases.s + cases.t) // 2
    half = cases._replace(t=middle).lazy()
    _, largest = cases.literal()
    pieces = cases._replace(x=half, s=middle).lazy()
    assert np.all(abs(pieces - cases.lazy()) <= 1e-12 * largest)


def test_stays_between_start_and_fixed_point() -> None:
    rng = np.random.default_rng(9)
    cases = random_cases(rng, 1000, 1.0, 0.3)
    cases = cases._replace(x=np.clip(cases.x, cases.reg.low, cases.reg.high))
    slope = np.sign(-cases.r) * np.maximum(abs(cases.r) - cases.reg.l1, 0) / cases.reg.lam
    fixed = np.clip(slope, cases.reg.low, cases.reg.high)
    slack = 8 * EPS * np.maximum(abs(cases.x), abs(fixed))
    lazy = cases.lazy()
    assert np.all(lazy >= np.minimum(cases.x, fixed) - slack)
    assert np.all(lazy <= np.maximum(cases.x, fixed) + slack)
    assert np.all((lazy >= cases.reg.low) & (lazy <= cases.reg.high) | (cases.s == cases.t))


@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 3, 100])
@pytest.mark.parametrize(("x", "r"), [(np.nan, 1.0), (1.0, np.nan), (0.0, np.nan)])
def test_nan_is_not_hidden(x: float, r: float, steps: int, l1: float) -> None:
    reg = Separable(0.1, l1, np.array([-5.0]), np.array([5.0]), 0)
    whole = np.array([0]), np.array([steps])
    cases = Cases(reg, np.array([x]), np.array([r]), *whole, np.full((1, steps), 0.1))
    assert np.isnan(cases.lazy()[0])


def test_accumulated_decay_is_rounded_once() -> None:
    tau = 10 ** np.random.default_rng(1).uniform(-9, 3, size=2000)
    decay = np.empty(tau.size + 1)
    kernels.accumulate_decay(0.7, tau, decay)
    exact = np.cumsum(np.log1p(0.7 * tau).astype(np.longdouble))
    assert decay[0] == 0.0
    np.testing.assert_allclose(decay[1:], exact.astype(float), rtol=4 * EPS)


# ------------------------------------------------------------------------------- a user's own g


def test_user_defined_steps_are_literal_and_stop_early() -> None:
    def elastic(u: float, tau: float) -> float:
        return math.copysign(max(abs(u) - 0.3 * tau, 0.0), u) / (1.0 + 0.5 * tau)

    def unused(x: float) -> float:
        return x

    custom = regularizers.Custom(0.5, unused, elastic, unused)
    rng = np.random.default_rng(4)
    builtin = random_cases(rng, 60, 0.3, 0.3)
    builtin = builtin._replace(
        reg=Separable(0.5, 0.3, np.full(1, -np.inf), np.full(1, np.inf), 0),
        tau=builtin.tau * builtin.reg.lam / 0.5,
    )
    literal, largest = builtin.literal()
    out = np.empty_like(builtin.x)
    uncached(run_cases)(
        custom.kernel(60), builtin.x, builtin.r, builtin.s, builtin.t, builtin.tau, builtin.tau, out
    )
    assert np.all(abs(out - literal) <= 1e-12 * largest)


def test_an_idle_tiny_step_does_not_end_the_run() -> None:
    # The first steps are too short to change x = 1 in floating point; the last is not.
    def ridge(u: float, tau: float) -> float:
        return u / (1.0 + tau)

    def unused(x: float) -> float:
        return x

    kernel = regularizers.Custom(1.0, unused, ridge, unused).kernel(1)
    tau = np.array([[1e-20, 1e-20, 1e-21, 0.5]])
    out = np.empty(1)
    one = np.ones(1)
    whole = np.array([0]), np.array([4])
    uncached(run_cases)(kernel, one, 2 * one, *whole, tau, tau, out)
    assert out[0] == 0.0


# ------------------------------------------------------------------------------- groups


def literal_group(lam: float, weight: float, x: Array, r: Array, tau: Array) -> tuple[Array, float]:
    x = x.astype(np.longdouble)
    largest = np.max(abs(x))
    for step in tau.astype(np.longdouble):
        u = x - step * r
        norm = np.sqrt(np.sum(u**2))
        kept = max(1 - step * weight / norm, 0) if norm > 0 else 0
        x = kept * u / (1 + lam * step)
        largest = max(largest, np.max(abs(x)))
    return x.astype(float), float(largest)


def random_group(rng: np.random.Generator, size: int, collinear: bool) -> tuple[Array, Array]:
    r = rng.normal(size=size)
    x = rng.normal(size=size) * 10 ** rng.uniform(-3, 3)
    if collinear:
        x = r * rng.normal() * 10 ** rng.uniform(-2, 2) + 1e-9 * x
    return x, r


@pytest.mark.parametrize("collinear", [False, True])
@pytest.mark.parametrize("lam_tau", [1e-9, 1e-4, 1e-1, 1e3])
@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0, 50.0])
def test_group_equals_literal_steps(weight: float, lam_tau: float, collinear: bool) -> None:
    rng = np.random.default_rng(11)
    lam = 0.02
    for case in range(8):
        size = int(rng.integers(1, 7))
        reg = regularizers.GroupL2(lam, [1.0, weight], [0, 0] + [1] * size).kernel(size + 2)
        x, r = random_group(rng, size, collinear)
        if case == 0:
            x[:] = 0.0
        if case == 1:
            r[:] = 0.0
        steps = int(rng.choice([1, 3, 150]))
        tau = lam_tau / lam * 10 ** rng.uniform(-3, 0, size=steps + 2)
        whole_x, whole_r = np.r_[7.0, 8.0, x], np.r_[9.0, 9.0, r]
        kernels.catch_up_group(reg, 1, whole_x, whole_r, 1, steps + 1, tau)
        literal, largest = literal_group(lam, weight, x, r, tau[1:-1])
        np.testing.assert_array_equal(whole_x[:2], [7.0, 8.0])
        assert np.all(abs(whole_x[2:] - literal) <= 1e-12 * largest)


def test_group_with_a_constant_step() -> None:
    reg = regularizers.GroupL2(0.1, 0.4, [5, 5, 5]).kernel(3)
    x, r = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.4, -0.1])
    literal, _ = literal_group(0.1, 0.4, x, r, np.full(90, 0.2))
    kernels.catch_up_group(reg, 0, x, r, 0, 90, 0.2)
    np.testing.assert_allclose(x, literal, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_group_far_from_one(scale: float) -> None:
    reg = regularizers.GroupL2(0.1, 0.5 * scale, [0, 0, 0]).kernel(3)
    x, r = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.4, -0.9])
    expected, _ = literal_group(0.1, 0.5, x, r, np.full(50, 0.2))
    scaled = x * scale
    kernels.catch_up_group(reg, 0, scaled, r * scale, 0, 50, 0.2)
    np.testing.assert_allclose(scaled / scale, expected, rtol=1e-12)
