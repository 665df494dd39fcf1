"""The self-tuned SPDHG: its kernel against the recursion written out, its steps, its guards."""

from math import log
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adaspdc import ERM, losses, regularizers, solve
from adaspdc._kernels.metric import column_squares, metric_rows, row_squares
from adaspdc._tuned import TunedSpdhg, _classes, suits
from adaspdc.result import ConvergenceWarning
from adaspdc.steps import spdhg, spdhg_probabilities
from naive import Array

LAM = 1e-3


def rows(n: int, d: int, seed: int = 0) -> Array:
    """Sparse rows whose columns differ by decades."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3) * 10.0 ** rng.uniform(-2, 1, d)
    X[0] = 0.0
    return X


def labels(X: Array) -> Array:
    rng = np.random.default_rng(7)
    return np.where(X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0]) > 0, 1.0, -1.0)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_kernel_is_the_recursion(dense: bool, weighted: bool) -> None:
    n, d, classes = 30, 12, 3
    rng = np.random.default_rng(1)
    X, b = rows(n, d), rng.normal(size=n)
    s = rng.integers(1, 4, size=n).astype(float) if weighted else None
    data: Any = X if dense else sparse.csr_array(X)
    flat = ERM(data, b, losses.Squared(), regularizers.L2(LAM), s).flatten()
    mass = np.broadcast_to(flat.blocks.mass, n)
    count = float(flat.blocks.n)
    kind = rng.integers(0, classes, size=d).astype(np.uint8)
    tau, theta = np.array([0.3, 2.0, 0.05]), 0.9
    sigma, weight = rng.uniform(0.1, 2.0, n), rng.uniform(0.5, 2.0, n) / n
    order = rng.integers(0, n, size=300).astype(np.uint32)

    x, y = rng.normal(size=d), rng.normal(size=n)
    w = -(X.T @ (mass * y)) / count / LAM
    pair = np.concatenate([w, x - w]) if dense else np.column_stack([w, x - w]).ravel()
    own, scale = y.copy(), np.ones(classes)
    metric_rows(
        flat.blocks, flat.loss, LAM, order, sigma, weight, tau, theta, own, pair, kind, scale
    )

    step, r, q = tau[kind], X.T @ (mass * y) / count, np.zeros(d)
    for i in order:
        x = (x - step * (r + q)) / (1.0 + LAM * step)
        new = (y[i] + sigma[i] * (X[i] @ x - b[i])) / (1.0 + sigma[i])
        change = mass[i] * (new - y[i]) * X[i]
        y[i], r, q = new, r + change / count, theta * weight[i] * change
    w, e = (pair[:d], pair[d:]) if dense else (pair[::2], pair[1::2])
    np.testing.assert_allclose(own, y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(w, -r / LAM, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(w + scale[kind] * e, x - step * q, rtol=1e-9, atol=1e-9)


def test_scales_that_run_out_of_range_are_taken_into_e() -> None:
    n = 40
    X = rows(n, 6)
    flat = ERM(sparse.csr_array(X), np.ones(n), losses.Squared(), regularizers.L2(1.0)).flatten()
    kind, tau, scale = np.zeros(6, np.uint8), np.array([1e3]), np.ones(1)
    order = np.tile(np.arange(1, n, dtype=np.uint32), 5)
    pair, y = np.zeros(12), np.zeros(n)
    ones = np.ones(n)
    metric_rows(
        flat.blocks, flat.loss, 1.0, order, 0.1 * ones, ones / n, tau, 0.5, y, pair, kind, scale
    )
    assert scale[0] >= 1e-104
    assert np.isfinite(pair).all()
    assert np.isfinite(y).all()


@pytest.mark.parametrize("dense", [True, False])
def test_measures_are_sums_of_squares(dense: bool) -> None:
    X, s = rows(25, 8), np.arange(1.0, 26.0)
    data: Any = X if dense else sparse.csr_array(X)
    flat = ERM(data, np.ones(25), losses.Squared(), regularizers.L2(LAM), s).flatten()
    mass, factor = flat.blocks.mass, np.arange(1.0, 9.0)
    columns, by_row = np.empty(8), np.empty(25)
    column_squares(flat.blocks, flat.total, columns)
    row_squares(flat.blocks, factor, by_row)
    np.testing.assert_allclose(columns, mass @ X**2 / float(flat.blocks.n), rtol=1e-12)
    np.testing.assert_allclose(by_row, mass * (X**2 @ factor), rtol=1e-12)


def test_classes_are_few_and_shorten_steps_of_strong_columns() -> None:
    squares = 10.0 ** np.linspace(-40, 4, 200)
    kind, sizes = _classes(squares, 1.0, 1e-6)
    assert sizes.size <= 24
    assert np.array_equal(np.unique(kind), np.arange(sizes.size))
    assert (np.diff(sizes[kind]) <= 0).all()
    np.testing.assert_array_equal(np.log2(sizes), np.round(np.log2(sizes)))


def test_the_slowest_coordinate_bounds_theta() -> None:
    eso = np.array([1.0, 4.0, 0.5])
    chance = spdhg_probabilities(eso, 1.0, 0.1)
    even, uneven = (spdhg(eso, 1.0, 0.1, chance, slowest=slowest) for slowest in (1.0, 0.01))
    assert uneven.theta > even.theta
    assert uneven.theta >= 1.0 / (1.0 + 2.0 * 0.1 * 0.01 * uneven.tau)
    assert (uneven.theta * uneven.tau * uneven.sigma * eso <= 3.0 * chance * (1 + 1e-12)).all()


def wide(loss: losses.Loss = losses.SmoothHinge(), **options: Any) -> ERM:  # noqa: B008
    """Too many columns for Newton's method alone."""
    rng = np.random.default_rng(3)
    X = sparse.random_array((300, 7000), density=0.004, format="csr", rng=rng)
    X.data[:] = rng.normal(size=X.nnz)
    b = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    return ERM(X, b, loss, regularizers.L2(1e-3), **options)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothHinge(), losses.SquaredHinge()])
def test_auto_begins_with_it_on_wide_data(loss: losses.Loss) -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=300)
    problem = wide(loss, sample_weight=weights)
    result = solve(problem, tol=1e-8)
    assert result.events[0] == "SPDHG with steps by column and a tuned balance"
    again = solve(problem, "spdhg", tol=1e-8, max_passes=5000)
    assert result.primal - again.dual >= -1e-12
    assert again.primal - result.dual >= -1e-12


def test_a_wrong_balance_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = TunedSpdhg._measure
    for wrong in (1e6, 1e-6):

        def mistaken(self: TunedSpdhg, wrong: float = wrong) -> None:
            measure(self)
            self._log_balance = log(wrong)

        monkeypatch.setattr(TunedSpdhg, "_measure", mistaken)
        assert solve(wide(), tol=1e-8).converged


def test_a_poisoned_dual_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    visit, calls = TunedSpdhg._visit, []

    def poisoned(self: TunedSpdhg, order: Array) -> None:
        visit(self, order)
        calls.append(1)
        if len(calls) == 3:
            self._y[::7] = np.nan
            self._pair[::5] = np.inf

    monkeypatch.setattr(TunedSpdhg, "_visit", poisoned)
    result = solve(wide(), tol=1e-8)
    assert result.converged
    assert any("gave up" in event for event in result.events)


def test_what_it_takes() -> None:
    assert suits(wide().flatten())
    X = np.eye(3)
    assert not suits(ERM(X, [1.0, 2, 3], losses.Squared(), regularizers.ElasticNet(1, 1)).flatten())
    assert not suits(ERM(X, [0, 1, 2], losses.Multinomial(), regularizers.L2(1)).flatten())


def test_it_stops_where_it_is_told_to() -> None:
    with pytest.warns(ConvergenceWarning, match="max_passes=3"):
        assert solve(wide(), tol=0.0, max_passes=3).passes == pytest.approx(3.0)
