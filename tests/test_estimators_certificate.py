"""What the certificates of estimators promise: true losses, honest statuses, awkward data."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris, load_svmlight_file, make_classification
from sklearn.linear_model import HuberRegressor, LogisticRegression

import adaspdc
from adaspdc import ConvergenceWarning, Status, losses
from adaspdc._kernels.descent import descend
from adaspdc.estimators import _continuation, _fit
from adaspdc.estimators._bounds import Bounds, dual_value, primal_value
from adaspdc.estimators._corner_model import CornerModel
from adaspdc.estimators._fit import minimise
from adaspdc.estimators._solve import Options
from adaspdc.estimators._task import EpsilonInsensitive, Hinge, Penalty, Pinball, Task

OPTIONS = Options(1e-6, 10_000)


def task(loss: Any, penalty: Penalty, n: int = 80, d: int = 5, intercept: bool = True) -> Task:
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    t = X[:, 0] + rng.standard_normal(n)
    target = np.sign(t) if loss.kind == "binary" else t
    return Task(X, target, loss, penalty, rng.integers(0, 3, n).astype(float), intercept)


CORNERS = [
    (Pinball(0.3), Penalty(0.0, 0.02)),
    (Pinball(0.9), Penalty(0.0, 0.0)),
    (Pinball(0.5), Penalty(0.01)),
    (EpsilonInsensitive(0.2), Penalty(0.01)),
    (EpsilonInsensitive(0.0), Penalty(0.01, 0.01)),
    (Hinge(), Penalty(0.01)),
    (Hinge(), Penalty(0.0, 0.01)),
]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("loss", "penalty"), CORNERS)
def test_corners_are_certified_as_they_are(loss: Any, penalty: Penalty, intercept: bool) -> None:
    problem = task(loss, penalty, intercept=intercept)
    found = minimise(problem, OPTIONS)
    assert found.result.status is Status.CONVERGED
    at = primal_value(problem, found.x, found.b)
    assert at == pytest.approx(found.result.primal, rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):  # the bound holds everywhere
        other = found.x + size * rng.standard_normal(found.x.shape)
        assert primal_value(problem, other, found.b) >= found.result.dual - 1e-12
    y = found.y
    assert abs(problem.share @ y) < 1e-12 or not intercept
    force = np.abs(problem.pull(y)).max()
    assert penalty.lam > 0.0 or force <= penalty.l1 + 1e-12


@pytest.mark.parametrize(("loss", "penalty"), [CORNERS[0], CORNERS[3], CORNERS[5]])
def test_stages_and_interior_points_agree(
    loss: Any, penalty: Penalty, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = task(loss, penalty)
    inside = minimise(problem, OPTIONS).result
    monkeypatch.setattr(_fit, "is_narrow", lambda task: False)
    rounded = minimise(problem, Options(1e-3, 10_000)).result
    assert rounded.converged
    assert rounded.primal >= inside.dual - 1e-12
    assert rounded.primal <= inside.primal + rounded.tol + inside.gap


def test_bounds_hold_for_any_pair() -> None:
    problem = task(Pinball(0.4), Penalty(0.0, 0.05))
    optimum = minimise(problem, OPTIONS).result
    rng = np.random.default_rng(1)
    for _ in range(50):
        bounds = Bounds(problem)
        y = np.clip(rng.standard_normal(80), -0.4, 0.6)
        bounds.offer(rng.standard_normal(5), rng.standard_normal(), y)
        assert bounds.dual <= optimum.primal + 1e-12
        assert bounds.primal >= optimum.dual - 1e-12
        assert bounds.y is not None
        assert bounds.dual == pytest.approx(dual_value(problem, bounds.y))


def test_balanced_classes_bound_the_multinomial_optimum() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    problem = Task(X, y, losses.Multinomial(), Penalty(0.01), None, True, 3)
    optimum = minimise(problem, OPTIONS).result
    for _ in range(20):
        x = rng.standard_normal((4, 3))
        bounds = Bounds(problem)
        bounds.offer(x, 0.0, problem.loss.derivative(X @ x, y))
        assert -np.inf < bounds.dual <= optimum.primal + 1e-12


def test_corner_model_against_many_points() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.standard_normal((12, 8))
        hessian, force = A.T @ A + 1e-3 * np.eye(8), 3.0 * rng.standard_normal(8)
        l1, bounded = rng.choice([0.0, 1.0], 8), rng.random(8) < 0.3
        here = np.where(bounded, 0.0, rng.standard_normal(8))

        best = CornerModel(hessian, force, here, l1, bounded).minimiser()
        assert (best[bounded] >= 0.0).all()
        for size in (1e-6, 1e-3, 1.0):
            other = best + size * rng.standard_normal((200, 8))
            other = np.where(bounded, np.maximum(other, 0.0), other)
            *others, least = (
                force @ (x - here) + 0.5 * (x - here) @ hessian @ (x - here) + l1 @ np.abs(x)
                for x in (*other, best)
            )
            assert min(others) >= least - 1e-12


def test_descent_on_sparse_columns_finds_the_corner_models_minimiser() -> None:
    """The same quadratic, its Hessian formed or not, the intercept as a column of ones."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = sparse.random_array((30, 8), density=0.4, rng=rng, format="csc")
        bend, force = rng.random(30), 3.0 * rng.standard_normal(9)
        force[8] *= 0.1
        lam, l1 = np.full(9, 1e-2), rng.choice([0.0, 1.0], 9)
        bounded = rng.random(9) < 0.3
        lam[8], l1[8], bounded[8] = 0.0, 0.0, False
        here = np.where(bounded, np.abs(rng.standard_normal(9)), rng.standard_normal(9))
        full = np.column_stack([A.toarray(), np.ones(30)])
        hessian = full.T @ (full * bend[:, None])
        best = CornerModel(hessian + np.diag(lam), force, here, l1, bounded).minimiser()
        x, dz, columns = here.copy(), np.zeros(30), np.arange(9)
        curve = np.diag(hessian).copy()
        parts = A.indptr, A.indices, A.data, columns, bend, force, curve, lam, l1, bounded
        assert descend(*parts, x, dz, 1e-14, 100_000)
        np.testing.assert_allclose(x, best, atol=1e-9)
        np.testing.assert_allclose(dz, full @ (x - here), atol=1e-9)


@pytest.mark.parametrize("name", ["LogisticRegression", "ElasticNet"])
def test_sparse_and_dense_lasso_agree(name: str) -> None:
    """Coordinate descent on sparse columns, linear systems on dense ones."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 900), density=0.05, rng=rng, format="csr")
    score = np.asarray(X[:, :50].sum(axis=1)).ravel() - 1.0 + 0.1 * rng.standard_normal(400)
    y = (score > 0).astype(int) if name == "LogisticRegression" else score
    options = {"C": 20.0} if name == "LogisticRegression" else {"alpha": 1e-4}
    one, other = (
        getattr(adaspdc, name)(l1_ratio=1.0, tol=1e-9, **options).fit(data, y)
        for data in (X, X.toarray())
    )
    assert one.result_.converged
    assert one.result_.method == "auto"
    assert abs(one.result_.primal - other.result_.primal) <= one.dual_gap_ + other.dual_gap_ + 1e-15
    assert np.count_nonzero(one.coef_) > 50


# --- honest statuses ---


def test_what_has_not_converged_says_so() -> None:
    X, y = make_classification(300, 400, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"LogisticRegression ended above.*max_iter=2"):
        model = adaspdc.LogisticRegression(C=100.0, max_iter=2, tol=1e-12).fit(X, y)
    assert model.result_.status is not Status.CONVERGED
    assert model.dual_gap_ > model.result_.tol
    with pytest.warns(ConvergenceWarning, match="QuantileRegressor"):
        short = adaspdc.QuantileRegressor(alpha=1e-3, max_iter=3).fit(X[:, :50], X[:, 51])
    assert short.result_.status is Status.MAX_PASSES
    with pytest.warns(ConvergenceWarning, match="max_seconds=0"):
        late = adaspdc.LogisticRegression(l1_ratio=0.5, max_seconds=0.0).fit(X, y)
    assert late.result_.status is Status.MAX_SECONDS
    exact = adaspdc.QuantileRegressor(alpha=1e-3).fit(X[:, :50], X[:, 51])
    assert short.result_.dual <= exact.result_.primal
    assert short.dual_gap_ >= short.result_.primal - exact.result_.primal


def test_what_nothing_bounds_is_told_apart() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2100)), rng.standard_normal(20)
    with pytest.warns(ConvergenceWarning, match="without a penalty"):
        model = adaspdc.Ridge(0.0, max_iter=20).fit(X, y)
    assert model.dual_gap_ == np.inf
    groups = adaspdc.regularizers.GroupL2(0.1, 0.1, np.arange(2100) // 3)
    with pytest.raises(ValueError, match="fit_intercept=True cannot be combined with GroupL2"):
        adaspdc.AdaSPDCRegressor(penalty=groups).fit(X, y)


def test_warm_start_goes_on() -> None:
    X, y = make_classification(400, 320, random_state=0)
    model = adaspdc.LogisticRegression(warm_start=True, tol=1e-8).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.fit(X[:200], y[:200]).result_.converged  # other rows: the coefficients still serve


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("LogisticRegression", {"C": 0.0}, "'C' parameter of LogisticRegression.*greater than 0"),
        ("LogisticRegression", {"C": np.nan}, "'C'.*greater than 0"),
        ("LogisticRegressionCV", {"Cs": [np.inf]}, "'Cs'"),
        ("LinearSVC", {"C": np.inf}, "'C'.*finite"),
        ("LinearSVR", {"loss": "squared"}, "'loss'.*squared_epsilon_insensitive"),
        ("LogisticRegression", {"l1_ratio": 2.0}, "'l1_ratio'.*at most 1"),
        ("LogisticRegression", {"tol": -1.0}, "'tol'"),
        ("LogisticRegression", {"solver": "lbfgs"}, "'solver'.*'auto' or one of.*'lbfgs'"),
        ("LogisticRegression", {"class_weight": {7: 1.0}}, "class_weight"),
        ("Ridge", {"verbose": "loud"}, "'verbose' parameter of Ridge.*'loud'"),
        ("LogisticRegression", {"class_weight": {0: 0.0}}, r"2 classes with positive.*class \[1\]"),
        ("LinearSVC", {"loss": "log"}, "'loss' parameter of LinearSVC must be one of"),
        ("LinearSVC", {"intercept_scaling": -1.0}, "'intercept_scaling'"),
        ("AdaSPDCClassifier", {"loss": "squared"}, "'loss' parameter.*logistic"),
        ("AdaSPDCClassifier", {"loss": losses.Huber()}, "loss for regression targets"),
        ("AdaSPDCClassifier", {"penalty": "l3"}, "'penalty'"),
        ("LogisticRegressionCV", {"Cs": [1.0, -1.0]}, "'Cs'"),
        ("LogisticRegressionCV", {"l1_ratios": [3.0]}, "'l1_ratios'"),
        ("QuantileRegressor", {"quantile": 1.0}, "'quantile'.*between"),
        ("QuantileRegressor", {"quantile": [0.5, "a"]}, "'quantile'"),
        ("HuberRegressor", {"alpha": -1.0}, "'alpha'.*at least 0"),
        ("HuberRegressor", {"epsilon": 0.5}, "'epsilon'.*at least 1"),
        ("Ridge", {"alpha": [1.0, 2.0]}, "'alpha'"),
    ],
)
def test_errors_name_parameter_value_and_remedy(
    name: str, options: dict[str, Any], message: str
) -> None:
    X, y = make_classification(40, 4, random_state=0)
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(adaspdc, name)(**options).fit(X, y)


# --- no penalty at all ---


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [400, 6000])
def test_logistic_regression_without_a_penalty(n: int, classes: int, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 60 if n > 1000 else 6))
    y = np.digitize(X[:, 0] + rng.logistic(size=n), [0.0] if classes == 2 else [-1.0, 1.0])
    options: dict[str, Any] = {"C": np.inf, "fit_intercept": intercept}
    ours = adaspdc.LogisticRegression(tol=1e-12, **options).fit(X, y)
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000, **options).fit(X, y)
    assert ours.result_.converged
    assert ours.dual_gap_ <= 1e-12
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    weight = rng.integers(0, 3, n)
    weighted = adaspdc.LogisticRegression(**options).fit(X, y, weight)
    repeated = adaspdc.LogisticRegression(**options)
    repeated.fit(sparse.csr_array(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


def quasi_separable() -> tuple[np.ndarray, np.ndarray]:
    """The second half of the rows is decided by chance, the first by the first column."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([1.0, 0.0], 50), rng.standard_normal(100)])
    return X, np.concatenate([np.ones(50), rng.integers(0, 2, 50)])


@pytest.mark.parametrize(
    ("data", "separated"),
    [
        (lambda: make_classification(60, 200, random_state=0), "60 of 60"),
        (lambda: make_classification(60, 2000, random_state=0), "60 of 60"),
        (lambda: load_iris(return_X_y=True), "150 of 150"),  # two of three classes are not
        (quasi_separable, "50 of 100"),
    ],
    ids=["wide", "very wide", "iris", "partly"],
)
def test_separable_classes_are_told(data: Any, separated: str) -> None:
    X, y = data()
    with pytest.warns(ConvergenceWarning, match=f"separated.* push {separated} rows"):
        model = adaspdc.LogisticRegression(C=np.inf).fit(X, y)
    assert model.dual_gap_ <= model.result_.tol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closer = adaspdc.LogisticRegression(C=1e8, tol=1e-10).fit(X, y)
    loss = -closer.predict_log_proba(X)[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]
    assert loss.mean() >= model.result_.dual - 1e-9
    rest = adaspdc.LogisticRegression(C=10.0).fit(X, y)
    assert np.linalg.norm(rest.coef_) < np.linalg.norm(model.coef_)


def test_no_penalty_where_nothing_bounds_the_optimum() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((6000, 1600), density=0.02, rng=rng, format="csr")
    with pytest.warns(ConvergenceWarning, match=r"little bounds.*without a penalty.*finite C"):
        model = adaspdc.LogisticRegression(C=np.inf).fit(X, rng.integers(0, 2, 6000))
    assert not model.result_.converged
    assert model.result_.dual >= 0.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(200, 5), (3000, 120)])
def test_huber_regression_without_a_penalty(n: int, d: int, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + 1.0 + rng.standard_t(2, n)
    ours = adaspdc.HuberRegressor(alpha=0.0, fit_intercept=intercept, tol=1e-9).fit(X, y)
    theirs = HuberRegressor(alpha=0.0, fit_intercept=intercept, tol=1e-9, max_iter=10_000)
    theirs.fit(X, y)
    assert ours.result_.converged
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-4)
    assert ours.result_.dual <= ours.result_.primal + 1e-12


def test_named_solvers_reach_the_same_model() -> None:
    X, y = make_classification(200, 320, random_state=0)
    options: dict[str, Any] = {"C": 0.1, "fit_intercept": False, "tol": 1e-9}
    auto = adaspdc.LogisticRegression(**options).fit(X, y)
    for solver in ("spdhg", "sdca"):
        named = adaspdc.LogisticRegression(solver=solver, **options).fit(X, y)
        np.testing.assert_allclose(named.coef_, auto.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="solver='spdhg' cannot leave an intercept unpenalised"):
        adaspdc.LogisticRegression(solver="spdhg").fit(X, y)


# --- awkward data ---


def test_time_stamps_are_features_like_others() -> None:
    X, y = load_diabetes(return_X_y=True)
    moved = X * 1000.0 + 1.7e12
    near = moved - 1.7e12  # what is left of the numbers
    for name, options in (
        ("HuberRegressor", {}),
        ("Ridge", {"alpha": 0.1}),
        ("QuantileRegressor", {"alpha": 0.0}),
        ("ElasticNet", {"alpha": 0.1}),
    ):
        far = getattr(adaspdc, name)(**options).fit(moved, y)
        plain = getattr(adaspdc, name)(**options).fit(near, y)
        assert far.result_.converged
        np.testing.assert_allclose(far.coef_, plain.coef_, rtol=1e-4, atol=1e-6)
    labels = (y > 140).astype(int)
    svm = adaspdc.LogisticRegression().fit(moved, labels)
    assert svm.score(moved, labels) == adaspdc.LogisticRegression().fit(near, labels).score(
        near, labels
    )


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_of_features(scale: float) -> None:
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = adaspdc.QuantileRegressor(alpha=0.0).fit(X * scale, y)
    assert model.result_.converged != bool(seen)
    assert model.result_.converged
    plain = adaspdc.QuantileRegressor(alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X * scale), plain.predict(X), rtol=1e-5)


def test_degenerate_data() -> None:
    X = np.zeros((10, 3))
    for y in (np.zeros(10), np.full(10, 7.5)):
        for name in ("HuberRegressor", "Ridge", "ElasticNet", "QuantileRegressor", "LinearSVR"):
            model = getattr(adaspdc, name)(fit_intercept=True).fit(X, y)
            assert model.dual_gap_ <= model.result_.tol
            assert not model.coef_.any()
        assert adaspdc.Ridge().fit(X, y).predict(X)[0] == pytest.approx(y[0])
    with pytest.raises(ValueError, match="only one class"):
        adaspdc.LogisticRegression().fit(X, np.zeros(10))
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        adaspdc.Ridge().fit(X, np.arange(10.0), np.zeros(10))


def test_weights_of_one_class_alone_are_refused() -> None:
    X, y = make_classification(40, 4, random_state=0)
    for name in ("LogisticRegression", "LinearSVC", "AdaSPDCClassifier", "LogisticRegressionCV"):
        with pytest.raises(ValueError, match=r"2 classes with positive weight"):
            getattr(adaspdc, name)().fit(X, y, (y == 1).astype(float))


def test_numbers_out_of_range_end_in_a_warning() -> None:
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="scale (X|the features)"):
        model = adaspdc.LinearSVR().fit(X * 1e150, y)
    assert np.isfinite(model.coef_).all()


def test_inputs_and_parameters_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    rows, weight = sparse.csr_array(X), rng.random(50)
    kept = X.copy(), y.copy(), rows.copy(), weight.copy()
    for name in ("Ridge", "QuantileRegressor", "HuberRegressor", "LinearSVR"):
        model = getattr(adaspdc, name)()
        before = dict(model.get_params())
        model.fit(X, y, weight).fit(rows, y, weight)
        assert model.get_params() == before
    assert np.array_equal(X, kept[0])
    assert np.array_equal(y, kept[1])
    assert np.array_equal(rows.data, kept[2].data)
    assert np.array_equal(weight, kept[3])


def test_rounding_ends_at_the_size_the_tolerance_asks_for() -> None:
    run = _continuation._Continuation(task(Pinball(0.3), Penalty(0.01)), OPTIONS, None)
    gamma = run._gamma_wanted()
    assert 0.5 * gamma * 0.7**2 <= 0.25 * run.tolerance * (1 + 1e-12)


@pytest.mark.slow
def test_a_million_rows_and_three_quantiles() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 10)).astype(np.float32)
    y = X @ rng.standard_normal(10) + rng.standard_t(3, 1_000_000)
    model = adaspdc.QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0, tol=1e-5).fit(X, y)
    assert all(result.converged for result in model.result_)
    below = (y[:, None] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(below, [0.1, 0.5, 0.9], atol=1e-3)


@pytest.mark.slow
def test_real_data(data_path: Any) -> None:
    import lzma

    with lzma.open(data_path("phishing.xz")) as file:
        X, y = load_svmlight_file(file)
    for model in (
        adaspdc.LogisticRegression(),
        adaspdc.LogisticRegression(l1_ratio=1.0, C=0.1),
        adaspdc.LinearSVC(loss="hinge"),
    ):
        model.fit(X, y)
        assert model.result_.converged
        assert model.score(X, y) > 0.92
