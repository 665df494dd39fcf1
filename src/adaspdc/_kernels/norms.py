"""Sweeps over the data that are made once, before the iterations: structure, norms and bounds.

``rows`` is a ``Dense`` or ``CSR`` container. A function that only raises is the name under which
its two compiled forms are called; numba picks one by the container's type. Row bounds are turned
into 64-bit unsigned numbers, for which numba leaves out its negative-index check.
"""

import numpy as np
from numba.extending import overload

from .._containers import Dense
from ._jit import REASSOCIATE, helper, jit

TINY_SQUARE = 1e-280
"""Below this a sum of squares may have lost digits to underflow."""

FLOOR = 1e-100
"""Smallest entry, relative to the largest, of the vector in a Collatz-Wielandt quotient."""

NARROW = 8
"""Largest Gram matrix whose eigenvalue is found here and not by LAPACK (overhead per call)."""


# ---- structure of a sparse matrix -------------------------------------------------------------


@jit
def rows_increase(indices, indptr):
    """Whether the indices strictly increase along every row, so that none occurs twice."""
    for i in range(indptr.size - 1):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for k in range(start + np.uint64(1), stop):
            if indices[k] <= indices[k - np.uint64(1)]:
                return False
    return True


@jit
def first_duplicate(indices, indptr, d):
    """First row in which some index occurs twice, or -1; the rows may be unsorted."""
    last_row = np.full(d, -1, np.int64)
    for i in range(indptr.size - 1):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if last_row[indices[k]] == i:
                return i
            last_row[indices[k]] = i
    return -1


# ---- row norms --------------------------------------------------------------------------------


@helper(fastmath=REASSOCIATE)
def _sum_of_squares(data, start, stop):
    total = 0.0
    for k in range(start, stop):
        entry = np.float64(data[k])
        total += entry * entry
    return total


@helper
def _careful_norm(data, start, stop):
    """Norm of data[start:stop] without over- or underflow; NaN if an entry is not finite."""
    peak = 0.0
    for k in range(start, stop):
        size = abs(np.float64(data[k]))
        if not size < np.inf:
            return np.nan
        peak = max(peak, size)
    if peak == 0.0:
        return 0.0
    total = 0.0
    for k in range(start, stop):
        ratio = np.float64(data[k]) / peak
        total += ratio * ratio
    return peak * np.sqrt(total)


@helper
def _norm(data, start, stop):
    square = _sum_of_squares(data, start, stop)
    if TINY_SQUARE <= square < np.inf:
        return np.sqrt(square)
    return _careful_norm(data, start, stop)


@jit
def dense_row_norms(data, width, out):
    """Norms of consecutive rows of ``data``; returns the first row that is not finite, or -1."""
    for i in range(out.size):
        start = np.uint64(i * width)
        out[i] = _norm(data, start, start + np.uint64(width))
        if np.isnan(out[i]):
            return i
    return -1


@jit
def csr_row_norms(data, indptr, out):
    """The same for compressed rows."""
    for i in range(out.size):
        out[i] = _norm(data, np.uint64(indptr[i]), np.uint64(indptr[i + 1]))
        if np.isnan(out[i]):
            return i
    return -1


# ---- what a batch of rows can do together -----------------------------------------------------


def _count_row(rows, i, counts):
    raise NotImplementedError


@overload(_count_row)
def _count_row_of(rows, i, counts):
    if rows.instance_class is Dense:

        def dense(rows, i, counts):
            for j in range(counts.size):
                counts[j] += rows.values[i, j] != 0

        return dense

    def csr(rows, i, counts):
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            counts[rows.indices[k]] += rows.data[k] != 0

    return csr


@jit
def count_rows_of_columns(rows, active, counts):
    """counts[j] += number of active rows whose entry in column j is not zero."""
    for i in range(active.size):
        if active[i]:
            _count_row(rows, i, counts)


def _weighted_square(rows, i, factor):
    raise NotImplementedError


@overload(_weighted_square, jit_options={"fastmath": REASSOCIATE})
def _weighted_square_of(rows, i, factor):
    if rows.instance_class is Dense:

        def dense(rows, i, factor):
            total = 0.0
            for j in range(factor.size):
                entry = np.float64(rows.values[i, j])
                total += factor[j] * entry * entry
            return total

        return dense

    def csr(rows, i, factor):
        total = 0.0
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
            entry = np.float64(rows.data[k])
            total += factor[rows.indices[k]] * entry * entry
        return total

    return csr


@jit
def weighted_squares(rows, factor, out):
    """out[i] = sum_j factor[j] a_ij^2."""
    for i in range(out.size):
        out[i] = _weighted_square(rows, i, factor)


# ---- spectral norms of blocks of rows: A = diag(scale) rows[start:stop] -------------------------


@jit
def count_columns_of_blocks(indices, indptr, ptr, d, out):
    """out[b] = number of columns with a stored entry in rows ptr[b]..ptr[b + 1]."""
    last_block = np.full(d, -1, np.int64)
    for b in range(ptr.size - 1):
        out[b] = 0
        for k in range(np.uint64(indptr[ptr[b]]), np.uint64(indptr[ptr[b + 1]])):
            if last_block[indices[k]] != b:
                last_block[indices[k]] = b
                out[b] += 1


@jit
def list_columns(indices, indptr, start, stop, seen, out):
    """Write the columns touched by these rows to ``out``; ``seen`` is and comes back False."""
    count = 0
    for k in range(np.uint64(indptr[start]), np.uint64(indptr[stop])):
        j = indices[k]
        if not seen[j]:
            seen[j] = True
            out[count] = j
            count += 1
    for c in range(count):
        seen[out[c]] = False


def gram_of_rows(rows, scale, start, stop, work, gram):
    """Set gram = A A'; ``work`` has d entries, which are and come back zero."""
    raise NotImplementedError


@overload(gram_of_rows, jit_options={"fastmath": REASSOCIATE})
def _gram_of_rows(rows, scale, start, stop, work, gram):
    if rows.instance_class is Dense:

        def dense(rows, scale, start, stop, work, gram):
            for i in range(start, stop):
                for h in range(start, i + 1):
                    total = 0.0
                    for j in range(rows.values.shape[1]):
                        total += (scale[i] * rows.values[i, j]) * (scale[h] * rows.values[h, j])
                    gram[i - start, h - start] = total
                    gram[h - start, i - start] = total

        return dense

    def csr(rows, scale, start, stop, work, gram):
        for i in range(start, stop):
            for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                work[rows.indices[k]] = scale[i] * rows.data[k]
            for h in range(start, i + 1):
                total = 0.0
                for k in range(np.uint64(rows.indptr[h]), np.uint64(rows.indptr[h + 1])):
                    total += work[rows.indices[k]] * (scale[h] * rows.data[k])
                gram[i - start, h - start] = total
                gram[h - start, i - start] = total
            for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                work[rows.indices[k]] = 0.0

    return csr


def gram_of_columns(rows, scale, start, stop, place, gram):
    """Set gram = A'A over the touched columns; the d entries of ``place`` are and come back -1."""
    raise NotImplementedError


@overload(gram_of_columns)
def _gram_of_columns(rows, scale, start, stop, place, gram):
    if rows.instance_class is Dense:

        def dense(rows, scale, start, stop, place, gram):
            gram[:, :] = 0.0
            for i in range(start, stop):
                for j in range(gram.shape[0]):
                    entry = scale[i] * rows.values[i, j]
                    for h in range(gram.shape[0]):
                        gram[j, h] += entry * (scale[i] * rows.values[i, h])

        return dense

    def csr(rows, scale, start, stop, place, gram):
        gram[:, :] = 0.0
        count = 0
        for i in range(start, stop):
            first, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
            for k in range(first, end):
                if place[rows.indices[k]] < 0:
                    place[rows.indices[k]] = count
                    count += 1
            for k in range(first, end):
                entry = scale[i] * rows.data[k]
                column = place[rows.indices[k]]
                for m in range(first, end):
                    gram[column, place[rows.indices[m]]] += entry * (scale[i] * rows.data[m])
        for k in range(np.uint64(rows.indptr[start]), np.uint64(rows.indptr[stop])):
            place[rows.indices[k]] = -1

    return csr


@jit
def row_gram(rows, scale, start, stop, work, gram):
    """``gram_of_rows`` to be called from Python."""
    gram_of_rows(rows, scale, start, stop, work, gram)


@jit
def column_gram(rows, scale, start, stop, place, gram):
    """``gram_of_columns`` to be called from Python."""
    gram_of_columns(rows, scale, start, stop, place, gram)


@helper
def largest_eigenvalue(gram, work):
    """Largest eigenvalue of a small positive semidefinite matrix, which is overwritten.

    The matrix is squared again and again, with its trace t_k taken out each time: the eigenvalue
    is t_0 t_1^(1/2) t_2^(1/4) ... Errors of a squaring are halved in each later root, so the
    result is good to a few units in the last place, also for multiple eigenvalues.
    """
    size = gram.shape[0]
    value = 1.0
    power = 1.0
    for _ in range(60):
        trace = 0.0
        for i in range(size):
            trace += gram[i, i]
        if not trace > 0.0:
            return 0.0
        value *= trace**power
        if power < 1.0 and trace > 1.0 - 1e-15:
            break
        power *= 0.5
        gram /= trace
        for i in range(size):
            for j in range(size):
                total = 0.0
                for k in range(size):
                    total += gram[i, k] * gram[k, j]
                work[i, j] = total
        gram[:, :] = work
    return value


@jit
def narrow_block_norms(rows, scale, ptr, columns, chosen, d, out):
    """Exact norms of the chosen blocks, whose rows or touched columns number NARROW at most."""
    work = np.zeros(d)
    place = np.full(d, -1, np.int64)
    store, spare = np.empty(NARROW * NARROW), np.empty(NARROW * NARROW)
    for b in chosen:
        start, stop = ptr[b], ptr[b + 1]
        size = min(stop - start, columns[b])
        gram = store[: size * size].reshape((size, size))
        if stop - start <= columns[b]:
            gram_of_rows(rows, scale, start, stop, work, gram)
        else:
            gram_of_columns(rows, scale, start, stop, place, gram)
        out[b] = np.sqrt(largest_eigenvalue(gram, spare[: size * size].reshape((size, size))))


def _add_product(rows, i, scale, v, w):
    """Add |a| <|a|, v> to w, where a is ``scale`` times row i."""
    raise NotImplementedError


@overload(_add_product, jit_options={"fastmath": REASSOCIATE})
def _add_product_of(rows, i, scale, v, w):
    if rows.instance_class is Dense:

        def dense(rows, i, scale, v, w):
            total = 0.0
            for j in range(v.size):
                total += abs(scale * rows.values[i, j]) * v[j]
            for j in range(w.size):
                w[j] += abs(scale * rows.values[i, j]) * total

        return dense

    def csr(rows, i, scale, v, w):
        start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        total = 0.0
        for k in range(start, stop):
            total += abs(scale * rows.data[k]) * v[rows.indices[k]]
        for k in range(start, stop):
            w[rows.indices[k]] += abs(scale * rows.data[k]) * total

    return csr


@jit
def collatz_bound(rows, scale, start, stop, columns, v, w, rounds):
    """Upper bound of the largest eigenvalue of |A|'|A|, hence of the squared norm of A.

    For M >= 0 entrywise and any v > 0 it is at most max_j (Mv)_j / v_j (Collatz, Wielandt). The
    first v is all ones, which gives no more than |A|_1 |A|_inf; power steps improve it. ``columns``
    are the touched ones; ``v`` and ``w`` have d entries and are overwritten there.
    """
    bound = np.inf
    for j in columns:
        v[j] = 1.0
    for _ in range(rounds):
        for j in columns:
            w[j] = 0.0
        for i in range(start, stop):
            _add_product(rows, i, scale[i], v, w)
        worst = 0.0
        peak = 0.0
        for j in columns:
            worst = max(worst, w[j] / v[j])
            peak = max(peak, w[j])
        enough = worst > 0.995 * bound
        bound = min(bound, worst)
        if enough or peak == 0.0:
            break
        for j in columns:
            v[j] = max(w[j] / peak, FLOOR)
    return bound
