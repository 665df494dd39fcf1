"""The state of a run and how it moves: one class per way of keeping the primal iterate.

Each offers the same four things: ``advance(batches, steps)`` runs the iterations of some batches,
``points()`` gives the iterate x and the other primal point grad g*(-r), ``rebase(r)`` takes over an
r recomputed from y, and ``y`` is the dual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ._containers import Dense, Steps, Team, Work
from ._flat import FlatProblem
from ._threads import Threads

NO_STEP = 1e-300
"""A prox with this step is the projection onto the domain of g."""
_ROUNDING = 1e-14
"""A sum smaller than this share of its terms is rounding."""


class Iteration(Protocol):
    """What the solver needs to know of a way of iterating."""

    y: np.ndarray

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        """Run one iteration for each row of ``batches`` (block numbers)."""

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """The iterate x and the primal point that belongs to y, ``grad g*(-r)``."""

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        """Replace the running r by one recomputed from y; x stays.

        ``x`` and ``w`` are what ``points()`` just gave, to be used as scratch.
        """


class _Shared:
    """What all ways of iterating have in common: buffers, threads, kernels for user code."""

    def __init__(
        self, problem: FlatProblem, y: np.ndarray, batch_size: int, threads: Threads
    ) -> None:
        self.problem = problem
        self.y = y
        self._threads = threads
        self._team_size = threads.worth(batch_size * problem.entries / problem.total)
        width = problem.width
        self._work = Work(
            np.zeros((2, batch_size * width)),
            np.zeros((2, batch_size)),
            np.zeros(batch_size, dtype=np.uint32),
            np.zeros((threads.size, 3 * width)),
            np.uint64(width),
        )

    def _kernel(self, kernel: Any) -> Any:
        from ._kernels._jit import uncached

        return uncached(kernel) if self.problem.user_code else kernel

    def _run(self, call: Callable[[Team], Any]) -> None:
        self._threads.run(call, self._team_size)

    def _gradient_of_conjugate(self, s: np.ndarray) -> np.ndarray:
        from ._kernels.regularizers import call_conjugate_gradient

        self._kernel(call_conjugate_gradient)(self.problem.regularizer_kernel, s, s)
        return s


class L2Iteration(_Shared):
    """``x = w + scale e``: g = lam/2 |x|^2, both primal-dual orders. See ``_kernels/l2.py``."""

    def __init__(
        self,
        problem: FlatProblem,
        x: np.ndarray,
        y: np.ndarray,
        r: np.ndarray,
        batch_size: int,
        threads: Threads,
        compensated: bool,
    ) -> None:
        from ._kernels import l2

        super().__init__(problem, y, batch_size, threads)
        self._compensated = compensated
        self._blocks_kernel = self._kernel(l2.compensated if compensated else l2.extrapolated)
        self._rows_kernel = self._kernel(
            l2.compensated_rows if compensated else l2.extrapolated_rows
        )
        self._add_trace = l2.add_trace
        self._fused = problem.scalar and batch_size == 1
        self._pair = np.zeros(2 * x.size)
        if isinstance(problem.blocks.rows, Dense):  # as ``place_of_w`` and ``place_of_e`` have it
            self._w, self._e = self._pair[: x.size], self._pair[x.size :]
        else:
            self._w, self._e = self._pair[::2], self._pair[1::2]
        np.multiply(r, -1.0 / problem.lam, out=self._w)
        np.subtract(x, self._w, out=self._e)
        self._carry = np.array([1.0, 1.0, 0.0, 0.0])

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        self._call(batches, steps, self._carry, self._work)
        self._work.before[:] = batches[-1]

    def _call(self, batches: np.ndarray, steps: Steps, carry: np.ndarray, work: Work) -> None:
        p = self.problem
        if self._fused:
            mass = p.blocks.mass
            self._rows_kernel(
                p.blocks.rows,
                p.loss,
                steps,
                mass,
                p.blocks.mass_stride,
                p.blocks.n,
                batches[:, 0],
                self.y,
                self._pair,
                carry,
                work,
            )
            return
        self._run(
            lambda team: self._blocks_kernel(
                p.blocks, p.loss, steps, batches, self.y, self._pair, carry, work, team
            )
        )

    def _trace(self, sign: float, vector: np.ndarray) -> None:
        """Add what the last batch left behind, on the rows of that batch only."""
        if self._carry[3] != 0.0:
            self._add_trace(
                self.problem.blocks,
                self._work.before,
                self._work,
                np.int64(self._carry[2]),
                sign,
                vector,
            )

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        w = self._w.copy()
        if not self._compensated:
            self._trace(-1.0, w)
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run is noticed elsewhere
            x = self._e * self._carry[0]
            x += w
        if self._compensated:
            self._trace(1.0, x)
        return x, w

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        np.multiply(r, -1.0 / self.problem.lam, out=w)
        if self._compensated:
            self._trace(-1.0, x)
        np.subtract(x, w, out=self._e)
        if not self._compensated:
            self._trace(1.0, w)
        self._w[:] = w
        self._carry[1] /= self._carry[0]
        self._carry[0] = 1.0


class LazyIteration(_Shared):
    """Any regulariser, coordinates brought up to date when needed. See ``_kernels/lazy.py``."""

    def __init__(
        self,
        problem: FlatProblem,
        x: np.ndarray,
        y: np.ndarray,
        r: np.ndarray,
        batch_size: int,
        threads: Threads,
        compensated: bool,
    ) -> None:
        from ._containers import Grouped
        from ._kernels import l2, lazy
        from ._kernels.catch_up import accumulate_decay
        from ._kernels.regularizers import call_prox

        super().__init__(problem, y, batch_size, threads)
        self._compensated = compensated
        self._lazy = self._kernel(lazy.compensated if compensated else lazy.extrapolated)
        self._accumulate_decay = accumulate_decay
        self._add_trace = l2.add_trace
        self._prox = self._kernel(call_prox)
        self._vectors = np.zeros((2 if compensated else 4, x.size))
        self._vectors[0] = x
        self._vectors[1] = r if compensated else x
        if not compensated:
            self._vectors[2] = r
        kernel = problem.regularizer_kernel
        units = kernel.weight.size if isinstance(kernel, Grouped) else x.size
        self._last = np.zeros(units, dtype=np.uint32)
        self._theta = np.zeros(1)
        self._moved = False

    @property
    def _r(self) -> np.ndarray:
        r: np.ndarray = self._vectors[1 if self._compensated else 2]
        return r

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        self._call(batches, steps, self._theta)
        self._work.before[:] = batches[-1]
        self._moved = True

    def _call(self, batches: np.ndarray, steps: Steps, theta: np.ndarray) -> None:
        p = self.problem
        if self._compensated:
            self._run(
                lambda team: self._lazy(
                    p.blocks,
                    p.loss,
                    p.regularizer_kernel,
                    steps,
                    batches,
                    self.y,
                    self._vectors,
                    self._last,
                    self._work,
                    team,
                )
            )
            return
        steps = _unrolled(steps, len(batches))
        decay = np.zeros(len(batches) + 1)
        self._accumulate_decay(p.lam, steps.tau[: len(batches)], decay)
        self._run(
            lambda team: self._lazy(
                p.blocks,
                p.loss,
                p.regularizer_kernel,
                steps,
                batches,
                self.y,
                self._vectors,
                self._last,
                decay,
                self._work,
                theta,
                team,
            )
        )

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        x: np.ndarray = self._vectors[0]
        if self._compensated and self._moved:
            stored, x = x, x.copy()
            # The kernel left x less tau q; the rows of the last batch know q.
            self._add_trace(self.problem.blocks, self._work.before, self._work, 0, 1.0, x)
            x[np.abs(x) <= _ROUNDING * np.abs(stored)] = 0.0  # what l1 had set to zero
            self._prox(self.problem.regularizer_kernel, x, NO_STEP, x)  # undo rounding at bounds
        return x, self._gradient_of_conjugate(-self._r)

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        self._r[:] = r


class Settled(_Shared):
    """No block depends on x: y is optimal from the start, and so is ``x = grad g*(0)``."""

    def __init__(self, problem: FlatProblem, y: np.ndarray, threads: Threads) -> None:
        super().__init__(problem, y, 1, threads)
        self._x = self._gradient_of_conjugate(np.zeros(problem.dimension))

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        """There is nowhere to go."""

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x, self._x

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        """``r`` is zero."""


class DualIteration(_Shared):
    """SDCA: the dual only, ``x = grad g*(-r)``. See ``_kernels/dual.py``."""

    def __init__(
        self,
        problem: FlatProblem,
        y: np.ndarray,
        r: np.ndarray,
        batch_size: int,
        threads: Threads,
    ) -> None:
        from ._containers import Grouped
        from ._kernels import dual

        super().__init__(problem, y, batch_size, threads)
        self._ascent = self._kernel(dual.ascent)
        self._refresh_all = self._kernel(dual.refresh_all)
        self._r = r.copy()
        kernel = problem.regularizer_kernel
        grouped = isinstance(kernel, Grouped)
        self._shrink = np.zeros(kernel.weight.size if grouped else 0)
        self._refresh_all(kernel, self._r, self._shrink)

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        p = self.problem
        self._run(
            lambda team: self._ascent(
                p.blocks,
                p.loss,
                p.regularizer_kernel,
                steps,
                batches,
                self.y,
                self._r,
                self._shrink,
                self._work,
                team,
            )
        )

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        x = self._gradient_of_conjugate(-self._r)
        return x, x

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        self._r[:] = r
        self._refresh_all(self.problem.regularizer_kernel, self._r, self._shrink)


class BatchIteration(_Shared):
    """All blocks in every iteration (PDHG): plain vectors, two walks over the data's rows."""

    def __init__(
        self,
        problem: FlatProblem,
        x: np.ndarray,
        y: np.ndarray,
        r: np.ndarray,
        threads: Threads,
    ) -> None:
        from ._kernels import sweep
        from ._kernels.regularizers import call_prox

        super().__init__(problem, y, 1, threads)
        self._team_size = threads.worth(problem.entries)
        self._step = self._kernel(sweep.batch_step)
        self._prox = self._kernel(call_prox)
        self._tile = np.uint64(sweep.TILE)
        self._x, self._ahead, self._r = x.copy(), x.copy(), r.copy()

    def advance(self, batches: np.ndarray, steps: Steps) -> None:
        p = self.problem
        tau, theta = float(steps.tau[0]), float(steps.theta[0])
        for _ in range(len(batches)):
            self._run(
                lambda team: self._step(
                    p.blocks,
                    p.loss,
                    steps,
                    self._ahead,
                    self.y,
                    self._r,
                    self._work.scratch,
                    self._tile,
                    team,
                )
            )
            new = tau * self._r
            np.subtract(self._x, new, out=new)
            self._prox(p.regularizer_kernel, new, tau, new)
            np.subtract(new, self._x, out=self._ahead)
            self._ahead *= theta
            self._ahead += new
            self._x = new

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x, self._gradient_of_conjugate(-self._r)

    def rebase(self, r: np.ndarray, x: np.ndarray, w: np.ndarray) -> None:
        """``r`` is recomputed in every iteration anyway."""


def _unrolled(steps: Steps, length: int) -> Steps:
    """Steps with one tau per iteration (at least one entry, so that the first can be read)."""
    if steps.moving == 1:
        return steps
    tau = np.full(max(length, 1), steps.tau[0])
    return steps._replace(
        tau=tau, theta=np.full(max(length, 1), steps.theta[0]), moving=np.uint64(1)
    )
