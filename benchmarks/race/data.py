"""The data sets by name: real ones from the folder in ``ADASPDC_DATA``, and generated ones.

Every set gets a column of ones at the end (the bias, regularised like the rest, as in the paper).
Parsed sets are kept as .npz in the work folder, so that a process per peer loads them at once.
"""

import io
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from . import generated

Data = tuple[Any, np.ndarray]


class NoData(Exception):
    """The file of a real set is not there."""


@dataclass(frozen=True)
class Source:
    """Where a set comes from, in words for the page, and how it is made."""

    words: str
    make: Callable[[], Data]
    classifies: bool = True
    dense: bool = False
    small: bool = False
    """Belongs to ``--quick``."""


def _svmlight(name: str, columns: int | None = None) -> Data:
    folder = os.environ.get("ADASPDC_DATA")
    path = Path(folder or ".") / f"{name}.xz"
    if not folder or not path.is_file():
        raise NoData(f"{name}.xz is not in the folder that ADASPDC_DATA names ({folder})")
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(lzma.decompress(path.read_bytes())), n_features=columns)
    return X, y


def _two_classes(name: str, columns: int | None = None) -> Callable[[], Data]:
    def make() -> Data:
        X, y = _svmlight(name, columns)
        return X, np.where(y > y.min(), 1.0, -1.0)

    return make


def _news20() -> Data:
    X, y = _svmlight("news20")
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(X.indptr))
    return X, np.where(y <= 10, 1.0, -1.0)


def _mnist() -> Data:
    X, y = _svmlight("mnist")
    X.data /= 255.0
    return X, np.where(y == 8, 1.0, -1.0)


def _protein_scaled() -> Data:
    X, b = _two_classes("protein_bio_train")()
    X = X.toarray()
    norms = np.sqrt((X * X).mean(axis=0))
    return X / np.where(norms > 0, norms, 1.0), b


def _protein() -> Data:
    X, b = _two_classes("protein_bio_train")()
    return X.toarray(), b


def _casp() -> Data:
    X, y = _svmlight("uci_casp")
    return X.toarray(), y


SOURCES = {
    "w8a": Source("LIBSVM w8a", _two_classes("w8a", 300)),
    "ijcnn1": Source("LIBSVM ijcnn1", _two_classes("ijcnn1", 22)),
    "news20": Source("LIBSVM news20, classes 1-10 against 11-20, unit rows", _news20),
    "covtype": Source(
        "covtype, columns scaled to [0, 1]", _two_classes("covtype.libsvm.binary.scale", 54)
    ),
    "covtype-raw": Source("covtype as it is", _two_classes("covtype.libsvm.binary", 54)),
    "protein": Source("KDD Cup 2004 protein, columns scaled to mean square 1", _protein_scaled),
    "protein-raw": Source("KDD Cup 2004 protein as it is", _protein),
    "mnist": Source("MNIST, 8 against the rest, pixels in [0, 1]", _mnist),
    "casp": Source("UCI CASP (regression)", _casp, classifies=False),
    "ridge": Source(
        "generated: the paper's ridge problem, n = d = 1000", generated.paper_ridge, False
    ),
    "rcv1-like": Source(
        "generated, shape of rcv1: 20,242 x 47,236", lambda: generated.text(20_242, 47_236, 74, 11)
    ),
    "quantum-like": Source(
        "generated, shape of quantum: 50,000 x 78", lambda: generated.correlated(50_000, 78, 12)
    ),
    "url-like": Source(
        "generated, url's row length at 1/40 of its size: 60,000 x 80,000",
        lambda: generated.url(60_000, 80_000, 115, 13),
    ),
    "tiny-sparse": Source(
        "generated, 600 x 300", lambda: generated.text(600, 300, 12, 14), small=True
    ),
    "tiny-dense": Source(
        "generated, 500 x 12", lambda: generated.correlated(500, 12, 15), small=True
    ),
    "tiny-ridge": Source(
        "generated, 200 x 40", lambda: generated.paper_ridge(200, 40, 16), False, small=True
    ),
}


def load(name: str, work: Path) -> Data:
    """Rows with the column of ones, dense or CSR with int32 indices, float64; and targets."""
    path = work / "data" / f"{name}.npz"
    if not path.exists():
        X, b = _with_bias(SOURCES[name].make())
        _save(path, X, b)
    with np.load(path) as file:
        if "X" in file:
            return file["X"], file["b"]
        arrays = file["data"], file["indices"], file["indptr"]
        return sparse.csr_matrix(arrays, shape=tuple(file["shape"])), file["b"]


def _with_bias(data: Data) -> Data:
    X, b = data
    ones = np.ones((X.shape[0], 1))
    if not sparse.issparse(X):
        return np.ascontiguousarray(np.hstack([X, ones])), b.astype(float)
    X = sparse.csr_matrix(sparse.hstack([X, ones]), dtype=np.float64)
    X.sort_indices()
    return X, b.astype(float)


def _save(path: Path, X: Any, b: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
    if sparse.issparse(X):
        np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, b=b)
    else:
        np.savez(part, X=X, b=b)
    part.replace(path)
