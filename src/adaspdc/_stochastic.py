"""The stage of the methods in the catalogue: batches drawn, kernels called, the gap watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ._iterations import Iteration, LazyIteration, Settled
from ._stage import ENTRIES_A_LOOK, Bench
from ._watch import Watch
from .certificate import Check
from .methods import SAFE_METHOD, Method, Plan, plan

_LAZY_ENTRY = 8.0
"""What an entry costs whose coordinate has to be brought up to date, in entries that have none."""
_LAZY_ENDS = 8.0
"""Coordinates brought up to date at the end of a chunk for every entry: a tenth of its time."""
_CHUNK_STEPS = 65_536
"""Iterations whose step sizes are held at a time."""
_NO_POINTS = (np.zeros(0), np.zeros(0))


class Stochastic:
    """A method of the catalogue, from (x, y) on; both may be overwritten."""

    def __init__(self, bench: Bench, planned: Plan, x: np.ndarray, y: np.ndarray) -> None:
        self._bench, self._plan = replace(bench, flat=planned.problem), planned
        self.name = planned.method.name
        self.provable = (self.name, planned.method.sampling) == (SAFE_METHOD, "importance")
        self._watch = Watch(bench.certificate.scale, planned.passes_per_decade)
        self._iteration = self._make_iteration(x, y)
        self._points: tuple[np.ndarray, np.ndarray] = (x, x)

    def _make_iteration(self, x: np.ndarray, y: np.ndarray) -> Iteration:
        bench, planned = self._bench, self._plan
        bench.engine.make_feasible(y)
        if bench.flat.settled:
            return Settled(bench.flat, y, bench.threads)
        size = int(planned.sampler.batch_size)
        r = bench.engine.dual_sum(y) if y.any() else np.zeros(bench.flat.dimension)
        return bench.engine.start(planned.method.spec.order, x, y, r, size)

    def advance(self, passes: float, pause: Callable[[], bool]) -> float:
        """Iterate in chunks between which ``pause`` is asked."""
        done, per_iteration = 0.0, self._plan.visits_per_iteration / self._bench.flat.count
        while done < passes and not pause():
            wanted = max(1, round((passes - done) / per_iteration))
            count = min(wanted, self._chunk())
            batches, steps = self._plan.draw(count)
            self._iteration.advance(batches, steps)
            done += count * per_iteration
        return done

    def _chunk(self) -> int:
        """Iterations till the next look at the clock; not timed, lest the bits depend on it."""
        flat = self._bench.flat
        visits = self._plan.visits_per_iteration
        work = max(1.0, visits * self._bench.engine.work_per_visit)
        if not isinstance(self._iteration, LazyIteration):
            return min(max(1, int(ENTRIES_A_LOOK / work)), _CHUNK_STEPS)
        short = max(1, int(ENTRIES_A_LOOK / (_LAZY_ENTRY * work)))
        worth_its_end = int(_LAZY_ENDS * flat.dimension / work)
        return max(short, min(worth_its_end, flat.count // visits))

    def certify(self) -> Check:
        self._points = _NO_POINTS  # frees the old ones before there are new ones
        self._points = self._iteration.points()
        return self._bench.certificate.check(*self._points, self._iteration.y)

    def point(self) -> np.ndarray:
        return self._points[0]

    def trouble(self, check: Check, passes: float) -> str | None:
        if not self._plan.method.watch:
            return None
        return self._watch.trouble(check, self._bench.certificate.gap, passes)

    def settle(self, check: Check) -> None:
        if check.finite:
            self._iteration.rebase(check.r, *self._points)

    def interval(self, passes: float) -> float:
        return min(5.0, max(1.0, passes // 4))

    def notes(self) -> list[str]:
        return []


def stochastic(
    bench: Bench, method: Method, batch_size: int, x: np.ndarray, y: np.ndarray
) -> Stochastic:
    """A method of the catalogue made ready to go on from (x, y)."""
    flat = bench.flat
    planned = plan(method, bench.source, flat, min(batch_size, flat.count), next(bench.seeds))
    return Stochastic(bench, planned, x, y)


def safe_stage(bench: Bench, batch_size: int) -> Stochastic:
    """The rule that is proved, from the best point of the run so far."""
    method = Method(SAFE_METHOD, sampling="importance")
    bench = replace(bench, flat=bench.source.flatten())  # norms are not kept for this rare case
    return stochastic(bench, method, batch_size, *bench.best())
