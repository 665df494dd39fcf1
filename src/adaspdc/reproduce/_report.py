"""What a part of the reproduction leaves behind: statements, tables, figures, settings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what was measured."""

    statement: str
    measured: str
    holds: bool

    @property
    def verdict(self) -> str:
        """The word on the page."""
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Grid:
    """A table: head and rows of text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A picture, with the files beside it that hold its numbers and settings."""

    file: str
    title: str
    caption: str
    beside: tuple[str, ...] = ()


@dataclass
class Report:
    """One part, in the order in which the page shows it."""

    part: str
    title: str
    settings: dict[str, Any]
    intro: str = ""
    claims: list[Claim] = field(default_factory=list)
    tables: list[Grid] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write the report, from which the page is made, as ``<part>.json``."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.part}.json").write_text(text + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Report | None:
        """A report written by `save`; None if there is none, or only one of another version."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            data["claims"] = [Claim(**claim) for claim in data["claims"]]
            data["tables"] = [
                Grid(grid["title"], tuple(grid["head"]), tuple(map(tuple, grid["rows"])))
                for grid in data["tables"]
            ]
            data["figures"] = [
                Figure(**{**figure, "beside": tuple(figure["beside"])})
                for figure in data["figures"]
            ]
            return Report(**data)
        except (OSError, ValueError, TypeError, KeyError):
            return None


def short(number: float) -> str:
    """As few digits as possible: 0.00001 as 1e-5."""
    mantissa, exponent = f"{number:.5e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def scientific(number: float) -> str:
    """Two digits: 1.2e-5."""
    if number == 0.0:
        return "0"
    mantissa, exponent = f"{number:.1e}".split("e") if number < float("inf") else ("inf", "0")
    return mantissa if exponent == "0" else f"{mantissa}e{int(exponent)}"


def times(ratio: float) -> str:
    """A ratio as people say it."""
    if ratio >= 1000.0 or ratio < 0.01:
        return scientific(ratio)
    return f"{ratio:.0f}" if ratio >= 20.0 else f"{ratio:.2g}"
