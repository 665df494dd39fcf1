"""The walks of Newton's method against matrices written out, and the pieces it is made of."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import builders
import naive
from adaspdc import ERM, losses, regularizers
from adaspdc._machine import Machine
from adaspdc._newton import by_rows
from adaspdc._newton._dual_factor import DualFactor
from adaspdc._newton._factor import Factor, Gram
from adaspdc._newton._intercept import centre
from adaspdc._newton._sample import curvature_sample, nested_samples, restricted
from adaspdc._newton._search import search
from adaspdc._newton._walks import Walks, walks_over
from adaspdc._threads import Threads
from naive import Array

LAM = 1e-2


def problem_and_matrix(
    loss: str, storage: str, intercept: bool, weighted: bool = True
) -> tuple[Any, Array, Array, list[naive.Loss]]:
    """The flat problem, its matrix with the column of ones, weights of the rows, naive losses."""
    rng = np.random.default_rng(5)
    X = builders.matrix(rng, holes=storage.startswith("csr"))
    public, name, params = builders.LOSSES[loss]
    t = builders.targets(rng, public)
    s = rng.integers(1, 4, size=builders.N).astype(float) if weighted else np.ones(builders.N)
    p = ERM(builders.STORAGES[storage](X), t, public, regularizers.L2(LAM), s, intercept)
    whole = np.column_stack([X, np.ones(builders.N)]) if intercept else X
    return p.flatten(), whole, s / s.sum(), [naive.Loss(name, target, params) for target in t]


def walks_for(flat: Any, n_threads: int = 1) -> Walks:
    problem = by_rows(flat)
    assert problem is not None
    return walks_over(problem, Threads(n_threads))


CASES = [
    (loss, storage, intercept)
    for loss in builders.LOSSES
    for storage, intercept in [("dense", True), ("float32", False), ("csr", True), ("csr64", False)]
]


@pytest.mark.parametrize(("loss", "storage", "intercept"), CASES)
def test_walks_are_the_products_they_stand_for(loss: str, storage: str, intercept: bool) -> None:
    flat, A, share, oracles = problem_and_matrix(loss, storage, intercept)
    walks, rng = walks_for(flat), np.random.default_rng(1)
    K = walks.outputs
    x, p = rng.normal(size=(2, A.shape[1], K))
    z, dz = A @ x, A @ p
    at, out = walks.expansion(), np.empty(z.size)

    walks.push(x.ravel(), out)
    np.testing.assert_allclose(out, z.ravel(), rtol=1e-12, atol=1e-12)
    value, slope, _ = walks.expand(z.ravel(), dz.ravel(), 0.5, at)
    ahead = z + 0.5 * dz
    slopes = np.array([naive.loss_derivative(o, v) for o, v in zip(oracles, ahead, strict=True)])
    values = [naive.loss_value(o, v) for o, v in zip(oracles, ahead, strict=True)]
    np.testing.assert_allclose(at.slope, slopes.ravel(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(value, share @ values, rtol=1e-12)
    np.testing.assert_allclose(slope, share @ (slopes * dz).sum(axis=1), rtol=1e-9)
    gradient = walks.pull(at.slope)
    np.testing.assert_allclose(gradient, (A.T @ (share[:, None] * slopes)).ravel(), atol=1e-12)


@pytest.mark.parametrize(("loss", "storage", "intercept"), CASES)
def test_curvature_is_the_derivative_of_the_gradient(
    loss: str, storage: str, intercept: bool
) -> None:
    """At margins drawn at random, hence away from kinks."""
    flat, A, share, oracles = problem_and_matrix(loss, storage, intercept)
    walks, rng, h = walks_for(flat), np.random.default_rng(2), 1e-6
    x, p = rng.normal(size=(2, A.shape[1], walks.outputs))
    z, dz, at = A @ x, A @ p, walks.expansion()

    def gradient(step: float) -> Array:
        pairs = zip(oracles, z + step * dz, strict=True)
        slopes = np.array([naive.loss_derivative(o, v) for o, v in pairs])
        return (A.T @ (share[:, None] * slopes)).ravel()

    expected = (gradient(h) - gradient(-h)) / (2 * h)
    _, _, bend = walks.expand(z.ravel(), dz.ravel(), 0.0, at)
    product = walks.curve(at, p.ravel(), np.zeros(z.size)).copy()
    np.testing.assert_allclose(product, expected, atol=1e-7)
    np.testing.assert_allclose(bend, expected @ p.ravel(), atol=1e-7)
    unit, columns = np.zeros(p.size), []
    for j in range(p.size):
        unit[:] = 0.0
        unit[j] = 1.0
        columns.append(walks.curve(at, unit, np.zeros(z.size)).copy())
    np.testing.assert_allclose(walks.diagonal(at), np.diag(np.array(columns)), atol=1e-12)


@pytest.mark.parametrize("storage", builders.STORAGES)
@pytest.mark.parametrize("intercept", [False, True])
def test_gram_matrix_both_ways(storage: str, intercept: bool) -> None:
    flat, A, _, _ = problem_and_matrix("squared", storage, intercept)
    gram = Gram(walks_for(flat), Machine())
    chosen = np.array([0, 2, 5, 6, 11], dtype=np.uint32)
    weight = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
    expected = (A[chosen].T * weight) @ A[chosen] / flat.count
    np.testing.assert_allclose(np.tril(gram._by_tiles(chosen, weight)), np.tril(expected))
    if storage.startswith("csr"):
        entries = np.tril(gram._by_entries(chosen, weight))
        np.testing.assert_allclose(entries, np.tril(expected), atol=1e-15)


def test_factor_solves_and_lifts_what_is_singular() -> None:
    rng = np.random.default_rng(0)
    B = rng.normal(size=(5, 3))
    b, shift = rng.normal(size=3), np.array([0.1, 0.2, 0.3])
    factor = Factor(np.tril(B.T @ B), shift)
    assert factor.exact
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(B.T @ B + np.diag(shift), b))
    singular = Factor(np.zeros((3, 3)), np.array([1.0, 1.0, 0.0]))
    assert not singular.exact
    assert np.isfinite(singular.solve(b)).all()


@pytest.mark.parametrize("storage", builders.STORAGES)
def test_dual_factor_is_the_inverse(storage: str) -> None:
    rng = np.random.default_rng(0)
    A = builders.matrix(rng, 5, 12, holes=storage.startswith("csr"))
    rows = ERM(
        builders.STORAGES[storage](A), np.ones(5), losses.Squared(), regularizers.L2(1.0)
    ).rows
    factor, b = DualFactor(rows.kernel, 12), rng.normal(size=12)
    for weight in (np.array([0.5, 0.0, 2.0, 1.0, 0.1]), np.zeros(5)):
        factor.renew(weight, 0.3)
        expected = np.linalg.solve((A.T * weight) @ A + 0.3 * np.eye(12), b)
        np.testing.assert_allclose(factor.solve(b), expected, rtol=1e-10)


@pytest.mark.parametrize("loss", builders.LOSSES)
def test_the_best_intercepts_leave_no_slope(loss: str) -> None:
    flat, A, share, oracles = problem_and_matrix(loss, "dense", True)
    walks = walks_for(flat)
    z = (A @ np.random.default_rng(3).normal(size=(A.shape[1], walks.outputs))).ravel()
    before, at = z.copy(), walks.expansion()
    moved = centre(walks, z, at)
    np.testing.assert_allclose(z - before, np.tile(moved, builders.N), atol=1e-12)
    by_row = z.reshape(builders.N, -1)
    slopes = np.array([naive.loss_derivative(o, v) for o, v in zip(oracles, by_row, strict=True)])
    np.testing.assert_allclose(at.slope.reshape(slopes.shape), slopes, atol=1e-12)
    assert np.abs(share @ slopes).max() <= 1e-15


def test_search_finds_the_minimum_of_a_convex_function() -> None:
    def quartic(step: float) -> tuple[float, float, float]:
        return (step - 3.0) ** 4, 4 * (step - 3.0) ** 3, 12 * (step - 3.0) ** 2

    value, slope, _ = quartic(0.0)
    step, at = search(quartic, value, slope)
    assert at == quartic(step)[0]
    assert abs(quartic(step)[1]) <= 0.3 * abs(slope)
    assert search(lambda s: (1.0 + s, 1.0, 0.0), 1.0, -1.0)[0] == 0.0


def test_sampled_curvature_is_right_on_average() -> None:
    rng = np.random.default_rng(0)
    weight = rng.pareto(1.5, size=1000)
    weight[:300] = 0.0
    totals, sizes = [], []
    for _ in range(400):
        chosen, own = curvature_sample(weight, 60, rng)
        assert (weight[chosen] > 0).all()
        totals.append(own.sum())
        sizes.append(chosen.size)
    assert abs(np.mean(sizes) - 60) < 3
    assert abs(np.mean(totals) / weight.sum() - 1) < 0.03


def test_samples_are_nested() -> None:
    samples = nested_samples(100_000, 5, np.random.default_rng(0))
    assert len(samples) > 1
    for order in samples:
        assert (np.diff(order.astype(int)) > 0).all()
    for smaller, larger in pairwise(samples):
        assert np.isin(smaller, larger).all()
        assert smaller.size < larger.size < 100_000
    assert nested_samples(100, 50, np.random.default_rng(0)) == []


@pytest.mark.parametrize(("loss", "storage", "intercept"), CASES)
def test_a_restricted_problem_takes_the_mean_over_its_rows(
    loss: str, storage: str, intercept: bool
) -> None:
    flat, A, share, oracles = problem_and_matrix(loss, storage, intercept)
    whole = by_rows(flat)
    assert whole is not None
    order = np.array([1, 2, 5, 11, 12], dtype=np.uint32)
    walks = walks_over(restricted(whole, order, Threads(1)), Threads(1))
    x = np.random.default_rng(3).normal(size=(A.shape[1], walks.outputs))
    z, at = np.empty(order.size * walks.outputs), walks.expansion()
    walks.push(x.ravel(), z)
    np.testing.assert_allclose(z, (A[order] @ x).ravel(), rtol=1e-12, atol=1e-12)
    value = walks.expand(z, np.zeros(z.size), 0.0, at)[0]
    by_row = z.reshape(order.size, -1)
    values = [naive.loss_value(oracles[i], v) for i, v in zip(order, by_row, strict=True)]
    boost = builders.N / order.size
    np.testing.assert_allclose(value, boost * share[order] @ values, rtol=1e-12)


def test_blocks_of_scalar_losses_are_cut_into_rows() -> None:
    pair = builders.saddle_point(mixed=False)
    flat = pair.problem.flatten()
    rows = by_rows(flat)
    assert rows is not None
    assert rows.total == flat.dual_size
    assert by_rows(builders.saddle_point(mixed=True).problem.flatten()) is None


def test_custom_losses_of_several_outputs_have_no_known_curvature() -> None:
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array(np.eye(4)), rng.normal(size=(4, 2))
    assert by_rows(ERM(X, y, losses.MultiOutputSquared(), regularizers.L2(1.0)).flatten())
