"""The cells of the race: data x loss x lambda, and the accuracies asked for in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from .data import SOURCES
from .objective import LOSSES

LAMBDAS = (1e-5, 1e-6, 1e-7)
CORE = ("w8a", "ijcnn1", "news20", "covtype", "casp", "ridge")
"""The sets of a run of minutes, at lambda = 1e-6; ``--full`` runs everything."""


@dataclass(frozen=True)
class Target:
    """An accuracy. "sub": P(x) - P* <= level P*. "gap": certified, relative to P(0)."""

    kind: str
    level: float

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.kind} {self.level:.0e}".replace("e-0", "e-")


TARGETS = (
    Target("sub", 1e-3),
    Target("sub", 1e-6),
    Target("sub", 1e-9),
    Target("gap", 1e-3),
    Target("gap", 1e-6),
)


@dataclass(frozen=True)
class Cell:
    """One problem."""

    data: str
    loss: str
    lam: float

    @property
    def name(self) -> str:
        """Also what patterns are matched with."""
        return f"{self.data}:{self.loss}:{self.lam:.0e}".replace("e-0", "e-")


def select(mode: str, patterns: Sequence[str] = ()) -> list[Cell]:
    """The cells of a mode ("quick", "core", "full"), or those that match a pattern."""
    cells = [
        Cell(data, loss.name, lam)
        for data, source in SOURCES.items()
        for loss in LOSSES.values()
        for lam in ((1e-3,) if source.small else LAMBDAS)
        if loss.classifies == source.classifies
    ]
    if patterns:
        return [cell for cell in cells if any(fnmatch(cell.name, p) for p in patterns)]
    if mode == "quick":
        return [c for c in cells if SOURCES[c.data].small and c.loss in ("logistic", "squared")]
    if mode == "core":
        return [c for c in cells if c.data in CORE and c.lam == LAMBDAS[1]]
    return [c for c in cells if not SOURCES[c.data].small]
