"""What carries out a run: the compiled kernels, or Python for blocks that are linear operators."""

from __future__ import annotations

from math import fsum
from typing import Protocol

import numpy as np

from ._flat import FlatProblem
from ._interpreted import Interpreted
from ._iterations import BatchIteration, DualIteration, Iteration, L2Iteration, LazyIteration
from ._operators import Operators
from ._threads import Threads

_LOSS = 60.0
"""What the step of one dual number costs, in matrix entries: some hundred nanoseconds."""


class Engine(Protocol):
    """What the solver needs besides arrays of numbers."""

    @property
    def work_per_visit(self) -> float:
        """Cost of visiting one block, in matrix entries of compiled code."""

    def evaluate(
        self, x: np.ndarray, other: np.ndarray, y: np.ndarray
    ) -> tuple[float, float, float, np.ndarray]:
        """Means of phi_i at x, of phi_i at ``other`` and of phi_i* at y, and r from y."""

    def loss_at_zero(self) -> float:
        """Mean of phi_i(0)."""

    def make_feasible(self, y: np.ndarray) -> None:
        """Move blocks of y that are outside the domain into it; give idle blocks their optimum."""

    def dual_sum(self, y: np.ndarray) -> np.ndarray:
        """``r = (1/n) sum_i A_i y_i``."""

    def start(
        self, order: str, x: np.ndarray, y: np.ndarray, r: np.ndarray, batch_size: int
    ) -> Iteration:
        """A method at work from (x, y), which it may overwrite, and the r that belongs to y."""


def engine_for(problem: FlatProblem, threads: Threads) -> Engine:
    """The engine that fits the blocks of a problem."""
    if isinstance(problem.blocks.rows, Operators):
        return Interpreted(problem)
    return Compiled(problem, threads)


class Compiled:
    """The kernels, on a team of threads."""

    def __init__(self, problem: FlatProblem, threads: Threads) -> None:
        from ._kernels import sweep
        from ._kernels._jit import uncached

        self._wrap = uncached if problem.user_code else (lambda kernel: kernel)
        self._evaluate = self._wrap(sweep.evaluate)
        self._evaluate_rows = self._wrap(sweep.evaluate_rows)
        self._problem, self._threads = problem, threads
        self._tile = np.uint64(sweep.TILE)
        self._sums = np.zeros((-(-problem.total // sweep.TILE), 3))
        self._scratch = np.zeros((threads.size, problem.width))

    @property
    def work_per_visit(self) -> float:
        problem = self._problem
        entries = problem.entries * int(problem.blocks.outputs) / problem.total
        return entries + _LOSS * problem.width

    def evaluate(
        self, x: np.ndarray, other: np.ndarray, y: np.ndarray
    ) -> tuple[float, float, float, np.ndarray]:
        problem, r = self._problem, np.empty(x.size)
        if problem.intercept:
            return self._evaluate_with_intercept(x, other, y)
        same = other is x
        common = (problem.blocks, problem.loss, x, x[:0] if same else other, y, r, self._sums)
        self._sums[:] = 0.0
        size = self._threads.worth(problem.entries)
        if problem.scalar:
            self._threads.run(lambda team: self._evaluate_rows(*common, self._tile, team), size)
        else:
            self._threads.run(
                lambda team: self._evaluate(*common, self._scratch, self._tile, team), size
            )
        return self._total(0), self._total(0 if same else 1), self._total(2), r

    def _evaluate_with_intercept(
        self, x: np.ndarray, other: np.ndarray, y: np.ndarray
    ) -> tuple[float, float, float, np.ndarray]:
        from ._kernels.sweep import evaluate_with_intercept

        problem, features = self._problem, np.uint64(self._problem.shape[0])
        kernel = self._wrap(evaluate_with_intercept)
        points = [x] if other is x else [x, other]
        losses = []
        for point in points:
            r = np.zeros(problem.size)
            kernel(problem.blocks, problem.loss, features, point, y, r, self._sums, self._tile)
            losses.append(self._total(0))
        return losses[0], losses[-1], self._total(2), r

    def _total(self, column: int) -> float:
        values = self._sums[:, column]
        total = fsum(values) if np.isfinite(values).all() else float(np.sum(values))
        return total / float(self._problem.blocks.n)

    def loss_at_zero(self) -> float:
        from ._kernels import sweep

        problem = self._problem
        common = (problem.blocks, problem.loss, problem.total, self._sums, self._tile)
        if problem.scalar:
            self._wrap(sweep.row_values_at_zero)(*common)
        else:
            self._wrap(sweep.values_at_zero)(*common, np.zeros(problem.width))
        return self._total(0)

    def make_feasible(self, y: np.ndarray) -> None:
        from ._kernels import sweep

        problem = self._problem
        scratch, common = np.zeros(2 * problem.width), (problem.blocks, problem.loss, y)
        if not (problem.scalar and self._wrap(sweep.rows_feasible)(*common)):
            self._wrap(sweep.feasible_start)(*common, scratch)
        if problem.idle.size:
            idle = problem.idle.astype(np.uint32)
            self._wrap(sweep.answers_at_zero)(problem.blocks, problem.loss, idle, y, scratch)

    def dual_sum(self, y: np.ndarray) -> np.ndarray:
        from ._kernels.sweep import dual_sum

        r = np.zeros(self._problem.dimension)
        dual_sum(self._problem.blocks, y, r)
        return r

    def start(
        self, order: str, x: np.ndarray, y: np.ndarray, r: np.ndarray, batch_size: int
    ) -> Iteration:
        problem = self._problem
        if order == "dual":
            return DualIteration(problem, y, r, batch_size, self._threads)
        if order == "batch":
            return BatchIteration(problem, x, y, r, self._threads)
        kind = L2Iteration if problem.plain_l2 else LazyIteration
        return kind(problem, x, y, r, batch_size, self._threads, order == "compensated")
