"""Noticing that a run goes wrong.

The gap of a correct method is not monotone, and with small lam it may rise by decades in the first
passes. What tells divergence apart is that the gap goes on rising above its early peak, or that the
best gap has not fallen by a tenth in three times the passes in which theory would promise it.
"""

from __future__ import annotations

from math import isfinite, log10

from .certificate import Check

_EARLY_CHECKS = 3
_GROWTH = 10.0
_PATIENCE = 3.0
_LEAST_PASSES = 30.0


class Watch:
    """Judges one run of one method, check by check."""

    def __init__(self, scale: float, passes_per_decade: float) -> None:
        self._peak = scale
        self._checks = 0
        self._above = 0
        self._passes_per_decade = passes_per_decade
        self._best_gap = float("inf")
        self._best_passes = 0.0

    def trouble(self, check: Check, gap: float, passes: float) -> str | None:
        """Why the run should be given up at this check, or None."""
        if not check.finite:
            return f"the iterate is not finite after {passes:g} passes"
        return self._growth(check, passes) or self._stagnation(gap, passes)

    def _growth(self, check: Check, passes: float) -> str | None:
        current = check.objective - check.dual
        self._checks += 1
        if self._checks <= _EARLY_CHECKS:
            if isfinite(current):
                self._peak = max(self._peak, current)
            return None
        self._above = self._above + 1 if not current <= _GROWTH * self._peak else 0
        if self._above < 2:
            return None
        return (
            f"its gap has grown to {current:.1e} after {passes:g} passes, "
            f"over {_GROWTH:g} times its early peak of {self._peak:.1e}"
        )

    def _stagnation(self, gap: float, passes: float) -> str | None:
        if gap <= 0.1 * self._best_gap:
            self._best_gap, self._best_passes = gap, passes
            return None
        waited = passes - self._best_passes
        if waited <= max(_LEAST_PASSES, _PATIENCE * self._passes_per_decade):
            return None
        missing = log10(gap / (0.1 * self._best_gap)) if gap > 0.0 else 0.0
        return (
            f"its gap of {gap:.1e} is still {missing:.1f} decades short of a tenth of the "
            f"{self._best_gap:.1e} it had {waited:g} passes ago"
        )
