"""Every method, iterate by iterate, against its plain NumPy version under the same blocks."""

import functools
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import builders
import naive
from adaspdc import ERM, Method, SaddlePoint, _threads, losses, regularizers, sampling
from adaspdc import methods as catalogue
from adaspdc._engine import engine_for
from adaspdc._threads import Threads
from builders import Pair
from naive import Array

ITERATIONS = 300
PIECES = [1] * 60 + [2, 3, 1, 7, 40, 1, 1, 64, 121]
"""First one iteration at a time, then chunks of every size: they must not matter."""
METHODS = [*catalogue.METHODS]
assert sum(PIECES) == ITERATIONS


class Point(NamedTuple):
    x: Array
    other: Array
    y: Array


class Run:
    """A method on a problem, set up as ``solve`` does it, with given batches."""

    def __init__(
        self,
        problem: ERM | SaddlePoint,
        name: str,
        batches: Array,
        threads: Threads,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        self.flat = problem.flatten()
        replay = sampling.Replay(batches, self.flat.count)
        method = Method(name, sampling=replay)
        self.plan = catalogue.plan(method, problem, self.flat, batches.shape[1], 0)
        x, y = np.zeros(self.flat.dimension), np.zeros(self.flat.dual_size)
        if start is not None:
            x[:], y[:] = start
        self.engine = engine_for(self.flat, threads)
        r, order = self.engine.dual_sum(y), self.plan.method.spec.order
        self.iteration = self.engine.start(order, x, y, r, replay.batch_size)

    def advance(self, count: int) -> Point:
        self.iteration.advance(*self.plan.draw(count))
        x, other = self.iteration.points()
        return Point(x.copy(), other.copy(), self.iteration.y.copy())

    def rebase(self) -> None:
        self.iteration.rebase(self.engine.dual_sum(self.iteration.y), *self.iteration.points())


def random_batches(n: int, m: int, iterations: int = ITERATIONS, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n)[:m] for _ in range(iterations)])


def oracle_path(
    name: str, oracle: naive.Problem, batches: Array, plan: catalogue.Plan, start: Any
) -> list[naive.Iterate]:
    x0, y0 = (None, None) if start is None else start
    m = batches.shape[1]
    match name:
        case "adaspdc":
            return naive.adaspdc(oracle, batches, x0, y0)
        case "spdc":
            return naive.spdc(oracle, batches, x0, y0)
        case "spdc-nonuniform" if m == 1:
            return naive.spdc_nonuniform(oracle, batches, None, x0, y0)
        case "spdc-nonuniform":  # the rule for batches is the package's own, see test_steps
            rule = plan.rule
            return naive.extrapolated(
                oracle, batches, rule.sigma, rule.tau, rule.theta, rule.weight, x0, y0
            )
        case "spdhg" if m == 1:
            return naive.spdhg(oracle, batches, *naive.spdhg_steps(oracle), x0, y0)
        case "spdhg":  # which probabilities are best depends on the data, see test_steps
            rule = plan.rule
            pi = 1.0 / (oracle.n * rule.weight)
            return naive.spdhg(oracle, batches, pi, rule.sigma, rule.tau, rule.theta, x0, y0)
        case "sdca":
            return naive.sdca(oracle, batches, y0)
        case "sag":
            return naive.sag(oracle, batches, 1 / 16 / naive.smoothness(oracle), x0, y0)
        case "saga":
            return naive.saga(oracle, batches, 1 / 3 / naive.smoothness(oracle), x0, y0)
        case "pdhg":
            rule, (sigma, tau, theta) = plan.rule, naive.pdhg_steps(oracle)
            # Raised by 1e-12, the norm of the matrix is sure to be a bound; taken over as it is.
            assert np.allclose([rule.tau, rule.theta], [tau, theta], rtol=1e-11, atol=0.0)
            assert np.allclose(rule.sigma, sigma, rtol=1e-11, atol=0.0)
            return naive.pdhg(oracle, len(batches), rule.sigma, rule.tau, rule.theta, x0, y0)
    raise ValueError(name)


def assert_follows(
    pair: Pair,
    name: str,
    m: int,
    pieces: Iterable[int] = tuple(PIECES),
    start: bool = False,
    rebase_every: int = 0,
    tolerance: float = 1e-9,
) -> None:
    """The iterates and their other primal points are those of the oracle after every piece."""
    pieces = list(pieces)
    oracle = pair.oracle
    batches = random_batches(oracle.n, min(m, oracle.n), sum(pieces))
    first, naive_first = feasible_start(pair) if start else (None, None)
    with Threads(1) as threads:
        run = Run(pair.problem, name, batches, threads, first)
        path = oracle_path(name, oracle, batches, run.plan, naive_first)
        done = 0
        for number, piece in enumerate(pieces, start=1):
            done += piece
            point, wanted = run.advance(piece), path[done - 1]
            where = f"after {done} iterations"
            assert_close(point.x, wanted.x, tolerance, f"x {where}")
            assert_close(point.y[pair.kept], wanted.y, tolerance, f"y {where}")
            other = naive.g_conjugate_gradient(oracle, -wanted.r)
            assert_close(point.other, other, tolerance, f"grad g*(-r) {where}")
            if rebase_every and number % rebase_every == 0:
                run.rebase()


def feasible_start(pair: Pair) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A random start, for the package and for the oracle."""
    rng = np.random.default_rng(5)
    x, elsewhere = rng.normal(size=(2, pair.oracle.d))
    kept = naive.gradient_point(pair.oracle, elsewhere)
    y = np.zeros(pair.problem.flatten().dual_size)
    y[pair.kept] = kept
    return (x, y), (x, kept)


def assert_close(actual: Array, wanted: Array, tolerance: float, what: str) -> None:
    assert np.isfinite(wanted).all(), f"the oracle left the numbers: {what}"
    error = np.max(np.abs(actual - wanted)) / max(1.0, np.max(np.abs(wanted)))
    assert error <= tolerance, f"{what}: off by {error:.2e}"


# --- rows -----------------------------------------------------------------------------------------

N = builders.N


@dataclass(frozen=True)
class Case:
    name: str
    loss: str
    regularizer: str
    storage: str
    m: int
    lam: float
    weighted: bool = False
    start: bool = False

    def pair(self) -> Pair:
        return builders.erm(self.loss, self.regularizer, self.storage, self.lam, self.weighted)

    def __str__(self) -> str:
        flags = ["weighted"] * self.weighted + ["started"] * self.start
        parts = [self.name, self.loss, self.regularizer, self.storage, f"m{self.m}"]
        return "-".join([*parts, f"{self.lam:g}", *flags])


CASES = [
    # g = lam/2 |x|^2, one row an iteration
    Case("adaspdc", "squared", "l2", "dense", 1, 1e-1),
    Case("adaspdc", "logistic", "l2", "csr", 1, 1e-3, weighted=True),
    Case("adaspdc", "smooth hinge", "l2", "dense", 1, 1e-2, start=True),
    Case("spdc", "huber", "l2", "csr", 1, 1e-4),
    Case("spdc-nonuniform", "pinball", "l2", "dense", 1, 1e-3, weighted=True),
    Case("spdc-nonuniform", "logistic", "l2", "csr", 1, 1e-2, start=True),
    Case("spdhg", "insensitive", "l2", "float32", 1, 1e-2, weighted=True),
    Case("spdhg", "logistic", "l2", "csr", 1, 1e-4),
    Case("spdhg", "squared hinge", "l2", "float32", 1, 1e-3, start=True),
    Case("sag", "squared hinge", "l2", "csr", 1, 1e-2, start=True),
    Case("sag", "logistic", "l2", "dense", 1, 1e-4, weighted=True),
    Case("saga", "logistic", "l2", "dense", 1, 1e-1, start=True),
    Case("saga", "squared", "l2", "csr", 1, 1e-4, weighted=True),
    Case("sdca", "squared", "l2", "dense", 1, 1e-4, weighted=True),
    Case("sdca", "logistic", "l2", "csr64", 1, 1e-2),
    Case("sdca", "squared insensitive", "l2", "dense", 1, 1e-2, weighted=True),
    # batches
    Case("adaspdc", "squared hinge", "l2", "dense", 3, 1e-3, weighted=True),
    Case("adaspdc", "insensitive", "l2", "csr64", N, 1e-2),
    Case("spdc", "logistic", "l2", "csr64", 3, 1e-1, weighted=True, start=True),
    Case("spdc-nonuniform", "squared", "l2", "csr64", 3, 1e-2, weighted=True),
    Case("spdhg", "huber", "l2", "csr64", 3, 1e-3, weighted=True),
    Case("spdhg", "squared", "l2", "dense", 3, 1e-4, start=True),
    Case("spdhg", "smooth hinge", "l2", "csr64", 3, 1e-2),
    Case("spdhg", "pinball", "l2", "dense", N, 1e-2),
    Case("spdhg", "squared insensitive", "l2", "dense", 3, 1e-3, start=True),
    Case("sag", "smooth hinge", "l2", "dense", 3, 1e-3, weighted=True),
    Case("sag", "huber", "l2", "csr64", N, 1e-1),
    Case("saga", "insensitive", "l2", "csr64", 3, 1e-2),
    Case("sdca", "squared", "l2", "csr64", 3, 1e-3, start=True),
    Case("sdca", "smooth hinge", "l2", "dense", N, 1e-1, weighted=True),
    Case("pdhg", "logistic", "l2", "csr64", 1, 1e-2, weighted=True),
    Case("pdhg", "squared", "l2", "dense", 1, 1e-4, start=True),
    Case("pdhg", "huber", "l2", "dense", 1, 1e-3, weighted=True),
    # several outputs
    Case("adaspdc", "multinomial", "l2", "dense", 1, 1e-2),
    Case("spdc", "multi-output", "l2", "csr64", 3, 1e-3, weighted=True),
    Case("spdhg", "crammer-singer", "l2", "dense", 3, 1e-2, weighted=True),
    Case("spdhg", "multinomial", "l2", "csr64", 1, 1e-3, start=True),
    Case("saga", "multinomial", "l2", "csr64", 3, 1e-2),
    Case("sag", "crammer-singer", "l2", "dense", 1, 1e-1),
    Case("sdca", "multinomial", "elastic net", "csr64", 1, 1e-2, weighted=True),
    Case("sdca", "multi-output", "group", "csr64", 3, 1e-2, start=True),
    Case("pdhg", "crammer-singer", "l2", "csr64", 1, 1e-1, start=True),
    Case("adaspdc", "multi-output", "box", "dense", 1, 1e-2, start=True),
    Case("spdhg", "multi-output", "group", "csr64", 1, 1e-2, weighted=True),
    Case("spdhg", "multinomial", "elastic net", "csr64", 3, 1e-2),
    Case("spdc", "crammer-singer", "group", "dense", 3, 1e-2),
    # other regularisers
    Case("adaspdc", "logistic", "elastic net", "csr64", 1, 1e-2, weighted=True),
    Case("adaspdc", "squared", "group", "dense", 3, 1e-1, start=True),
    Case("adaspdc", "huber", "box", "csr64", 3, 1e-3),
    Case("spdc", "smooth hinge", "nonnegative", "dense", 1, 1e-2, weighted=True),
    Case("spdc", "squared", "elastic net", "dense", N, 1e-4, start=True),
    Case("spdc-nonuniform", "huber", "elastic net", "csr64", 1, 1e-2, start=True),
    Case("spdc-nonuniform", "squared", "box", "dense", 3, 1e-3),
    Case("spdhg", "logistic", "group", "csr64", 1, 1e-2),
    Case("spdhg", "squared", "elastic net", "csr64", 1, 1e-4, weighted=True, start=True),
    Case("spdhg", "insensitive", "box", "csr64", 3, 1e-3, start=True),
    Case("spdhg", "squared hinge", "nonnegative", "csr64", 1, 1e-2, weighted=True),
    Case("spdhg", "pinball", "elastic net", "csr64", N, 1e-1),
    Case("saga", "logistic", "elastic net", "dense", 1, 1e-3, start=True),
    Case("saga", "squared", "group", "dense", 3, 1e-2, weighted=True),
    Case("saga", "huber", "box", "csr64", 1, 1e-2),
    Case("sdca", "huber", "elastic net", "dense", 1, 1e-2, start=True),
    Case("sdca", "logistic", "group", "csr64", 1, 1e-3, weighted=True),
    Case("sdca", "squared", "box", "csr64", 3, 1e-2),
    Case("sdca", "insensitive", "nonnegative", "dense", 1, 1e-1),
    Case("pdhg", "logistic", "group", "csr64", 1, 1e-2),
    Case("pdhg", "squared hinge", "box", "csr64", 1, 1e-3, weighted=True),
    Case("pdhg", "squared", "elastic net", "dense", 1, 1e-2, start=True),
]
"""Few combinations of storage and regulariser: each is another kernel to compile."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows(case: Case) -> None:
    assert_follows(case.pair(), case.name, case.m, start=case.start)


def test_the_cases_cover_every_method_loss_regularizer_and_storage() -> None:
    assert {case.name for case in CASES} == set(METHODS)
    assert {case.loss for case in CASES} == set(builders.LOSSES)
    assert {case.regularizer for case in CASES} == set(builders.REGULARIZERS)
    assert {case.storage for case in CASES} == set(builders.STORAGES)


# --- matrix blocks --------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1e-1, 1e-3])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("name", "m"),
    [
        ("adaspdc", 1),
        ("adaspdc", 3),
        ("spdc", 3),
        ("spdc-nonuniform", 1),
        ("spdhg", 1),
        ("spdhg", 3),
        ("sdca", 1),
        ("sdca", 3),
        ("sag", 3),
        ("saga", 1),
        ("pdhg", 1),
    ],
)
def test_blocks_of_unequal_height_with_mixed_losses(
    name: str, m: int, is_sparse: bool, lam: float
) -> None:
    pair = builders.saddle_point("l2", is_sparse, lam)
    assert_follows(pair, name, m, pieces=[1] * 20 + [3, 17, 60, 1, 99], start=lam < 0.01)


@pytest.mark.parametrize(
    ("name", "m", "regularizer", "is_sparse"),
    [
        ("adaspdc", 3, "group", False),
        ("spdc", 1, "elastic net", False),
        ("saga", 3, "box", False),
        ("spdhg", 3, "group", True),
        ("spdhg", 1, "elastic net", True),
        ("sdca", 3, "group", True),
        ("sdca", 1, "nonnegative", False),
        ("pdhg", 1, "box", True),
    ],
)
def test_blocks_with_other_regularizers(
    name: str, m: int, regularizer: str, is_sparse: bool
) -> None:
    pair = builders.saddle_point(regularizer, is_sparse, 1e-2)
    assert_follows(pair, name, m, pieces=[1] * 20 + [3, 17, 60, 1, 99])


# --- interruptions --------------------------------------------------------------------------------

VARIED = [
    Case("adaspdc", "logistic", "l2", "dense", 1, 1e-2),
    Case("adaspdc", "huber", "l2", "csr64", 3, 1e-2, weighted=True),
    Case("sag", "logistic", "l2", "csr", 1, 1e-2),
    Case("spdhg", "logistic", "l2", "csr", 1, 1e-3),
    Case("spdhg", "multinomial", "l2", "dense", 3, 1e-2),
    Case("adaspdc", "huber", "elastic net", "dense", 1, 1e-2),
    Case("spdc", "multi-output", "group", "dense", 3, 1e-2),
    Case("saga", "squared", "box", "dense", 3, 1e-2),
    Case("spdhg", "squared", "elastic net", "csr64", 1, 1e-2, weighted=True),
    Case("spdhg", "logistic", "group", "csr64", 3, 1e-2),
    Case("sdca", "logistic", "group", "csr64", 3, 1e-2),
    Case("pdhg", "logistic", "l2", "dense", 1, 1e-2),
]


@pytest.mark.parametrize("case", VARIED, ids=str)
def test_rebasing_leaves_the_iterates_alone(case: Case) -> None:
    pair = case.pair()
    assert_follows(pair, case.name, case.m, start=True, rebase_every=3)
    batches = random_batches(pair.oracle.n, case.m)
    with Threads(1) as threads:
        plain, rebased = (Run(pair.problem, case.name, batches, threads) for _ in range(2))
        for piece in (1, 20, 1, 1, 77, 50, 150):
            one, two = plain.advance(piece), rebased.advance(piece)
            assert_close(two.x, one.x, 1e-10, "x")
            assert_close(two.y, one.y, 1e-10, "y")
            rebased.rebase()
            assert_close(rebased.iteration.points()[0], two.x, 1e-10, "x after rebasing")


@pytest.mark.parametrize("case", VARIED, ids=str)
def test_looking_at_the_iterate_does_not_move_it(case: Case) -> None:
    pair = case.pair()
    batches = random_batches(pair.oracle.n, case.m)
    with Threads(1) as threads:
        run = Run(pair.problem, case.name, batches, threads)
        run.advance(37)
        first, second = run.iteration.points(), run.iteration.points()
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("name", "m", "storage"),
    [
        ("adaspdc", 1, "dense"),
        ("adaspdc", 1, "csr"),
        ("adaspdc", 2, "dense"),
        ("adaspdc", 2, "csr64"),
        ("spdhg", 1, "float32"),
        ("spdhg", 2, "dense"),
    ],
)
def test_a_shrinking_scale_never_underflows(name: str, m: int, storage: str) -> None:
    # At the row of tiny norm AdaSPDC's primal step is long and all but forgets x.
    X = np.array([[1.0, -0.5], [2.0**-10, 2.0**-9], [0.25, 0.5]])
    t, lam = np.array([1.0, -2.0, 0.5]), 5.0
    problem = ERM(builders.STORAGES[storage](X), t, losses.Squared(), regularizers.L2(lam))
    pair = Pair(problem, naive.erm(X, t, "squared", lam), slice(None))
    assert_follows(pair, name, m, pieces=[1, 99, 1, 399, 1000])


# --- threads --------------------------------------------------------------------------------------

THREADED = [
    *[
        Case(name, "logistic", "l2", storage, 11, 1e-2)
        for name in METHODS
        for storage in ("dense", "csr64")
    ],
    Case("spdhg", "multinomial", "l2", "csr64", 11, 1e-2),
    Case("spdc", "multi-output", "l2", "dense", 11, 1e-2),
    Case("adaspdc", "huber", "elastic net", "dense", 11, 1e-2),
    Case("saga", "huber", "elastic net", "csr64", 11, 1e-2),
    Case("spdc", "multinomial", "group", "dense", 11, 1e-2),
    Case("spdhg", "squared", "elastic net", "csr64", 11, 1e-2),
    Case("spdhg", "multi-output", "group", "csr64", 11, 1e-2),
    Case("sdca", "multi-output", "group", "csr64", 11, 1e-2),
    Case("pdhg", "multinomial", "l2", "dense", 1, 1e-2),
]


@pytest.mark.parametrize("case", THREADED, ids=str)
def test_any_number_of_threads_gives_the_same_bits(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_threads, "_ENTRIES_WORTH_A_BARRIER", 0)
    assert_bits_do_not_depend_on_threads(case.pair(), case.name, case.m)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_member_that_fails_does_not_leave_its_team_at_a_barrier(failing: int) -> None:
    """A user's loss may raise on one thread; the others spun for ever."""
    limit = time.monotonic() + 20.0

    def call(team: Any) -> None:
        if int(team.member) == failing:
            raise LookupError("mine")
        while team.arrivals[0] < 3 and time.monotonic() < limit:
            time.sleep(1e-3)

    with Threads(3) as threads, pytest.raises(LookupError, match="mine"):
        threads.run(call, 3)
    assert time.monotonic() < limit


@pytest.mark.parametrize("name", ["adaspdc", "spdhg", "sdca", "pdhg"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_threads_share_blocks_of_unequal_height(
    name: str, is_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_threads, "_ENTRIES_WORTH_A_BARRIER", 0)
    assert_bits_do_not_depend_on_threads(builders.saddle_point("l2", is_sparse), name, 9)


def assert_bits_do_not_depend_on_threads(pair: Pair, name: str, m: int) -> None:
    batches = random_batches(pair.oracle.n, m)
    points = {}
    for size in (1, 2, 3):
        with Threads(size) as threads:
            run = Run(pair.problem, name, batches, threads)
            points[size] = [run.advance(piece) for piece in (1, 2, 30, 100)]
    for size in (2, 3):
        for one, several in zip(points[1], points[size], strict=True):
            for field, wanted in one._asdict().items():
                np.testing.assert_array_equal(
                    getattr(several, field), wanted, err_msg=f"{field} with {size} threads"
                )


# --- functions of the user ------------------------------------------------------------------------


def huber_value(z, t):
    return 0.5 * (z - t) ** 2 if abs(z - t) <= 0.7 else 0.7 * abs(z - t) - 0.245


def huber_conjugate(y, t):
    return t * y + 0.5 * y * y if abs(y) <= 0.7 else np.inf


def huber_prox(v, sigma, t):
    return min(max((v - sigma * t) / (1.0 + sigma), -0.7), 0.7)


def huber_derivative(z, t):
    return min(max(z - t, -0.7), 0.7)


def rows_value(z, t):
    return 0.5 * np.sum((z - t[: z.size]) ** 2)


def rows_conjugate(y, t):
    return np.sum(y * t[: y.size]) + 0.5 * np.sum(y * y)


def rows_prox(v, sigma, t, out):
    for k in range(v.size):
        out[k] = (v[k] - sigma * t[k]) / (1.0 + sigma)


def rows_derivative(z, t, out):
    for k in range(z.size):
        out[k] = z[k] - t[k]


CUSTOM_HUBER = losses.Custom(
    huber_value, huber_conjugate, huber_prox, gamma=1.0, derivative=huber_derivative
)
CUSTOM_ROWS = losses.CustomBlock(
    rows_value, rows_conjugate, rows_prox, gamma=1.0, derivative=rows_derivative
)


@functools.cache  # a second object would be compiled a second time
def custom_elastic_net(lam: float, l1: float) -> regularizers.Custom:
    def soft(u, threshold):
        return math.copysign(max(abs(u) - threshold, 0.0), u)

    soft = numba.njit(soft)
    return regularizers.Custom(
        lam,
        value=lambda x: 0.5 * lam * x * x + l1 * abs(x),
        prox=lambda u, tau: soft(u, tau * l1) / (1.0 + tau * lam),
        conjugate=lambda s: soft(s, l1) ** 2 / (2.0 * lam),
        conjugate_gradient=lambda s: soft(s, l1) / lam,
    )


@pytest.mark.parametrize("name", ["adaspdc", "saga"])
def test_a_custom_loss_does_what_its_built_in_twin_does(name: str) -> None:
    twin = builders.erm("huber", weighted=True)
    assert_follows(twin.with_loss(CUSTOM_HUBER), name, 1)


@pytest.mark.parametrize("name", ["adaspdc", "saga"])
def test_a_custom_loss_of_vectors_does_what_its_built_in_twin_does(name: str) -> None:
    twin = builders.erm("multi-output", weighted=True)
    assert_follows(twin.with_loss(CUSTOM_ROWS), name, 3)


@pytest.mark.parametrize("name", ["spdc", "saga"])
def test_a_custom_loss_serves_blocks_of_unequal_height(name: str) -> None:
    twin = builders.saddle_point(mixed=False)
    given = twin.problem
    conjugates = [CUSTOM_HUBER.at(c.targets, weight=c.weight) for c in given.conjugates]
    stacked = given.rows.kernel.values
    problem = SaddlePoint(stacked, conjugates, given.regularizer, sizes=np.diff(given.start))
    assert_follows(Pair(problem, twin.oracle, twin.kept), name, 3)


@pytest.mark.parametrize(
    ("name", "m", "storage"),
    [("adaspdc", 3, "csr64"), ("spdhg", 1, "dense"), ("sdca", 1, "dense"), ("pdhg", 1, "dense")],
)
def test_a_custom_regularizer_does_what_its_built_in_twin_does(
    name: str, m: int, storage: str
) -> None:
    twin = builders.erm("huber", "elastic net", storage)
    assert_follows(twin.with_loss(CUSTOM_HUBER, custom_elastic_net(1e-2, 0.03)), name, m)


# --- idle blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in METHODS if name != "pdhg"])
def test_blocks_without_entries_or_weight_are_never_visited(name: str) -> None:
    pair = builders.erm("squared", "l2", "csr64", weighted=True)
    flat = pair.problem.flatten()
    assert flat.count == builders.N - 2
    planned = catalogue.plan(Method(name), pair.problem, flat, 3, 0)
    batches, _ = planned.draw(200)
    assert set(np.unique(batches)) == set(pair.kept)
    assert sorted(flat.idle) == [3, builders.N // 2]
