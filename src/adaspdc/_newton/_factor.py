"""Cholesky factors of ``(1/n) sum_i weight_i a_i a_i^T`` plus a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._containers import Dense
from .._machine import Machine
from ._walks import Walks

_ROWS_A_TILE, _ENTRIES_A_TILE = 512, 65_536


class Gram:
    """Sums of outer products of rows, in whichever of two ways takes less time.

    Sparse rows are multiplied out entry by entry, or written out in full a tile at a time for
    BLAS to do the rest.
    """

    def __init__(self, walks: Walks, machine: Machine) -> None:
        self._walks, self._machine = walks, machine
        self.d = walks.size // walks.outputs
        rows = walks.blocks.rows
        self.dense = isinstance(rows, Dense)
        self._lengths = None if self.dense else np.diff(rows.indptr.astype(np.int64))

    def seconds(self, count: int) -> float:
        """What a sum over ``count`` rows will cost, about."""
        written_out = count * self._machine.gram_seconds(self.d)
        if self._lengths is None:
            return written_out
        squares = float(np.mean(self._lengths.astype(np.float64) ** 2))
        return min(written_out, 0.5 * count * squares * self._machine.outer)

    def __call__(self, chosen: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """``(1/n) sum_k weight[k] a a^T``, a the row ``chosen[k]``; lower triangle valid."""
        if self._lengths is not None:
            squares = float(np.sum(self._lengths[chosen].astype(np.float64) ** 2))
            if 0.5 * squares * self._machine.outer < chosen.size * self._machine.gram_seconds(
                self.d
            ):
                return self._by_entries(chosen, weight)
        return self._by_tiles(chosen, weight)

    def _by_entries(self, chosen: np.ndarray, weight: np.ndarray) -> np.ndarray:
        from .._kernels.smooth import add_outer_products

        walks, blocks = self._walks, self._walks.blocks
        parts = np.zeros((2, self.d, self.d))
        middle = chosen.size // 2
        spans = [(0, middle), (middle, chosen.size)]
        walks.both(
            lambda k: add_outer_products(
                blocks, walks.features, chosen, weight, *spans[k], parts[k]
            ),
            chosen.size,
        )
        total: np.ndarray = parts[0]
        total += parts[1]
        total /= blocks.n
        above = np.triu(total, 1)  # entries of rows whose columns are not in order
        if above.any():
            total += above.T
        return total

    def _by_tiles(self, chosen: np.ndarray, weight: np.ndarray) -> np.ndarray:
        middle = chosen.size // 2
        spans = [(0, middle), (middle, chosen.size)]
        parts: list[Any] = [None, None]

        plain = self._as_it_is(chosen, weight)

        def half(k: int) -> None:
            if plain is None:
                parts[k] = self._span(chosen, weight, *spans[k])
            else:
                own = plain[slice(*spans[k])]
                parts[k] = own.T @ own
                parts[k] *= weight[0]

        self._walks.both(half, chosen.size * self.d)
        total: np.ndarray = parts[0]
        total += parts[1]
        total /= self._walks.blocks.n
        return total

    def _as_it_is(self, chosen: np.ndarray, weight: np.ndarray) -> Any:
        """The matrix where it can be handed to BLAS: dense, of one weight, without intercept."""
        rows = self._walks.blocks.rows
        whole = self.dense and chosen.size == self._walks.n and self.d == int(self._walks.features)
        if not whole or rows.values.dtype != np.float64 or weight.min() != weight.max():
            return None
        return rows.values

    def _span(self, chosen: np.ndarray, weight: np.ndarray, begin: int, end: int) -> np.ndarray:
        from .._kernels.smooth import fill_tile

        d, walks = self.d, self._walks
        height = max(1, min(max(_ROWS_A_TILE, d, _ENTRIES_A_TILE // d), end - begin))
        tile, product = np.empty((height, d)), np.empty((d, d))
        total = np.zeros((d, d))
        for start in range(begin, end, height):
            stop = min(start + height, end)
            fill_tile(walks.blocks, walks.features, chosen, weight, start, stop, tile)
            own = tile[: stop - start]
            np.matmul(own.T, own, out=product)
            total += product
        return total


class Factor:
    """The Cholesky factor of a matrix plus a diagonal; ``solve`` applies the inverse."""

    def __init__(self, matrix: np.ndarray, shift: np.ndarray) -> None:
        from scipy.linalg import lapack

        self._lapack = lapack
        lifted = matrix.diagonal() + shift
        top = max(float(lifted.max(initial=0.0)), 1e-300)
        for lift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-4, 1.0):
            own = matrix.copy() if lift < 1.0 else np.zeros_like(matrix)
            np.einsum("ii->i", own)[:] = lifted + lift * top
            # The lower triangle by rows is the upper one by columns, which LAPACK wants.
            self._factor, info = lapack.dpotrf(own.T, lower=0, clean=0, overwrite_a=1)
            if info == 0:
                break
        self.exact = lift == 0.0

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution of ``(matrix + shift) x = b``."""
        x: np.ndarray = self._lapack.dpotrs(self._factor, b, lower=0)[0]
        return x


class Factors:
    """A factor for each output, of its matrix plus the diagonal ``shift``, on the free coordinates.

    Without what couples the outputs, so `exact` only where there is one.
    """

    def __init__(
        self, matrices: list[np.ndarray], shift: np.ndarray, free: np.ndarray | None
    ) -> None:
        self._outputs = len(matrices)
        self._free = free
        self._factors = []
        self._places: list[Any] = []
        for k, matrix in enumerate(matrices):
            own = shift[k :: self._outputs]
            places: Any = slice(None) if free is None else np.flatnonzero(free[k :: self._outputs])
            chosen = matrix if free is None else matrix[np.ix_(places, places)]
            self._places.append(places)
            self._factors.append(Factor(chosen, own[places]))
        self.exact = all(factor.exact for factor in self._factors)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Apply the inverse of every output's matrix to its coordinates; 0 where not free."""
        out: np.ndarray = np.zeros(b.size)
        for k, (factor, places) in enumerate(zip(self._factors, self._places, strict=True)):
            own = np.ascontiguousarray(b[k :: self._outputs][places])
            if own.size:
                out[k :: self._outputs][places] = factor.solve(own)
        return out


class Diagonal:
    """The diagonal alone."""

    exact = False

    def __init__(self, diagonal: np.ndarray, free: np.ndarray | None) -> None:
        self._inverse = 1.0 / np.maximum(diagonal, 1e-300)
        if free is not None:
            self._inverse[~free] = 0.0

    def solve(self, b: np.ndarray) -> np.ndarray:
        """``b`` divided by the diagonal, 0 where not free."""
        scaled: np.ndarray = b * self._inverse
        return scaled
