"""What a run consists of: stages, each a way of coming closer to the solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ._engine import Engine
from ._flat import FlatProblem
from ._threads import Threads
from .certificate import Certificate, Check
from .problem import Problem


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
