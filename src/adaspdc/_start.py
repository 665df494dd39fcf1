"""Where a run starts: the point that a caller gave, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arguments import laid_out
from ._flat import FlatProblem
from .problem import Problem
from .result import Result


def checked_start(
    warm_start: Any, source: Problem, flat: FlatProblem
) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the x (with its intercepts) and of the flat y of a warm start."""
    intercepts = np.zeros(flat.size - flat.dimension)
    if isinstance(warm_start, Result):
        if intercepts.size == np.size(warm_start.intercept):
            intercepts[:] = warm_start.intercept
        warm_start = (warm_start.x, warm_start.y)
    try:
        given_x, given_y = warm_start
        x = np.array(laid_out("x", given_x, flat.shape), dtype=np.float64).reshape(-1)
        y = np.array(source.flat_dual(given_y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"warm_start must be a Result or a pair (x, y) of this problem's shapes: {error}"
        ) from None
    expected = (flat.dimension, flat.dual_size)
    if (x.size, y.size) != expected:
        raise ValueError(
            f"warm_start has {x.size} primal and {y.size} dual numbers; this problem has "
            f"{expected[0]} and {expected[1]}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("warm_start holds NaN or infinity; start from (None) instead")
    return np.concatenate([x, intercepts]), y
