"""One run: from check to check until the certificate, or patience, says stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from sys import float_info
from typing import Any

import numpy as np

from ._arguments import whole_number
from ._auto import Auto
from ._clock import Clock
from ._engine import engine_for
from ._flat import FlatProblem
from ._interrupt import Interrupt
from ._report import Report
from ._settings import Limits, seeds_of
from ._stage import Bench, Carried, Stage
from ._start import checked_start
from ._stochastic import safe_stage, stochastic
from ._threads import Threads
from .certificate import Certificate, Check
from .methods import AUTO, SAFE_METHOD, Method
from .problem import Problem
from .result import History, Result, Status

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


class Run:
    """One solve: the stage at work, the certificate, and the clock."""

    def __init__(
        self,
        source: Problem,
        method: Method,
        limits: Limits,
        threads: Threads,
        interrupt: Interrupt,
        report: Report,
        callback: Callback | None,
        clock: Clock,
        carried: Carried | None = None,
    ) -> None:
        self._clock, self._carried = clock, carried
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
        carried = self._carried
        flat = self._source.flatten() if carried is None else carried.flat_of(self._source)
        light = self._flat = flat.without_norms()
        self._batch_size = whole_number("batch_size", batch_size, 1, flat.total)
        engine = engine_for(light, self._threads)
        at_zero = engine.loss_at_zero() if carried is None else carried.loss_at_zero(engine)
        certificate = self._certificate = Certificate(light, engine, at_zero)
        if not isfinite(certificate.scale):
            raise ValueError(
                f"the objective at x = 0 is {certificate.scale:g}, beyond the range of float64; "
                "rescale y, e.g. divide it by numpy.abs(y).max()"
            )
        self._tolerance = min(self._limits.tol * certificate.scale, float_info.max)
        seeds = seeds_of(random_state)
        self._bench = Bench(
            self._source, light, self._threads, engine, certificate, self._tolerance, seeds, carried
        )
        self._warm_start = warm_start
        x, y = self._start()
        # The stages of "auto" may take long to their first point, and later ones may be worse.
        self._start_is_certified = self._method.name != AUTO
        going_on = carried is not None and carried.newton is not None  # and certifies its start
        if warm_start is not None and not going_on:  # a method need not start from both x and y
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
            x, y = checked_start(self._warm_start, self._source, self._flat)
        self._certificate.move_into_domain(x)
        self._bench.engine.make_feasible(y)
        return x, y

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
            passes=float(self._passes),
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
