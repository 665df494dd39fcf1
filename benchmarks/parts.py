"""What every part of the benchmark hands back, and the parts by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """One promise and one measurement of it, in the unit of the promise."""

    promise: str
    case: str
    measured: float
    target: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the measurement keeps the promise."""
        return self.measured <= self.target

    def __str__(self) -> str:
        if self.met:
            return "met"
        return f"missed by {self.measured / self.target:.2f}x" if self.target else "missed"

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return {**vars(self), "met": self.met}


@dataclass(frozen=True)
class Report:
    """One table: ``columns`` maps a key of the rows to (heading, format)."""

    name: str
    title: str
    columns: dict[str, tuple[str, str]]
    rows: Sequence[dict[str, Any]]
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_part(name: str, quick: bool) -> Report:
    """Measure one part."""
    import memory
    import passes
    import startup
    import threads

    parts: dict[str, Callable[[bool], Report]] = {
        "passes": lambda quick: passes.report(passes.measure(quick)),
        "setup": lambda quick: passes.setup_report(passes.measure(quick)),
        "memory": memory.report,
        "startup": startup.report,
        "threads": threads.report,
    }
    return parts[name](quick)
