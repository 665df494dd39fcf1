"""Checks of the arguments of ``solve``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arguments import is_real, whole_number
from .methods import Method
from .problem import ERM, SaddlePoint


@dataclass(frozen=True)
class Limits:
    """When to stop, and when to look."""

    tol: float
    max_passes: float
    max_seconds: float
    check_every: float | None


def checked_method(method: Any) -> Method:
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise TypeError(f"method must be a name or a Method; got {type(method).__name__}")
    return Method(method)


def checked_problem(problem: Any) -> None:
    if not isinstance(problem, ERM | SaddlePoint):
        raise TypeError(
            f"problem must be an ERM or a SaddlePoint; got {type(problem).__name__}. "
            "Build one, e.g. adaspdc.ERM(X, y, losses.Logistic(), regularizers.L2(1e-6))"
        )


def checked_verbosity(verbose: Any) -> int:
    return int(verbose) if isinstance(verbose, bool) else whole_number("verbose", verbose, 0)


def checked_callback(callback: Any) -> Callable[..., Any] | None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Progress, or None; got {callback!r}")
    checked: Callable[..., Any] | None = callback
    return checked


def checked_limits(tol: Any, max_passes: Any, max_seconds: Any, check_every: Any) -> Limits:
    relative = _number("tol", tol, "0 or more, e.g. 1e-6")
    if relative == np.inf:
        raise ValueError("tol must be finite, e.g. 1e-6; got inf")
    return Limits(
        relative,
        _number("max_passes", max_passes, "0 or more, e.g. 500"),
        np.inf
        if max_seconds is None
        else _number("max_seconds", max_seconds, "0 or more, or None"),
        None
        if check_every is None
        else _number("check_every", check_every, "positive, or None", zero=False),
    )


def _number(name: str, value: Any, remedy: str, zero: bool = True) -> float:
    if not is_real(value):
        raise TypeError(f"{name} must be {remedy}; got {value!r}")
    number = float(value)
    if np.isnan(number) or number < 0.0 or (number == 0.0 and not zero):
        raise ValueError(f"{name} must be {remedy}; got {value!r}")
    return number


def seeds_of(random_state: Any) -> Any:
    """An endless supply of seeds, the same for the same ``random_state``."""
    entropy = random_state
    if isinstance(random_state, np.random.Generator):  # its present state counts, and moves on
        entropy = random_state.integers(0, 2**32, size=4, dtype=np.uint32)
    try:
        sequence = np.random.SeedSequence(entropy)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be a whole number >= 0, a numpy.random.Generator or None, "
            f"e.g. numpy.random.default_rng(0); got {random_state!r}: {error}"
        ) from None
    while True:
        yield sequence.spawn(1)[0]
