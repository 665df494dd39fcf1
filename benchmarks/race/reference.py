"""The optimum of a cell, by a solver of the harness's own: Newton's method with a certified bound.

It is never timed. What any peer finds below it replaces it when the verdict is made.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from .objective import Problem

_DIRECT = 4_000
"""Up to so many columns the Hessian is formed."""
_BLOCK = 20_000
"""Rows of a dense Hessian summed at a time."""


@dataclass(frozen=True)
class Optimum:
    """The least value seen, the greatest lower bound, and what it took."""

    value: float
    bound: float
    seconds: float
    steps: int


def find_optimum(problem: Problem, seconds: float, tol: float = 1e-13) -> Optimum:
    """Damped Newton until the gap is ``tol * P(0)``, time is up, or float64 is exhausted."""
    begun = perf_counter()
    x, z = np.zeros(problem.d), np.zeros(problem.n)
    value = problem.value_at_zero()
    best, bound, steps = value, -np.inf, 0
    while perf_counter() - begun < seconds:
        y = problem.slope(z)
        bound = max(bound, problem.bound(y))
        if best - bound <= tol * problem.value_at_zero():
            break
        gradient = np.asarray(problem.X.T @ y).ravel() / problem.n + problem.lam * x
        step = _direction(problem, z, gradient)
        moved = _search(problem, x, z, value, step, float(gradient @ step))
        if moved is None:
            break
        x, z, value = moved
        best, steps = min(best, value), steps + 1
    return Optimum(best, bound, perf_counter() - begun, steps)


def _search(
    problem: Problem, x: Any, z: Any, value: float, step: Any, slope: float
) -> tuple[Any, Any, float] | None:
    dz, size = problem.X @ step, 1.0
    while size > 1e-9:
        x_new, z_new = x + size * step, z + size * dz
        new = problem.value(x_new, z_new)
        if new < value and new <= value + 1e-4 * size * slope:
            return x_new, problem.X @ x_new, new
        size *= 0.5
    return None


def _direction(problem: Problem, z: Any, gradient: Any) -> Any:
    weights = problem.loss.curvature(z, problem.b) / problem.n
    if problem.d <= _DIRECT:
        hessian = _gram(problem.X, weights)
        ridge = problem.lam
        while True:
            hessian[np.diag_indices(problem.d)] += ridge
            try:
                return -linalg.solve(hessian, gradient, assume_a="pos")
            except linalg.LinAlgError:
                ridge = max(ridge, 1e-14 * np.trace(hessian) / problem.d) * 10
    X, lam = problem.X, problem.lam
    diagonal = np.asarray(X.multiply(X).T @ weights).ravel() + lam
    hessian = LinearOperator(
        (problem.d, problem.d), matvec=lambda v: X.T @ (weights * (X @ v)) + lam * v, dtype=float
    )
    inverse = LinearOperator(hessian.shape, matvec=lambda v: v / diagonal, dtype=float)
    forcing = min(0.1, float(np.sqrt(np.linalg.norm(gradient))))
    step, _ = cg(hessian, -gradient, rtol=forcing, maxiter=1_000, M=inverse)
    return step


def _gram(X: Any, weights: Any) -> Any:
    active = np.flatnonzero(weights)
    if sparse.issparse(X) and X.nnz < 0.05 * X.shape[0] * X.shape[1]:
        rows = X[active]
        return (rows.T @ rows.multiply(weights[active][:, None]).tocsr()).toarray()
    total = np.zeros((X.shape[1], X.shape[1]))
    for begin in range(0, active.size, _BLOCK):
        part = active[begin : begin + _BLOCK]
        rows = X[part].toarray() if sparse.issparse(X) else X[part]
        rows = rows * np.sqrt(weights[part])[:, None]
        total += rows.T @ rows
    return total
