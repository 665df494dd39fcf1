"""From whatever matrix a user has to the flat, read-only container that the kernels read.

Data that already has a floating type and rows in one piece is never copied:

==============================================  ====================================================
given                                           what happens
==============================================  ====================================================
float32 / float64, C order (or memory map)      used as it is
float32 / float64, F order or strided           one copy in C order, same type
float16                                         one copy as float32
integers, booleans                              one copy as float64 (beyond 2**53 they are rounded)
CSR array or matrix                             used as it is, 32- or 64-bit indices, sorted or not
CSR with duplicate entries                      one copy with the duplicates summed
any other SciPy sparse format                   converted to CSR once
==============================================  ====================================================
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import refuse_mask
from ._containers import CSR, Dense

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """A validated data matrix; every array in ``kernel`` is read-only.

    Attributes
    ----------
    n, d : int
        Number of rows (samples) and columns (features), both at least 1.
    nnz : int
        Stored entries; ``n * d`` if dense.
    dtype : numpy.dtype
        float32 or float64.
    is_sparse : bool
        Whether ``kernel`` is a ``CSR`` (else a ``Dense``).
    kernel : Dense or CSR
        What the compiled loops take.
    name : str
        The parameter that error messages speak of.
    """

    n: int
    d: int
    nnz: int
    dtype: np.dtype[Any]
    is_sparse: bool
    kernel: Dense | CSR
    name: str = "X"


def as_rows(X: Any, name: str = "X") -> Rows:
    """Check a matrix and wrap it for the kernels, without copying where the layout allows it.

    Entries are not looked at here: ``_norms.row_norms`` finds NaN and infinity in its own sweep.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or SciPy sparse array or matrix, shape (n, d)
    name : str
        How error messages call the matrix.

    Raises
    ------
    TypeError
        Complex, extended-precision, object, text or masked data.
    ValueError
        Not two-dimensional, no rows or columns, or an inconsistent sparse structure.
    """
    if isinstance(X, Rows):
        return X
    from scipy import sparse

    return _sparse_rows(X, name) if sparse.issparse(X) else _dense_rows(X, name)


def _dense_rows(X: Any, name: str) -> Rows:
    values = _as_array(X, name)
    dtype = storage_dtype(values.dtype, name)
    n, d = _checked_shape(values.shape, name)
    values = np.require(values, dtype, ["C", "A"])
    return Rows(n, d, n * d, dtype, False, Dense(_read_only(values)), name)


def _as_array(X: Any, name: str) -> Array:
    refuse_mask(name, X)
    try:
        values = np.asarray(X)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as a matrix ({error}). "
            f"Give every row the same number of numbers."
        ) from error
    if values.dtype == object and hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _frame_values(X, name)
    return values


def _frame_values(frame: Any, name: str) -> Array:
    """The numbers of a DataFrame whose columns share no NumPy type (bool beside float)."""
    unusable = [
        f"{column!r} ({dtype})"
        for column, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if getattr(dtype, "kind", "O") not in "biuf"
    ]
    if unusable:
        raise TypeError(
            f"{name} has columns that are not numeric: {', '.join(unusable[:5])}"
            f"{', ...' if len(unusable) > 5 else ''}. Encode them first, e.g. with "
            f"pandas.get_dummies({name}, dtype=float), or drop them."
        )
    values: Array = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def storage_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """The type the entries are kept in; float32 and float64 stay what they are."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
    remedies = {
        "c": f"Stack its parts as real columns, e.g. numpy.hstack([{name}.real, {name}.imag]).",
        "f": f"Convert it, e.g. {name}.astype(numpy.float64).",
        "M": f"Turn dates into numbers, e.g. {name}.astype('int64').",
        "m": f"Turn durations into numbers, e.g. {name}.astype('int64').",
    }
    remedy = remedies.get(
        dtype.kind,
        f"Encode text and categories as numbers, then pass {name}.astype(numpy.float64).",
    )
    raise TypeError(
        f"{name} must hold real numbers (float32 or float64; integers, booleans and float16 are "
        f"converted), got dtype {dtype}. {remedy}"
    )


def _checked_shape(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows are samples), got shape {shape}. Use "
            f"{name}.reshape(-1, 1) for a single feature, {name}.reshape(1, -1) for a single row."
        )
    if 0 in shape:
        missing = "row" if shape[0] == 0 else "column"
        raise ValueError(
            f"{name} has shape {shape}: it needs at least one {missing}. "
            f"Check the selection that produced it."
        )
    return shape[0], shape[1]


def _sparse_rows(X: Any, name: str) -> Rows:
    n, d = _checked_shape(X.shape, name)
    dtype = storage_dtype(X.dtype, name)
    csr = X if X.format == "csr" else _converted(X, name)
    indices, indptr = _structure(csr.data, csr.indices, csr.indptr, (n, d), name)
    if _has_duplicates(indices, indptr, d):
        csr = _summed_duplicates(csr)
        indices, indptr = _structure(csr.data, csr.indices, csr.indptr, (n, d), name)
    nnz = int(indptr[-1])
    data = np.require(csr.data[:nnz], dtype, ["C", "A"])
    kernel = CSR(_read_only(data), _read_only(indices), _read_only(indptr))
    return Rows(n, d, nnz, dtype, True, kernel, name)


def _converted(X: Any, name: str) -> Any:
    """``X.tocsr()`` after the checks without which SciPy's conversion could leave its arrays."""
    if X.format == "csc":
        _structure(X.data, X.indices, X.indptr, (X.shape[1], X.shape[0]), name)
    elif X.format == "bsr":
        blocks = (X.shape[0] // X.blocksize[0], X.shape[1] // X.blocksize[1])
        _structure(X.data[:, 0, 0], X.indices, X.indptr, blocks, name)
    elif X.format == "coo":
        for index, size in ((X.row, X.shape[0]), (X.col, X.shape[1])):
            if len(index) != len(X.data):
                raise _inconsistent(name, "row, col and data differ in length")
            if len(index) and (index.min() < 0 or index.max() >= size):
                raise _inconsistent(name, f"an index lies outside 0..{size - 1}")
    return X.tocsr()


def _structure(
    data: Array, indices: Array, indptr: Array, shape: tuple[int, int], name: str
) -> tuple[Array, Array]:
    """Unsigned views of the stored indices and the row pointers, after checking both.

    Both come out in one width unless the pointers need 64 bits and the indices do not.
    """
    major, minor = shape
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        kinds = f"{indices.dtype} and {indptr.dtype}"
        raise _inconsistent(name, f"its index dtypes {kinds} are not integer")
    if len(indptr) != major + 1:
        raise _inconsistent(name, f"indptr has length {len(indptr)}, expected {major + 1}")
    if len(indices) != len(data):
        raise _inconsistent(name, f"indices has length {len(indices)}, data {len(data)}")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise _inconsistent(name, "indptr must start at 0 and never decrease")
    if indptr[-1] > len(indices):
        raise _inconsistent(name, f"indptr ends at {indptr[-1]}, beyond {len(indices)} indices")
    unsigned = _unsigned(indices[: int(indptr[-1])])
    if unsigned.size and unsigned.max() >= minor:
        bad = indices[int(unsigned.argmax())]
        raise _inconsistent(name, f"stored index {bad} lies outside 0..{minor - 1}")
    pointers = _unsigned(indptr)
    if pointers.dtype != unsigned.dtype and indptr[-1] <= np.iinfo(unsigned.dtype).max:
        pointers = pointers.astype(unsigned.dtype)
    return unsigned, pointers


def _inconsistent(name: str, reason: str) -> ValueError:
    return ValueError(
        f"{name} is not a valid sparse matrix: {reason}. Rebuild it from (row, column, value) "
        f"triples, e.g. scipy.sparse.coo_array((v, (i, j)), shape=shape).tocsr()."
    )


def _unsigned(index: Array) -> Array:
    """The same memory read as unsigned: a negative index becomes a huge one, and is found."""
    if index.dtype.itemsize not in (4, 8) or not index.dtype.isnative:
        index = index.astype(np.int64)
    index = np.require(index, None, ["C", "A"])
    return index.view(np.dtype(f"u{index.dtype.itemsize}"))


def _has_duplicates(indices: Array, indptr: Array, d: int) -> bool:
    """Looked up in the indices themselves: the flags a SciPy object carries may be out of date."""
    from ._kernels.norms import first_duplicate, rows_increase

    indices, indptr = _read_only(indices), _read_only(indptr)
    return not rows_increase(indices, indptr) and first_duplicate(indices, indptr, d) >= 0


def _summed_duplicates(csr: Any) -> Any:
    from scipy import sparse

    nnz = int(csr.indptr[-1])
    parts = (csr.data[:nnz], csr.indices[:nnz], csr.indptr)
    if csr.dtype.kind in "biu":  # summed as the numbers they become: bytes would wrap around
        parts = (parts[0].astype(np.float64), *parts[1:])
    copy = sparse.csr_array(parts, shape=csr.shape, copy=True)
    copy.sum_duplicates()
    return copy


def _read_only(array: Array) -> Array:
    """A view that cannot be written through; the caller's own array keeps its flags."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view
