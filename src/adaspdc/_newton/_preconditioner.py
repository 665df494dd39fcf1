"""Which matrix stands in for the Hessian inside conjugate gradients.

A diagonal to begin with; once the products with the Hessian have taken the time that a Cholesky
factor would, a factor, for then it would have been right to build one at once, at half of what has
been spent. A factor serves until the products that it did not save have cost as much as a new one.

Where some coordinates are held fixed, everything happens on the others, the *free* ones: a matrix
serves all sets of them, each with a factor of its own.
"""

from __future__ import annotations

import numpy as np

from .._machine import MOST_COEFFICIENTS, Machine
from ._dual_factor import DualFactor
from ._factor import Diagonal, Factors, Gram
from ._sample import curvature_sample
from ._walks import Expansion, Walks

_CHEAP = 6.0
"""A factor that costs fewer products than this is built anew in every iteration."""
_EXACT, _SAMPLED = 4.0, 1.5
"""A Hessian that costs more products is made from a sample of the rows, for so many products."""
_ROWS_A_COLUMN = 30
"""The least such a sample holds, in multiples of d."""
_MOST_ROWS = 2500
"""With more columns than that, but no more rows than this, a matrix of the rows is factored."""
_LONG = 50


class Preconditioner:
    """The present stand-in, renewed by `prepare` when that pays."""

    def __init__(self, walks: Walks, machine: Machine, rng: np.random.Generator) -> None:
        self._walks, self._machine, self._rng = walks, machine, rng
        self._shift: np.ndarray | None = None
        self._gram = Gram(walks, machine)
        self._matrices: list[np.ndarray] = []
        self._diagonal: np.ndarray | None = None
        self._by_rows: DualFactor | None = None
        self._present: Factors | Diagonal | DualFactor | None = None
        self._free: np.ndarray | None = None
        self._whole = False
        """Whether the matrices are the Hessian itself, where they were made."""
        self.exact = False
        self._products = 0
        """Products since the present one was made."""
        self._idle_seconds = 0.0
        self._curved = walks.n

    def move_to(self, walks: Walks) -> None:
        """Serve other rows; what was made for those before may do for these."""
        self._walks, self._gram = walks, Gram(walks, self._machine)
        self._whole, self.exact = False, False

    def count(self, products: int) -> None:
        """Conjugate gradients took so many products."""
        self._products += products
        if not self._matrices and self._by_rows is None:
            self._idle_seconds += products * self.product_seconds()

    def overdue(self, products: int) -> bool:
        """Whether so many more products make it right to stop and build a factor."""
        if self._matrices or self._by_rows is not None or products == 0:
            return False
        spent = self._idle_seconds + (products + _CHEAP) * self.product_seconds()
        seconds = self._row_seconds() if self._few_rows else self._seconds(self._rows())
        return self.factors_pay and spent >= seconds

    @property
    def factors_pay(self) -> bool:
        """Whether factors are within reach at all."""
        return self._gram.d <= MOST_COEFFICIENTS or self._few_rows

    def discard(self) -> None:
        """Whatever there is has failed."""
        self._matrices, self._diagonal, self._by_rows, self._present = [], None, None, None
        self._whole, self.exact = False, False

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Apply the inverse of the present one, on the free coordinates."""
        assert self._present is not None
        return self._present.solve(b)

    def product_seconds(self) -> float:
        """A product with the Hessian."""
        walks = self._walks
        entries = max(1, walks.entries) * walks.outputs
        return self._machine.product_seconds(entries, self._gram.dense)

    def prepare(self, at: Expansion, shift: np.ndarray, free: np.ndarray | None = None) -> None:
        """See that there is one for H plus a diagonal; `exact` tells if it is just that.

        ``free`` says which coordinates are; None for all. ``shift`` is another array whenever it
        changes.
        """
        renewed = self._renew(at, whole=free is None)
        if free is None or self._free is None:
            same = free is self._free
        else:
            same = bool(np.array_equal(free, self._free))
        same &= shift is self._shift
        self._shift = shift
        if renewed or not same or self._present is None:
            self._free = None if free is None else free.copy()
            self._present = self._restricted(free)
        self.exact = self._whole and isinstance(self._present, Factors) and self._present.exact

    def _restricted(self, free: np.ndarray | None) -> Factors | Diagonal | DualFactor:
        assert self._shift is not None
        if self._by_rows is not None and free is None:
            self._by_rows.renew(self._weights, float(self._shift[0]))
            return self._by_rows
        if not self._matrices:
            assert self._diagonal is not None
            return Diagonal(self._diagonal + self._shift, free)
        return Factors(self._matrices, self._shift, free)

    def _renew(self, at: Expansion, whole: bool) -> bool:
        """Make the diagonal or the matrices anew if that is due; whether it was.

        ``whole`` says that all coordinates are free.
        """
        if self._whole and self._walks.quadratic:
            return False
        self._whole = False
        self._curved = self._count_curved(at)
        product, rows = self.product_seconds(), self._rows()
        if whole and self._few_rows:
            return self._renew_by_rows(at)
        seconds = self._seconds(rows)
        if self._gram.d > MOST_COEFFICIENTS or self._idle_seconds + _CHEAP * product < seconds:
            return self._renew_diagonal(at)
        worn = self._products * product > 0.5 * seconds or self._products > _LONG
        if not self._matrices or worn or seconds <= _CHEAP * product:
            self._renew_matrices(at, rows)
            return True
        return False

    @property
    def _few_rows(self) -> bool:
        walks = self._walks
        suits = walks.outputs == 1 and walks.size == int(walks.features) and self._free is None
        return suits and walks.size > MOST_COEFFICIENTS and walks.n <= _MOST_ROWS

    def _row_seconds(self) -> float:
        """The matrix of all rows, and a factor of it."""
        n = self._walks.n
        building = n * self._walks.entries * self._machine.outer
        return building + self._machine.factor_seconds(n)

    def _renew_by_rows(self, at: Expansion) -> bool:
        seconds, product = self._row_seconds(), self.product_seconds()
        if self._by_rows is None:
            if self._idle_seconds + _CHEAP * product < seconds:
                return self._renew_diagonal(at)
            self._by_rows = DualFactor(self._walks.blocks.rows, self._walks.size)
        elif 4 * self._products * product <= 0.5 * self._machine.factor_seconds(self._walks.n):
            return False
        blocks = self._walks.blocks
        self._weights = self._walks.curvatures(at)[:, 0] / float(blocks.n)
        self._products = 0
        return True

    def _count_curved(self, at: Expansion) -> int:
        """How many rows have curvature, hence a part in a factor."""
        walks = self._walks
        if walks.outputs > 1:
            return walks.n
        return int(np.count_nonzero(at.curvature))

    def _rows(self) -> int:
        """How many rows a factor should be made of."""
        whole = self._curved
        products = self._gram.seconds(whole) * self._walks.outputs / self.product_seconds()
        if products <= _EXACT:
            return whole
        wanted = max(_ROWS_A_COLUMN * self._gram.d, int(whole * _SAMPLED / products))
        return min(whole, wanted)

    def _seconds(self, rows: int) -> float:
        each = self._gram.seconds(rows) + self._machine.factor_seconds(self._gram.d)
        return each * self._walks.outputs

    def _renew_diagonal(self, at: Expansion) -> bool:
        self._matrices = []
        if self._diagonal is not None and self._products <= _LONG // 5:
            return False
        self._diagonal = self._walks.diagonal(at)
        self._products = 0
        return True

    def _renew_matrices(self, at: Expansion, rows: int) -> None:
        walks, kept = self._walks, 0
        self._matrices = []
        curvatures = walks.curvatures(at)
        for k in range(walks.outputs):
            own = np.ascontiguousarray(curvatures[:, k])
            chosen, weight = curvature_sample(own, rows, self._rng)
            kept = chosen.size
            self._matrices.append(self._gram(chosen, weight))
        self._whole = walks.outputs == 1 and kept == np.count_nonzero(curvatures)
        self._products = 0
