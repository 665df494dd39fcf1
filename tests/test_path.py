"""Several values of lam, one after the other."""

import numpy as np
import pytest
from scipy import sparse

import adaspdc
import builders
from adaspdc import ERM, losses, path, regularizers, solve

LAMBDAS = [1e-4, 1e-1, 1e-6, 1e-2]


@pytest.mark.parametrize("regularizer", ["l2", "elastic net", "box"])
def test_every_result_is_that_of_its_own_lam(regularizer: str) -> None:
    problem = builders.erm("logistic", regularizer).problem
    results = path(problem, LAMBDAS, tol=1e-8)
    make = builders.REGULARIZERS[regularizer][0]
    for lam, result in zip(LAMBDAS, results, strict=True):
        alone = solve(ERM(problem.rows, problem.target, losses.Logistic(), make(lam)), tol=1e-8)
        assert result.converged
        assert abs(result.primal - alone.primal) <= max(result.gap, alone.gap) + 1e-15


def test_a_path_takes_fewer_passes_than_its_parts() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = np.sign(X @ rng.normal(size=20) + rng.normal(size=500))
    problem = ERM(X, y, losses.Logistic(), regularizers.L2(1.0))
    lambdas = np.geomspace(1e-2, 1e-7, 12)
    together = sum(result.passes for result in path(problem, lambdas))
    assert together < 0.7 * sum(solve(problem.at_lam(lam)).passes for lam in lambdas)


def test_the_problem_keeps_its_own_lam() -> None:
    problem = builders.erm("squared", lam=0.5).problem
    path(problem, [0.1])
    assert problem.regularizer.lam == 0.5


def test_a_saddle_point_has_a_path_too() -> None:
    problem = builders.saddle_point().problem
    results = path(problem, [1e-1, 1e-2], tol=1e-6)
    assert all(result.converged for result in results)
    assert results[1].primal < results[0].primal


def test_stopping_leaves_out_the_rest() -> None:
    problem = builders.erm("logistic").problem
    with pytest.warns(adaspdc.ConvergenceWarning, match="stopped by the callback"):
        results = path(problem, [1e-1, 1e-2, 1e-3], tol=0.0, callback=lambda now: True)
    assert len(results) == 1


@pytest.mark.parametrize("lambdas", [[0.0], [1.0, -1.0], [np.nan]])
def test_bad_values_are_refused_before_anything_is_solved(lambdas: list[float]) -> None:
    with pytest.raises(ValueError, match="lam"):
        path(builders.erm("squared").problem, lambdas)


@pytest.mark.parametrize("loss", ["logistic", "smooth hinge", "multinomial"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_is_carried_along_changes_nothing_but_the_time(loss: str, n_threads: int) -> None:
    """Up and down, the same lam twice, with an intercept: each is the optimum of its own lam."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 6)) * 10.0 ** rng.uniform(-1, 1, 6)
    scores = X @ rng.normal(size=(6, 3)) + rng.normal(size=(400, 3))
    y = scores.argmax(axis=1) if loss == "multinomial" else np.sign(scores[:, 0])
    public = builders.LOSSES[loss][0]
    problem = ERM(X, y, public, regularizers.L2(1.0), intercept=True)
    lambdas = [1e-3, 1e-5, 1e-3, 1e-1, 1e-6]
    results = path(problem, lambdas, tol=1e-9, n_threads=n_threads)
    for lam, result in zip(lambdas, results, strict=True):
        alone = solve(problem.at_lam(lam), tol=1e-9)
        assert result.converged
        assert abs(result.primal - alone.primal) <= 2e-9 * np.log(3.0)
        assert result.events == alone.events[:1]


def test_a_path_of_text_carries_the_balance_along() -> None:
    rng = np.random.default_rng(3)
    X = sparse.random_array((300, 7000), density=0.004, format="csr", rng=rng)
    y = np.where(rng.random(300) < 0.5, 1, -1)
    problem = ERM(X, y, losses.SmoothHinge(), regularizers.L2(1))
    results = path(problem, [1e-1, 1e-2, 1e-3], tol=1e-8)
    assert all(result.converged for result in results)
    assert results[-1].events[0].startswith("SPDHG with steps by column")
