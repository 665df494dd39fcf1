"""Newton's method as a stage of a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._flat import FlatProblem
from .._machine import Machine
from .._stage import Bench
from ..certificate import Check
from ._face_newton import FaceNewton
from ._smooth_newton import SmoothNewton
from ._term import term_of

_MOST_REFUSALS = 3
_PATIENCE = 100
"""Iterations in which the gap has to halve."""


class NewtonStage:
    """``problem`` is the one of the bench with every row a block of its own."""

    name = "newton"
    provable = False

    def __init__(self, bench: Bench, problem: FlatProblem, x: np.ndarray) -> None:
        self._bench = bench
        bench.threads.quiet_blas()
        rng = np.random.default_rng(next(bench.seeds))
        term = term_of(problem)
        assert term is not None
        kind = SmoothNewton if term.smooth else FaceNewton
        carried = bench.carried
        self._newton: SmoothNewton
        if carried is not None and carried.newton is not None:
            self._newton = carried.newton
            self._newton.go_on_with(term, x)
        else:
            self._newton = kind(problem, bench.threads, Machine(), rng, term, x)
        if carried is not None:
            carried.newton = self._newton
        self._begun = False
        self._refusals = 0
        self._mark, self._since = np.inf, 0

    @property
    def _enough(self) -> float:
        """The gap at which to stop: a hair less than asked for, to be confirmed afresh."""
        return self._bench.tolerance * (1.0 - 1e-6)

    def advance(self, passes: float, pause: Callable[[], bool]) -> float:
        newton = self._newton
        before = newton.passes
        while not self._done(before, passes) and not pause():
            newton.iterate(self._enough, pause)
            self._begun = True
            if newton.certified:
                break
        return newton.passes - before

    def _done(self, before: float, passes: float) -> bool:
        return self._newton.passes - before > passes or self._newton.stuck

    def certify(self) -> Check | None:
        newton = self._newton
        if not (newton.certified and self._begun):
            return None
        if newton.dual > -np.inf:
            self._bench.certificate.offer(newton.x, newton.primal, newton.y, newton.dual)
        return Check(newton.value, newton.value, newton.dual, np.zeros(0))

    def point(self) -> np.ndarray:
        x: np.ndarray = self._newton.x
        return x

    def trouble(self, check: Check, passes: float) -> str | None:
        if not np.isfinite(check.objective):
            return f"the iterate is not finite after {passes:g} passes"
        if self._newton.stuck or self._refusals >= _MOST_REFUSALS:
            return f"rounding stops Newton's method after {passes:g} passes"
        gap = self._bench.certificate.gap
        self._since += 1
        if gap <= 0.5 * self._mark:
            self._mark, self._since = gap, 0
        if self._since > _PATIENCE:
            return f"its gap of {gap:.1e} has not halved in {_PATIENCE} iterations"
        return None

    def settle(self, check: Check) -> None:
        """Margins are carried along; if they seem to have arrived and have not, renew them."""
        newton = self._newton
        if newton.primal - newton.dual <= self._bench.tolerance:
            self._refusals += 1
            newton.restart()

    def interval(self, passes: float) -> float:
        """One iteration on all rows."""
        return np.inf

    def notes(self) -> list[str]:
        return []
