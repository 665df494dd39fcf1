"""The same optimum as scikit-learn: objectives, coefficients, probabilities."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn import linear_model, svm
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.preprocessing import StandardScaler

import adaspdc

STRENGTHS = (0.01, 1.0, 30.0)
Data = tuple[np.ndarray, np.ndarray]


def _scaled(data: Data) -> Data:
    return StandardScaler().fit_transform(data[0]), data[1]


CLASSES: dict[str, Callable[[], Data]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: _scaled(load_wine(return_X_y=True)),
    "cancer": lambda: _scaled(load_breast_cancer(return_X_y=True)),
    "digits": lambda: (load_digits().data / 16.0, load_digits().target > 4),
    "wide": lambda: make_classification(60, 200, n_informative=20, random_state=0),
    "unbalanced": lambda: make_classification(800, 12, weights=[0.97], random_state=1),
}
NUMBERS: dict[str, Callable[[], Data]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "iris": lambda: (load_iris().data[:, :3], load_iris().data[:, 3]),
    "wine": lambda: (_scaled(load_wine(return_X_y=True))[0][:, 1:], load_wine().data[:, 0]),
    "noisy": lambda: make_regression(300, 8, noise=50.0, random_state=0),
    "wide": lambda: make_regression(40, 60, noise=1.0, random_state=1),
    "outliers": lambda: _with_outliers(),
}


def _with_outliers() -> Data:
    X, y = make_regression(200, 5, noise=3.0, random_state=2)
    y[::10] += 500.0
    return X, y


def logistic_objective(model: Any, X: np.ndarray, y: np.ndarray, C: float) -> float:
    scores = X @ model.coef_.T + model.intercept_
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores[:, 0]])
    index = np.unique(y, return_inverse=True)[1]
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(X)), index]
    return float(C * loss.sum() + 0.5 * np.sum(model.coef_**2))


@pytest.mark.parametrize("C", STRENGTHS)
@pytest.mark.parametrize("name", CLASSES)
def test_logistic_regression(name: str, C: float) -> None:
    X, y = CLASSES[name]()
    ours = adaspdc.LogisticRegression(C=C, tol=1e-8).fit(X, y)
    theirs = linear_model.LogisticRegression(C=C, tol=1e-9, max_iter=20_000).fit(X, y)
    mine, other = (logistic_objective(m, X, y, C) for m in (ours, theirs))
    assert mine <= other * (1 + 1e-6)
    assert mine - other <= ours.dual_gap_ * C * len(X) + 1e-12 * mine
    assert other * (1 + 1e-12) >= ours.result_.dual * C * len(X)  # the bound holds for others too
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("name", ["wine", "unbalanced"])
def test_logistic_regression_with_l1(name: str, ratio: float) -> None:
    X, y = CLASSES[name]()
    ours = adaspdc.LogisticRegression(C=0.2, l1_ratio=ratio, tol=1e-9).fit(X, y)
    theirs = linear_model.LogisticRegression(
        C=0.2, l1_ratio=ratio, solver="saga", tol=1e-8, max_iter=100_000, random_state=0
    )
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.coef_ == 0.0, np.abs(theirs.coef_) < 1e-6)


@pytest.mark.parametrize("C", STRENGTHS)
@pytest.mark.parametrize("name", CLASSES)
def test_linear_svc(name: str, C: float) -> None:
    X, y = CLASSES[name]()
    ours = adaspdc.LinearSVC(C=C, tol=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # liblinear does not always get there
        theirs = svm.LinearSVC(C=C, tol=1e-10, max_iter=100_000, dual=len(X) < X.shape[1])
        theirs.fit(X, y)
    for k, label in enumerate(ours.classes_[-len(ours.coef_) :]):
        sign = np.where(y == label, 1.0, -1.0)
        mine, other = (
            0.5 * (m.coef_[k] @ m.coef_[k] + m.intercept_[k] ** 2)
            + C * np.sum(np.maximum(0.0, 1.0 - sign * (X @ m.coef_[k] + m.intercept_[k])) ** 2)
            for m in (ours, theirs)
        )
        assert mine <= other * (1 + 1e-6)
        assert mine >= other * (1 - 1e-4)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("name", NUMBERS)
def test_squares(name: str, alpha: float) -> None:
    X, y = NUMBERS[name]()
    ours = adaspdc.Ridge(alpha, tol=1e-12).fit(X, y)
    theirs = linear_model.Ridge(alpha, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6 * np.std(y))
    alpha *= 0.01 * np.std(y)
    lasso = adaspdc.ElasticNet(alpha, l1_ratio=0.9, tol=1e-12).fit(X, y)
    other = linear_model.ElasticNet(alpha, l1_ratio=0.9, tol=1e-13, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(lasso.predict(X), other.predict(X), atol=1e-5 * np.std(y))
    assert lasso.dual_gap_ <= lasso.result_.tol


@pytest.mark.parametrize("positive", [False, True])
def test_lasso_needs_no_ridge(positive: bool) -> None:
    X, y = NUMBERS["diabetes"]()
    options: dict[str, Any] = {"alpha": 0.3, "positive": positive}
    ours = adaspdc.ElasticNet(l1_ratio=1.0, tol=1e-10, **options).fit(X, y)
    theirs = linear_model.Lasso(tol=1e-12, max_iter=100_000, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_array_equal(ours.coef_ == 0.0, theirs.coef_ == 0.0)


def test_several_targets() -> None:
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, X[:, 0] * 100.0, np.sqrt(y)])
    ours = adaspdc.Ridge([1.0, 2.0, 3.0], tol=1e-12).fit(X, Y)
    theirs = linear_model.Ridge([1.0, 2.0, 3.0]).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
    together = adaspdc.Ridge(2.0, tol=1e-13).fit(X, Y)
    np.testing.assert_allclose(together.coef_[1], ours.coef_[1], atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("name", NUMBERS)
def test_quantile_regressor(name: str, alpha: float) -> None:
    X, y = NUMBERS[name]()
    if alpha == 0.0 and name == "wide":
        pytest.skip("n < d without a penalty: nothing to compare")
    quantiles = [0.1, 0.5, 0.8]
    ours = adaspdc.QuantileRegressor(quantile=quantiles, alpha=alpha, tol=1e-8).fit(X, y)
    for q, w, b, gap in zip(quantiles, ours.coef_, ours.intercept_, ours.dual_gap_, strict=True):
        theirs = linear_model.QuantileRegressor(quantile=q, alpha=alpha).fit(X, y)
        mine, other = (
            np.mean(np.maximum(q * r, (q - 1) * r)) + alpha * np.abs(x).sum()
            for r, x in ((y - X @ w - b, w), (y - theirs.predict(X), theirs.coef_))
        )
        assert mine <= other + gap + 1e-9 * np.std(y)
        assert gap <= 1e-8 * np.std(y) * 3


@pytest.mark.parametrize("epsilon", [1.1, 1.35])
@pytest.mark.parametrize("name", ["diabetes", "wine", "outliers"])
def test_huber_regressor(name: str, epsilon: float) -> None:
    X, y = NUMBERS[name]()
    ours = adaspdc.HuberRegressor(epsilon=epsilon, alpha=0.1).fit(X, y)
    theirs = linear_model.HuberRegressor(epsilon=epsilon, alpha=0.1, max_iter=100_000, tol=1e-9)
    theirs.fit(X, y)

    def objective(m: Any) -> float:
        z = np.abs(y - m.predict(X)) / m.scale_
        loss = np.where(z <= epsilon, z * z, 2 * epsilon * z - epsilon**2)
        return float(m.scale_ * (len(y) + loss.sum()) + 0.1 * m.coef_ @ m.coef_)

    assert objective(ours) <= objective(theirs) * (1 + 1e-9)
    assert objective(ours) == pytest.approx(ours.result_.primal * len(y), rel=1e-9)
    assert objective(theirs) >= ours.result_.dual * len(y)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("name", ["diabetes", "iris", "wine"])
def test_linear_svr(name: str, epsilon: float) -> None:
    X, y = NUMBERS[name]()
    ours = adaspdc.LinearSVR(epsilon=epsilon, tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = svm.LinearSVR(epsilon=epsilon, tol=1e-8, max_iter=200_000, random_state=0)
        theirs.fit(X, y)

    def objective(m: Any) -> float:
        excess = np.maximum(np.abs(y - m.predict(X)) - epsilon, 0.0).sum()
        return float(0.5 * (m.coef_ @ m.coef_ + np.sum(m.intercept_**2)) + excess)

    assert objective(ours) <= objective(theirs) * (1 + 1e-6)


@pytest.mark.parametrize("C", STRENGTHS)
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("name", NUMBERS)
def test_linear_svr_with_the_squared_loss(name: str, epsilon: float, C: float) -> None:
    X, y = NUMBERS[name]()
    X, y = np.asarray(X), (y - y.mean()) / y.std()  # liblinear's stopping rule is not scaled
    options: dict[str, Any] = {"loss": "squared_epsilon_insensitive", "epsilon": epsilon, "C": C}
    ours = adaspdc.LinearSVR(tol=1e-10, **options).fit(X, y)
    theirs = svm.LinearSVR(tol=1e-12, max_iter=200_000, dual=False, **options).fit(X, y)
    scale = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6 * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6 * scale)
    assert ours.dual_gap_ <= ours.result_.tol


def test_linear_svr_with_the_squared_loss_and_a_free_intercept() -> None:
    """Free of the penalty, the intercept takes any shift of the targets."""
    X, y = NUMBERS["diabetes"]()
    options: dict[str, Any] = {"loss": "squared_epsilon_insensitive", "epsilon": 20.0, "tol": 1e-10}
    free = adaspdc.LinearSVR(intercept_scaling=None, **options).fit(X, y)
    moved = adaspdc.LinearSVR(intercept_scaling=None, **options).fit(X, y + 1e4)
    np.testing.assert_allclose(moved.coef_, free.coef_, rtol=1e-6)
    assert moved.intercept_ == pytest.approx(free.intercept_ + 1e4, rel=1e-9)
    over = np.abs(y - free.predict(X)) - 20.0
    slope = np.sign(y - free.predict(X)) * np.maximum(over, 0.0)
    assert abs(slope.sum()) <= 1e-6 * np.abs(slope).sum()


def test_hinge_is_the_limit_of_the_smoothed_ones() -> None:
    X, y = CLASSES["unbalanced"]()
    exact = adaspdc.LinearSVC(loss="hinge", intercept_scaling=None, tol=1e-9).fit(X, y)
    distance = [
        np.abs(
            adaspdc.LinearSVC(loss="smooth_hinge", gamma=g, intercept_scaling=None, tol=1e-10)
            .fit(X, y)
            .decision_function(X)
            - exact.decision_function(X)
        ).max()
        for g in (1.0, 0.1, 0.001)
    ]
    assert distance[0] > distance[1] > distance[2]
    assert distance[2] < 0.05


def test_cross_validation_chooses_alike() -> None:
    X, y = CLASSES["wine"]()
    grid = [1e-3, 1e-1, 10.0]
    ours = adaspdc.LogisticRegressionCV(Cs=grid, cv=3, scoring="neg_log_loss").fit(X, y)
    for k, C in enumerate(grid):
        for fold, (train, test) in enumerate(ours._splitter(y).split(X, y)):
            theirs = linear_model.LogisticRegression(C=C, tol=1e-8, max_iter=5000)
            theirs.fit(X[train], y[train])
            mine = ours.scores_[fold, 0, k]
            loss = -theirs.predict_log_proba(X[test])[np.arange(test.size), y[test]].mean()
            assert mine == pytest.approx(-loss, abs=1e-3)
    assert grid[int(ours.scores_.mean(axis=0)[0].argmax())] == ours.C_
    assert ours.coefs_paths_.shape == (3, 1, 3, 3, 14)
