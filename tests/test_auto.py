"""The default engine: certified answers for everything in the catalogue, with no parameter."""

import pkgutil
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adaspdc
import builders
import naive
from adaspdc import ERM, losses, regularizers, solve
from naive import Array

CASES = [
    (loss, storage, weighted)
    for loss in builders.LOSSES
    for storage, weighted in [("dense", False), ("csr", True), ("float32", True)]
]


@pytest.mark.parametrize(("loss", "storage", "weighted"), CASES)
@pytest.mark.parametrize("lam", [1e-1, 1e-6])
def test_certificate_is_true(loss: str, storage: str, weighted: bool, lam: float) -> None:
    pair = builders.erm(loss, "l2", storage, lam, weighted)
    result = solve(pair.problem, tol=1e-9)
    assert result.converged
    scale = result.tol / 1e-9
    idle = scale - naive.primal(pair.oracle, np.zeros(pair.oracle.d))
    primal = naive.primal(pair.oracle, result.x.ravel()) + idle
    dual = naive.dual(pair.oracle, result.y.ravel()[pair.kept]) + idle
    assert abs(primal - result.primal) <= 1e-12 * scale
    assert abs(dual - result.dual) <= 1e-10 * scale
    assert -1e-12 * scale <= primal - dual <= 1e-9 * scale


def with_intercept(
    loss: str, weighted: bool, lam: float = 1e-3
) -> tuple[ERM, Array, Array, list[naive.Loss]]:
    rng = np.random.default_rng(7)
    X = builders.matrix(rng, 60, 5)
    public, name, params = builders.LOSSES[loss]
    t = builders.targets(rng, public, 60)
    if public.kind == "regression":
        t += 3.0
    s = rng.integers(0, 4, size=60).astype(float) if weighted else np.ones(60)
    problem = ERM(X, t, public, regularizers.L2(lam), s, intercept=True)
    return problem, X, s / s.sum(), [naive.Loss(name, target, params) for target in t]


@pytest.mark.parametrize("loss", builders.LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_intercept_is_unpenalised_and_certified(loss: str, weighted: bool) -> None:
    lam = 1e-3
    problem, X, share, oracles = with_intercept(loss, weighted, lam)
    result = solve(problem, tol=1e-9)
    assert result.converged
    x, y = result.x.reshape(5, -1), result.y.reshape(60, -1)
    z = X @ x + result.intercept
    used = np.flatnonzero(share)
    primal = sum(share[i] * naive.loss_value(oracles[i], z[i]) for i in used)
    primal += 0.5 * lam * (x**2).sum()
    r = X.T @ (share[:, None] * y)
    dual = -sum(share[i] * naive.loss_conjugate(oracles[i], y[i]) for i in used)
    dual -= (r**2).sum() / (2 * lam)
    assert np.abs(share @ y).max() <= 1e-13
    assert abs(primal - result.primal) <= 1e-12
    assert abs(dual - result.dual) <= 1e-10
    assert primal - dual <= result.tol * (1 + 1e-6)


def test_intercept_equals_that_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression, Ridge

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) + 2.0
    y = X @ rng.normal(size=6) + rng.normal(size=200) + 5.0
    ours = solve(ERM(X, y, losses.Squared(), regularizers.L2(0.1), intercept=True), tol=1e-12)
    ridge = Ridge(alpha=0.1 * 200).fit(X, y)
    np.testing.assert_allclose(ours.x, ridge.coef_, rtol=1e-7)
    np.testing.assert_allclose(ours.intercept, ridge.intercept_, rtol=1e-7)
    sign = np.where(y > np.median(y) + 1.0, 1.0, -1.0)
    ours = solve(ERM(X, sign, losses.Logistic(), regularizers.L2(1e-2), intercept=True), tol=1e-12)
    model = LogisticRegression(C=1 / (1e-2 * 200), solver="newton-cholesky", tol=1e-12).fit(X, sign)
    np.testing.assert_allclose(ours.x, model.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(ours.intercept, model.intercept_[0], rtol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "smooth hinge", "multinomial", "squared"])
def test_weights_with_an_intercept_are_duplicated_rows(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = builders.matrix(rng, 40, 4)
    public = builders.LOSSES[loss][0]
    t = builders.targets(rng, public, 40)
    s = rng.integers(0, 4, size=40)
    weighted = ERM(X, t, public, regularizers.L2(1e-2), s.astype(float), intercept=True)
    repeated = ERM(
        np.repeat(X, s, axis=0), np.repeat(t, s, axis=0), public, regularizers.L2(1e-2),
        intercept=True,
    )  # fmt: skip
    a, b = solve(weighted, tol=1e-10), solve(repeated, tol=1e-10)
    assert a.converged
    assert b.converged
    np.testing.assert_allclose(a.x, b.x, atol=1e-5)
    np.testing.assert_allclose(a.intercept, b.intercept, atol=1e-5)
    assert abs(a.primal - b.primal) <= 2 * max(a.gap, b.gap) + 1e-12


@pytest.mark.parametrize("intercept", [False, True])
def test_two_threads_give_the_bits_of_one(intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = np.sign(X @ rng.normal(size=20) + rng.normal(size=4000))
    p = ERM(X, y, losses.Logistic(), regularizers.L2(1e-6), intercept=intercept)
    one, two = solve(p, tol=1e-8), solve(p, tol=1e-8, n_threads=2)
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y, two.y)
    assert one.passes == two.passes


class Poisoned:
    """NumPy, with the worst that fresh memory can hold: NaN that no operation takes quietly."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def empty(shape: Any, dtype: Any = np.float64) -> Any:
        if dtype != np.float64:
            return np.empty(shape, dtype)
        return np.full(shape, 0x7FF0_0000_0000_0001).view(np.float64)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_outside_a_sample_are_not_read(
    loss: str, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They once were, as whatever the memory held: a warning that came and went."""
    from adaspdc import _newton

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 20))
    score = X @ rng.normal(size=20) + rng.normal(size=6000)
    t = np.sign(score) if loss == "logistic" else np.digitize(score, [-1.0, 1.0])
    p = ERM(X, t, builders.LOSSES[loss][0], regularizers.L2(1e-6), intercept=intercept)
    plain = solve(p, tol=1e-8)
    poisoned = Poisoned()
    for module in pkgutil.iter_modules(_newton.__path__, f"{_newton.__name__}."):
        if hasattr(sys.modules.get(module.name), "np"):
            monkeypatch.setattr(f"{module.name}.np", poisoned)
    again = solve(p, tol=1e-8)
    np.testing.assert_array_equal(plain.x, again.x)
    np.testing.assert_array_equal(plain.y, again.y)


def test_overlapping_solves_give_blas_its_threads_back() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    problem = builders.erm("logistic").problem
    solve(problem)

    def counts() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info()]

    before = counts()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: solve(problem, random_state=seed).gap, range(40)))
    assert counts() == before


def test_warm_start_from_the_solution_ends_at_once() -> None:
    problem, *_ = with_intercept("logistic", weighted=True)
    first = solve(problem, tol=1e-10)
    again = solve(problem, tol=1e-8, warm_start=first)
    assert again.converged
    assert again.passes <= 3
    np.testing.assert_allclose(again.intercept, first.intercept, rtol=1e-6)


def test_events_say_what_was_done() -> None:
    result = solve(builders.erm("logistic").problem)
    assert "Newton's method" in result.events[0]
    assert "Newton" not in result.message


def test_no_passes_still_give_a_certificate() -> None:
    problem, *_ = with_intercept("logistic", weighted=False)
    with pytest.warns(adaspdc.ConvergenceWarning, match="max_passes=0"):
        result = solve(problem, max_passes=0)
    assert np.isfinite([result.primal, result.dual]).all()
    assert result.gap == result.primal - result.dual


@pytest.mark.parametrize("method", ["adaspdc", "spdhg", "sdca", "pdhg"])
def test_only_auto_takes_an_intercept(method: str) -> None:
    problem, *_ = with_intercept("logistic", weighted=False)
    with pytest.raises(ValueError, match='use method="auto"'):
        solve(problem, method=method)


def test_auto_takes_no_options() -> None:
    with pytest.raises(ValueError, match="makes its own choices"):
        adaspdc.Method("auto", step=1.0)


def test_progress_shows_x_without_the_intercept() -> None:
    problem, *_ = with_intercept("multinomial", weighted=False)
    shapes: list[Any] = []
    solve(problem, callback=lambda now: shapes.append(now.x.shape))
    assert set(shapes) == {(5, 3)}


@pytest.mark.parametrize("value", [1, "yes", None])
def test_intercept_must_be_true_or_false(value: Any) -> None:
    with pytest.raises(TypeError, match="intercept must be True or False"):
        ERM(np.eye(3), np.ones(3), losses.Squared(), regularizers.L2(1.0), intercept=value)


FACES = [
    (loss, regularizer, storage)
    for loss in builders.LOSSES
    for regularizer, storage in [("elastic net", "csr"), ("nonnegative", "dense"), ("box", "csr64")]
]


@pytest.mark.parametrize(("loss", "regularizer", "storage"), FACES)
@pytest.mark.parametrize("lam", [1e-1, 1e-4])
def test_regularizers_with_corners(loss: str, regularizer: str, storage: str, lam: float) -> None:
    """Bounds away from zero, at it, on one side, and equal to each other; weights with a zero."""
    pair = builders.erm(loss, regularizer, storage, lam, weighted=True)
    result = solve(pair.problem, tol=1e-8)
    assert result.converged, result.message
    scale = result.tol / 1e-8
    at_zero = naive.primal(pair.oracle, result.x.ravel())
    other = solve(pair.problem, "spdhg", tol=1e-6, max_passes=20_000)
    assert result.primal <= other.primal + result.gap + 1e-12 * scale
    assert result.dual >= other.dual - result.gap - 1e-12 * scale
    assert np.isfinite(at_zero)
    dual = naive.dual(pair.oracle, result.y.ravel()[pair.kept])
    assert abs((at_zero - dual) - result.gap) <= 1e-10 * scale


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "multinomial"])
def test_elastic_net_leaves_the_intercept_alone(loss: str) -> None:
    rng = np.random.default_rng(7)
    X = builders.matrix(rng, 60, 5)
    public, name, params = builders.LOSSES[loss]
    t = builders.targets(rng, public, 60)
    problem = ERM(X, t, public, regularizers.ElasticNet(1e-3, 0.05), intercept=True)
    result = solve(problem, tol=1e-9)
    assert result.converged
    oracles = [naive.Loss(name, target, params) for target in t]
    x, y = result.x.reshape(5, -1), result.y.reshape(60, -1)
    z = X @ x + result.intercept
    primal = np.mean([naive.loss_value(o, v) for o, v in zip(oracles, z, strict=True)])
    primal += 0.5e-3 * (x**2).sum() + 0.05 * np.abs(x).sum()
    r = X.T @ y / 60
    dual = -np.mean([naive.loss_conjugate(o, v) for o, v in zip(oracles, y, strict=True)])
    dual -= (np.maximum(np.abs(r) - 0.05, 0.0) ** 2).sum() / 2e-3
    assert np.abs(y.mean(axis=0)).max() <= 1e-13
    assert abs(primal - result.primal) <= 1e-12
    assert abs(dual - result.dual) <= 1e-9
    assert (x == 0.0).any()


def test_elastic_net_equals_scikit_learn() -> None:
    from sklearn.linear_model import ElasticNet

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 150))
    y = X[:, :5] @ rng.normal(size=5) + 0.1 * rng.normal(size=100) + 2.0
    alpha, ratio = 0.1, 0.9
    theirs = ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-12, max_iter=100_000).fit(X, y)
    g = regularizers.ElasticNet(alpha * (1 - ratio), alpha * ratio)
    ours = solve(ERM(X, y, losses.Squared(), g, intercept=True), tol=1e-12)
    np.testing.assert_allclose(ours.x, theirs.coef_, atol=1e-8)
    np.testing.assert_array_equal(ours.x == 0.0, theirs.coef_ == 0.0)
    np.testing.assert_allclose(ours.intercept, theirs.intercept_, rtol=1e-8)


def test_an_old_factor_is_not_taken_for_the_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once was, where it came from all rows: the dual then exceeded the primal."""
    from adaspdc._newton import _preconditioner

    monkeypatch.setattr(_preconditioner, "_CHEAP", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40)) * (rng.random((2000, 40)) < 0.2)
    y = np.sign(X @ rng.normal(size=40) + rng.normal(size=2000))
    result = solve(ERM(X, y, losses.Logistic(), regularizers.L2(1e-6)), tol=1e-10)
    assert result.converged
    assert (result.history["dual"] <= result.primal + 1e-14).all()


# --- two methods in turns -------------------------------------------------------------------------


@pytest.mark.parametrize("regularizer", ["l2", "elastic net", "box"])
@pytest.mark.parametrize("loss", builders.LOSSES)
def test_turns_end_at_the_same_optimum(
    loss: str, regularizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with very many coefficients; turns so short that both methods get theirs."""
    from adaspdc import _auto

    problem = builders.erm(loss, regularizer, "csr", 1e-3).problem
    alone = solve(problem, tol=1e-8)
    monkeypatch.setattr(_auto, "MOST_COEFFICIENTS", 0)
    monkeypatch.setattr(_auto, "_FIRST_TURN", 1.0)
    monkeypatch.setattr(_auto, "_NEAR", 0.0)
    turns = solve(problem, tol=1e-8)
    assert turns.converged
    if problem.loss.name != "squared" and problem.loss.kind != "multioutput":
        assert {"SPDHG", "Newton's"} <= {event.split()[0] for event in turns.events}
    rounding = 1e-15 * abs(alone.primal)
    assert abs(turns.primal - alone.primal) <= turns.gap + alone.gap + rounding


def test_a_contender_in_trouble_leaves_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc import _auto
    from adaspdc._tuned import TunedSpdhg

    monkeypatch.setattr(_auto, "MOST_COEFFICIENTS", 0)
    monkeypatch.setattr(TunedSpdhg, "trouble", lambda self, check, passes: "it is tired")
    result = solve(builders.erm("logistic", "l2", "csr", 1e-4).problem, tol=1e-8)
    assert result.converged
    assert any("it is tired" in event for event in result.events)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.SmoothHinge()])
def test_far_more_columns_than_rows(loss: losses.Loss) -> None:
    """A matrix of the rows is factored once conjugate gradients have cost as much."""
    rng = np.random.default_rng(1)
    X = _sparse(rng, 200, 9000)
    y = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    for lam in (1e-6, 1e-9):
        assert solve(ERM(X, y, loss, regularizers.L2(lam)), tol=1e-10).converged


def test_many_coefficients_begin_with_spdhg() -> None:
    rng = np.random.default_rng(0)
    X = builders.with_wide_indices(_sparse(rng, 300, 8000))
    y = np.where(rng.random(300) < 0.5, -1.0, 1.0)
    result = solve(ERM(X, y, losses.SmoothHinge(), regularizers.L2(1e-4)))
    assert result.converged
    assert result.events[0].startswith("SPDHG")


def _sparse(rng: np.random.Generator, n: int, d: int) -> Any:
    from scipy import sparse

    return sparse.random_array((n, d), density=0.005, format="csr", rng=rng)


def test_a_nearly_separable_problem_is_reached_by_way_of_larger_lams() -> None:
    """More columns than active rows, no rows in doubt: short steps without end, once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 200)) * 100.0 * (rng.random((300, 200)) < 0.3)
    X[:, :5] *= 30.0
    y = np.sign(X @ rng.normal(size=200))
    for loss in (losses.SmoothHinge(), losses.SquaredHinge()):
        for lam in (1e-5, 1e-8):
            result = solve(ERM(X, y, loss, regularizers.L2(lam)), tol=1e-9)
            assert result.converged, result.message
            assert result.events == (result.events[0],)


# --- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1e-1, 1e-4, 1e-8])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.SmoothHinge()])
def test_the_counterexample_to_theorem_1(loss: losses.Loss, lam: float) -> None:
    rows, t = np.array([[1.0], [0.1]]), np.array([1.0, -1.0])
    assert solve(ERM(rows, t, loss, regularizers.L2(lam)), tol=1e-9).converged


@pytest.mark.parametrize("seed", range(6))
def test_columns_scaled_over_six_decades(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 15))
    y = np.sign(X @ rng.normal(size=15) + rng.normal(size=200))
    scales = 10.0 ** rng.uniform(-3, 3, size=15)
    loss = [losses.Logistic(), losses.SmoothHinge(), losses.SquaredHinge()][seed % 3]
    plain, scaled = (
        solve(ERM(A, y, loss, regularizers.L2(1e-7)), tol=1e-9) for A in (X, X * scales)
    )
    assert plain.converged
    assert scaled.converged
    assert scaled.passes <= 3 * plain.passes


@pytest.mark.parametrize("seed", range(10))
def test_norms_of_rows_over_six_decades(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 51)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    loss = [losses.Logistic(), losses.SmoothHinge(), losses.Squared()][seed % 3]
    lam = float(10.0 ** rng.uniform(-8, -1))
    for intercept in (False, True):
        result = solve(ERM(X, y, loss, regularizers.L2(lam), intercept=intercept), tol=1e-7)
        assert result.converged, result.message


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e300])
def test_poisoned_margins_are_noticed(poison: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc._newton._smooth_newton import SmoothNewton

    original, state = SmoothNewton.iterate, {"iterations": 0}

    def poisoned(self: Any, enough: float, pause: Any) -> None:
        original(self, enough, pause)
        state["iterations"] += 1
        if state["iterations"] == 3:
            self.z[5] = self._at.slope[5] = poison

    monkeypatch.setattr(SmoothNewton, "iterate", poisoned)
    with np.errstate(all="ignore"):
        result = solve(builders.erm("logistic", lam=1e-5).problem, tol=1e-9)
    assert state["iterations"] >= 3
    assert result.converged
    assert any("gave up" in event for event in result.events)


def test_a_user_loss_and_regularizer_run_on_what_suits_them() -> None:
    def value(z: float, t: float) -> float:
        return 0.5 * (z - t) ** 2

    def conjugate(y: float, t: float) -> float:
        return t * y + 0.5 * y * y

    def prox(v: float, sigma: float, t: float) -> float:
        return (v - sigma * t) / (1.0 + sigma)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    own = losses.Custom(value, conjugate, prox, gamma=1.0)
    ours = solve(ERM(X, y, own, regularizers.L2(1e-3)), tol=1e-9)
    builtin = solve(ERM(X, y, losses.Squared(), regularizers.L2(1e-3)), tol=1e-9)
    assert "Newton" in ours.events[0]
    np.testing.assert_allclose(ours.x, builtin.x, atol=1e-5)


@pytest.mark.parametrize(
    "regularizer", [regularizers.ElasticNet(0.01, 1e-3), regularizers.NonNegative(0.01)]
)
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Huber(1.0)])
def test_very_few_rows_of_many_columns_and_corners(
    loss: losses.Loss, regularizer: regularizers.Regularizer
) -> None:
    """A matrix of the rows serves all coordinates only, and there is none for those on a face."""
    X = sparse.random_array((5, 7000), density=0.002, format="csr", rng=np.random.default_rng(0))
    assert solve(ERM(X, np.arange(5) % 7 - 3.0, loss, regularizer), tol=1e-9).converged


@pytest.mark.parametrize("seed", range(8))
def test_samples_without_rows_or_entries_are_left_out(seed: int) -> None:
    """Dividing by the rows of an empty sample, or by its entries, ended the run."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((2000, 2), density=0.01, format="csr", rng=rng)
    classes = np.arange(2000) % 3
    for loss, y in ((losses.Multinomial(), classes), (losses.Logistic(), np.sign(classes - 0.5))):
        problem = ERM(X, y, loss, regularizers.L2(1e-3))
        assert solve(problem, tol=1e-8, random_state=seed).converged


def test_no_sample_is_empty() -> None:
    from adaspdc._newton._sample import nested_samples

    for seed in range(700):
        samples = nested_samples(320, 1, np.random.default_rng(seed))
        assert all(order.size >= 2 for order in samples)


@pytest.mark.parametrize("loss", [losses.SquaredHinge(), losses.SmoothHinge(), losses.Logistic()])
def test_intercepts_of_nearly_separable_classes_are_certified(loss: losses.Loss) -> None:
    """Their slopes are as small as lam, but as coarse as the margins: they add up to zero badly."""
    for seed in range(90001, 90009):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(20, 150)), int(rng.integers(2, 120))))
        y = np.sign(X[:, 0] + 0.3 * rng.normal(size=X.shape[0]))
        problem = ERM(X, y, loss, regularizers.L2(1.0), intercept=True)
        for result in adaspdc.path(problem, np.geomspace(1e-1, 1e-9, 6), tol=1e-7):
            assert result.converged
            level = np.abs(np.mean(result.y))
            assert level <= 1e-12 * np.abs(result.y).mean()


def test_a_run_ends_where_rounding_stops_it_on_the_way_down_in_lam() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 5))
    y = np.sign(X @ rng.normal(size=5))
    y[0] *= -1.0
    problem = ERM(X, y, losses.SquaredHinge(), regularizers.L2(1e-60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
        result = solve(problem, max_passes=300, max_seconds=60.0)
    assert result.status != "max_seconds"
