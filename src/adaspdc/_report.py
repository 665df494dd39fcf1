"""The solver log: banner, sizes, settings, one row a check, footer. Silent unless asked."""

from __future__ import annotations

import sys
from typing import TextIO

from ._flat import FlatProblem
from ._version import __version__
from .problem import Problem
from .result import Result

_WIDTH = 78
_HEAD = f"{'passes':>9} {'primal':>15} {'dual':>15} {'gap':>10} {'objective':>15} {'time':>8}"


class Report:
    """Writes the log of one solve to a stream."""

    def __init__(self, verbose: int, stream: TextIO | None = None) -> None:
        self._on = verbose > 0
        self._stream = stream if stream is not None else sys.stdout

    def _write(self, *lines: str) -> None:
        if self._on:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()

    def start(
        self, problem: Problem, flat: FlatProblem, settings: dict[str, object], tolerance: float
    ) -> None:
        """Banner, problem sizes, settings, head of the table."""
        rule = "-" * _WIDTH
        chosen = ", ".join(f"{name} {value}" for name, value in settings.items())
        self._write(
            rule,
            f"adaspdc {__version__}".center(_WIDTH).rstrip(),
            rule,
            f"problem:  {type(problem).__name__}, {flat.total} blocks ({len(flat.idle)} idle), "
            f"{flat.dual_size} dual and {flat.dimension} primal variables, {flat.entries} entries",
            f"          g = {problem.regularizer!r}",
            f"settings: {chosen}",
            f"          stops at gap {tolerance:.3e}",
            rule,
            _HEAD,
            rule,
        )

    def row(
        self,
        passes: float,
        seconds: float,
        objective: float,
        primal: float,
        dual: float,
        gap: float,
    ) -> None:
        """One check."""
        self._write(
            f"{passes:9.2f} {primal:15.8e} {dual:15.8e} {gap:10.3e} {objective:15.8e} "
            f"{seconds:7.2f}s"
        )

    def event(self, text: str) -> None:
        """Something the run did on its own."""
        self._write(f"* {text}")

    def finish(self, result: Result) -> None:
        """Status, final values, times."""
        rule = "-" * _WIDTH
        self._write(
            rule,
            f"status:   {result.status}: {result.message}",
            f"values:   primal {result.primal:.12g}, dual {result.dual:.12g}, gap {result.gap:.3e}",
            f"work:     {result.passes:g} passes in {result.seconds:.3f} s "
            f"(setup {result.setup_seconds:.3f} s, compiling {result.compile_seconds:.3f} s apart)",
            rule,
        )
