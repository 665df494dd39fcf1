"""``method="auto"``: which stages a problem goes through.

Losses of known curvature and regularisers of single coordinates can be left to Newton's method, all
others are left to SPDHG. With so many coefficients that no factor of the Hessian can be afforded,
either may be ten times faster than the other, and nothing cheap tells which: they take turns, every
round twice as long as the one before, until one is seen to arrive within twice what was spent.
SPDHG begins, except where the losses are quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log

import numpy as np

from ._flat import FlatProblem
from ._machine import MOST_COEFFICIENTS
from ._stage import Bench, Stage
from ._stochastic import stochastic
from ._tuned import TunedSpdhg, suits
from .certificate import Check
from .methods import SAFE_METHOD, Method

_LARGEST_NORM = 1e60
"""Products of squares of larger norms leave the range of floating-point numbers."""
_FIRST_TURN = 10.0
"""Passes of SPDHG in the first turn."""
_QUADRATIC_TURN = 1000.0
"""Products in the first turn of Newton's method where one solve would be enough."""
_NEAR = 2.0
_PASS_OF_SPDHG, _PASS_OF_NEWTON = 2.5, 1.0
"""What a pass costs, relative to each other: rows in random order, two vectors, and the checks."""


@dataclass
class _Contender:
    """A stage that takes turns with another one."""

    stage: Stage
    cost_of_pass: float
    passes: float = 0.0


class Auto:
    """The stages at work, behind one face."""

    name = "auto"
    provable = False

    def __init__(self, bench: Bench, batch_size: int, x: np.ndarray, y: np.ndarray) -> None:
        self._bench, self._batch_size = bench, batch_size
        self._notes: list[str] = []
        self._other: _Contender | None = None
        self._waiting: Callable[[], _Contender] | None = None
        self._turn, self._left, self._spent = _FIRST_TURN * _PASS_OF_SPDHG, inf, 0.0
        self._turn_began = (0.0, inf)
        self._now = self._certified = self._first(x, y)

    def _first(self, x: np.ndarray, y: np.ndarray) -> _Contender:
        from ._newton import by_rows, is_quadratic

        bench = self._bench
        problem = None if bench.flat.settled else by_rows(bench.flat)
        if _squares_overflow(bench.flat) and not bench.flat.intercept:
            problem = None
        if problem is None and bench.flat.intercept:
            raise ValueError(
                f"intercept=True cannot be combined with {bench.flat.regularizer!r} or with this "
                "loss; append a column of ones to X instead (its coefficient is then penalised)"
            )
        if problem is not None and (problem.dimension <= MOST_COEFFICIENTS or problem.intercept):
            return self._newton(problem, x)
        if problem is None:
            return self._spdhg(x, y)
        return self._first_of_two(problem, is_quadratic(problem), x, y)

    def _first_of_two(
        self, problem: FlatProblem, quadratic: bool, x: np.ndarray, y: np.ndarray
    ) -> _Contender:
        """The one that begins; the other waits and will start from the best point by then."""
        best = self._bench.best
        self._left = _QUADRATIC_TURN if quadratic else self._turn
        if quadratic:
            self._waiting = lambda: self._spdhg(*best())
            return self._newton(problem, x)
        self._waiting = lambda: self._newton(problem, best()[0])
        return self._spdhg(x, y)

    def _spdhg(self, x: np.ndarray, y: np.ndarray) -> _Contender:
        stage: Stage
        if self._batch_size == 1 and suits(self._bench.flat):
            self._notes.append("SPDHG with steps by column and a tuned balance")
            stage = TunedSpdhg(self._bench, x, y)
        else:
            self._notes.append("SPDHG with importance sampling")
            stage = stochastic(self._bench, Method(SAFE_METHOD), self._batch_size, x, y)
        return _Contender(stage, _PASS_OF_SPDHG)

    def _newton(self, problem: FlatProblem, x: np.ndarray) -> _Contender:
        from ._newton import NewtonStage

        self._notes.append(
            f"Newton's method on {problem.total} rows and {problem.size} coefficients"
        )
        return _Contender(NewtonStage(self._bench, problem, x), _PASS_OF_NEWTON)

    # --- the stage at work ---

    def advance(self, passes: float, pause: Callable[[], bool]) -> float:
        """Let the stage whose turn it is work."""
        now = self._now
        taken = now.stage.advance(passes, pause)
        now.passes += taken
        self._left -= taken * now.cost_of_pass
        self._spent += taken * now.cost_of_pass
        return taken

    def certify(self) -> Check | None:
        self._certified = self._now
        return self._now.stage.certify()

    def point(self) -> np.ndarray:
        return self._now.stage.point()

    def trouble(self, check: Check, passes: float) -> str | None:
        """Trouble of one contender leaves the other; that of the last one is the run's."""
        trouble = self._now.stage.trouble(check, self._now.passes)
        if trouble is None or (self._other is None and self._waiting is None):
            return trouble
        self._notes.append(f"{self._now.stage.name} gave up: {trouble}")
        self._swap()
        self._other, self._left = None, inf
        return None

    def settle(self, check: Check) -> None:
        if self._now is not self._certified:
            return  # it has just taken over: the check is of the one before
        self._now.stage.settle(check)
        if self._turn_began[1] == inf:
            self._turn_began = (self._spent, self._bench.certificate.gap)
        if self._left > 0.0:
            return
        if self._nearly_there():
            self._begin_turn()
        else:
            self._swap()

    def interval(self, passes: float) -> float:
        return self._now.stage.interval(self._now.passes)

    def notes(self) -> list[str]:
        taken, self._notes = self._notes, []
        return taken

    # --- turns ---

    def _nearly_there(self) -> bool:
        """Whether the gap falls fast enough to be closed for twice what was spent so far."""
        spent, gap_before = self._turn_began
        gap, tolerance = self._bench.certificate.gap, self._bench.tolerance
        if not (0.0 < gap < gap_before < inf and tolerance > 0.0):
            return False
        needed = log(gap / tolerance) / log(gap_before / gap) * (self._spent - spent)
        return needed <= _NEAR * self._spent

    def _swap(self) -> None:
        """The other one's turn, for twice as long from the second round on."""
        if self._waiting is not None:
            coming, self._waiting = self._waiting(), None
        else:
            assert self._other is not None
            coming = self._other
            self._turn *= 2.0 if coming.cost_of_pass == _PASS_OF_SPDHG else 1.0
            self._notes.append(f"the turn of {coming.stage.name}")
        self._other, self._now = self._now, coming
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._left = self._turn
        self._turn_began = (self._spent, self._bench.certificate.gap)


def _squares_overflow(flat: FlatProblem) -> bool:
    """Whether norms are so large or small that products of their squares leave the float range."""
    norms = flat.active_norms()
    if norms.size == 0:
        return False
    return bool(norms.max() > _LARGEST_NORM or norms.min() < 1.0 / _LARGEST_NORM)
