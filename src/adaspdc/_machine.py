"""How long what the default engine has to choose between takes.

Only ratios matter: whether a Cholesky factor is worth so many products with the Hessian. They are
those of a core of a present server, and the same everywhere, so that a choice depends neither on
how busy a machine happens to be nor on which one it is, and every run can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_COEFFICIENTS = 6000
"""No factors of matrices larger than this: two of them take 600 MB."""


@dataclass(frozen=True)
class Machine:
    """Seconds for units of work, on one thread.

    ``walk``: one entry of a sparse row read and written through; ``dense_walk``: of a dense one;
    ``outer``: one entry of an outer product; ``multiply``: one multiplication and addition inside a
    matrix product; ``write``: one entry of a tile; ``factor``: one of the d^3/3 steps of Cholesky.
    """

    walk: float = 1.6e-9
    dense_walk: float = 0.27e-9
    outer: float = 0.8e-9
    multiply: float = 3.0e-11
    write: float = 0.4e-9
    factor: float = 8.0e-11

    def product_seconds(self, entries: float, dense: bool) -> float:
        """A product with a Hessian: every entry read, multiplied, and written through."""
        return entries * (self.dense_walk if dense else self.walk)

    def gram_seconds(self, d: int) -> float:
        """Adding the outer product of one row of d entries by matrix products."""
        return d * (self.write + 0.5 * d * self.multiply)

    def factor_seconds(self, d: int) -> float:
        """A Cholesky factorisation."""
        return d**3 / 3.0 * self.factor
