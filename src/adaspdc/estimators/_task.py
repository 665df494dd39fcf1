"""What an estimator wants minimised, in the scaling of the paper: mean loss + penalty.

    sum_i m_i phi(<a_i, x> + b; t_i) + lam/2 |x|^2 + l1 |x|_1,    sum_i m_i = 1.

Unlike an `ERM`, a task may have a loss with corners (`Corner`), and ``lam`` may be zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .._containers import Separable
from .._rows import Rows, as_rows
from ..losses import Loss, SmoothEpsilonInsensitive, SmoothHinge, SmoothPinball
from ..regularizers import L2, ElasticNet, NonNegative, Regularizer

Array = Any
"""An ndarray of float64, which NumPy's stubs lose sight of in most operations."""
_BLOCK_ENTRIES = 1 << 22
"""Entries of a matrix that a product converts at a time."""
_RANK = 1e-14
"""Eigenvalues below this share of the largest are rounding."""


class Corner(Protocol):
    """A loss without a derivative everywhere; ``smooth(gamma)`` rounds its corners."""

    kind: str

    def value(self, z: Array, target: Array) -> Array:
        """phi(z), per row."""

    def conjugate(self, y: Array, target: Array) -> Array:
        """phi*(y) inside its domain."""

    def smooth(self, gamma: float) -> Loss:
        """The loss with its corners rounded: its conjugate has gamma/2 y^2 more."""


@dataclass(frozen=True)
class Pinball:
    """q max(b - z, 0) + (1 - q) max(z - b, 0)."""

    quantile: float
    kind = "regression"

    def value(self, z: Array, target: Array) -> Array:
        short: Array = np.subtract(target, z)
        return np.maximum(self.quantile * short, (self.quantile - 1.0) * short)

    def conjugate(self, y: Array, target: Array) -> Array:
        return np.multiply(target, y)

    def smooth(self, gamma: float) -> Loss:
        return SmoothPinball(self.quantile, gamma)


@dataclass(frozen=True)
class EpsilonInsensitive:
    """max(abs(z - b) - epsilon, 0)."""

    epsilon: float
    kind = "regression"

    def value(self, z: Array, target: Array) -> Array:
        return np.maximum(np.abs(z - target) - self.epsilon, 0.0)

    def conjugate(self, y: Array, target: Array) -> Array:
        return target * y + self.epsilon * np.abs(y)

    def smooth(self, gamma: float) -> Loss:
        return SmoothEpsilonInsensitive(self.epsilon, gamma)


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - bz), b = -1 or +1."""

    kind = "binary"

    def value(self, z: Array, target: Array) -> Array:
        return np.maximum(0.0, 1.0 - target * z)

    def conjugate(self, y: Array, target: Array) -> Array:
        return np.multiply(target, y)

    def smooth(self, gamma: float) -> Loss:
        return SmoothHinge(gamma)


@dataclass(frozen=True)
class Penalty:
    """``lam/2 |x|^2 + l1 |x|_1``, on x >= 0 if ``positive``."""

    lam: float
    l1: float = 0.0
    positive: bool = False

    def regularizer(self, lam: float | None = None) -> Regularizer:
        """The term as the solver takes it, with ``lam`` in the place of a zero."""
        lam = self.lam if lam is None else lam
        if not self.positive:
            return ElasticNet(lam, self.l1) if self.l1 else L2(lam)
        return PositiveElasticNet(lam, self.l1) if self.l1 else NonNegative(lam)

    def value(self, x: Array) -> float:
        """Of coefficients inside the domain."""
        return 0.5 * self.lam * float(np.vdot(x, x)) + self.l1 * float(np.abs(x).sum())


@dataclass(frozen=True)
class PositiveElasticNet(ElasticNet):
    """``lam/2 |x|^2 + l1 sum_j x_j`` where every coefficient is zero or positive."""

    def kernel(self, dimension: int, n_outputs: int = 1) -> Separable:
        return Separable(self.lam, self.l1, np.zeros(1), np.array([np.inf]), stride=0)


@dataclass(frozen=True)
class Task:
    """One minimisation; ``target`` is what ``loss`` takes: numbers, -1/+1, or class indices."""

    X: Any
    target: Array
    loss: Loss | Corner
    penalty: Penalty | Regularizer
    weight: Array | None
    intercept: bool
    n_outputs: int = 1

    @cached_property
    def rows(self) -> Rows:
        """The matrix as the solver takes it, checked once."""
        return as_rows(self.X)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def share(self) -> Array:
        """The m_i."""
        if self.weight is None:
            return np.full(self.n, 1.0 / self.n)
        scaled: Array = self.weight / self.weight.max()
        return scaled / scaled.sum()

    @cached_property
    def span(self) -> tuple[Array, Array]:
        """Mean of the columns, zero without an intercept, and inverse of their covariance there.

        For features that depend on each other the pseudo-inverse.
        """
        mean = self.pull(np.ones(self.n)) if self.intercept else np.zeros(self.d)
        values, vectors = np.linalg.eigh(_gram(self.X, self.share) - np.outer(mean, mean))
        kept = values > _RANK * values[-1]
        return mean, (vectors[:, kept] / values[kept]) @ vectors[:, kept].T

    @property
    def smooth(self) -> bool:
        """Whether the solver can take the loss as it is."""
        return isinstance(self.loss, Loss)

    @property
    def coef_shape(self) -> tuple[int, ...]:
        """Shape of x in an `ERM`."""
        return (self.d, self.n_outputs) if self.vector else (self.d,)

    @property
    def vector(self) -> bool:
        """Whether the loss is one of several outputs."""
        return self.loss.kind in ("multiclass", "multioutput")

    def with_loss(self, loss: Loss | Corner, penalty: Penalty | None = None) -> Task:
        """The same data, another loss (and penalty); keeps the checked matrix."""
        other = replace(self, loss=loss, penalty=penalty or self.penalty)
        for name in ("rows", "share", "span"):
            if name in self.__dict__:
                object.__setattr__(other, name, getattr(self, name))
        return other

    def scores(self, x: Array, b: Any) -> Array:
        """``<a_i, x> + b`` of every row."""
        return times(self.X, x) + b

    def pull(self, y: Array) -> Array:
        """``sum_i m_i a_i y_i``."""
        return times_transposed(self.X, (y.T * self.share).T)

    def mean_loss(self, z: Array) -> float:
        """``sum_i m_i phi(z_i)``."""
        return float(self.share @ self.loss.value(z, self.target))


def times(X: Any, x: Array) -> Array:
    """``X x`` in double precision; single-precision rows are converted block by block."""
    if X.dtype == np.float64 or not isinstance(X, np.ndarray):
        return np.asarray(X @ x)
    out = np.empty((X.shape[0], *x.shape[1:]))
    for a, b in _row_blocks(X):
        np.matmul(X[a:b].astype(np.float64), x, out=out[a:b])
    return out


def times_transposed(X: Any, y: Array) -> Array:
    """``X^T y`` in double precision."""
    if X.dtype == np.float64 or not isinstance(X, np.ndarray):
        return np.asarray(X.T @ y)
    out = np.zeros((X.shape[1], *y.shape[1:]))
    for a, b in _row_blocks(X):
        out += X[a:b].astype(np.float64).T @ y[a:b]
    return out


def _gram(X: Any, share: Array) -> Array:
    """``sum_i m_i a_i a_i^T``."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for a, b in _row_blocks(X):
        block = X[a:b].toarray() if hasattr(X, "toarray") else X[a:b]
        block = block.astype(np.float64, copy=False)
        total += block.T @ (block * share[a:b, None])
    return total


def _row_blocks(X: Array) -> list[tuple[int, int]]:
    size = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    return [(a, min(a + size, X.shape[0])) for a in range(0, X.shape[0], size)]
