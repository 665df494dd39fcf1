"""``path``: one problem at several values of lam."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from ._arguments import whole_number
from ._stage import Carried
from ._threads import Threads
from .problem import ERM, SaddlePoint
from .result import ConvergenceWarning, Result
from .solver import solve_quietly


def path(problem: ERM | SaddlePoint, lambdas: Iterable[float], **options: Any) -> list[Result]:
    """Solve a problem at several values of lam, the strong convexity of g.

    Goes from the largest to the smallest and starts every solve from the result before it. All
    else in the regulariser stays as it is: the l1 weight of an elastic net, bounds, group weights.

    Parameters
    ----------
    problem : ERM or SaddlePoint
        Its own lam plays no part.
    lambdas : iterable of float
        Positive, in any order.
    **options
        As for `solve`; ``warm_start`` is where the first solve starts. ``max_passes`` and
        ``max_seconds`` hold for each of them.

    Returns
    -------
    list of Result
        In the order of ``lambdas``, each with its own certificate. Where Ctrl-C or the callback
        stops a solve, those still to come are left out, and the list is shorter.

    Examples
    --------
    >>> import numpy as np
    >>> from adaspdc import ERM, losses, path, regularizers
    >>> X, y = np.eye(3), np.array([1.0, 2.0, 3.0])
    >>> problem = ERM(X, y, losses.Squared(), regularizers.L2(1.0))
    >>> [float(np.round(result.x[2], 3)) for result in path(problem, [1.0, 0.1, 0.01])]
    [0.75, 2.308, 2.913]
    """
    values = [float(value) for value in lambdas]
    problems = [problem.at_lam(value) for value in values]
    found: dict[int, Result] = {}
    start = options.pop("warm_start", None)
    size = whole_number("n_threads", options.get("n_threads", 1), 1)
    with Threads(size) as threads:
        carried = Carried(threads)
        for k in sorted(range(len(values)), key=lambda k: -values[k]):
            result = solve_quietly(problems[k], warm_start=start, carried=carried, **options)
            if not result.converged:
                warnings.warn(result.message, ConvergenceWarning, stacklevel=2)
            found[k] = start = result
            if result.status == "stopped":
                break
    return [found[k] for k in sorted(found)]
