"""``solve``: drive a method from check to check until the certificate, or patience, says stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ._arguments import is_real, laid_out, whole_number
from ._auto import Auto
from ._engine import engine_for
from ._flat import FlatProblem
from ._interrupt import Interrupt
from ._report import Report
from ._stage import Bench, Stage
from ._stochastic import safe_stage, stochastic
from ._threads import Threads
from .certificate import Certificate, Check
from .methods import AUTO, SAFE_METHOD, Method
from .problem import ERM, Problem, SaddlePoint
from .result import ConvergenceWarning, History, Result, Status

_PASSES, _PASSES_OF_AUTO = 500.0, 100_000.0

Callback = Callable[["Progress"], Any]


@dataclass(frozen=True)
class Progress:
    """What a callback sees at every check: the certified state, and the current iterate.

    ``x`` is the current iterate (a copy), in the shape of the problem. Returning a true value from
    the callback, or raising StopIteration, stops the run.
    """

    passes: float
    seconds: float
    objective: float
    primal: float
    dual: float
    gap: float
    tol: float
    x: np.ndarray


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
        Wall-clock limit, setup included, compiling not; kept to within one chunk of a pass.
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
) -> Result:
    """`solve` without its warning, for callers that warn in their own words.

    Filtering the warning instead would be wrong: filters are shared by all threads.
    """
    chosen = _checked_method(method)
    _checked_problem(problem)
    if max_passes is None:
        max_passes = _PASSES_OF_AUTO if chosen.name == AUTO else _PASSES
    limits = _checked_limits(tol, max_passes, max_seconds, check_every)
    threads = whole_number("n_threads", n_threads, 1)
    report = Report(_checked_verbosity(verbose))
    callback = _checked_callback(callback)
    clock = _Clock()
    with clock.compiling(), Interrupt() as interrupt, Threads(threads) as team:
        run = _Run(problem, chosen, limits, team, interrupt, report, callback, clock)
        run.prepare(batch_size, random_state, warm_start)
        return run.go()


class _Clock:
    """Wall-clock time of a solve, with what numba needs for itself taken out."""

    def __init__(self) -> None:
        self._begun = perf_counter()
        self._importing = 0.0
        self._compiler: Any = None

    def compiling(self) -> Any:
        """A context in which compilation is noticed; imports numba, whose time counts as such."""
        from ._kernels.clock import CompileClock

        self._importing = perf_counter() - self._begun
        self._compiler = CompileClock()
        return self._compiler

    @property
    def compile_seconds(self) -> float:
        """Importing numba, compiling kernels, loading them from the cache."""
        return self._importing + float(self._compiler.seconds)

    @property
    def seconds(self) -> float:
        """Everything else."""
        return perf_counter() - self._begun - self.compile_seconds


@dataclass(frozen=True)
class _Limits:
    tol: float
    max_passes: float
    max_seconds: float
    check_every: float | None


class _Run:
    """One solve: the stage at work, the certificate, and the clock."""

    def __init__(
        self,
        source: Problem,
        method: Method,
        limits: _Limits,
        threads: Threads,
        interrupt: Interrupt,
        report: Report,
        callback: Callback | None,
        clock: _Clock,
    ) -> None:
        self._clock = clock
        self._source, self._method, self._limits = source, method, limits
        self._threads, self._interrupt = threads, interrupt
        self._report, self._callback = report, callback
        self._events: list[str] = []
        self._troubles: list[str] = []
        self._history = History()
        self._passes = 0.0
        self._stopped_by: str | None = None

    # --- setting up ---

    def prepare(self, batch_size: int, random_state: Any, warm_start: Any) -> None:
        """Norms, certificate, first stage; kernels compiled."""
        flat = self._source.flatten()
        light = self._flat = flat.without_norms()
        self._batch_size = whole_number("batch_size", batch_size, 1, flat.total)
        engine = engine_for(light, self._threads)
        certificate = self._certificate = Certificate(light, engine, engine.loss_at_zero())
        self._tolerance = self._limits.tol * certificate.scale
        seeds = _seeds(random_state)
        self._bench = Bench(
            self._source, light, self._threads, engine, certificate, self._tolerance, seeds
        )
        self._warm_start = warm_start
        x, y = self._start()
        # The stages of "auto" may take long to their first point, and later ones may be worse.
        self._start_is_certified = self._method.name != AUTO
        if warm_start is not None:  # a method need not start from both x and y
            certificate.check(x, x, y)
            self._start_is_certified = True
        self._stage = self._first_stage(replace(self._bench, flat=flat), x, y)
        self._setup_seconds = self._seconds()

    def _first_stage(self, bench: Bench, x: np.ndarray, y: np.ndarray) -> Stage:
        if self._method.name == AUTO:
            return Auto(bench, self._batch_size, x, y)
        if self._flat.intercept:
            raise ValueError(
                f"method {self._method.name!r} cannot leave an intercept unpenalised; use "
                'method="auto", or append a column of ones to X instead of intercept=True'
            )
        return stochastic(bench, self._method, self._batch_size, x, y)

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Zero, or the warm start, inside the domains; made anew each time."""
        x, y = np.zeros(self._flat.size), np.zeros(self._flat.dual_size)
        if self._warm_start is not None:
            x, y = self._checked_start(self._warm_start)
        self._certificate.move_into_domain(x)
        self._bench.engine.make_feasible(y)
        return x, y

    def _checked_start(self, warm_start: Any) -> tuple[np.ndarray, np.ndarray]:
        intercepts = np.zeros(self._flat.size - self._flat.dimension)
        if isinstance(warm_start, Result):
            if intercepts.size == np.size(warm_start.intercept):
                intercepts[:] = warm_start.intercept
            warm_start = (warm_start.x, warm_start.y)
        try:
            given_x, given_y = warm_start
            x = np.array(laid_out("x", given_x, self._flat.shape), dtype=np.float64).reshape(-1)
            y = np.array(self._source.flat_dual(given_y), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"warm_start must be a Result or a pair (x, y) of this problem's shapes: {error}"
            ) from None
        expected = (self._flat.dimension, self._flat.dual_size)
        if (x.size, y.size) != expected:
            raise ValueError(
                f"warm_start has {x.size} primal and {y.size} dual numbers; this problem has "
                f"{expected[0]} and {expected[1]}"
            )
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError("warm_start holds NaN or infinity; start from (None) instead")
        return np.concatenate([x, intercepts]), y

    # --- running ---

    def go(self) -> Result:
        """From check to check until something says stop."""
        settings = {
            "method": self._method.name,
            "batch_size": self._batch_size,
            "threads": self._threads.size,
        }
        self._report.start(self._source, self._flat, settings, self._tolerance)
        status = self._check()
        while status is None:
            self._passes += self._stage.advance(self._next_check(), self._pause)
            status = self._check()
        self._settle_certificate()
        if self._certificate.gap <= self._tolerance:
            status = Status.CONVERGED
        result = self._result(status)
        self._report.finish(result)
        return result

    def _next_check(self) -> float:
        """Passes till the next check."""
        interval = self._limits.check_every
        if interval is None:
            interval = self._stage.interval(self._passes)
        return min(interval, self._limits.max_passes - self._passes)

    def _pause(self) -> bool:
        return self._out_of_time() or self._interrupt.requested

    def _seconds(self) -> float:
        return self._clock.seconds

    def _out_of_time(self) -> bool:
        return self._seconds() >= self._limits.max_seconds

    def _check(self) -> Status | None:
        """Certify, record, call back; the status if this is the end."""
        for note in self._stage.notes():
            self._tell(note)
        certificate = self._certificate
        check = self._stage.certify()
        if check is None:
            if certificate.gap <= self._tolerance:
                return Status.CONVERGED
            return self._interrupted() or self._exhausted()
        if certificate.gap <= self._tolerance:
            certificate.confirm()
        gap = certificate.gap
        self._record(check)
        if gap <= self._tolerance:
            return Status.CONVERGED
        if np.isnan(gap):
            return Status.NUMERICAL_TROUBLE
        trouble = self._stage.trouble(check, self._passes)
        status = None if trouble is None else self._handle(trouble)
        status = status or self._asked_to_stop(check) or self._exhausted()
        if status is None and trouble is None:
            self._stage.settle(check)
        return status

    def _tell(self, event: str) -> None:
        self._events.append(event)
        self._report.event(event)

    def _record(self, check: Check) -> None:
        certificate = self._certificate
        entry = {
            "passes": self._passes,
            "seconds": self._seconds(),
            "objective": check.objective,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
        }
        self._history.append(**entry)
        self._report.row(**entry)

    def _interrupted(self) -> Status | None:
        if not self._interrupt.requested:
            return None
        self._stopped_by = "interrupted from the keyboard"
        return Status.STOPPED

    def _asked_to_stop(self, check: Check) -> Status | None:
        if self._interrupt.requested or self._callback is None:
            return self._interrupted()
        certificate = self._certificate
        progress = Progress(
            self._passes,
            self._seconds(),
            check.objective,
            certificate.primal,
            certificate.dual,
            certificate.gap,
            self._tolerance,
            self._stage.point()[: self._flat.dimension].reshape(self._flat.shape).copy(),
        )
        try:
            stop = bool(self._callback(progress))
        except StopIteration:
            stop = True
        self._stopped_by = "stopped by the callback"
        return Status.STOPPED if stop else None

    def _exhausted(self) -> Status | None:
        if self._passes >= self._limits.max_passes * (1.0 - 1e-12):
            return Status.MAX_PASSES
        return Status.MAX_SECONDS if self._out_of_time() else None

    def _handle(self, trouble: str) -> Status | None:
        """Leave the stage that is in trouble; the status if there is nothing to leave it for."""
        name = self._stage.name
        if self._stage.provable:
            if "not finite" not in trouble:
                return None  # rounding stops it: patience, or the user, will end the run
            self._fail(f"{trouble}, even with {name}")
            return Status.NUMERICAL_TROUBLE
        if self._flat.intercept:  # nothing else can take it
            if "halved" in trouble:
                return None
            self._fail(trouble)
            return Status.NUMERICAL_TROUBLE
        try:
            self._certificate.confirm()
            self._stage = safe_stage(self._bench, self._batch_size)
        except ValueError as error:
            self._fail(f"{name} gave up: {trouble}; {SAFE_METHOD} cannot: {error}")
            return Status.NUMERICAL_TROUBLE
        self._fail(
            f"{name} gave up: {trouble}; rolled back to the best point and went "
            f"on with {SAFE_METHOD} (provable steps, independent sampling)"
        )
        return None

    def _fail(self, event: str) -> None:
        """Tell of an event that belongs into the final message."""
        self._troubles.append(event)
        self._tell(event)

    # --- ending ---

    def _settle_certificate(self) -> None:
        """See that the answer has numbers computed from scratch, and is no worse than the start."""
        certificate = self._certificate
        certificate.confirm()
        known = certificate.y is not None and np.isfinite(certificate.primal)
        if certificate.gap <= self._tolerance or (known and self._start_is_certified):
            return
        x, y = self._start()
        check = certificate.check(x, x, y)
        if not len(self._history):
            self._record(check)
        elif self._history.gap[-1] != certificate.gap:  # of the best points; the iterate stays
            self._record(replace(check, objective=self._history.objective[-1]))

    def _result(self, status: Status) -> Result:
        certificate, flat = self._certificate, self._flat
        y = certificate.y if certificate.y is not None else self._start()[1]
        x, intercepts = certificate.x[: flat.dimension], certificate.x[flat.dimension :]
        return Result(
            x=x.reshape(flat.shape),
            y=self._source.shape_dual(y),
            primal=certificate.primal,
            dual=certificate.dual,
            gap=certificate.gap,
            tol=self._tolerance,
            status=status,
            message=self._message(status),
            passes=self._passes,
            seconds=self._seconds(),
            setup_seconds=self._setup_seconds,
            compile_seconds=self._clock.compile_seconds,
            history=self._history,
            method=self._method.name,
            events=tuple(self._events),
            intercept=_intercept(intercepts, flat),
        )

    def _message(self, status: Status) -> str:
        gap, tolerance = self._certificate.gap, self._tolerance
        numbers = f"gap {gap:.3e}, asked for {tolerance:.3e} (tol={self._limits.tol:g})"
        sentences = {
            Status.CONVERGED: f"converged: {numbers}",
            Status.MAX_PASSES: (
                f"max_passes={self._limits.max_passes:g} reached: {numbers}; "
                "raise max_passes, loosen tol, or pass this result as warm_start to go on"
            ),
            Status.MAX_SECONDS: (
                f"max_seconds={self._limits.max_seconds:g} reached after {self._passes:g} passes: "
                f"{numbers}; allow more time, or pass this result as warm_start to go on"
            ),
            Status.STOPPED: (
                f"{self._stopped_by} after {self._passes:g} passes: {numbers}; "
                "pass this result as warm_start to go on"
            ),
            Status.NUMERICAL_TROUBLE: (
                f"numerical trouble after {self._passes:g} passes: {numbers}; "
                "the point returned is the best certified one; rescale the data or raise lam"
            ),
        }
        return "; ".join([sentences[status], *self._troubles])


def _intercept(values: np.ndarray, flat: FlatProblem) -> float | np.ndarray:
    if len(flat.shape) == 1:
        return float(values[0]) if values.size else 0.0
    return values if values.size else np.zeros(flat.shape[1])


# --- arguments ------------------------------------------------------------------------------------


def _checked_method(method: Any) -> Method:
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(f"method must be a name or a Method; got {type(method).__name__}")
    return Method(method)


def _checked_problem(problem: Any) -> None:
    if not isinstance(problem, ERM | SaddlePoint):
        raise TypeError(
            f"problem must be an ERM or a SaddlePoint; got {type(problem).__name__}. "
            "Build one, e.g. adaspdc.ERM(X, y, losses.Logistic(), regularizers.L2(1e-6))"
        )


def _checked_verbosity(verbose: Any) -> int:
    return int(verbose) if isinstance(verbose, bool) else whole_number("verbose", verbose, 0)


def _checked_callback(callback: Any) -> Callback | None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Progress, or None; got {callback!r}")
    checked: Callback | None = callback
    return checked


def _checked_limits(tol: Any, max_passes: Any, max_seconds: Any, check_every: Any) -> _Limits:
    relative = _number("tol", tol, "0 or more, e.g. 1e-6")
    if relative == np.inf:
        raise ValueError("tol must be finite, e.g. 1e-6; got inf")
    return _Limits(
        relative,
        _number("max_passes", max_passes, "0 or more, e.g. 500"),
        np.inf
        if max_seconds is None
        else _number("max_seconds", max_seconds, "0 or more, or None"),
        None
        if check_every is None
        else _number("check_every", check_every, "positive, or None", zero=False),
    )


def _number(name: str, value: Any, remedy: str, zero: bool = True) -> float:
    if not is_real(value):
        raise TypeError(f"{name} must be {remedy}; got {value!r}")
    number = float(value)
    if np.isnan(number) or number < 0.0 or (number == 0.0 and not zero):
        raise ValueError(f"{name} must be {remedy}; got {value!r}")
    return number


def _seeds(random_state: Any) -> Any:
    """An endless supply of seeds, the same for the same ``random_state``."""
    entropy = random_state
    if isinstance(random_state, np.random.Generator):  # its present state counts, and moves on
        entropy = random_state.integers(0, 2**32, size=4, dtype=np.uint32)
    try:
        sequence = np.random.SeedSequence(entropy)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be a whole number >= 0, a numpy.random.Generator or None, "
            f"e.g. numpy.random.default_rng(0); got {random_state!r}: {error}"
        ) from None
    while True:
        yield sequence.spawn(1)[0]
