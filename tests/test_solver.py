"""``solve``: known solutions, warm starts, callbacks, limits, and the paper's Figure 1."""

import gc
import lzma
import math
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import ElasticNet, HuberRegressor, LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR

import adaspdc
from adaspdc import (
    ERM,
    Method,
    Progress,
    Result,
    SaddlePoint,
    Status,
    losses,
    regularizers,
    sampling,
)
from test_certificate import ANY_REGULARIZER, METHODS, recomputed, run

Array = np.ndarray[Any, Any]
N, D = 60, 7
TIGHT = {"tol": 1e-14, "max_passes": 5000}


@pytest.fixture(scope="module")
def data() -> tuple[Array, Array, Array]:
    """Rows of unequal norm, targets, labels that no line separates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-0.5, 0.5, size=(N, 1))
    t = X @ rng.normal(size=D) + rng.normal(size=N)
    return X, t, np.where(t + 2 * rng.normal(size=N) > 0, 1.0, -1.0)


# ------------------------------------------------------------------------- known solutions


@pytest.mark.parametrize("size", [1, 7, N])
@pytest.mark.parametrize("method", METHODS)
def test_ridge(method: str, size: int, data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    for weights in (None, np.random.default_rng(1).uniform(0, 3, N)):
        s = np.ones(N) if weights is None else weights
        gram = (X.T * s) @ X / s.sum() + 0.3 * np.eye(D)
        exact = np.linalg.solve(gram, (X.T * s) @ t / s.sum())
        problem = ERM(X, t, losses.Squared(), regularizers.L2(0.3), sample_weight=weights)
        result = run(problem, method, batch_size=size, tol=1e-14, max_passes=60_000)
        assert result.x == pytest.approx(exact, abs=1e-6)
        assert result.y == pytest.approx(X @ exact - t, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_multi_output_ridge(method: str, data: tuple[Array, Array, Array]) -> None:
    X = data[0]
    T = np.random.default_rng(1).normal(size=(N, 3))
    problem = ERM(X, T, losses.MultiOutputSquared(), regularizers.L2(0.3))
    exact = np.linalg.solve(X.T @ X / N + 0.3 * np.eye(D), X.T @ T / N)
    assert run(problem, method, **TIGHT).x == pytest.approx(exact, abs=1e-6)


def test_ridge_in_scikit_learn(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    lam = 0.01
    theirs = Ridge(alpha=lam * N, fit_intercept=False).fit(X, t)
    ours = run(ERM(X, t, losses.Squared(), regularizers.L2(lam)), **TIGHT)
    assert ours.x == pytest.approx(theirs.coef_, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_in_scikit_learn(data: tuple[Array, Array, Array], weighted: bool) -> None:
    X, _, labels = data
    lam = 0.01
    weights = np.random.default_rng(2).uniform(0.2, 3, N) if weighted else np.ones(N)
    model = LogisticRegression(
        C=1 / (lam * weights.sum()),
        fit_intercept=False,
        tol=1e-14,
        max_iter=10_000,
        solver="newton-cg",
    )
    theirs = model.fit(X, labels, sample_weight=weights)
    problem = ERM(X, labels, losses.Logistic(), regularizers.L2(lam), sample_weight=weights)
    assert run(problem, **TIGHT).x == pytest.approx(theirs.coef_[0], abs=1e-6)


def test_multinomial_in_scikit_learn(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    classes = np.digitize(t, np.quantile(t, [0.3, 0.6]))
    lam = 0.02
    model = LogisticRegression(C=1 / (lam * N), fit_intercept=False, tol=1e-14, max_iter=10_000)
    theirs = model.fit(X, classes).coef_
    for method in ANY_REGULARIZER:
        ours = run(ERM(X, classes, losses.Multinomial(), regularizers.L2(lam)), method, **TIGHT)
        primal = recomputed(
            X, classes, losses.Multinomial(), regularizers.L2(lam), theirs.T, ours.y
        )
        assert ours.primal <= primal[0] + 1e-12
        assert ours.x == pytest.approx(theirs.T, abs=2e-5)  # their stopping rule is the limit


def test_squared_hinge_in_scikit_learn(data: tuple[Array, Array, Array]) -> None:
    X, _, labels = data
    lam = 0.02
    # Their loss is max(0, 1 - tz)^2, twice ours.
    model = LinearSVC(
        C=1 / (2 * lam * N), fit_intercept=False, tol=1e-12, max_iter=10**6, dual=False
    )
    ours = run(ERM(X, labels, losses.SquaredHinge(), regularizers.L2(lam)), **TIGHT)
    assert ours.x == pytest.approx(model.fit(X, labels).coef_[0], abs=1e-6)


def test_squared_epsilon_insensitive_in_scikit_learn(data: tuple[Array, Array, Array]) -> None:
    """And the smoothed loss is the squared one over gamma where no residual is flat any more."""
    X, t, _ = data
    lam, gamma = 0.05, 1e3
    model = LinearSVR(
        C=1 / (2 * lam * gamma * N), epsilon=0.1, loss="squared_epsilon_insensitive",
        fit_intercept=False, tol=1e-12, max_iter=10**6, dual=False,
    )  # fmt: skip
    theirs = model.fit(X, t).coef_
    loss = losses.SmoothEpsilonInsensitive(0.1, gamma)
    ours = run(ERM(X, t, loss, regularizers.L2(lam)), **TIGHT)
    assert ours.x == pytest.approx(theirs, abs=1e-6)
    loss = losses.SquaredEpsilonInsensitive(0.1)
    for method in ANY_REGULARIZER:
        ours = run(ERM(X, t, loss, regularizers.L2(lam * gamma)), method, **TIGHT)
        assert ours.x == pytest.approx(theirs, abs=1e-6)


def test_huber_in_scikit_learn(data: tuple[Array, Array, Array]) -> None:
    """Theirs estimates a scale; at that scale the coefficients must be ours."""
    X, t, _ = data
    model = HuberRegressor(epsilon=1.35, alpha=0.3, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(X, t)
    delta = 1.35 * model.scale_
    # sum_i sigma H(r/sigma) with H quadratic to epsilon is 2/sigma times our loss at delta.
    g = regularizers.L2(0.3 * model.scale_ / N)
    ours = run(ERM(X, t, losses.Huber(delta), g), **TIGHT)
    assert ours.x == pytest.approx(model.coef_, abs=1e-5)


@pytest.mark.parametrize("method", ANY_REGULARIZER)
def test_elastic_net_in_scikit_learn(method: str, data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    lam, l1 = 0.05, 0.4
    model = ElasticNet(alpha=lam + l1, l1_ratio=l1 / (lam + l1), fit_intercept=False, tol=1e-14,
                       max_iter=10**6)  # fmt: skip
    theirs = model.fit(X, t).coef_
    for storage in (np.asarray, sparse.csr_array):
        problem = ERM(storage(X), t, losses.Squared(), regularizers.ElasticNet(lam, l1))
        result = run(problem, method, batch_size=3, **TIGHT)
        assert result.x == pytest.approx(theirs, abs=1e-6)
        assert ((result.x == 0) == (theirs == 0)).all()


def cvxpy_loss(loss: losses.Loss, z: Any, t: Array) -> Any:
    match loss:
        case losses.Squared():
            return cp.sum_squares(z - t) / 2
        case losses.Logistic():
            return cp.sum(cp.logistic(cp.multiply(-t, z)))
        case losses.SquaredHinge():
            return cp.sum_squares(cp.pos(1 - cp.multiply(t, z))) / 2
        case losses.Huber(delta):
            return cp.sum(cp.huber(z - t, delta)) / 2
        case losses.SmoothHinge(gamma):  # envelope: min over u of hinge(u) + (z - u)^2/(2 gamma)
            u = cp.Variable(t.shape)
            return cp.sum(cp.pos(1 - cp.multiply(t, u))) + cp.sum_squares(z - u) / (2 * gamma)
        case losses.SmoothPinball(q, gamma):
            u = cp.Variable(t.shape)
            tilted = cp.maximum(q * (t - u), (q - 1) * (t - u))
            return cp.sum(tilted) + cp.sum_squares(z - u) / (2 * gamma)
        case losses.SmoothEpsilonInsensitive(epsilon, gamma):
            u = cp.Variable(t.shape)
            return cp.sum(cp.pos(cp.abs(u - t) - epsilon)) + cp.sum_squares(z - u) / (2 * gamma)
        case losses.SquaredEpsilonInsensitive(epsilon):
            return cp.sum_squares(cp.pos(cp.abs(z - t) - epsilon)) / 2
    raise NotImplementedError(loss)


def cvxpy_solution(X: Array, t: Array, loss: losses.Loss, g: regularizers.Regularizer) -> Array:
    x = cp.Variable(X.shape[1])
    penalty, constraints = g.lam / 2 * cp.sum_squares(x), []
    match g:
        case regularizers.ElasticNet():
            penalty += g.l1 * cp.norm1(x)
        case regularizers.NonNegative():
            constraints = [x >= 0]
        case regularizers.Box():
            constraints = [x >= g.low, x <= g.high]
        case regularizers.GroupL2():
            labels, groups = np.unique(g.groups), np.asarray(g.groups)
            for label, weight in zip(
                labels, np.broadcast_to(g.group_weight, labels.shape), strict=True
            ):
                penalty += float(weight) * cp.norm2(x[np.flatnonzero(groups == label)])
    objective = cvxpy_loss(loss, X @ x, t) / len(t) + penalty
    precise = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-13)
    cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL, **precise)
    return np.asarray(x.value)


@pytest.mark.parametrize(
    "loss",
    [
        losses.Squared(),
        losses.Logistic(),
        losses.SquaredHinge(),
        losses.SmoothHinge(0.5),
        losses.Huber(0.8),
        losses.SmoothPinball(0.2, 0.5),
        losses.SmoothEpsilonInsensitive(0.3, 0.4),
        losses.SquaredEpsilonInsensitive(0.3),
    ],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize(
    "g",
    [
        regularizers.L2(0.05),
        regularizers.ElasticNet(0.05, 0.1),
        regularizers.NonNegative(0.05),
        regularizers.Box(0.05, -0.1, [0.2] * 6 + [np.inf]),
        regularizers.GroupL2(0.05, [0.1, 0.3], [0, 1, 0, 1, 0, 1, 0]),
    ],
    ids=lambda g: type(g).__name__,
)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
def test_solutions_in_cvxpy(
    loss: losses.Loss, g: regularizers.Regularizer, data: tuple[Array, Array, Array]
) -> None:
    X, numbers, labels = data
    t = labels if loss.kind == "binary" else numbers
    theirs = cvxpy_solution(X, t, loss, g)
    ours = run(ERM(X, t, loss, g), **TIGHT)
    if isinstance(g, regularizers.Box | regularizers.NonNegative):
        theirs = np.clip(theirs, getattr(g, "low", 0.0), getattr(g, "high", np.inf))
    value = recomputed(X, t, loss, g, theirs, ours.y)[0]
    assert abs(ours.primal - value) <= 1e-6 * abs(value)
    assert ours.primal <= value + 1e-12
    # An interior point method is good to about 1e-8 in value, hence its root in x.
    assert ours.x == pytest.approx(theirs, abs=1e-4)


def test_blocks_in_cvxpy() -> None:
    rng = np.random.default_rng(3)
    blocks = [rng.normal(size=(q, 4)) for q in (3, 1, 6)]
    targets = [rng.normal(size=len(block)) for block in blocks]
    kinds = (losses.Huber(0.5), losses.Squared(), losses.SmoothPinball(0.7, 0.3))
    weights = (1.0, 3.0, 0.5)
    parts = [loss.at(t, weight=w) for loss, t, w in zip(kinds, targets, weights, strict=True)]
    x = cp.Variable(4)
    total = 0.05 * cp.sum_squares(x)
    for loss, block, t, w in zip(kinds, blocks, targets, weights, strict=True):
        total += w * cvxpy_loss(loss, block @ x, t) / 3
    cp.Problem(cp.Minimize(total)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13)
    problem = SaddlePoint(blocks, parts, regularizers.L2(0.1))
    for method in METHODS:
        for size in (1, 2):
            result = run(problem, method, batch_size=size, tol=1e-13, max_passes=20_000)
            assert result.x == pytest.approx(x.value, abs=1e-6)


def test_rows_as_blocks_are_rows(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    problem = ERM(X, t, losses.Huber(0.8), regularizers.L2(0.05))
    rows = run(problem, **TIGHT)
    for height in (1, 7, N):
        blocks = run(problem.as_saddle_point(height), **TIGHT)
        assert blocks.x == pytest.approx(rows.x, abs=1e-6)
        assert blocks.primal == pytest.approx(rows.primal, rel=1e-12)


# ------------------------------------------------------------------------- real data


def load(path: Path) -> tuple[Any, Array]:
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    return sparse.csr_array(X), y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["w8a.xz", "ijcnn1.xz"])
def test_real_data_in_scikit_learn(name: str, data_path: Callable[[str], Path]) -> None:
    X, y = load(data_path(name))
    lam = 1e-4
    model = LogisticRegression(
        C=1 / (lam * X.shape[0]),
        fit_intercept=False,
        tol=1e-12,
        max_iter=1000,
        solver="newton-cholesky",
    )
    theirs = model.fit(X, y).coef_[0]
    problem = ERM(X, y, losses.Logistic(), regularizers.L2(lam))
    for method in ("spdhg", "adaspdc"):
        ours = run(problem, method, tol=1e-9, max_passes=300)
        assert ours.converged
        value, _, scale = recomputed(X, y, losses.Logistic(), problem.regularizer, theirs, ours.y)
        assert abs(ours.primal - value) <= 1e-8 * scale
        assert np.linalg.norm(ours.x - theirs) <= np.sqrt(2 * ours.gap / lam) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["w8a.xz", "ijcnn1.xz"])
def test_real_data_with_every_method(name: str, data_path: Callable[[str], Path]) -> None:
    X, y = load(data_path(name))
    ends: dict[str, Result] = {}
    for method in METHODS:
        problem = ERM(X, y, losses.SmoothHinge(1.0), regularizers.L2(1e-3))
        ends[method] = run(problem, method, tol=1e-6, max_passes=60)
        primal, dual, _ = recomputed(X, y, problem.loss, problem.regularizer, ends[method].x,
                                     ends[method].y)  # fmt: skip
        assert (primal, dual) == pytest.approx((ends[method].primal, ends[method].dual), rel=1e-10)
    highest = max(result.dual for result in ends.values())
    assert all(result.primal >= highest - 1e-14 for result in ends.values())
    assert ends["spdhg"].converged
    assert ends["adaspdc"].converged


# ------------------------------------------------------------------------- warm starts


@pytest.fixture(scope="module")
def ridge(data: tuple[Array, Array, Array]) -> ERM:
    X, t, _ = data
    return ERM(X, t, losses.Squared(), regularizers.L2(0.01))


@pytest.mark.parametrize("method", METHODS)
def test_warm_start_from_a_result(method: str, ridge: ERM) -> None:
    first = run(ridge, method, tol=1e-4, max_passes=5000)
    again = run(ridge, method, tol=1e-4, warm_start=first)
    assert again.passes == 0
    assert again.converged
    assert again.primal == pytest.approx(first.primal, rel=1e-14)
    assert again.gap == pytest.approx(first.gap, rel=1e-6)
    better = run(ridge, method, tol=1e-6, max_passes=5000, warm_start=first)
    assert better.converged
    assert (np.diff(better.history["gap"]) <= 0).all()
    assert better.history["gap"][0] == pytest.approx(first.gap, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_warm_start_from_a_pair(method: str, ridge: ERM) -> None:
    result = run(ridge, tol=1e-10, max_passes=5000)
    for pair in ((result.x, result.y), [list(result.x), list(result.y)]):
        again = run(ridge, method, tol=1e-9, warm_start=pair)
        assert again.converged
        assert again.passes == 0


def test_warm_start_with_another_lambda(data: tuple[Array, Array, Array]) -> None:
    X, _, labels = data
    cold = warm = 0.0
    for loss in (losses.Logistic(), losses.SquaredHinge()):
        previous: Result | None = None
        for lam in np.geomspace(0.1, 0.02, 12):
            problem = ERM(X, labels, loss, regularizers.L2(float(lam)))
            from_zero = run(problem, tol=1e-6, max_passes=5000)
            result = run(problem, tol=1e-6, max_passes=5000, warm_start=previous)
            assert result.converged
            assert result.primal == pytest.approx(from_zero.primal, abs=2 * result.tol)
            cold += from_zero.passes
            warm += result.passes
            previous = result
    assert warm < 0.8 * cold


@pytest.mark.parametrize("method", ANY_REGULARIZER)
def test_warm_start_with_another_regularizer(method: str, data: tuple[Array, Array, Array]) -> None:
    """The old x may lie outside the new domain: only its y can then be used."""
    X, t, _ = data
    old = run(ERM(X, t, losses.Huber(0.5), regularizers.L2(0.05)), tol=1e-9, max_passes=5000)
    assert old.x.min() < -0.1
    for g in (regularizers.NonNegative(0.05), regularizers.ElasticNet(0.05, 0.1)):
        problem = ERM(X, t, losses.Huber(0.5), g)
        warm = run(problem, method, tol=1e-9, max_passes=20_000, warm_start=old)
        cold = run(problem, "spdhg", tol=1e-9, max_passes=20_000)
        assert warm.converged
        assert warm.primal == pytest.approx(cold.primal, abs=2 * cold.tol)


@pytest.mark.parametrize("method", ANY_REGULARIZER)
def test_a_start_outside_the_domain_does_not_make_a_method_give_up(
    method: str, data: tuple[Array, Array, Array]
) -> None:
    """Zero, or the x of another g: an infinite objective was taken for divergence."""
    X, t, _ = data
    old = run(ERM(X, t, losses.Huber(0.5), regularizers.L2(0.05)), tol=1e-9, max_passes=5000)
    for g in (regularizers.Box(0.05, 0.5, 1.0), regularizers.NonNegative(0.05)):
        problem = ERM(X, t, losses.Huber(0.5), g)
        for start in (None, old):
            result = run(problem, method, tol=1e-4, max_passes=20_000, warm_start=start)
            assert result.converged
            assert not any("gave up" in event for event in result.events)
            assert np.isfinite(result.history["objective"]).all()
            assert np.isfinite(run(problem, method, max_passes=0, warm_start=start).gap)


def test_a_custom_regularizer_without_zero_in_its_domain() -> None:
    """Its prox divides by the step, and the one that projects is too short for that."""

    def value(x: float) -> float:
        return 0.05 * x * x if x >= 1.0 else math.inf

    def prox(u: float, tau: float) -> float:
        return max(1.0, (u / tau) / (0.1 + 1.0 / tau))

    def conjugate(s: float) -> float:
        x = max(1.0, s / 0.1)
        return s * x - 0.05 * x * x

    problem = ERM(
        np.array([[1e10, 0.0], [0.0, 2.0]]) / 1e10,
        [1.0, -1.0],
        losses.Squared(),
        regularizers.Custom(0.1, value, prox, conjugate),
    )
    wild = (np.full(2, -1e100), np.zeros(2))
    for start in (None, wild):
        result = run(problem, "adaspdc", tol=1e-4, max_passes=5000, warm_start=start)
        assert result.converged
        assert not result.events


@pytest.mark.parametrize("method", METHODS)
def test_a_restart_is_no_worse_than_its_start(method: str, ridge: ERM) -> None:
    """SDCA has no use for x, which may still be the best point."""
    first = run(ridge, method, tol=0.0, max_passes=3)
    x = run(ridge, tol=1e-12, max_passes=5000).x
    again = run(ridge, method, tol=0.0, max_passes=0, warm_start=(x, first.y))
    assert again.gap <= first.gap * (1.0 + 1e-9)
    assert again.primal <= first.primal


def test_warm_start_outside_the_dual_domain(data: tuple[Array, Array, Array]) -> None:
    X, _, labels = data
    problem = ERM(X, labels, losses.Logistic(), regularizers.L2(0.05))
    wild = (np.full(D, 1e3), np.full(N, 77.0))
    for method in METHODS:
        result = run(problem, method, tol=1e-6, max_passes=5000, warm_start=wild)
        assert result.converged


@pytest.mark.parametrize("loss", [losses.Multinomial(), losses.SmoothCrammerSinger(0.5)])
def test_warm_start_with_several_outputs(
    loss: losses.Loss, data: tuple[Array, Array, Array]
) -> None:
    X, t, _ = data
    problem = ERM(X, np.digitize(t, [-1.0, 1.0]), loss, regularizers.L2(0.05))
    first = run(problem, tol=1e-6, max_passes=5000)
    for start in (first, (first.x, first.y), (first.x.ravel(), first.y.ravel())):
        again = run(problem, tol=2e-6, warm_start=start)
        assert (again.passes, again.converged) == (0, True)


def test_warm_start_with_weights(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    weights = np.random.default_rng(4).integers(0, 4, N)
    problem = ERM(X, t, losses.Huber(0.5), regularizers.L2(0.05), sample_weight=weights)
    first = run(problem, tol=1e-6, max_passes=5000)
    again = run(problem, tol=2e-6, warm_start=first)
    assert (again.passes, again.converged) == (0, True)


def test_warm_start_of_weighted_blocks() -> None:
    rng = np.random.default_rng(5)
    blocks = [rng.normal(size=(q, 3)) for q in (2, 5, 1)]
    parts = [losses.Logistic().at(1.0, weight=w) for w in (0.5, 2.0, 7.0)]
    problem = SaddlePoint(blocks, parts, regularizers.L2(0.05))
    first = run(problem, tol=1e-8, max_passes=5000)
    for start in (first, (first.x, first.y), (first.x, problem.split(first.y))):
        again = run(problem, tol=2e-8, warm_start=start)
        assert (again.passes, again.converged) == (0, True)


def test_a_long_run_equals_its_pieces(ridge: ERM) -> None:
    """A run that is resumed from its result goes on converging at the same pace."""
    whole = run(ridge, tol=1e-12, max_passes=10_000)
    piece: Result | None = None
    passes = 0.0
    for _ in range(200):
        piece = run(ridge, tol=1e-12, max_passes=60, warm_start=piece)
        passes += piece.passes
        if piece.converged:
            break
    assert piece is not None
    assert piece.converged
    assert passes < 3 * whole.passes + 60


# ------------------------------------------------------------------------- callbacks


@pytest.mark.parametrize("method", METHODS)
def test_a_callback_stops_a_run(method: str, ridge: ERM) -> None:
    def patient(now: Progress) -> bool:
        return now.passes >= 6

    result = run(ridge, method, tol=1e-15, callback=patient)
    assert result.status is Status.STOPPED
    assert 6 <= result.passes < 7
    assert "stopped by the callback after" in result.message


def test_a_callback_may_raise_stop_iteration(ridge: ERM) -> None:
    def weary(now: Progress) -> None:
        if now.gap < 1e-2:
            raise StopIteration

    result = run(ridge, tol=1e-15, callback=weary)
    assert result.status is Status.STOPPED
    assert result.gap < 1e-2


def test_other_errors_of_a_callback_are_the_callers(ridge: ERM) -> None:
    def broken(now: Progress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        adaspdc.solve(ridge, callback=broken)
    assert run(ridge, max_passes=5000).converged


def test_what_a_callback_sees(ridge: ERM) -> None:
    seen: list[Progress] = []
    result = run(ridge, tol=1e-6, max_passes=5000, callback=seen.append)
    X = ridge.rows.kernel.values
    for now in seen:
        assert now.x.shape == (D,)
        value = recomputed(X, ridge.target, ridge.loss, ridge.regularizer, now.x, result.y)[0]
        assert now.objective == pytest.approx(value, rel=1e-10)
        assert now.objective >= now.primal
        assert now.gap == now.primal - now.dual > now.tol
        assert now.tol == result.tol
    assert [now.passes for now in seen] == list(result.history["passes"][: len(seen)])


def test_a_callback_cannot_spoil_the_run(ridge: ERM) -> None:
    def vandal(now: Progress) -> None:
        now.x[:] = np.nan

    for method in METHODS:
        spoiled = run(ridge, method, tol=1e-9, max_passes=40, callback=vandal)
        calm = run(ridge, method, tol=1e-9, max_passes=40)
        assert (spoiled.x == calm.x).all()
        assert spoiled.gap == calm.gap


# ------------------------------------------------------------------------- limits and options


def test_the_tolerance_is_relative(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    for scale in (1e-6, 1.0, 1e6):
        problem = ERM(X, scale * t, losses.Squared(), regularizers.L2(0.1))
        result = run(problem, tol=1e-5, max_passes=5000)
        assert result.tol == pytest.approx(1e-5 * np.mean((scale * t) ** 2) / 2, rel=1e-12)
        assert result.converged


def test_targets_of_zero_are_solved_at_once(data: tuple[Array, Array, Array]) -> None:
    result = run(ERM(data[0], np.zeros(N), losses.Squared(), regularizers.L2(0.1)))
    assert result.converged
    assert result.passes == 0
    assert (result.x == 0).all()


def test_a_start_that_solves_the_problem_counts_without_a_pass() -> None:
    """Newton's method had no point to show yet: a gap of 0 was not within the tolerance."""
    zero = ERM(np.eye(3), np.zeros(3), losses.Huber(1.0), regularizers.L2(0.1))
    result = run(zero, "auto", max_passes=0)
    assert result.gap == 0.0
    assert result.converged
    assert len(result.history) == 1


def test_more_passes_do_not_make_the_certificate_worse_than_that_of_the_start() -> None:
    """The first dual points of Newton's method may be far worse than y = 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8)) * 10.0 ** rng.uniform(-3, 3, size=(30, 1))
    loss = losses.SmoothCrammerSinger(0.5)
    problem = ERM(X, np.arange(30) % 4, loss, regularizers.NonNegative(1e-6))
    start = run(problem, "auto", max_passes=0)
    for passes in (5, 30):
        result = run(problem, "auto", tol=1e-12, max_passes=passes)
        assert result.gap <= start.gap


@pytest.mark.parametrize("passes", [0, 1, 2.5, 17])
@pytest.mark.parametrize("method", METHODS)
def test_passes_are_counted(method: str, passes: float, ridge: ERM) -> None:
    for size in (1, 8):
        result = run(ridge, method, batch_size=size, tol=0.0, max_passes=passes)
        assert result.status is Status.MAX_PASSES
        step = 1.0 if method == "pdhg" else size / N
        assert passes - 1e-9 <= result.passes < passes + step


def test_every_sampling_converges(ridge: ERM) -> None:
    for method in ("adaspdc", "spdhg", "spdc", "spdc-nonuniform", "sdca", "saga"):
        for name in sampling.SAMPLERS:
            for size in (1, 4):
                try:
                    chosen = Method(method, sampling=name)
                    result = run(ridge, chosen, batch_size=size, tol=1e-4, max_passes=5000)
                except ValueError as error:
                    assert "unequal probabilities" in str(error)  # noqa: PT017
                else:
                    assert result.converged, (method, name, size)


def test_a_generator_gives_its_present_state(ridge: ERM) -> None:
    """Only its seed was looked at, which it may not have."""

    def point(random_state: Any) -> list[float]:
        return list(run(ridge, "spdhg", tol=0.0, max_passes=2, random_state=random_state).x)

    fresh, used = np.random.default_rng(0), np.random.default_rng(0)
    used.random(3)
    first, second = point(fresh), point(fresh)
    assert first == point(np.random.default_rng(0))
    assert first != second
    assert first != point(used)
    seedless = np.random.Generator(np.random.RandomState(0)._bit_generator)
    assert seedless.bit_generator._seed_seq is None
    assert np.isfinite(point(seedless)).all()
    with pytest.raises(ValueError, match=r"random_state must be .* got 'seed'"):
        adaspdc.solve(ridge, "spdhg", random_state="seed")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_holds_no_vectors_that_it_does_not_need(method: str) -> None:
    """Two copies of the start, the iterates of the check before and the norms were kept."""
    tall = np.random.default_rng(0).normal(size=(400_000, 4))
    wide = sparse.csr_array(np.ones((40, 1))) * sparse.random_array((1, 400_000), density=0.01)
    for X in (tall, sparse.csr_array(wide)):
        t = np.where(np.arange(X.shape[0]) % 2 == 0, 1.0, -1.0)
        vectors = []
        for _ in range(2):  # the first time, what is loaded and compiled counts as well
            gc.collect()
            tracemalloc.start()
            problem = ERM(X, t, losses.SmoothHinge(), regularizers.L2(1e-3))
            run(problem, method, tol=0.0, max_passes=2, check_every=1.0)
            vectors.append(tracemalloc.get_traced_memory()[1] / 8 / max(X.shape))
            tracemalloc.stop()
        assert vectors[1] <= (6.6 if method == "spdc-nonuniform" else 6.1)


def test_extreme_lambdas(data: tuple[Array, Array, Array]) -> None:
    X, t, _ = data
    for method in METHODS:
        for lam in (1e-300, 1e-100, 1e-20, 1e-12, 1e12, 1e100, 1e300):
            problem = ERM(X, t, losses.Huber(0.5), regularizers.L2(lam))
            try:
                result = run(problem, method, max_passes=60)
            except ValueError as error:
                assert "float64" in str(error)  # noqa: PT017 - refused is fine
            else:
                assert result.converged or result.gap > 1e-6 * result.history["primal"][0] * 0.999


def test_solves_in_threads_of_the_application(ridge: ERM) -> None:
    """Outside the main thread no signal handler can be installed, and none is needed."""
    alone = [adaspdc.solve(ridge, tol=1e-4, max_passes=5000, random_state=k) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(adaspdc.solve, ridge, tol=1e-4, max_passes=5000, random_state=k)
            for k in range(8)
        ]
        together = [job.result() for job in jobs]
    for first, second in zip(alone, together, strict=True):
        assert (first.x == second.x).all()
        assert first.gap == second.gap


def test_the_call_in_the_issue() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(30, 4)), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    p: Any = adaspdc.ERM(
        X, y, loss=losses.Logistic(), regularizer=regularizers.L2(1e-2), sample_weight=None
    )
    settings: dict[str, Any] = {
        "method": "adaspdc", "batch_size": 1, "tol": 1e-6, "max_passes": 500, "max_seconds": None,
        "warm_start": None, "random_state": 0, "n_threads": 1, "callback": None, "verbose": 0,
    }  # fmt: skip
    r = run(p, **settings)
    assert r.status == "converged"
    c1, c2, c3 = (losses.Squared().at(t) for t in (0.0, 1.0, [1.0, 2.0]))
    A1, A2, A3 = rng.normal(size=(3, 4)), rng.normal(size=(1, 4)), rng.normal(size=(2, 4))
    p = adaspdc.SaddlePoint(
        blocks=[A1, A2, A3], conjugates=[c1, c2, c3], regularizer=regularizers.L2(0.1)
    )
    assert run(p, **settings).status == "converged"
    one = adaspdc.SaddlePoint([A1, A2, A3], conjugates=c2, regularizer=regularizers.L2(0.1))
    assert run(one, **settings).status == "converged"


# ------------------------------------------------------------------------- the paper's Figure 1


def paper_ridge(seed: int) -> tuple[ERM, float]:
    """The paper's ridge problem, n = d = 1000 and Sigma_jj = j^-2, and its optimal value."""
    n = d = 1000
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.arange(1, d + 1)
    t = X @ np.ones(d) + rng.normal(size=n)
    problem = ERM(X, t, losses.Squared(), regularizers.L2(1e-6))
    gram = X.T @ X / n
    gram[np.diag_indices(d)] += 1e-6
    x = np.linalg.solve(gram, X.T @ t / n)
    return problem, recomputed(X, t, problem.loss, problem.regularizer, x, X @ x - t)[0]


@pytest.mark.slow
def test_figure_1() -> None:
    """At lambda = 1e-6, after 300 passes, AdaSPDC is a hundred times closer than SPDC."""
    ends: dict[str, list[float]] = {"adaspdc": [], "spdc": []}
    for seed in range(10):
        problem, best = paper_ridge(seed)
        for method, distances in ends.items():
            result = run(
                problem,
                Method(method, watch=False),
                tol=0.0,
                max_passes=300,
                check_every=300,
                random_state=seed,
            )
            distances.append(result.history["objective"][-1] - best)
    assert 0 < 100 * np.mean(ends["adaspdc"]) <= np.mean(ends["spdc"])
