"""What a solve returns: the certified point, how it was reached, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Status(StrEnum):
    """Why a run ended. Only ``CONVERGED`` says that the gap is within the tolerance."""

    CONVERGED = "converged"
    MAX_PASSES = "max_passes"
    MAX_SECONDS = "max_seconds"
    STOPPED = "stopped"
    NUMERICAL_TROUBLE = "numerical_trouble"


class ConvergenceWarning(UserWarning):
    """A run ended above its tolerance; the message has cause, numbers and remedy."""


@dataclass
class History:
    """One entry per check.

    ``objective`` is the primal value of the current iterate (what the paper plots); ``primal``,
    ``dual`` and ``gap`` belong to the best points seen so far.
    """

    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)

    def append(self, **entry: float) -> None:
        """Add one check; every column must be given."""
        for name, values in self.columns().items():
            values.append(float(entry[name]))

    def columns(self) -> dict[str, list[float]]:
        """The columns by name."""
        return dict(vars(self))

    def __len__(self) -> int:
        return len(self.passes)

    def __getitem__(self, column: str) -> np.ndarray:
        """A column as an array."""
        if column not in self.columns():
            known = ", ".join(self.columns())
            raise KeyError(f"history has no column {column!r}; it has {known}")
        return np.asarray(self.columns()[column])

    def to_frame(self) -> pd.DataFrame:
        """The history as a pandas DataFrame, one row per check."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "history.to_frame() needs pandas: pip install pandas "
                "(or read the columns as arrays: history['gap'])"
            ) from error
        return pd.DataFrame(self.columns())


@dataclass(frozen=True, eq=False)
class Result:
    """The best certified pair (x, y) of a run.

    The optimum of the problem lies between ``dual`` and ``primal``, so x is within ``gap`` of it in
    objective value and, g being lam-strongly convex, within sqrt(2 gap / lam) of the minimiser.

    Attributes
    ----------
    x : ndarray
        Best primal point: (d,), or (d, K) for a loss with K outputs.
    y : ndarray
        Best dual point. ERM: one value (or row of K) per sample, at the optimum phi_i'(<a_i, x>).
        SaddlePoint: the blocks one after another (``problem.split(y)`` cuts them apart).
    primal, dual, gap : float
        ``P(x)``, ``D(y)`` and their difference, from sums recomputed from scratch.
    tol : float
        The absolute gap that was asked for: the relative ``tol`` times |P(0)|.
    status : Status
        ``"converged"``, ``"max_passes"``, ``"max_seconds"``, ``"stopped"`` or
        ``"numerical_trouble"``.
    message : str
        The same in a sentence, with numbers, and whatever the run did on its own (rollbacks).
    passes : float
        Row visits divided by the number of rows; checks of the certificate are not counted.
    seconds : float
        Time of the solve, without ``compile_seconds``.
    setup_seconds, compile_seconds : float
        Norms, steps and sampling tables; compiling the kernels or loading them from the cache.
    history : History
        One entry per check: passes, seconds, objective, primal, dual, gap.
    method : str
        The method asked for; ``events`` tells if another one had to finish.
    events : tuple of str
        What happened on the way: choices of "auto", rollbacks, changes of rule, interrupts.
    intercept : float or ndarray of shape (K,)
        The intercept of ``ERM(..., intercept=True)``, one per output; 0.0 without.
    """

    x: np.ndarray
    y: np.ndarray
    primal: float
    dual: float
    gap: float
    tol: float
    status: Status
    message: str
    passes: float
    seconds: float
    setup_seconds: float
    compile_seconds: float
    history: History
    method: str
    events: tuple[str, ...] = ()
    intercept: float | np.ndarray = 0.0

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.status is Status.CONVERGED

    def __repr__(self) -> str:
        return (
            f"Result(status={str(self.status)!r}, gap={self.gap:.3e}, primal={self.primal:.10g}, "
            f"passes={self.passes:g}, seconds={self.seconds:.3g}, method={self.method!r})"
        )

    def plot(self) -> Figure:
        """Draw gap and objective against passes and seconds; ``figure.savefig(path)`` keeps it.

        Returns
        -------
        matplotlib.figure.Figure
            It belongs to no window; notebooks show it.
        """
        from ._plots import convergence

        title = f"{self.method}: {self.status} at gap {self.gap:.2e}, asked for {self.tol:.2e}"
        return convergence(self.history.columns(), self.tol, title)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists: what a report or a JSON file needs."""
        return {
            "method": self.method,
            "status": str(self.status),
            "message": self.message,
            "events": list(self.events),
            "primal": self.primal,
            "dual": self.dual,
            "gap": self.gap,
            "tol": self.tol,
            "passes": self.passes,
            "seconds": self.seconds,
            "setup_seconds": self.setup_seconds,
            "compile_seconds": self.compile_seconds,
            "history": self.history.columns(),
        }
