"""SPDHG that tunes itself: steps by column and row, and their balance adapted after every pass.

For ``g = lam/2 |x|^2`` and rows of one output. Coordinate j takes the step ``tau m_j``, where m_j
falls with what the losses can bend along it: text has words that nearly every row contains beside
words that few do, and one step for all would be as short as the first kind needs. SPDHG's
conditions hold with ``sum_j m_j a_ij^2`` in place of ``|a_i|^2`` and the least ``tau m_j`` in place
of tau.

How to share ``tau sigma`` between primal and dual, no norm tells. After every pass the balance
moves so that x and y travel equally far, each measured by its own steps; moves are damped, and
smaller from pass to pass. Where the balance moves, SPDHG's proof does not reach: the stage is
watched like every other that is not proved to converge.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np

from ._containers import Dense
from ._flat import FlatProblem
from ._stage import ENTRIES_A_LOOK, Bench
from ._watch import Watch
from .certificate import Check
from .sampling import Systematic
from .steps import spdhg, spdhg_probabilities

_MOST_CLASSES = 24
_POWER = 0.35
"""How steps follow the curvature along a column: 0 not at all, 1 fully."""
_UNIFORM = 0.5
"""The share of visits that do not depend on the norms: no row starves."""
_DAMPING, _COOLING = 0.5, 10.0
_FARTHEST = log(4.0)
_MOVED = 0.05
"""A smaller move of the balance does not make new steps worth computing."""
_AWAKE = 6
"""Passes after which a run that slows down may move its balance again as in the beginning."""
_SLOW = 0.2


def suits(flat: FlatProblem) -> bool:
    """Whether a problem can be solved this way."""
    return flat.plain_l2 and flat.scalar and not (flat.intercept or flat.settled)


class TunedSpdhg:
    """A stage; x and y may be overwritten."""

    name = "spdhg"
    provable = False

    def __init__(self, bench: Bench, x: np.ndarray, y: np.ndarray) -> None:
        self._bench, flat = bench, bench.flat
        bench.engine.make_feasible(y)
        self._y, self._w = y, self._answer(bench.engine.dual_sum(y))
        self._measure()
        self._sampler = Systematic(flat.count, 1, self._chance, next(bench.seeds))
        self._pair = np.zeros(2 * x.size)
        self._scale = np.ones(self._sizes.size)
        self._begin_at(x, self._w)
        self._age, self._visited = 0, 0
        self._gaps: list[float] = []
        self._before = (x.copy(), y.copy())
        self._points = (x, x)
        self._choose_steps()
        self._watch = Watch(bench.certificate.scale, self._passes_per_decade())

    def _answer(self, r: np.ndarray) -> np.ndarray:
        """The primal point that belongs to r."""
        answer: np.ndarray = r * (-1.0 / self._bench.flat.lam)
        return answer

    # --- steps ---

    def _measure(self) -> None:
        """Classes of columns, norms of rows in their metric, probabilities of visits."""
        from ._kernels.metric import column_squares, row_squares

        flat = self._bench.flat
        squares = np.empty(flat.dimension)
        column_squares(flat.blocks, flat.total, squares)
        gamma = flat.active_gamma()
        self._kind, self._sizes = _classes(squares, float(np.min(gamma)), flat.lam)
        sizes = self._sizes[self._kind]
        rows = np.empty(flat.total)
        row_squares(flat.blocks, sizes, rows)
        self._eso = rows if flat.active is None else rows[flat.active]
        self._eso = np.maximum(self._eso, 1e-30 * max(float(self._eso.max()), 1e-270))
        self._gamma = gamma
        self._chance = spdhg_probabilities(self._eso, gamma, flat.lam, uniform_share=_UNIFORM)
        carried = self._bench.carried
        self._log_balance = 0.0 if carried is None else carried.balance

    def _choose_steps(self) -> None:
        self._balance_in_use = self._log_balance
        flat, slowest = self._bench.flat, float(self._sizes.min())
        steps = spdhg(
            self._eso, self._gamma, flat.lam, self._chance, exp(self._log_balance), slowest
        )
        self._tau, self._theta = steps.tau * self._sizes, steps.theta
        self._sigma, self._weight = steps.sigma, np.asarray(steps.weight)
        if flat.active is not None:
            self._sigma = _placed(self._sigma, flat.active, flat.total)
            self._weight = _placed(self._weight, flat.active, flat.total)

    def _passes_per_decade(self) -> float:
        return log(10.0) / max(1.0 - self._theta, 1e-300) / self._bench.flat.count

    def _adapt(self) -> None:
        """After a pass: bring the distances that x and y have travelled closer together."""
        x, sizes = self._iterate(), self._sizes[self._kind]
        old_x, old_y = self._before
        flat, moved = self._bench.flat, self._y - old_y
        moved *= moved
        moved *= flat.blocks.mass if int(flat.blocks.mass_stride) else float(flat.blocks.mass[0])
        far_x = float(((x - old_x) ** 2 / sizes).sum()) / (self._tau[0] / self._sizes[0])
        far_y = float((moved * self._weight / self._sigma).sum())
        np.copyto(old_x, x)
        np.copyto(old_y, self._y)
        if 0.0 < far_x < np.inf and 0.0 < far_y < np.inf:
            wanted = float(np.clip(0.5 * log(far_y / far_x), -_FARTHEST, _FARTHEST))
            self._log_balance += wanted * _DAMPING / (1.0 + (self._age + 1) / _COOLING)
            if self._bench.carried is not None:
                self._bench.carried.balance = self._log_balance
            if abs(self._log_balance - self._balance_in_use) > _MOVED:
                self._choose_steps()
        self._age += 1

    # --- the stage ---

    def advance(self, passes: float, pause: Callable[[], bool]) -> float:
        """Visit rows in chunks, between which ``pause`` is asked."""
        flat = self._bench.flat
        done, chunk = 0, max(1, int(ENTRIES_A_LOOK / self._bench.engine.work_per_visit))
        wanted = max(1, round(passes * flat.count))
        while done < wanted and not pause():
            count = min(chunk, flat.count - self._visited, wanted - done)
            self._visit(self._sampler.draw(count)[:, 0])
            done += count
            self._visited += count
            if self._visited == flat.count:
                self._visited = 0
                self._adapt()
        return done / flat.count

    def _visit(self, order: np.ndarray) -> None:
        from ._kernels._jit import uncached
        from ._kernels.metric import metric_rows

        flat = self._bench.flat
        kernel = uncached(metric_rows) if flat.user_code else metric_rows
        chosen = order if flat.active is None else flat.active[order]
        with np.errstate(all="ignore"):
            kernel(
                flat.blocks,
                flat.loss,
                flat.lam,
                chosen,
                self._sigma,
                self._weight,
                self._tau,
                self._theta,
                self._y,
                self._pair,
                self._kind,
                self._scale,
            )

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Views of w and e in the pair, as the kernels keep them."""
        if isinstance(self._bench.flat.blocks.rows, Dense):
            half = self._pair.size // 2
            return self._pair[:half], self._pair[half:]
        return self._pair[::2], self._pair[1::2]

    def _begin_at(self, x: np.ndarray, w: np.ndarray) -> None:
        own_w, own_e = self._parts()
        own_w[:] = w
        np.subtract(x, w, out=own_e)
        self._scale[:] = 1.0

    def _iterate(self) -> np.ndarray:
        w, e = self._parts()
        with np.errstate(all="ignore"):
            x: np.ndarray = w + self._scale[self._kind] * e
        return x

    def certify(self) -> Check:
        self._points = self._iterate(), self._parts()[0].copy()
        return self._bench.certificate.check(*self._points, self._y)

    def point(self) -> np.ndarray:
        return self._points[0]

    def trouble(self, check: Check, passes: float) -> str | None:
        return self._watch.trouble(check, self._bench.certificate.gap, passes)

    def settle(self, check: Check) -> None:
        if not check.finite:
            return
        self._begin_at(self._points[0], self._answer(check.r))
        self._gaps.append(self._bench.certificate.gap)
        slow = len(self._gaps) > 2 and self._gaps[-1] > _SLOW * self._gaps[-3]
        if self._age >= _AWAKE and slow:
            self._age = 0

    def interval(self, passes: float) -> float:
        return min(5.0, max(1.0, passes // 4))

    def notes(self) -> list[str]:
        return []


def _classes(squares: np.ndarray, gamma: float, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """The class of every column, and the factors of tau of the classes, powers of two."""
    bend = squares / gamma + lam
    sizes = bend**-_POWER
    sizes *= squares.sum() / max(float(sizes @ squares), 1e-300)
    level = np.round(np.log2(np.maximum(sizes, 1e-300))).astype(np.int64)
    lowest = max(int(level.max()) - _MOST_CLASSES + 1, int(level.min()))
    used, kind = np.unique(np.maximum(level - lowest, 0), return_inverse=True)
    return kind.astype(np.uint8), 2.0 ** (lowest + used.astype(np.float64))


def _placed(values: np.ndarray, active: np.ndarray, total: int) -> np.ndarray:
    full = np.ones(total)
    full[active] = values
    return full
