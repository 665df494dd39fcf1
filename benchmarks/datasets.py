"""The matrices that are measured: one real, the others generated from fixed seeds."""

import io
import lzma
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Dataset:
    """A matrix with labels -1/+1 and a name that says where it comes from."""

    name: str
    X: Any
    y: np.ndarray

    @property
    def entries(self) -> int:
        """Stored numbers."""
        return int(self.X.nnz) if sparse.issparse(self.X) else int(self.X.size)


def w8a(quick: bool) -> Dataset:
    """LIBSVM's w8a with a column of ones, or a generated matrix of its shape."""
    folder = os.environ.get("ADASPDC_DATA")
    path = Path(folder or ".") / "w8a.xz"
    if quick or not folder or not path.is_file():
        rows = 2_000 if quick else 49_749
        X = _power_law(rows, 300, 0.0388, seed=1)
        X.data[:] = 1.0
        return Dataset("w8a stand-in", _with_bias(X), _labels(X, seed=2))
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(lzma.decompress(path.read_bytes())), n_features=300)
    return Dataset("w8a", _with_bias(X), y)


def text_like(quick: bool) -> Dataset:
    """20,242 x 47,236 (RCV1's shape), 0.16 % dense: power-law columns, rows of norm 1."""
    n, d = (1_000, 4_000) if quick else (20_242, 47_236)
    X = _power_law(n, d, 0.0016, seed=3)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(X.indptr))
    return Dataset("text-like", X, _labels(X, seed=4))


def dense(quick: bool, n: int = 50_000, d: int = 78) -> Dataset:
    """Independent normal entries."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n // 25 if quick else n, d))
    return Dataset("dense", X, _labels(X, seed=6))


def _power_law(n: int, d: int, density: float, seed: int) -> sparse.csr_matrix:
    """The j-th most frequent column appears as j^(-2/3); frequent columns stand anywhere."""
    rng = np.random.default_rng(seed)
    wanted = round(n * d * density)
    place = rng.permutation(d)
    keys = np.zeros(0, dtype=np.int64)
    while keys.size < wanted:  # repeated pairs are dropped, so draw until enough are left
        size = 2 * (wanted - keys.size) + 100
        columns = place[(d * rng.random(size) ** 3).astype(np.int64)]
        keys = np.union1d(keys, rng.integers(n, size=size) * d + columns)
    keys = np.sort(rng.choice(keys, wanted, replace=False))
    values = rng.exponential(size=wanted) + 0.1
    return sparse.csr_matrix((values, (keys // d, keys % d)), shape=(n, d))


def _labels(X: Any, seed: int) -> np.ndarray:
    """Labels that a hyperplane explains in part."""
    rng = np.random.default_rng(seed)
    score = np.asarray(X @ rng.standard_normal(X.shape[1]))
    labels: np.ndarray = np.where(
        score + score.std() * rng.standard_normal(score.size) > 0, 1.0, -1.0
    )
    return labels


def _with_bias(X: Any) -> Any:
    return sparse.csr_matrix(sparse.hstack([X, np.ones((X.shape[0], 1))]))
