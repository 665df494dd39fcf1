r"""Data files into matrices: libsvm/svmlight text, CSV, Parquet and SciPy's ``.npz``.

>>> import pathlib, tempfile
>>> from adaspdc import readers
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
>>> _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
>>> data = readers.read(path)
>>> data.X.shape, data.y.tolist()
((2, 3), [1.0, -1.0])
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ._errors import DataFileError
from ._streams import Progress, opened

__all__ = ["FORMATS", "Data", "DataFileError", "Progress", "read"]

FORMATS = ("libsvm", "csv", "parquet", "npz")
"""What can be read."""

_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
_ARCHIVES = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Data:
    """What was read.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
        Dense from tables, sparse from libsvm text, either from ``.npz``.
    y : ndarray of shape (n,), or None
        Labels: numbers, or text from tables. None where a table has no column for them.
    source : str
        What the file is called in messages.
    features : tuple of str, or None
        The names of the columns of a table.
    """

    X: Any
    y: Any
    source: str
    features: tuple[str, ...] | None = None


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    label: str | None = None,
    require_label: bool = True,
    zero_based: bool = False,
    progress: Progress | None = None,
) -> Data:
    """Read a data file, compressed (gzip, bzip2, xz) or not.

    Parameters
    ----------
    path : path-like, or "-" for standard input
    format : {"libsvm", "csv", "parquet", "npz"}, optional
        By default told from the name: ``.csv``, ``.parquet``, ``.npz``, and libsvm for all others.
    label : str, optional
        The label column of a table; by default one called label, target, class or y.
    require_label : bool
        Whether a table without a label column is an error. If not, ``y`` is None.
    zero_based : bool
        Whether the first feature of libsvm text is 0 and not 1.
    progress : callable, optional
        Called with the bytes read so far and the size of the file (0 if unknown).

    Returns
    -------
    Data

    Raises
    ------
    DataFileError
        With file, line and reason, whatever is wrong with the file.
    ImportError
        Where pandas or pyarrow is needed and absent.
    """
    chosen = format or format_of(path)
    if chosen not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {chosen!r}")
    with opened(path) as stream:
        if chosen == "libsvm":
            from ._svmlight import read_svmlight

            X, y = read_svmlight(stream, zero_based, progress)
            return Data(X, y, stream.name)
        if chosen == "npz":
            from ._npz import read_npz

            return Data(*read_npz(stream, require_label), stream.name)
        from . import _tables

        table = _tables.read_csv if chosen == "csv" else _tables.read_parquet
        X, y, features = table(stream, path, _tables.Wanted(label, require_label), progress)
        return Data(X, y, stream.name, features)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file tells."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    if ending in _ARCHIVES:
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending, "libsvm")
