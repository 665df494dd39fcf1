"""The one place where estimators meet the solver: a `Task` goes in, a certified point comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from .._interrupt import Interrupt
from ..losses import Loss, SquaredEpsilonInsensitive
from ..methods import Method
from ..problem import ERM
from ..regularizers import Regularizer
from ..result import History, Result, Status
from ..solver import solve_quietly
from ._bounds import Bounds, primal_value
from ._newton import Point, is_small, newton
from ._task import Array, Penalty, Task


@dataclass(frozen=True)
class Options:
    """How long to go on; ``tol`` is relative to the objective at zero."""

    tol: float
    max_passes: float
    max_seconds: float | None = None
    method: str | Method = "auto"
    random_state: Any = 0
    verbose: int = 0


@dataclass(frozen=True)
class Solution:
    """Coefficients, intercept and dual point of a task, and the run that found them."""

    x: Array
    b: Any
    y: Array
    result: Result
    remark: str = ""
    """What a user has to know although the run did what it was to do."""


def minimise_smooth(task: Task, options: Options, start: Solution | None = None) -> Solution:
    """A task with a smooth loss and lam > 0."""
    if options.method == "auto" and is_small(task):
        found = by_newton(task, options, start)
        if found.result.converged:
            return found
        start = found
    return by_solver(task, options, start)


def by_newton(
    task: Task, options: Options, start: Solution | None = None, lam: float | None = None
) -> Solution:
    """A task whose loss has a known curvature, by Newton's method."""
    begun = perf_counter()
    bounds = Bounds(task)
    tolerance = options.tol * scale_of(task)
    limit = np.inf if options.max_seconds is None else options.max_seconds

    def enough(point: Point) -> bool:
        bounds.offer(point.x, point.b, point.y)
        out = perf_counter() - begun >= limit or interrupt.requested
        return bounds.gap <= tolerance or point.steps >= options.max_passes or out

    first = None if start is None else (start.x, start.b)
    with Interrupt() as interrupt:
        point = newton(task, first, lam, None if is_small(task) else enough)
    bounds.offer(point.x, point.b, point.y)
    seconds, stopped = perf_counter() - begun, interrupt.requested
    return as_solution(bounds, options, point.steps, seconds, "newton", interrupted=stopped)


def by_solver(task: Task, options: Options, start: Solution | None = None) -> Solution:
    """A task with a smooth loss and lam > 0, by `solve`."""
    assert isinstance(task.loss, Loss)
    penalty = task.penalty
    regularizer = penalty if isinstance(penalty, Regularizer) else penalty.regularizer()
    if task.intercept and options.method != "auto":
        raise ValueError(
            f"solver={options.method!r} cannot leave an intercept unpenalised: use solver='auto', "
            "or fit_intercept=False with a column of ones in X"
        )
    try:
        result = _solved(task, task.loss, regularizer, options, start)
    except ValueError as error:  # in the words of an estimator
        raise ValueError(str(error).replace("intercept=True", "fit_intercept=True")) from None
    return Solution(result.x, result.intercept, result.y, result)


def _solved(
    task: Task, loss: Loss, regularizer: Regularizer, options: Options, start: Solution | None
) -> Result:
    problem = ERM(task.rows, task.target, loss, regularizer, task.weight, task.intercept)
    return solve_quietly(
        problem,
        options.method,
        tol=options.tol,
        max_passes=options.max_passes,
        max_seconds=options.max_seconds,
        warm_start=None if start is None else _warm(task, start),
        random_state=options.random_state,
        verbose=options.verbose,
    )


def _warm(task: Task, start: Solution) -> Result | None:
    """Another solution as a start: of other rows, its coefficients still are."""
    if start.x.shape != task.coef_shape:
        return None
    y = start.y if start.y.shape[0] == task.n else np.zeros((task.n, *task.coef_shape[1:]))
    return replace(start.result, x=start.x, y=y, intercept=start.b)


def scale_of(task: Task) -> float:
    """What the tolerance is relative to: the objective at zero."""
    zero = np.zeros(task.coef_shape)
    return max(1e-300, abs(primal_value(task, zero, 0.0)))


def as_solution(
    bounds: Bounds,
    options: Options,
    passes: float,
    seconds: float,
    method: str,
    scale: float | None = None,
    interrupted: bool = False,
) -> Solution:
    """The best pair as the result of a run."""
    task = bounds.task
    tolerance = options.tol * (scale_of(task) if scale is None else scale)
    x = np.zeros(task.coef_shape) if bounds.x is None else bounds.x
    y = np.zeros((task.n, *task.coef_shape[1:])) if bounds.y is None else bounds.y
    converged = bounds.gap <= tolerance
    status = Status.CONVERGED if converged else _why(options, passes, seconds, interrupted)
    numbers = f"gap {bounds.gap:.3e}, asked for {tolerance:.3e} (tol={options.tol:g})"
    history = History()
    history.append(
        passes=float(passes),
        seconds=seconds,
        objective=bounds.primal,
        primal=bounds.primal,
        dual=bounds.dual,
        gap=bounds.gap,
    )
    result = Result(
        x=x,
        y=y,
        primal=bounds.primal,
        dual=bounds.dual,
        gap=bounds.gap,
        tol=tolerance,
        status=status,
        message=f"{_REASONS[status].format(passes=passes, options=options)}: {numbers}",
        passes=float(passes),
        seconds=seconds,
        setup_seconds=0.0,
        compile_seconds=0.0,
        history=history,
        method=method,
        intercept=bounds.b,
    )
    return Solution(x, bounds.b, y, result)


_REASONS = {
    Status.CONVERGED: "converged",
    Status.MAX_PASSES: "max_passes={options.max_passes:g} reached",
    Status.MAX_SECONDS: "max_seconds={options.max_seconds} reached after {passes:g} passes",
    Status.STOPPED: "interrupted from the keyboard after {passes:g} passes",
    Status.NUMERICAL_TROUBLE: "no further progress after {passes:g} passes",
}


def _why(options: Options, passes: float, seconds: float, interrupted: bool) -> Status:
    if interrupted:
        return Status.STOPPED
    if passes >= options.max_passes:
        return Status.MAX_PASSES
    if options.max_seconds is not None and seconds >= options.max_seconds:
        return Status.MAX_SECONDS
    return Status.NUMERICAL_TROUBLE


# --- moving the origin ----------------------------------------------------------------------------


def centred(task: Task) -> tuple[Task, Array | None, Any]:
    """The same task around other origins, where there is an intercept to make up for it.

    Targets are taken relative to the best constant, so that the tolerance is relative to what a
    constant model leaves unexplained. Columns whose mean dwarfs their spread (time stamps) are
    shifted to mean zero, in a copy, because nothing accurate can be computed from them as they are.
    """
    if not task.intercept:
        return task, None, 0.0
    shift, origin = _offsets(task), 0.0
    target = task.target
    if task.loss.kind in ("regression", "multioutput"):
        origin = _best_constant(task)
        target = target - origin
    if shift is None and target is task.target:
        return task, None, 0.0
    X = task.X
    if shift is not None:
        X = (X - shift).astype(X.dtype, copy=False)
    moved = replace(task, X=X, target=target)
    if shift is None and "rows" in task.__dict__:
        moved.__dict__["rows"] = task.rows
    return moved, shift, origin


_OFFSET = 100.0
_CONSTANT = 1e4
"""A column of ones does no harm: not worth a copy."""


def _offsets(task: Task) -> Array | None:
    X = task.X
    if not isinstance(X, np.ndarray):
        return None
    mean = task.pull(np.ones(task.n))
    low, high = X.min(axis=0), X.max(axis=0)
    spread = high.astype(np.float64) - low
    far = np.abs(mean) > np.where(spread > 0.0, _OFFSET * spread, _CONSTANT)
    return np.where(far, mean, 0.0) if far.any() else None


def _best_constant(task: Task) -> Any:
    if getattr(task.loss, "name", "") in ("squared", "multi-output squared"):
        return task.share @ task.target
    if isinstance(task.loss, SquaredEpsilonInsensitive):
        return _root_of_slope(task, task.loss)
    return weighted_quantile(task.target, task.share, getattr(task.loss, "quantile", 0.5))


def _root_of_slope(task: Task, loss: Loss) -> float:
    """The constant at which the mean slope changes its sign, by bisection."""
    low, high = float(task.target.min()), float(task.target.max())
    for _ in range(40):
        middle = 0.5 * (low + high)
        if task.share @ loss.derivative(middle, task.target) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def weighted_quantile(values: Array, share: Array, quantile: float) -> float:
    """The least value with at least this share at or below it."""
    order = np.argsort(values, kind="stable")
    order = order[share[order] > 0.0]
    below = np.cumsum(share[order])
    return float(values[order[min(np.searchsorted(below, quantile - 1e-12), order.size - 1)]])


def moved_back(solution: Solution, shift: Array | None, origin: Any) -> Solution:
    """A solution of the centred task in the coordinates of the user."""
    b = solution.b + origin
    if shift is not None:
        b = b - shift @ solution.x
    return replace(solution, b=b)


def with_penalty(penalty: Penalty | Regularizer, lam: float) -> Penalty:
    """The same penalty with another ``lam``."""
    assert isinstance(penalty, Penalty)
    return replace(penalty, lam=lam)
