"""Newton's method on the primal, with the certificate that its own quantities give."""

from ._stage import NewtonStage
from ._walks import by_rows, is_quadratic

__all__ = ["NewtonStage", "by_rows", "is_quadratic"]
