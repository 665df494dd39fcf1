"""How much is run: as in the paper, quickly, or with everything at full size."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

PARTS = ("ridge", "table1", "hinge", "logistic", "parallel", "beyond")
"""What can be asked for, in the order of the paper."""


@dataclass(frozen=True)
class Settings:
    """The sizes of a reproduction.

    ``rows`` limits every data set to random rows, ``url_rows`` the largest one to its first rows,
    ``table_rows`` those that are only counted; ``fetch`` allows downloads, ``fetch_url`` that of
    the largest set.
    """

    name: str
    runs: int
    ridge_size: int
    ridge_passes: int
    passes: int
    optimum_passes: int
    sag_steps: tuple[float, ...]
    rows: int | None
    url_rows: int | None
    fetch: bool
    fetch_url: bool
    seeds: int
    map_points: int
    batches: tuple[int, ...]
    batch_passes: int
    table_rows: int | None = None

    def limited(self, runs: int | None, rows: int | None) -> Settings:
        """The same with another number of runs, or with no more than so many rows."""
        least = [limit for limit in (self.url_rows, rows) if limit is not None]
        return replace(
            self,
            runs=runs or self.runs,
            rows=rows or self.rows,
            url_rows=min(least) if least else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return asdict(self)


_STEPS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

DEFAULT = Settings(
    name="default",
    runs=10,
    ridge_size=1000,
    ridge_passes=300,
    passes=100,
    optimum_passes=5000,
    sag_steps=_STEPS,
    rows=None,
    url_rows=10_000,
    fetch=True,
    fetch_url=False,
    seeds=200,
    map_points=121,
    batches=(1, 4, 16, 64),
    batch_passes=1500,
)
"""As in the paper, but for the first rows of url only."""

QUICK = Settings(
    name="quick",
    runs=2,
    ridge_size=200,
    ridge_passes=60,
    passes=20,
    optimum_passes=200,
    sag_steps=(1 / 16, 1.0),
    rows=1000,
    url_rows=1000,
    fetch=False,
    fetch_url=False,
    seeds=20,
    map_points=61,
    batches=(1, 4, 16),
    batch_passes=200,
)
"""A minute or two: fewer runs, passes and rows; nothing is downloaded."""

FULL = Settings(**{**asdict(DEFAULT), "name": "full", "url_rows": None, "fetch_url": True})
"""url at its full size, too: several gigabytes, and many hours."""
