"""What the command prints."""

from collections.abc import Sequence
from typing import Any

from .cells import TARGETS
from .verdict import Verdict, mean_ratio, tally


def print_header(header: dict[str, Any]) -> None:
    """Machine, versions, and the columns of the lines that follow."""
    for name, value in header.items():
        print(f"{name:<8} {value}")
    print("\nseconds of the fastest fit that gets there, by solver and accuracy")
    print(f"  {'':<31} {'  '.join(f'{target.name:>9}' for target in TARGETS)}")


def print_verdicts(verdicts: Sequence[Verdict], threads: int) -> None:
    """A line per cell and accuracy, and the sums."""
    print(f"\nverdict, {threads} thread{'s' if threads > 1 else ''}")
    for verdict in verdicts:
        print(
            f"{verdict.cell.name:<32} {verdict.target.name:<9} {verdict.result:<6} "
            f"{_seconds(verdict.ours)} ours  {_seconds(verdict.theirs)} "
            f"{verdict.rival or 'nobody else':<26} {_ratio(verdict.ratio)}"
        )
    counts = ", ".join(f"{count} {word}" for word, count in tally(verdicts).items())
    print(f"{counts}; geometric mean of the ratios {mean_ratio(verdicts):.2f}")


def _seconds(took: Any) -> str:
    return f"{took.seconds:9.4g} s" if took else f"{'-':>9}  "


def _ratio(ratio: float | None) -> str:
    return f"{ratio:6.2f}x" if ratio is not None else ""
