"""The process a peer runs in: ``python -m race.worker JOB``, requests and answers as JSON lines.

Only ``fit`` is between the two looks at the clock. The objective, the lower bound and the check of
a certificate that a peer claims are made here, after it, by the harness's own code.
"""

import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TextIO

import numpy as np

from . import data
from .objective import LOSSES, Problem
from .peers import Peer, Refused, find

Answer = dict[str, Any]
_WARM_ROWS = 400
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Say hello, then answer requests until the pipe closes."""
    _die_with_parent()
    job = json.loads(sys.argv[1])
    answers = _own_stdout()
    threads = int(job.get("threads", 1))
    with _pinned(threads):
        if "peer" not in job:
            _say(answers, _optimum(job))
            return
        hello, peer, problem = _prepare(job, threads)
        _say(answers, hello)
        if peer is None or problem is None:
            return
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = _measure(peer, problem, request["lam"], request["settings"])
            except Refused as refused:
                answer = {"status": "refused", "words": str(refused)}
            except Exception as error:
                answer = {"status": "error", "words": _words(error)}
            _say(answers, answer)


def _prepare(job: Answer, threads: int) -> tuple[Answer, Peer | None, Problem | None]:
    cls = find(job["peer"])
    try:
        installed = version(cls.package) if cls.package else ""
    except PackageNotFoundError:
        return {"status": "not installed", "words": cls.package}, None, None
    try:
        X, b = data.load(job["data"], Path(job["work"]))
        problem = Problem(job["data"], X, b, LOSSES[job["loss"]], 1.0)
        _warm_up(cls(threads), problem)
        peer = cls(threads)
        begun = perf_counter()
        peer.convert(problem)
        seconds = perf_counter() - begun
    except data.NoData as error:
        return {"status": "no data", "words": str(error)}, None, None
    except Refused as refused:
        return {"status": "refused", "words": str(refused)}, None, None
    except Exception as error:
        return {"status": "error", "words": _words(error)}, None, None
    return {"status": "ready", "version": installed, "convert": seconds}, peer, problem


def _warm_up(peer: Peer, problem: Problem) -> None:
    """Imports and compilation, on some rows of both classes, loosely and then tightly."""
    rows = np.argsort(-problem.b, kind="stable")
    half = min(_WARM_ROWS, problem.n) // 2
    rows = np.concatenate([rows[:half], rows[-half:]])
    peer.convert(Problem(problem.data, problem.X[rows], problem.b[rows], problem.loss, 1.0))
    grid = peer.settings(problem.loss.name)
    for settings in (grid[0], grid[len(grid) // 2]):
        peer.fit(1e-2, **settings)
    peer.compile_rest()


def _measure(peer: Peer, problem: Problem, lam: float, settings: Answer) -> Answer:
    gc.collect()
    cpu, begun = process_time(), perf_counter()
    x = peer.fit(lam, **settings)
    seconds, cpu = perf_counter() - begun, process_time() - cpu
    cell = Problem(problem.data, problem.X, problem.b, problem.loss, lam)
    x = np.asarray(x, dtype=np.float64)
    if x.shape != (cell.d,) or not np.isfinite(x).all():
        return {"status": "wrong", "words": f"x has shape {x.shape} or is not finite"}
    z = cell.X @ x
    dual = peer.extras.dual
    claimed = None if dual is None else cell.bound(np.asarray(dual, dtype=np.float64).ravel())
    return {
        "status": "ok",
        "seconds": seconds,
        "cpu": cpu,
        "value": cell.value(x, z),
        "bound": cell.bound(cell.slope(z)),
        "claimed": None if claimed == -np.inf else claimed,
        "passes": peer.extras.passes,
        "words": peer.extras.words,
    }


def _optimum(job: Answer) -> Answer:
    from .reference import find_optimum

    try:
        X, b = data.load(job["data"], Path(job["work"]))
    except data.NoData as error:
        return {"status": "no data", "words": str(error)}
    problem = Problem(job["data"], X, b, LOSSES[job["loss"]], job["lam"])
    found = find_optimum(problem, job["seconds"])
    shape = {"n": problem.n, "d": problem.d, "nnz": int(getattr(X, "nnz", X.size))}
    return {"status": "ok", "zero": problem.value_at_zero(), **vars(found), **shape}


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def _die_with_parent() -> None:
    """Where the harness is killed outright nobody is left to end a long fit (Linux knows how)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _own_stdout() -> TextIO:
    """Standard output for answers alone: whatever a peer prints, C code included, goes nowhere."""
    kept = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return kept


@contextlib.contextmanager
def _pinned(threads: int) -> Any:
    """Beside the variables that the parent sets: libraries that look at neither are told again."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(threads):
        yield


def _say(answers: TextIO, answer: Answer) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
