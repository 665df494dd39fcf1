"""``solve``: a problem and its options in, a certified result out."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np

from ._arguments import whole_number
from ._clock import Clock
from ._interrupt import Interrupt
from ._report import Report
from ._run import Callback, Progress
from ._run import Run as _Run
from ._settings import (
    checked_callback,
    checked_limits,
    checked_method,
    checked_problem,
    checked_verbosity,
)
from ._stage import Carried
from ._threads import Threads
from .methods import AUTO, Method
from .problem import Problem
from .result import ConvergenceWarning, Result

__all__ = ["Progress", "solve", "solve_quietly"]

_PASSES, _PASSES_OF_AUTO = 500.0, 100_000.0


def solve(
    problem: Problem,
    method: str | Method = "auto",
    *,
    batch_size: int = 1,
    tol: float = 1e-6,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    warm_start: Result | tuple[Any, Any] | None = None,
    random_state: int | np.random.Generator | None = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
    verbose: int = 0,
    check_every: float | None = None,
) -> Result:
    """Solve a saddle-point problem to a certified duality gap.

    Parameters
    ----------
    problem : ERM or SaddlePoint
    method : str or Method
        "auto" chooses and tunes by itself; the result's ``events`` say what it did. By name:
        "adaspdc", "spdc", "spdc-nonuniform", "spdhg", "sdca", "sag", "saga" or "pdhg".
    batch_size : int
        Blocks per iteration, 1..n. Batches are split over threads where that pays.
    tol : float
        Relative: the run has converged when ``gap <= tol * max(1e-300, |P(0)|)``, P(0) the
        objective at x = 0 (at the minimiser of g where 0 is outside its domain). The result
        reports the absolute bound as ``result.tol``.
    max_passes : float, optional
        Row visits allowed, in multiples of n: by default 500, and 100,000 for "auto", each of whose
        iterations may take many. Checks come on top: each costs about half a pass.
    max_seconds : float, optional
        Wall-clock limit, setup included, compiling not; kept to within a pass and 0.1 s.
    warm_start : Result or (x, y), optional
        Where to start: a result of the same data, perhaps of another lam.
    random_state : int, Generator or None
        Seed of the sampling. The same seed gives the same bits for any ``n_threads``.
    n_threads : int
        Threads for Newton's method, large batches, the batch method and the checks; LinearOperators
        use one.
    callback : callable, optional
        Called with a `Progress` at every check; a true return value (or StopIteration) stops.
    verbose : int
        1 prints a log.
    check_every : float, optional
        Passes between checks; by default they thin out from every pass to every fifth.

    Returns
    -------
    Result
        Always with the best certified pair seen. Unless it has converged, a `ConvergenceWarning`
        says why and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from adaspdc import ERM, losses, regularizers, solve
    >>> X, y = np.eye(3), np.array([1.0, 2.0, 3.0])
    >>> result = solve(ERM(X, y, losses.Squared(), regularizers.L2(0.5)), tol=1e-8)
    >>> np.round(result.x, 4)
    array([0.4, 0.8, 1.2])
    """
    result = solve_quietly(
        problem,
        method,
        batch_size=batch_size,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        warm_start=warm_start,
        random_state=random_state,
        n_threads=n_threads,
        callback=callback,
        verbose=verbose,
        check_every=check_every,
    )
    if not result.converged:
        warnings.warn(result.message, ConvergenceWarning, stacklevel=2)
    return result


def solve_quietly(
    problem: Problem,
    method: str | Method = "auto",
    *,
    batch_size: int = 1,
    tol: float = 1e-6,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    warm_start: Result | tuple[Any, Any] | None = None,
    random_state: int | np.random.Generator | None = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
    verbose: int = 0,
    check_every: float | None = None,
    carried: Carried | None = None,
) -> Result:
    """`solve` without its warning, for callers that warn in their own words.

    Filtering the warning instead would be wrong: filters are shared by all threads. What is
    ``carried`` from solve to solve holds the threads, and outlives them.
    """
    chosen = checked_method(method)
    checked_problem(problem)
    if max_passes is None:
        max_passes = _PASSES_OF_AUTO if chosen.name == AUTO else _PASSES
    limits = checked_limits(tol, max_passes, max_seconds, check_every)
    threads = whole_number("n_threads", n_threads, 1)
    own = Threads(threads) if carried is None else nullcontext(carried.threads)
    report = Report(checked_verbosity(verbose))
    callback = checked_callback(callback)
    clock = Clock()
    with clock.compiling(), Interrupt() as interrupt, own as team:
        run = _Run(problem, chosen, limits, team, interrupt, report, callback, clock, carried)
        run.prepare(batch_size, random_state, warm_start)
        return run.go()
