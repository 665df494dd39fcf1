"""Long fits in legs, with a file after each from which a killed one goes on.

A leg is a solve of its own that starts where the one before ended. The state between two legs is
all there is, so a run that was killed and resumed does what the run would have done without: its
result is the same bit for bit, unless a leg was ended by the clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _envelope
from ..result import ConvergenceWarning, History, Result, Status
from ._progress import solving_bar

if TYPE_CHECKING:
    from ..problem import ERM

KIND = "checkpoint"
_FIRST_LEG = 5.0
"""Passes of the first leg; every further one may take twice as many."""
_NUMBERS = ("primal", "dual", "gap", "tol", "passes", "seconds", "setup_seconds", "compile_seconds")


@dataclass(frozen=True)
class Checkpoint:
    """A file and how often it is written; ``every=0`` means after every leg."""

    path: str
    every: float
    identity: str

    @classmethod
    def of(cls, path: str, every: float, problem: ERM, settings: dict[str, Any]) -> Checkpoint:
        """For one fit: a file left by other data or other settings will not be taken up."""
        return cls(path, every, fingerprint(problem, settings))

    def load(self) -> tuple[int, Result] | None:
        """(legs done, result so far), or None where there is no file yet."""
        if not os.path.lexists(self.path):
            return None
        meta, arrays = _envelope.read(self.path, KIND)
        if meta.get("identity") != self.identity:
            raise ValueError(
                f"{self.path}: this checkpoint belongs to other data or other settings; remove it, "
                "or name another file with --checkpoint"
            )
        return int(meta["legs"]), _result(meta, arrays)

    def save(self, legs: int, result: Result) -> None:
        """Replace the file; whatever happens it is whole."""
        meta = {
            "identity": self.identity,
            "legs": legs,
            "numbers": {name: repr(float(getattr(result, name))) for name in _NUMBERS},
            "status": str(result.status),
            "method": result.method,
            "message": result.message,
            "events": list(result.events),
            "scalar": not isinstance(result.intercept, np.ndarray),
            "history": list(History().columns()),
        }
        history = list(result.history.columns().values())
        arrays = {
            "x": result.x,
            "y": result.y,
            "intercept": np.atleast_1d(np.asarray(result.intercept, dtype=np.float64)),
            "history": np.array(history, dtype=np.float64),
        }
        _envelope.write(self.path, KIND, meta, arrays)

    def remove(self) -> None:
        """The fit is certified and its model is written."""
        if os.path.isfile(self.path):
            os.unlink(self.path)


def fingerprint(problem: ERM, settings: dict[str, Any]) -> str:
    """What makes two fits the same one; limits and tolerance do not count."""
    from .._catalogue import describe

    digest = hashlib.sha256()
    for array in (*problem.rows.kernel, problem.target):
        digest.update(str((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    chosen = {
        "loss": describe(problem.loss),
        "penalty": describe(problem.regularizer),
        "lam": problem.regularizer.lam,
        "intercept": problem.intercept,
        "method": settings.get("method"),
        "seed": settings["random_state"],
    }
    digest.update(json.dumps(chosen, sort_keys=True).encode())
    return digest.hexdigest()


def run_in_legs(
    problem: ERM, settings: dict[str, Any], checkpoint: Checkpoint, title: str, quiet: bool
) -> Result:
    """Solve leg by leg; goes on from the checkpoint where there is one."""
    state = checkpoint.load()
    legs, result = (0, None) if state is None else state
    begun = saved = monotonic()
    with warnings.catch_warnings(), solving_bar(title, quiet) as show:
        warnings.simplefilter("ignore", ConvergenceWarning)
        while result is None or _goes_on(result, settings, monotonic() - begun):
            leg = _leg(problem, settings, checkpoint, legs, result, saved - begun, begun, show)
            result, legs = _joined(result, leg), legs + 1
            ended = not _goes_on(result, settings, monotonic() - begun)
            if ended or monotonic() - saved >= checkpoint.every * 0.99:
                checkpoint.save(legs, result)
                saved = monotonic()
    return _told(result, settings)


def _leg(
    problem: ERM,
    settings: dict[str, Any],
    checkpoint: Checkpoint,
    legs: int,
    before: Result | None,
    saved: float,
    begun: float,
    show: Any,
) -> Result:
    from ..solver import solve

    now = monotonic() - begun
    limits = [settings["max_seconds"] - now] if settings["max_seconds"] is not None else []
    if checkpoint.every > 0:
        limits.append(saved + checkpoint.every - now)
    done = 0.0 if before is None else before.passes
    options = {
        **settings,
        "max_passes": min(_FIRST_LEG * 2.0**legs, settings["max_passes"] - done),
        "max_seconds": max(0.0, min(limits)) if limits else None,
        "random_state": np.random.default_rng([settings["random_state"], legs]),
    }
    return solve(problem, warm_start=before, callback=show, **options)


def _goes_on(result: Result, settings: dict[str, Any], seconds: float) -> bool:
    if result.gap <= result.tol or result.status in (Status.STOPPED, Status.NUMERICAL_TROUBLE):
        return False
    limit = settings["max_seconds"]
    return result.passes < settings["max_passes"] and (limit is None or seconds < limit)


def _joined(before: Result | None, leg: Result) -> Result:
    """The result of a leg with the work of all legs."""
    if before is None:
        return leg
    history = History()
    for name, values in history.columns().items():
        offset = getattr(before, name) if name in ("passes", "seconds") else 0.0
        values.extend(before.history.columns()[name])
        values.extend(value + offset for value in leg.history.columns()[name])
    return replace(
        leg,
        history=history,
        passes=before.passes + leg.passes,
        seconds=before.seconds + leg.seconds,
        setup_seconds=before.setup_seconds + leg.setup_seconds,
        compile_seconds=before.compile_seconds + leg.compile_seconds,
        events=tuple(dict.fromkeys([*before.events, *leg.events])),
    )


def _told(result: Result, settings: dict[str, Any]) -> Result:
    """The status of the whole run: that of its last leg, unless only the leg was cut."""
    if result.gap <= result.tol:
        return replace(result, status=Status.CONVERGED)
    if result.status is Status.MAX_SECONDS and result.passes >= settings["max_passes"]:
        return replace(result, status=Status.MAX_PASSES)
    if result.status is Status.MAX_PASSES and result.passes < settings["max_passes"]:
        return replace(result, status=Status.MAX_SECONDS)
    return result


def _result(meta: dict[str, Any], arrays: dict[str, Any]) -> Result:
    columns = zip(meta["history"], arrays["history"].tolist(), strict=True)
    numbers = {name: float(meta["numbers"][name]) for name in _NUMBERS}
    intercept = arrays["intercept"].copy()
    return Result(
        x=arrays["x"].copy(),
        y=arrays["y"].copy(),
        status=Status.MAX_PASSES,  # whatever ended the run: it is to go on
        message=str(meta["message"]),
        method=str(meta["method"]),
        events=tuple(meta["events"]),
        history=History(**dict(columns)),
        intercept=float(intercept[0]) if meta["scalar"] else intercept,
        **numbers,
    )
