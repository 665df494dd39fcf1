"""The matrices of the experiments: the paper's data sets, and what stands in for absent ones."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from .._cache import cache_folder
from ..datasets import DATASETS, DatasetError, Table, fetch, locate, read, sha256
from ..demo import paper_ridge
from ._settings import Settings

_DENSE = 0.6
"""Density from which rows are kept dense: each stored number is then cheaper."""
_QUANTUM_DENSITY, _STAND_IN_SEED, _SAMPLE_SEED = 0.4344, 2015, 2015
_DENSE_STAND_IN = 0.1
"""Density above which a stand-in has normal entries anywhere, not frequent and rare columns."""


@dataclass(frozen=True)
class Material:
    """A matrix and its labels, described so that another process can build them again.

    ``checksum`` is that of the file at ``path``; without a file the set is generated from ``seed``
    with ``density``. ``rows`` and ``columns`` count no bias, ``of_rows`` those of the whole set.
    """

    name: str
    rows: int
    columns: int
    of_rows: int
    path: str | None = None
    checksum: str | None = None
    density: float | None = None
    seed: int = 0
    scaled: bool = False
    why: str = ""

    @property
    def stand_in(self) -> bool:
        """Whether this is generated in place of a real set."""
        return self.path is None and self.name != "ridge"

    @property
    def title(self) -> str:
        """The name for figures and tables, which never passes a stand-in off as the real set."""
        name = f"STAND-IN for {self.name}: generated" if self.stand_in else self.name
        if self.rows == self.of_rows:
            return name
        kind = "" if self.stand_in else "the first " if self.name == "url" else "random "
        return f"{name}, {kind}{self.rows:,} of {self.of_rows:,} rows"

    @property
    def label(self) -> str:
        """The shortest name that does not pass a stand-in off as the real set."""
        return f"a stand-in for {self.name}" if self.stand_in else self.name

    def identity(self) -> dict[str, Any]:
        """What the numbers depend on, and nothing else (not where the file lies)."""
        skipped = ("path", "why")
        return {name: value for name, value in vars(self).items() if name not in skipped}


def ridge_material(settings: Settings) -> Material:
    """The generator of the paper's Figure 1."""
    size = settings.ridge_size
    return Material("ridge", size, size, size)


def paper_material(name: str, settings: Settings) -> Material:
    """A data set of the paper's Table 1, from a file if one can be had."""
    known = DATASETS[name]
    limit = settings.url_rows if name == "url" else settings.rows
    rows = known.rows if limit is None else min(limit, known.rows)
    scaled = name in ("quantum", "protein")
    try:
        path = _file(name, settings)
    except DatasetError as error:
        seed, density = _STAND_IN_SEED, _density(name)
        return Material(
            name, rows, known.columns, known.rows, None, None, density, seed, scaled, str(error)
        )
    return Material(name, rows, known.columns, known.rows, str(path), sha256(path), None, 0, scaled)


def _file(name: str, settings: Settings) -> Path:
    found = locate(name)
    if found is not None:
        return found
    if settings.fetch_url if name == "url" else settings.fetch:
        return fetch(name)
    remedy = "--full fetches it" if name == "url" else "a run without --quick fetches it"
    raise DatasetError(f"{name} is not on this machine; {remedy}")


def _density(name: str) -> float:
    known = DATASETS[name]
    if known.entries is None:
        return _QUANTUM_DENSITY
    return known.entries / (known.rows * known.columns)


def matrix(material: Material) -> tuple[Any, np.ndarray]:
    """Rows and labels, without a bias."""
    if material.name == "ridge":
        return paper_ridge(material.seed, material.rows, material.columns)
    X, y = _generated(material) if material.path is None else _from_file(material)
    return (_unit_columns(X) if material.scaled else X), y


def _from_file(material: Material) -> tuple[Any, np.ndarray]:
    """All rows, or a sample: the first ones of the largest set, random ones of the others."""
    path = Path(str(material.path))
    if material.rows == material.of_rows:
        table = read(material.name, path)
        return table.X, table.y
    if material.name == "url":
        table = read(material.name, path, material.rows)
        return table.X, table.y
    kept = cache_folder() / "samples" / f"{material.name}-{material.rows}-{material.checksum}.npz"
    try:  # reading all of a file for some of its rows takes seconds
        together = sparse.load_npz(kept)
    except (OSError, ValueError, KeyError, BadZipFile):
        together = _sample(read(material.name, path), material.rows)
        _keep(kept, together)
    return together[:, 1:], together[:, :1].toarray().ravel()


def _sample(table: Table, rows: int) -> Any:
    """Random rows, their labels as a first column."""
    rng = np.random.default_rng(_SAMPLE_SEED)
    chosen = np.sort(rng.choice(table.X.shape[0], rows, replace=False))
    labels = sparse.csr_matrix(table.y[chosen, None])
    return sparse.hstack([labels, table.X[chosen]], format="csr")


def _keep(path: Path, together: Any) -> None:
    part = path.with_name(f"{os.getpid()}-{path.name}")
    with suppress(OSError):  # it will be read once more then
        path.parent.mkdir(parents=True, exist_ok=True)
        sparse.save_npz(part, together, compressed=False)
        os.replace(part, path)


@lru_cache(maxsize=1)
def design(material: Material) -> tuple[Any, np.ndarray]:
    """Rows with the bias column of the paper, dense where that is faster, and labels.

    Only the last set asked for is kept: some are large.
    """
    X, y = matrix(material)
    if material.name == "ridge":
        return X, y
    X = X[:, np.unique(X.indices)]  # a column without entries has coefficient zero
    X = sparse.csr_matrix(sparse.hstack([X, np.ones((X.shape[0], 1))]))
    return (X.toarray() if X.nnz > _DENSE * X.shape[0] * X.shape[1] else X), y


def _unit_columns(X: Any) -> Any:
    """Columns divided by their root mean square."""
    scale = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel())
    return sparse.csr_matrix(X @ sparse.diags_array(1.0 / np.where(scale > 0.0, scale, 1.0)))


# --- stand-ins ------------------------------------------------------------------------------------


def _generated(material: Material) -> tuple[Any, np.ndarray]:
    """A matrix of the same shape and density, with labels that a hyperplane explains in part."""
    assert material.density is not None
    rng = np.random.default_rng(material.seed)
    n, d = material.rows, material.columns
    X = _random_rows(rng, n, d, material.density)
    if material.density > _DENSE_STAND_IN:
        X.data[:] = rng.standard_normal(X.nnz)
    if material.name == "rcv1":
        X = _unit_rows(X, rng)
    score = np.asarray(X @ rng.standard_normal(d))
    noise = 0.5 * score.std() * rng.standard_normal(n)
    return X, np.where(score + noise > np.median(score), 1.0, -1.0)


def _random_rows(
    rng: np.random.Generator, n: int, d: int, density: float, block: int = 65_536
) -> Any:
    """Ones in random places, block by block so that the largest set fits into memory."""
    place = rng.permutation(d)
    parts = []
    for begin in range(0, n, block):
        rows = min(block, n - begin)
        wanted = round(rows * d * density)
        if density > _DENSE_STAND_IN:
            keys = rng.choice(rows * d, wanted, replace=False, shuffle=False)
        else:
            keys = _power_law(rng, rows, place, wanted)
        keys = np.sort(keys)
        parts.append(sparse.csr_matrix((np.ones(wanted), (keys // d, keys % d)), shape=(rows, d)))
    return sparse.vstack(parts, format="csr")


def _power_law(rng: np.random.Generator, rows: int, place: np.ndarray, wanted: int) -> np.ndarray:
    """Distinct row-column pairs; the j-th most frequent column appears as j^(-2/3)."""
    d = place.size
    keys = np.zeros(0, dtype=np.int64)
    while keys.size < wanted:  # repeated pairs are dropped, so draw until enough are left
        size = 2 * (wanted - keys.size) + 100
        columns = place[(d * rng.random(size) ** 3).astype(np.int64)]
        keys = np.union1d(keys, rng.integers(rows, size=size) * d + columns)
    chosen: np.ndarray = rng.choice(keys, wanted, replace=False, shuffle=False)
    return chosen


def _unit_rows(X: Any, rng: np.random.Generator) -> Any:
    X.data[:] = rng.exponential(size=X.nnz) + 0.1
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(X.indptr))
    return X
