"""Norms of rows, of blocks of rows, of the whole matrix and of linear operators.

Step sizes divide by these numbers, so each is exact to rounding or a certified upper bound. Sums of
squares are scaled by powers of two, so norms from 1e-300 to 1e300 are right.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._containers import CSR, Dense
from ._rows import Rows

Array = NDArray[Any]

EXACT_LIMIT = 256
WHOLE_LIMIT = 512
BOUND_ROUNDS = 6
GRAM_BUDGET = 2_000_000_000
"""Most multiplications spent on the Gram matrix of a whole sparse matrix (a second or two)."""
CHUNK = 1 << 20
"""Entries of a dense matrix that are scaled into float64 at a time."""


def row_norms(rows: Rows) -> Array:
    """Euclidean norm of every row, float64, in one sweep that also finds NaN and infinity.

    Raises
    ------
    ValueError
        An entry is not finite (the message names the first), or a norm exceeds 1.8e308.
    """
    from ._kernels import norms as kernels

    out = np.empty(rows.n)
    kernel = rows.kernel
    if isinstance(kernel, Dense):
        bad = kernels.dense_row_norms(kernel.values.reshape(-1), rows.d, out)
    else:
        bad = kernels.csr_row_norms(kernel.data, kernel.indptr, out)
    if bad >= 0:
        raise _not_finite(rows, bad)
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out)))
        raise ValueError(
            f"{rows.name} has a row ({row}) whose norm exceeds the range of float64. "
            f"Rescale {rows.name}, e.g. divide it by numpy.abs({rows.name}).max()."
        )
    return out


def _not_finite(rows: Rows, row: int) -> ValueError:
    kernel = rows.kernel
    if isinstance(kernel, Dense):
        entries = kernel.values[row]
        position = column = int(np.argmin(np.isfinite(entries)))
    else:
        stored = slice(int(kernel.indptr[row]), int(kernel.indptr[row + 1]))
        entries, columns = kernel.data[stored], kernel.indices[stored]
        position = int(np.argmin(np.isfinite(entries)))
        column = int(columns[position])
    return ValueError(
        f"{rows.name} must be finite, got {entries[position]} at row {row}, column {column}. "
        f"Remove such rows or fill them in, e.g. with sklearn.impute.SimpleImputer."
    )


def batch_eso(rows: Rows, m: int, weights: Array | None = None) -> Array:
    """Constants v with E|sum_{i in S} a_i h_i|^2 <= (m/n) sum_i v_i h_i^2 for a uniform m-subset S.

    ``v_i = sum_j (1 + (c_j - 1)(m - 1)/(n - 1)) a_ij^2`` with c_j the number of rows whose entry in
    column j is not zero; ``|a_i|^2`` for m = 1 and never more than ``m |a_i|^2``.

    Parameters
    ----------
    rows : Rows
    m : int
        Batch size, 1..n.
    weights : array of shape (n,), optional
        Sample weights; only whether one is zero matters. The dual variable of such a row stays zero
        (h_i = 0), so the row does not count in c_j although S may contain it.

    Notes
    -----
    Column by column, for the t non-zero products p_i = a_ij h_i:
    E(sum_S p)^2 = (m/n) [(1 - q) sum p^2 + q (sum p)^2] with q = (m - 1)/(n - 1), and
    (sum p)^2 <= t sum p^2 with t <= c_j.
    """
    from ._kernels import norms as kernels

    if not 1 <= m <= rows.n:
        raise ValueError(f"batch_size must lie in 1..{rows.n} (the number of rows), got {m}.")
    with np.errstate(over="ignore"):  # reported below
        out = row_norms(rows) ** 2
    if m > 1:
        active = np.ones(rows.n, bool) if weights is None else np.asarray(weights) != 0
        if active.shape != (rows.n,):
            raise ValueError(f"weights must have shape ({rows.n},), got {active.shape}.")
        counts = np.zeros(rows.d, np.int64)
        kernels.count_rows_of_columns(rows.kernel, active, counts)
        factor = 1.0 + np.maximum(counts - 1, 0) * ((m - 1) / (rows.n - 1))
        kernels.weighted_squares(rows.kernel, factor, out)
    if not np.isfinite(out).all():
        raise ValueError(
            f"{rows.name} has rows whose squared norm exceeds the range of float64. "
            f"Rescale {rows.name}, e.g. divide it by numpy.abs({rows.name}).max()."
        )
    return out


def block_norms(
    rows: Rows, ptr: Array, exact_limit: int = EXACT_LIMIT
) -> tuple[Array, NDArray[np.bool_]]:
    """Spectral norm of every block of consecutive rows ``ptr[i]..ptr[i + 1]``.

    Parameters
    ----------
    rows : Rows
    ptr : integer array of shape (n_blocks + 1,)
        Strictly increasing from 0 to n; blocks may differ in width.
    exact_limit : int
        A block is computed exactly (largest eigenvalue of its smaller Gram matrix, in float64) if
        its rows or the columns it touches number at most this.

    Returns
    -------
    norms : float64 array of shape (n_blocks,)
    exact : bool array of shape (n_blocks,)
        Where False, the norm is the smaller of two upper bounds: the Frobenius norm, and the root
        of the Collatz-Wielandt bound on ``|A|'|A|`` (itself at most ``sqrt(|A|_1 |A|_inf)``).
    """
    ptr = _checked_pointers(ptr, rows.n)
    single = row_norms(rows)
    widths = np.diff(ptr)
    if (widths == 1).all():
        return single, np.ones(rows.n, bool)
    exponent = _exponent(np.maximum.reduceat(single, ptr[:-1]))
    scale = np.repeat(np.ldexp(1.0, -exponent), widths)
    frobenius = np.sqrt(np.add.reduceat((single * scale) ** 2, ptr[:-1]))
    norms, exact = _scaled_norms(rows, ptr, scale, frobenius, exact_limit)
    norms = np.ldexp(norms, exponent)
    norms[widths == 1] = single[ptr[:-1][widths == 1]]
    if not np.isfinite(norms).all():
        raise ValueError(
            f"{rows.name} has a block ({int(np.argmin(np.isfinite(norms)))}) whose norm exceeds "
            f"the range of float64. Rescale it."
        )
    return norms, exact


def whole_norm(rows: Rows, row_scale: Array | None = None) -> float:
    """Upper bound of the spectral norm of ``diag(row_scale) A`` with A all the rows.

    Exact (up to 1e-12) through a Gram matrix if n or the number of columns in use is at most 512
    and, for sparse data, the Gram matrix is affordable; otherwise the bound of ``block_norms``, a
    few sweeps.

    Parameters
    ----------
    rows : Rows
    row_scale : array of shape (n,), optional
        Non-negative factors, ones if not given.
    """
    factor = np.ones(rows.n) if row_scale is None else np.array(row_scale, dtype=np.float64)
    if factor.shape != (rows.n,) or not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError(f"row_scale must be {rows.n} finite numbers >= 0, got {row_scale}.")
    with np.errstate(over="ignore"):  # reported below
        effective = row_norms(rows) * factor
    exponent = _exponent(np.array([effective.max()]))
    factor[effective == 0] = 0.0  # a huge factor on a zero row must not become inf * 0
    factor = np.ldexp(factor, -exponent)
    scaled = np.ldexp(effective, -exponent, out=effective)
    frobenius = np.sqrt(np.array([np.sum(scaled * scaled)]))
    if not (np.isfinite(frobenius[0]) and np.isfinite(factor).all()):
        raise ValueError(
            f"{rows.name} times row_scale exceeds the range of float64. Rescale {rows.name}."
        )
    ptr = np.array([0, rows.n])
    limit = WHOLE_LIMIT if _gram_is_affordable(rows) else 0
    norms, _ = _scaled_norms(rows, ptr, factor, frobenius, limit)
    return float(np.ldexp(norms * (1 + 1e-12), exponent)[0])


def _gram_is_affordable(rows: Rows) -> bool:
    if isinstance(rows.kernel, Dense):
        return True  # BLAS makes up for the count
    if rows.n <= rows.d:
        return rows.n * rows.nnz <= GRAM_BUDGET
    lengths = np.diff(rows.kernel.indptr).astype(np.float64)
    return bool(np.dot(lengths, lengths) <= GRAM_BUDGET)


def operator_norm(operator: Any, name: str = "blocks") -> tuple[float, bool]:
    """Spectral norm of a SciPy ``LinearOperator`` of shape (q, d), and whether it is exact.

    With ``s = min(q, d)`` the operator (or its adjoint) is applied to the s unit vectors. For s <=
    512 its entries then give the norm; beyond, their squares are added up to the Frobenius norm, an
    upper bound. Exact norms hold ``q d`` numbers for a moment.
    """
    _check_operator(operator, name)
    q, d = operator.shape
    _applied(operator.rmatvec, np.zeros(q), name)  # the solver needs it, whichever side is short
    size, apply = (d, operator.matmat) if d <= q else (q, operator.rmatmat)
    width = size if size <= WHOLE_LIMIT else 16
    total = 0.0
    for start in range(0, size, width):
        unit = np.zeros((size, min(width, size - start)))
        np.fill_diagonal(unit[start:], 1.0)
        image = _applied(apply, unit, name)
        exponent = _exponent(np.array([np.abs(image).max()]))
        scaled = np.ldexp(image, -exponent)
        if size <= WHOLE_LIMIT:
            square = np.linalg.eigvalsh(scaled.T @ scaled)[-1]
            total = float(np.ldexp(np.sqrt(max(square, 0.0)), exponent)[0])
        else:
            part = float(np.ldexp(np.linalg.norm(scaled), exponent)[0])
            total = float(np.hypot(total, part))
    exact = size <= WHOLE_LIMIT
    total = total if exact else total * (1 + _margin(q + d))
    if not np.isfinite(total):
        raise ValueError(f"{name}: the operator's norm exceeds the range of float64. Rescale it.")
    return total, exact


def _check_operator(operator: Any, name: str) -> None:
    dtype = np.dtype(operator.dtype)
    if dtype.kind not in "biuf":
        raise TypeError(
            f"{name}: the linear operator has dtype {dtype}, but must be real. Split a complex "
            f"operator into its real and imaginary parts, stacked."
        )
    if len(operator.shape) != 2 or 0 in operator.shape:
        raise ValueError(
            f"{name}: the linear operator has shape {operator.shape}; it needs rows and columns."
        )


def _applied(apply: Any, unit: Array, name: str) -> Array:
    try:
        image = np.asarray(apply(unit))
    except NotImplementedError as error:
        raise TypeError(
            f"{name}: the linear operator lacks matvec or rmatvec. Give both: the solver "
            f"multiplies by the operator and by its transpose."
        ) from error
    if image.dtype.kind not in "biuf":
        raise TypeError(f"{name}: the linear operator returned dtype {image.dtype}. Return reals.")
    if not np.isfinite(image).all():
        raise ValueError(
            f"{name}: the linear operator returned NaN or infinity for a finite vector. "
            f"Check its matvec and rmatvec."
        )
    return image.astype(np.float64, copy=False)


def _checked_pointers(ptr: Array, n: int) -> Array:
    ptr = np.asarray(ptr)
    if ptr.ndim != 1 or ptr.size < 2 or ptr.dtype.kind not in "iu":
        raise ValueError(f"ptr must be a 1-D integer array of at least 2 row numbers, got {ptr!r}.")
    ptr = ptr.astype(np.int64)
    if ptr[0] != 0 or ptr[-1] != n or (np.diff(ptr) < 1).any():
        raise ValueError(
            f"ptr must increase strictly from 0 to the number of rows {n}, got {ptr!r}. "
            f"Every block needs at least one row."
        )
    return ptr


def _exponent(peak: Array) -> Array:
    """Exponents k with peak / 2^k near 1, such that 2^k and 2^-k are both ordinary numbers."""
    return np.clip(np.frexp(peak)[1], -1021, 1021)


def _margin(terms: int) -> float:
    """Relative rounding error that a bound made of sums this long must be raised by."""
    return 1e-12 + 4 * np.finfo(np.float64).eps * terms


def _scaled_norms(
    rows: Rows, ptr: Array, scale: Array, frobenius: Array, exact_limit: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Norms of the blocks of ``diag(scale) A``, whose largest row norms are about 1 (or 0)."""
    from ._kernels import norms as kernels

    widths = np.diff(ptr)
    columns = _touched_columns(rows, ptr)
    smaller = np.minimum(widths, columns)
    rank_one = smaller <= 1
    norms = frobenius.copy()
    exact = rank_one | (smaller <= exact_limit)
    narrow = np.flatnonzero(exact & ~rank_one & (smaller <= kernels.NARROW))
    if narrow.size:
        kernels.narrow_block_norms(rows.kernel, scale, ptr, columns, narrow, rows.d, norms)
    wide = np.flatnonzero(exact & (smaller > kernels.NARROW))
    if wide.size:
        _exact_blocks(rows, ptr, scale, columns, wide, norms)
    loose = np.flatnonzero(~exact)
    if loose.size:
        _bound_blocks(rows, ptr, scale, columns, loose, norms)
    return norms, exact


def _touched_columns(rows: Rows, ptr: Array) -> Array:
    from ._kernels.norms import count_columns_of_blocks

    columns = np.full(ptr.size - 1, rows.d, np.int64)
    if isinstance(rows.kernel, CSR):
        count_columns_of_blocks(rows.kernel.indices, rows.kernel.indptr, ptr, rows.d, columns)
    return columns


def _exact_blocks(
    rows: Rows, ptr: Array, scale: Array, columns: Array, blocks: Array, norms: Array
) -> None:
    """Set norms[b] from the largest eigenvalue of the smaller Gram matrix of block b."""
    from ._kernels import norms as kernels

    work, place = np.zeros(rows.d), np.full(rows.d, -1, np.int64)
    for b in blocks:
        start, stop = int(ptr[b]), int(ptr[b + 1])
        if isinstance(rows.kernel, Dense):
            gram = _dense_gram(rows.kernel.values[start:stop], scale[start:stop, None])
        elif stop - start <= columns[b]:
            gram = np.empty((stop - start, stop - start))
            kernels.row_gram(rows.kernel, scale, start, stop, work, gram)
        else:
            gram = np.empty((columns[b], columns[b]))
            kernels.column_gram(rows.kernel, scale, start, stop, place, gram)
        norms[b] = np.sqrt(max(float(np.linalg.eigvalsh(gram)[-1]), 0.0))


def _dense_gram(values: Array, scale: Array) -> Array:
    """Summed over pieces, so that the scaled float64 copy stays small."""
    q, d = values.shape
    size = min(q, d)
    gram = np.zeros((size, size))
    step = max(1, CHUNK // size)
    for first in range(0, max(q, d), step):
        if q <= d:
            piece = scale * values[:, first : first + step]
            gram += piece @ piece.T
        else:
            piece = scale[first : first + step] * values[first : first + step]
            gram += piece.T @ piece
    return gram


def _bound_blocks(
    rows: Rows, ptr: Array, scale: Array, columns: Array, blocks: Array, norms: Array
) -> None:
    """Lower norms[b], which holds the Frobenius norm, to the Collatz-Wielandt bound if smaller."""
    from ._kernels import norms as kernels

    v, w = np.empty(rows.d), np.empty(rows.d)
    touched = np.arange(rows.d)
    seen = np.zeros(rows.d, bool)
    for b in blocks:
        start, stop = int(ptr[b]), int(ptr[b + 1])
        if isinstance(rows.kernel, CSR):
            kernels.list_columns(
                rows.kernel.indices, rows.kernel.indptr, start, stop, seen, touched
            )
        listed = touched[: columns[b]]
        square = kernels.collatz_bound(rows.kernel, scale, start, stop, listed, v, w, BOUND_ROUNDS)
        bound = min(float(norms[b]), float(np.sqrt(square)))
        norms[b] = bound * (1 + _margin(stop - start + int(columns[b])))
