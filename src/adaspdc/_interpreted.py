"""Runs on linear operators: every order of steps written out in NumPy, at the speed of Python.

The same steps as the kernels', in the form of the textbook: plain vectors, all coordinates in every
iteration.
"""

from __future__ import annotations

from math import fsum, isfinite

import numpy as np

from ._containers import Steps
from ._flat import FlatProblem
from ._iterations import Iteration
from ._operators import Block, Operators

_CALL = 20_000.0
"""What a visit of a block costs in Python, in matrix entries of the compiled code."""


class Interpreted:
    """The engine for blocks that are linear operators; see ``_engine.py``."""

    def __init__(self, problem: FlatProblem) -> None:
        from ._kernels._jit import uncached
        from ._kernels.regularizers import call_conjugate_gradient, call_prox

        assert isinstance(problem.blocks.rows, Operators)
        wrap = uncached if problem.user_code else (lambda kernel: kernel)
        self._prox, self._gradient = wrap(call_prox), wrap(call_conjugate_gradient)
        self.problem = problem
        self.blocks: list[Block] = problem.blocks.rows.blocks

    @property
    def work_per_visit(self) -> float:
        return self.problem.entries / self.problem.total + _CALL

    def evaluate(
        self, x: np.ndarray, other: np.ndarray, y: np.ndarray
    ) -> tuple[float, float, float, np.ndarray]:
        at_x = self._mean([b.weight * b.primal_value(b.margins(x)) for b in self.blocks])
        at_other = at_x
        if other is not x:
            losses = [b.weight * b.primal_value(b.margins(other)) for b in self.blocks]
            at_other = self._mean(losses)
        conjugate = self._mean([b.weight * b.value(y[b.own]) for b in self.blocks])
        return at_x, at_other, conjugate, self.dual_sum(y)

    def loss_at_zero(self) -> float:
        zeros = np.zeros(self.problem.dimension)
        return self._mean([b.weight * b.primal_value(b.margins(zeros)) for b in self.blocks])

    def _mean(self, values: list[float]) -> float:
        total = fsum(values) if all(map(isfinite, values)) else float(np.sum(values))
        return total / self.problem.total

    def dual_sum(self, y: np.ndarray) -> np.ndarray:
        """``r = (1/n) sum_i A_i y_i``."""
        r = np.zeros(self.problem.dimension)
        for block in self.blocks:
            r += self._share(block, y[block.own])
        return r

    def _share(self, block: Block, y: np.ndarray) -> np.ndarray:
        return block.image(block.weight * y) / self.problem.total

    def make_feasible(self, y: np.ndarray) -> None:
        idle = set(self.problem.idle.tolist())
        for i, block in enumerate(self.blocks):
            if i in idle or not isfinite(block.value(y[block.own])):
                y[block.own] = block.derivative(np.zeros(block.own.stop - block.own.start))

    def start(
        self, order: str, x: np.ndarray, y: np.ndarray, r: np.ndarray, batch_size: int
    ) -> Iteration:
        orders = {"extrapolated": _Extrapolated, "compensated": _Compensated}
        return {**orders, "dual": _Dual, "batch": _Batch}[order](self, x, y, r)

    # --- what the orders are made of ---

    def move(self, i: int, x: np.ndarray, y: np.ndarray, steps: Steps) -> np.ndarray:
        """Move the dual of block i against x; return the change of r."""
        block, sigma = self.blocks[i], float(steps.sigma[i])
        z, old = block.margins(x), y[block.own]
        new = block.derivative(z) if steps.gradient else block.prox(old + sigma * z, sigma)
        change = self._share(block, new - old)
        y[block.own] = new
        return change

    def prox(self, u: np.ndarray, tau: float) -> np.ndarray:
        """The proximal point of g, written over u."""
        self._prox(self.problem.regularizer_kernel, u, tau, u)
        return u

    def primal_of(self, r: np.ndarray) -> np.ndarray:
        """``grad g*(-r)``."""
        s = -r
        self._gradient(self.problem.regularizer_kernel, s, s)
        return s


class _Order:
    """State that all orders share; ``_step`` is one iteration."""

    def __init__(self, engine: Interpreted, x: np.ndarray, y: np.ndarray, r: np.ndarray) -> None:
        self.y = y
        self._engine = engine
        self._x = x
        self._r = r

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        stride = int(steps.moving)
        with np.errstate(all="ignore"):  # a run that diverges is noticed at the next check
            for t, batch in enumerate(batches):
                tau, theta = float(steps.tau[t * stride]), float(steps.theta[t * stride])
                self._step(batch, steps, tau, theta)

    def _step(self, batch: np.ndarray, steps: Steps, tau: float, theta: float) -> None:
        raise NotImplementedError

    def _move(self, batch: np.ndarray, x: np.ndarray, steps: Steps) -> np.ndarray:
        """Move the duals of a batch; update r and return ``sum_i c_i A_i dy_i``."""
        n, stride = self._engine.problem.count, int(steps.weight_stride)
        weighted = np.zeros(x.size)
        for i in batch.tolist():
            change = self._engine.move(i, x, self.y, steps)
            self._r += change
            weighted += (n * float(steps.weight[i * stride])) * change
        return weighted

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x, self._engine.primal_of(self._r)

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        self._r = r.copy()


class _Extrapolated(_Order):
    """Dual step at ``x + theta (x - x_before)``, primal step with the old r and the batch term."""

    def __init__(self, engine: Interpreted, x: np.ndarray, y: np.ndarray, r: np.ndarray) -> None:
        super().__init__(engine, x, y, r)
        self._ahead = x

    def _step(self, batch: np.ndarray, steps: Steps, tau: float, theta: float) -> None:
        before, x = self._r.copy(), self._x
        force = before + self._move(batch, self._ahead, steps)
        if steps.explicit:
            new = x - tau * (self._r + steps.lam * x)
        else:
            new = self._engine.prox(x - tau * force, tau)
        self._ahead = new + theta * (new - x)
        self._x = new


class _Compensated(_Order):
    """Primal step first, with the last batch term counted theta times more than r does."""

    def __init__(self, engine: Interpreted, x: np.ndarray, y: np.ndarray, r: np.ndarray) -> None:
        super().__init__(engine, x, y, r)
        self._extra = np.zeros(x.size)

    def _step(self, batch: np.ndarray, steps: Steps, tau: float, theta: float) -> None:
        self._x = self._engine.prox(self._x - tau * (self._r + self._extra), tau)
        self._extra = theta * self._move(batch, self._x, steps)


class _Dual(_Order):
    """The dual only; ``x = grad g*(-r)``."""

    def _step(self, batch: np.ndarray, steps: Steps, tau: float, theta: float) -> None:
        self._move(batch, self._engine.primal_of(self._r), steps)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        x = self._engine.primal_of(self._r)
        return x, x


class _Batch(_Order):
    """All blocks in every iteration."""

    def __init__(self, engine: Interpreted, x: np.ndarray, y: np.ndarray, r: np.ndarray) -> None:
        super().__init__(engine, x, y, r)
        self._ahead = x
        active = engine.problem.active
        self._all = np.arange(engine.problem.total) if active is None else active

    def _step(self, batch: np.ndarray, steps: Steps, tau: float, theta: float) -> None:
        self._move(self._all, self._ahead, steps)
        new = self._engine.prox(self._x - tau * self._r, tau)
        self._ahead = new + theta * (new - self._x)
        self._x = new
