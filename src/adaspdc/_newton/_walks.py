"""Walks over the rows: all that Newton's method asks of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from .._codes import FIRST_VECTOR_CODE, SQUARED
from .._containers import Blocks, BuiltinLoss, Dense, Separable, Team
from .._flat import FlatProblem
from .._operators import Operators
from .._threads import Threads

_TILES = 64
"""Partial sums of a walk: enough for many threads, few enough to cost nothing."""
_MOST_PARTS = 16
_ENTRIES_PER_SUM = 8.0
"""A vector of d numbers more is worth it for this many entries a coordinate."""


@dataclass
class Expansion:
    """First and second derivatives of the losses at some margins.

    With several outputs ``curvature`` is not in use: the slopes tell the Hessians.
    """

    slope: np.ndarray
    curvature: np.ndarray


class Walks:
    """One walk each, for losses of one output.

    ``passes`` adds up the visits, in multiples of the rows of the whole problem, of which ``share``
    are here. Primal vectors have ``size`` entries: the coefficients, and the intercepts last where
    there are any.
    """

    def __init__(self, problem: FlatProblem, threads: Threads, share: float = 1.0) -> None:
        from .._kernels import smooth
        from .._kernels._jit import uncached

        wrap = uncached if problem.user_code else (lambda kernel: kernel)
        self._expand, self._propose = wrap(smooth.expand), wrap(smooth.propose_dual)
        self._kernels: Any = smooth
        self.problem, self.blocks = problem, problem.blocks
        self.outputs = int(problem.blocks.outputs)
        self.n, self.size = problem.total, problem.size
        self.features = np.uint64(problem.dimension // self.outputs)
        self._threads = threads
        self._sums = np.zeros((min(_TILES, self.n), 4))
        self.share, self.passes = share, 0.0
        self.entries = problem.entries
        wanted = int(self.entries / (_ENTRIES_PER_SUM * self.features))
        parts = 1 << max(0, min(wanted, _MOST_PARTS).bit_length() - 1)
        self._parts = np.zeros((parts, self.size))
        self._cuts = _equal_cuts(self.blocks.rows, self.n, parts)
        self._team = threads.worth(self.entries)

    def expansion(self) -> Expansion:
        """Room for one."""
        return Expansion(np.empty(self.n), np.empty(self.n))

    @property
    def quadratic(self) -> bool:
        """Whether the curvature never changes."""
        return is_quadratic(self.problem)

    def _run(self, call: Callable[[Team], Any], visits: float) -> None:
        self.passes += visits * self.share
        with np.errstate(all="ignore"):
            self._threads.run(call, self._team)

    def both(self, call: Callable[[int], None], work: float) -> None:
        """``call(0)`` and ``call(1)``, at once where there are threads and the work is worth it."""
        size = min(2, self._threads.worth(work))

        def share(team: Team) -> None:
            for k in range(int(team.member), 2, size):
                call(k)

        self._threads.run(share, size)

    def _mean(self, column: int) -> float:
        values = self._sums[:, column]
        total = fsum(values) if np.isfinite(values).all() else float(np.sum(values))
        return total / float(self.blocks.n)

    # --- margins ---

    def expand(
        self, z: np.ndarray, dz: np.ndarray, step: float, at: Expansion
    ) -> tuple[float, float, float]:
        """Mean loss at ``z + step dz`` and its first two derivatives along dz; fills ``at``."""
        blocks, loss = self.blocks, self.problem.loss
        self._run(
            lambda team: self._expand(
                blocks, loss, z, dz, step, at.slope, at.curvature, self._sums, team
            ),
            0.0,
        )
        return self._mean(0), self._mean(1), self._mean(2)

    def propose_dual(
        self, at: Expansion, dz: np.ndarray, step: float, shift: float, y: np.ndarray
    ) -> tuple[float, float, float, float]:
        """``y``, the dual point of the quadratic models at the end of a step.

        Returns the means of phi* and of y there, the derivative of the latter by ``shift``, and
        how many coordinates had to be moved into the domain.
        """
        blocks, loss = self.blocks, self.problem.loss
        self._run(
            lambda team: self._propose(
                blocks, loss, at.slope, at.curvature, dz, step, shift, y, self._sums, team
            ),
            0.0,
        )
        return self._mean(0), self._mean(1), self._mean(2), float(self._sums[:, 3].sum())

    # --- margins from coefficients and back ---

    def push(self, x: np.ndarray, z: np.ndarray) -> None:
        """``z = A x``."""
        kernel = self._kernels.push
        self._run(lambda team: kernel(self.blocks, self.features, x, z, team), 1.0)

    def push_flat(self, at: Expansion, x: np.ndarray, z: np.ndarray) -> None:
        """``z = A x`` on the rows of no curvature, which ``curve`` leaves out."""
        kernel, curvature = self._kernels.push_flat, at.curvature
        curved = np.count_nonzero(curvature) / self.n
        if curved < 1.0:
            self._run(
                lambda team: kernel(self.blocks, self.features, curvature, x, z, team),
                1.0 - curved,
            )

    def pull(self, u: np.ndarray) -> np.ndarray:
        """``(1/n) A^T (mass u)``: good until the next walk."""
        kernel = self._kernels.pull
        self._run(
            lambda team: kernel(self.blocks, self.features, u, self._cuts, self._parts, team),
            1.0,
        )
        return self._total()

    def curve(self, at: Expansion, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The Hessian of the mean loss times p, and ``q = A p`` on the rows that matter."""
        kernel, curvature = self._kernels.curve, at.curvature
        self._run(
            lambda team: kernel(
                self.blocks,
                self.features,
                curvature,
                p,
                q,
                self._cuts,
                self._parts,
                team,
            ),
            1.0,
        )
        return self._total()

    def diagonal(self, at: Expansion) -> np.ndarray:
        """The diagonal of the Hessian of the mean loss."""
        return self._columns(at.curvature)

    def curvatures(self, at: Expansion) -> np.ndarray:
        """Second derivatives of the losses, mass included: one column per output."""
        weighted: np.ndarray = self._mass() * at.curvature
        return weighted[:, None]

    def _mass(self) -> Any:
        mass = self.blocks.mass
        return mass if int(self.blocks.mass_stride) else float(mass[0])

    def _columns(self, curvature: np.ndarray) -> np.ndarray:
        kernel = self._kernels.curvature_of_columns
        self._run(
            lambda team: kernel(
                self.blocks, self.features, curvature, self._cuts, self._parts, team
            ),
            1.0,
        )
        return self._total().copy()

    def _total(self) -> np.ndarray:
        out: np.ndarray = self._parts[0]
        return out


class OutputWalks(Walks):
    """The same for losses of several outputs."""

    def __init__(self, problem: FlatProblem, threads: Threads, share: float = 1.0) -> None:
        from .._kernels import smooth_outputs

        super().__init__(problem, threads, share)
        self._kernels = smooth_outputs
        self._scratch = np.zeros((threads.size, 2 * self.outputs))

    def expansion(self) -> Expansion:
        return Expansion(np.empty(self.n * self.outputs), np.empty(0))

    def expand(
        self, z: np.ndarray, dz: np.ndarray, step: float, at: Expansion
    ) -> tuple[float, float, float]:
        kernel, blocks, loss = self._kernels.expand, self.blocks, self.problem.loss
        self._run(
            lambda team: kernel(
                blocks, loss, z, dz, step, at.slope, self._scratch, self._sums, team
            ),
            0.0,
        )
        return self._mean(0), self._mean(1), self._mean(2)

    def propose_dual(
        self, at: Expansion, dz: np.ndarray, step: float, shift: float, y: np.ndarray
    ) -> tuple[float, float, float, float]:
        """No such point: the domain of several outputs is not a box to clip to."""
        return np.inf, 0.0, 0.0, 0.0

    def push_flat(self, at: Expansion, x: np.ndarray, z: np.ndarray) -> None:
        """``curve`` leaves no row out."""

    def curve(self, at: Expansion, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        kernel = self._kernels.curve
        self._run(
            lambda team: kernel(
                self.blocks,
                self.problem.loss,
                self.features,
                at.slope,
                p,
                q,
                self._scratch,
                self._cuts,
                self._parts,
                team,
            ),
            1.0,
        )
        return self._total()

    def diagonal(self, at: Expansion) -> np.ndarray:
        return self._columns(self._diagonals(at))

    def curvatures(self, at: Expansion) -> np.ndarray:
        mass = self._mass()
        by_row = self._diagonals(at).reshape(self.n, self.outputs)
        by_row *= mass if np.ndim(mass) == 0 else mass[:, None]
        return by_row

    def _diagonals(self, at: Expansion) -> np.ndarray:
        out = np.empty(self.n * self.outputs)
        kernel, blocks, loss = self._kernels.curvatures, self.blocks, self.problem.loss
        self._run(lambda team: kernel(blocks, loss, at.slope, out, team), 0.0)
        return out

    def intercept_hessian(self, at: Expansion) -> np.ndarray:
        """Second derivatives of the mean loss in the intercepts."""
        out = np.empty((self.outputs, self.outputs))
        self._kernels.intercept_hessian(
            self.blocks, self.problem.loss, at.slope, self._scratch, out
        )
        return out


def _equal_cuts(rows: Any, n: int, parts: int) -> np.ndarray:
    """Where to cut the rows so that the parts hold about as many entries each."""
    if isinstance(rows, Dense) or parts == 1:
        return np.linspace(0, n, parts + 1).astype(np.uint64)
    wanted = np.linspace(0, float(rows.indptr[-1]), parts + 1).astype(rows.indptr.dtype)
    cuts = np.searchsorted(rows.indptr, wanted)
    cuts[0], cuts[-1] = 0, n
    return cuts.astype(np.uint64)


def walks_over(problem: FlatProblem, threads: Threads, share: float = 1.0) -> Walks:
    """The walks that fit the losses of ``by_rows(problem)``."""
    kind = Walks if problem.scalar else OutputWalks
    return kind(problem, threads, share)


def is_quadratic(problem: FlatProblem) -> bool:
    """Whether all losses are squared."""
    loss = problem.loss
    return isinstance(loss, BuiltinLoss) and bool((loss.code == SQUARED).all())


def by_rows(problem: FlatProblem) -> FlatProblem | None:
    """The problem with every row a block of its own, or None where that is not possible.

    It is not where g is no `Separable`, or where the blocks are operators, couple their rows, or
    have a loss of several outputs that a user wrote, whose curvature is not known.
    """
    blocks, loss = problem.blocks, problem.loss
    if isinstance(blocks.rows, Operators) or not isinstance(problem.regularizer_kernel, Separable):
        return None
    if problem.scalar:
        return problem
    if not isinstance(loss, BuiltinLoss):
        return None
    if int(blocks.outputs) > 1:
        known = (loss.code >= FIRST_VECTOR_CODE) | (loss.code == SQUARED)
        return problem if blocks.start.size == 0 and known.all() else None
    if (loss.code >= FIRST_VECTOR_CODE).any():
        return None
    return _cut_into_rows(problem, loss)


def _cut_into_rows(problem: FlatProblem, loss: BuiltinLoss) -> FlatProblem:
    blocks = problem.blocks
    heights: Any = np.diff(blocks.start.astype(np.int64))

    def repeated(values: np.ndarray, stride: Any) -> Any:
        return np.repeat(values, heights) if int(stride) else values

    rowwise = Blocks(
        blocks.rows,
        np.zeros(0, np.uint64),
        blocks.outputs,
        repeated(blocks.mass, blocks.mass_stride),
        blocks.mass_stride,
        blocks.n,
    )
    return replace(
        problem,
        blocks=rowwise,
        loss=loss._replace(
            code=repeated(loss.code, loss.stride),
            a=repeated(loss.a, loss.stride),
            b=repeated(loss.b, loss.stride),
        ),
        total=int(heights.sum()),
        active=None,
        width=1,
    )
