"""``.npz``: a sparse matrix as ``scipy.sparse.save_npz`` writes it, or a dense X; with y."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np

from ._errors import DataFileError
from ._streams import Stream

_HINT = (
    "it must hold what scipy.sparse.save_npz writes, or a dense array X; and the labels as y: "
    'numpy.savez("data.npz", y=y, **numpy.load("matrix.npz"))'
)


def read_npz(stream: Stream, require_label: bool) -> tuple[Any, Any]:
    """(X, y); nothing in the file is ever unpickled."""
    bytes_read = stream.read()
    if not bytes_read.startswith(b"PK"):
        raise DataFileError(stream.name, f"this is not an .npz archive; {_HINT}")
    content = io.BytesIO(bytes_read)
    try:
        with np.load(content, allow_pickle=False) as arrays:
            X = np.array(arrays["X"]) if "X" in arrays.files else _sparse(arrays, stream.name)
            y = np.array(arrays["y"]) if "y" in arrays.files else None
    except DataFileError:
        raise
    except MemoryError:
        raise DataFileError(stream.name, "its arrays do not fit into memory") from None
    except (OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, NotImplementedError,
            zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        raise DataFileError(stream.name, f"not a readable .npz file ({error}); {_HINT}") from None
    _check(X, y, require_label, stream.name)
    return X, y


def _sparse(arrays: Any, name: str) -> Any:
    from scipy import sparse

    missing = [key for key in ("format", "shape", "data") if key not in arrays.files]
    if missing:
        raise DataFileError(name, f"it has no array called {missing[0]!r}; {_HINT}")
    kind = arrays["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise DataFileError(name, f"sparse format {kind[:20]!r}; convert it to csr first")
    shape = tuple(int(size) for size in arrays["shape"])
    parts = tuple(np.array(arrays[key]) for key in ("data", "indices", "indptr"))
    build = sparse.csr_array if kind == "csr" else sparse.csc_array
    matrix = build(parts, shape=shape)
    matrix.check_format(full_check=True)  # indices outside the shape would be read as memory
    return matrix.tocsr()


def _check(X: Any, y: Any, require_label: bool, name: str) -> None:
    values = getattr(X, "data", X) if hasattr(X, "indptr") else X
    if X.ndim != 2 or 0 in X.shape:
        raise DataFileError(name, f"the matrix has shape {X.shape}; rows and columns are needed")
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise DataFileError(name, "the matrix holds something that is not a finite number")
    if y is None and require_label:
        raise DataFileError(name, f"it has no labels y; {_HINT}")
    if y is not None and y.shape != (X.shape[0],):
        raise DataFileError(name, f"y has shape {y.shape} for {X.shape[0]} rows; one label per row")
    if y is not None and (
        y.dtype.kind not in "fiubU" or (y.dtype.kind == "f" and not np.isfinite(y).all())
    ):
        raise DataFileError(name, "y holds something that is neither a finite number nor text")
