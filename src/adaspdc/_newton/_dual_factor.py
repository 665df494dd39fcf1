"""The inverse of ``shift I + sum_i weight_i a_i a_i^T`` where there are fewer rows than columns.

By Woodbury's formula it is ``(I - A^T (shift / weight + A A^T)^{-1} A) / shift``, with a matrix of
the rows to factor instead of one of the columns. The difference cancels digits when shift is small,
so it is to be used inside conjugate gradients, of which it leaves a few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._containers import Dense
from ._factor import Factor


class DualFactor:
    """``rows`` are those of the problem; `renew` factors for new weights."""

    exact = False

    def __init__(self, rows: Any, d: int) -> None:
        if isinstance(rows, Dense):
            self._rows: Any = np.asarray(rows.values, dtype=np.float64)
            self._products = self._rows @ self._rows.T
            return
        from scipy.sparse import csr_array

        indices, start = (np.asarray(a, dtype=np.int64) for a in (rows.indices, rows.indptr))
        data = np.asarray(rows.data, dtype=np.float64)
        self._rows = csr_array((data, indices, start), shape=(start.size - 1, d))
        self._products = (self._rows @ self._rows.T).toarray()

    def renew(self, weight: np.ndarray, shift: float) -> None:
        """Rows of no weight take no part."""
        self._shift, self._used = shift, np.flatnonzero(weight)
        own = self._products[np.ix_(self._used, self._used)]
        self._factor = Factor(own, shift / weight[self._used])

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Apply the inverse."""
        u = np.zeros(self._rows.shape[0])
        if self._used.size:
            u[self._used] = self._factor.solve(np.ascontiguousarray((self._rows @ b)[self._used]))
        out: np.ndarray = (b - self._rows.T @ u) / self._shift
        return out
