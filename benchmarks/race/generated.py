"""Generated data: the paper's ridge problem, and matrices shaped like sets that are not free."""

from typing import Any

import numpy as np
from scipy import sparse

Data = tuple[Any, np.ndarray]


def paper_ridge(n: int = 1000, d: int = 1000, seed: int = 0) -> Data:
    """Rows N(0, S) with S_jj = 1/j^2, targets <a, 1> + N(0, 1): Figure 1 of the paper."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    return X, X.sum(axis=1) + rng.standard_normal(n)


def text(n: int, d: int, per_row: int, seed: int, spread: float = 0.5) -> Data:
    """Unit rows with about ``per_row`` entries; the j-th column appears as j^(-2/3)."""
    rng = np.random.default_rng(seed)
    counts = np.maximum(rng.poisson(per_row, n), 1)
    columns = (d * rng.random(counts.sum()) ** 3).astype(np.int64)
    rows = np.repeat(np.arange(n), counts)
    values = np.exp(spread * rng.standard_normal(columns.size))
    X = sparse.csr_matrix((values, (rows, columns)), shape=(n, d))  # sums what is drawn twice
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X, _labels(X, rng, noise=0.3)


def url(n: int, d: int, per_row: int, seed: int) -> Data:
    """As ``text``, but 0/1 entries, as most of url's are."""
    X, b = text(n, d, per_row, seed, spread=0.0)
    X.data[:] = 1.0
    return X, b


def correlated(n: int, d: int, seed: int, rank: int = 10) -> Data:
    """Dense features that share ``rank`` hidden causes, of unequal scale: physics measurements."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(rank)
    X += 0.5 * rng.standard_normal((n, d))
    X *= np.exp(rng.standard_normal(d))
    return X, _labels(X / X.std(axis=0), rng, noise=2.0)


def _labels(X: Any, rng: np.random.Generator, noise: float) -> np.ndarray:
    score = np.asarray(X @ rng.standard_normal(X.shape[1])).ravel()
    score += noise * score.std() * rng.standard_normal(score.size)
    labels: np.ndarray = np.where(score > np.median(score), 1.0, -1.0)
    return labels
