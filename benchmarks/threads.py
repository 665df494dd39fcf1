"""Mini-batches and the batch method on one and on two threads."""

from typing import Any

import numpy as np
from datasets import dense
from parts import Report
from timing import NEVER, race, slope, solve, solving

from adaspdc import ERM, losses, regularizers

TEAMS = (1, 2)
SHORT = 1.0


def report(quick: bool) -> Report:
    """Seconds a pass on one and on two threads, side by side. Nothing is promised here."""
    data = dense(quick, 100_000, 100)
    n = data.X.shape[0]
    problem = ERM(data.X, data.y, losses.SmoothHinge(), regularizers.L2(1e-5))
    cases = [("adaspdc", m) for m in (1, 64, 1024, n)]
    cases += [("spdhg", m) for m in (64, 1024)] + [("sdca", 1024), ("pdhg", 1)]
    rows = [
        _row(problem, n, *case, quick) for case in (cases[2:3] + cases[-1:] if quick else cases)
    ]
    columns = {
        "method": ("method", "<8"),
        "batch": ("batch", ">7d"),
        "one_ms": ("1 thread ms", ">11.3f"),
        "two_ms": ("2 threads ms", ">12.3f"),
        "ratio": ("2 / 1", ">6.2f"),
        "batched": ("vs batch 1", ">10.2f"),
        "same": ("same bits", ">9"),
    }
    alone = rows[0]["one_ms"]
    for row in rows:
        row["batched"] = None if quick else row["one_ms"] / alone
    title = "One pass on dense {:,} x {:,}, smooth hinge, by batch size and threads".format(
        *data.X.shape
    )
    notes = [
        "vs batch 1: one thread, against batch size 1 of the first row; fewer barriers, no reuse"
    ]
    return Report("threads", title, columns, rows, [], notes)


def _row(problem: Any, n: int, method: str, batch: int, quick: bool) -> dict[str, Any]:
    rounds, passes = (2, 3.0) if quick else (5, 8.0)
    options = {"batch_size": batch, "check_every": NEVER}
    candidates = {
        (team, name): solving(problem, method, length, n_threads=team, **options)
        for team in TEAMS
        for name, length in (("short", SHORT), ("long", SHORT + passes))
    }
    seconds = race(candidates, rounds)
    one, two = (slope(seconds[team, "short"], seconds[team, "long"], passes)[0] for team in TEAMS)
    ends = [solve(problem, method, 2.0, n_threads=team, **options).x for team in TEAMS]
    return {
        "method": method,
        "batch": n if method == "pdhg" else batch,
        "one_ms": 1e3 * one,
        "two_ms": 1e3 * two,
        "ratio": two / one,
        "same": "yes" if np.array_equal(*ends) else "no",
    }
