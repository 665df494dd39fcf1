"""What a solve took, with numba's own time apart."""

from __future__ import annotations

from time import perf_counter
from typing import Any


class Clock:
    """Wall-clock time of a solve, with what numba needs for itself taken out."""

    def __init__(self) -> None:
        self._begun = perf_counter()
        self._importing = 0.0
        self._compiler: Any = None

    def compiling(self) -> Any:
        """A context in which compilation is noticed; imports numba, whose time counts as such."""
        from ._kernels.clock import CompileClock

        self._importing = perf_counter() - self._begun
        self._compiler = CompileClock()
        return self._compiler

    @property
    def compile_seconds(self) -> float:
        """Importing numba, compiling kernels, loading them from the cache."""
        return self._importing + float(self._compiler.seconds)

    @property
    def seconds(self) -> float:
        """Everything else."""
        return perf_counter() - self._begun - self.compile_seconds
