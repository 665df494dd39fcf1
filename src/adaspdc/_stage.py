"""What a run consists of: stages, each a way of coming closer to the solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ._engine import Engine
from ._flat import FlatProblem
from ._threads import Threads
from .certificate import Certificate, Check
from .problem import Problem

ENTRIES_A_LOOK = 3_000_000
"""Matrix entries between two looks at the clock: some hundredths of a second."""


@dataclass
class Carried:
    """What a solve leaves for the next one of the same data, loss and weights with another lam.

    ``flat`` comes with norms; ``newton`` is Newton's method at its last iterate, with margins and
    Hessian, and ``balance`` the logarithm of the balance that SPDHG has found.
    """

    threads: Threads
    flat: FlatProblem | None = None
    at_zero: float | None = None
    newton: Any = None
    balance: float = 0.0

    def flat_of(self, source: Problem) -> FlatProblem:
        """``source.flatten()``, at most once."""
        if self.flat is None:
            self.flat = source.flatten()
        else:
            outputs = int(self.flat.blocks.outputs)
            kernel = source.regularizer.kernel(self.flat.dimension // outputs, outputs)
            self.flat = replace(
                self.flat, regularizer=source.regularizer, regularizer_kernel=kernel
            )
        return self.flat

    def loss_at_zero(self, engine: Engine) -> float:
        """``engine.loss_at_zero()``, at most once."""
        if self.at_zero is None:
            self.at_zero = engine.loss_at_zero()
        return self.at_zero


@dataclass(frozen=True)
class Bench:
    """The problem and the tools that all stages of a run share.

    ``flat`` comes with norms where a stage is to be made; ``tolerance`` is the absolute gap asked
    for.
    """

    source: Problem
    flat: FlatProblem
    threads: Threads
    engine: Engine
    certificate: Certificate
    tolerance: float
    seeds: Any
    carried: Carried | None = None

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies of the best certified x, and of the best y (zero where there is none yet)."""
        y = self.certificate.y
        return self.certificate.x.copy(), np.zeros(self.flat.dual_size) if y is None else y.copy()


class Stage(Protocol):
    """One method at work."""

    @property
    def name(self) -> str:
        """What it is called where the run tells what it did."""

    @property
    def provable(self) -> bool:
        """Whether its convergence is proved, so that nothing better could take over."""

    def advance(self, passes: float, pause: Callable[[], bool]) -> float:
        """Work for about so many passes, or until ``pause()``; returns the passes it took."""

    def certify(self) -> Check | None:
        """Offer the present points to the certificate; None if there is nothing to offer yet."""

    def point(self) -> np.ndarray:
        """The iterate x that the last `certify` saw."""

    def trouble(self, check: Check, passes: float) -> str | None:
        """Why this stage should be given up, or None."""

    def settle(self, check: Check) -> None:
        """Take over what the check computed afresh; the run goes on with this stage."""

    def interval(self, passes: float) -> float:
        """Passes till the next check is due, ``passes`` being those of the run so far."""

    def notes(self) -> list[str]:
        """What it decided since it was last asked, in words."""
