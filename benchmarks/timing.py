"""Timing on cores that others use too: everything takes turns, and the best of many turns counts.

Whatever else runs on the machine only ever adds time, so the least time of a thing is its own; and
two things that take turns meet the same neighbours, so their ratio survives a slow minute.
"""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import adaspdc

NEVER = 1e9
"""Passes between checks: only the first and the last are made."""


def race(candidates: dict[Any, Callable[[], float]], rounds: int) -> dict[Any, list[float]]:
    """Seconds of every candidate in every round; each round takes them in the other direction."""
    seconds: dict[Any, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():  # compiled, loaded, and in the cache
        call()
    order = list(candidates)
    for _ in range(rounds):
        for name in order:
            seconds[name].append(candidates[name]())
        order.reverse()
    return seconds


def fastest(call: Callable[[], Any], repeats: int) -> Callable[[], float]:
    """A candidate: the least of some calls in a row."""

    def candidate() -> float:
        return min(_seconds(call) for _ in range(repeats))

    return candidate


def solving(problem: Any, method: str, passes: float, **options: Any) -> Callable[[], float]:
    """A candidate: a solve of so many passes, without what numba needs for itself."""
    settings = {"check_every": NEVER, **options}

    def candidate() -> float:
        return float(solve(problem, method, passes, **settings).seconds)

    return candidate


def solve(problem: Any, method: str, passes: float, **options: Any) -> Any:
    """A solve that does all its passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
        return adaspdc.solve(problem, method, tol=0.0, max_passes=passes, **options)


def _seconds(call: Callable[[], Any]) -> float:
    begun = perf_counter()
    call()
    return perf_counter() - begun


def slope(short: list[float], long: list[float], passes: float) -> tuple[float, float]:
    """Seconds a pass, from solves that differ by ``passes``: of the best two, and the median.

    Setting up, the first and the last check cost both solves the same, so they cancel.
    """
    best = (min(long) - min(short)) / passes
    by_round = sorted((b - a) / passes for a, b in zip(short, long, strict=True))
    return best, by_round[len(by_round) // 2]
