"""What the harness asks of a peer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..objective import Problem

Settings = dict[str, Any]


class Refused(Exception):
    """The peer does not take this problem; the words are shown on the page."""


@dataclass
class Extras:
    """What a fit tells beside x: passes over the data, a dual point, what it did on its own."""

    passes: float | None = None
    dual: np.ndarray | None = None
    words: str = ""


class Peer:
    """One solver with one way of using it.

    ``convert`` is timed apart, ``fit`` is what counts, and both happen once untimed before, on a
    small part of the data. ``fit`` returns x as the solver has it; the harness evaluates it.
    """

    name: ClassVar[str]
    package: ClassVar[str | None] = None
    """The distribution that must be installed, and whose version the page shows."""
    losses: ClassVar[Sequence[str]] = ()
    threaded: ClassVar[bool] = False
    """Can use two threads."""
    environment: ClassVar[str | None] = None
    """An environment of its own below the common one, for packages that share no NumPy with it."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.extras = Extras()

    def takes(self, loss: str) -> bool:
        """Whether the peer solves problems with this loss."""
        return loss in self.losses

    def convert(self, problem: Problem) -> None:
        """Bring the data into the format the peer likes best; ``problem.lam`` is not final."""
        self.problem = problem

    def compile_rest(self) -> None:
        """Whatever the fits of the warm-up did not compile: a first fit must not pay for it."""

    def settings(self, loss: str) -> list[Settings]:
        """From quick to accurate; the harness stops where the last accuracy is reached."""
        return [{"tol": tol} for tol in tolerances(1, 9)]

    def fit(self, lam: float, tol: float) -> np.ndarray:
        """Solve."""
        raise NotImplementedError


def tolerances(first: int, last: int, finer: bool = False) -> list[float]:
    """1e-first ... 1e-last, with 3e-k between where ``finer``."""
    steps = [float(f"1e-{k}") for k in range(first, last + 1)]
    if finer:
        steps += [float(f"3e-{k}") for k in range(first + 1, last + 1)]
    return sorted(steps, reverse=True)
