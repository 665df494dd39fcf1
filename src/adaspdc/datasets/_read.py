"""Reading a data set: svmlight text, or tables of numbers, packed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from ._registry import Dataset, DatasetError, find

_OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


@dataclass(frozen=True)
class Table:
    """A data set in memory: rows in compressed sparse form, labels -1 and +1, and its file."""

    X: Any
    y: np.ndarray
    path: Path

    @property
    def density(self) -> float:
        """The share of entries that are not zero."""
        rows, columns = self.X.shape
        return float(self.X.nnz / (rows * columns))


def read(
    dataset: str | Dataset, path: Path, rows: int | None = None, *, name: str | None = None
) -> Table:
    """Read a copy; a DatasetError tells of one that is damaged or of another shape.

    ``name`` says what the file is called where its path does not.
    """
    wanted, called = find(dataset), name or path.name
    try:
        if ".tar" in called or ".dat" in Path(called).suffixes or ".data" in Path(called).suffixes:
            X, labels = _numbers(wanted, path, called, rows)
        else:
            X, labels = _svmlight(wanted, path, called, rows)
    except (OSError, EOFError, ValueError, lzma.LZMAError, tarfile.TarError, KeyError) as error:
        raise DatasetError(
            f"{path} is no readable copy of {wanted.name} ({type(error).__name__}: {error}); "
            "remove it and try again"
        ) from None
    _check_shape(wanted, path, X, rows)
    return Table(X, np.where(labels == wanted.positive, 1.0, -1.0), path)


@contextmanager
def _opened(dataset: Dataset, path: Path, called: str) -> Iterator[IO[bytes]]:
    """The bytes inside, whatever they are packed in."""
    if ".tar" in called:
        with tarfile.open(path) as archive:
            assert dataset.member is not None, dataset.name
            file = archive.extractfile(dataset.member)
            if file is None:
                raise KeyError(f"{dataset.member} is no file")
            yield file
        return
    opener = _OPENERS.get(Path(called).suffix, open)
    with opener(path, "rb") as file:
        yield file


def _svmlight(dataset: Dataset, path: Path, called: str, rows: int | None) -> tuple[Any, Any]:
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        raise DatasetError(
            f"reading {dataset.name} needs scikit-learn: pip install 'adaspdc[data]'"
        ) from None
    with _opened(dataset, path, called) as file:
        text = file if rows is None else io.BytesIO(b"".join(islice(file, rows)))
        X, labels = load_svmlight_file(text, n_features=dataset.columns, zero_based=False)
    return sparse.csr_matrix(X), labels


def _numbers(dataset: Dataset, path: Path, called: str, rows: int | None) -> tuple[Any, Any]:
    """A table of plain numbers, separated by commas or blanks, one row a line."""
    comma = "," if ".data" in Path(called).suffixes else None
    with _opened(dataset, path, called) as file:
        lines = (line.decode("ascii") for line in file)
        table = np.loadtxt(lines, delimiter=comma, max_rows=rows, ndmin=2)
    X = table[:, dataset.first : dataset.first + dataset.columns]
    if comma:  # as LIBSVM's ".scale" file of the same data
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / np.where(high > low, high - low, 1.0)
    return sparse.csr_matrix(X), table[:, dataset.label]


def _check_shape(dataset: Dataset, path: Path, X: Any, rows: int | None) -> None:
    wanted = (dataset.rows if rows is None else min(rows, dataset.rows), dataset.columns)
    entries = dataset.entries if rows is None else None
    if X.shape == wanted and entries in (None, X.nnz):
        return
    expected = "{:,} x {:,}".format(*wanted) + (f" with {entries:,} entries" if entries else "")
    found = "{:,} x {:,} with {:,} entries".format(*X.shape, X.nnz)
    raise DatasetError(
        f"{path} is no copy of {dataset.name}: it holds {found}, the set has {expected}; "
        "remove it and try again"
    )
