"""Newton's method for ``(1/n) sum_i phi_i(<a_i, x> + b) + lam/2 |x|^2``, b there or not.

Each iteration solves ``(H + lam I) dx = -grad P`` with H the Hessian of the mean loss, directly
where its Cholesky factor is cheap, else by conjugate gradients. Margins ``z = A x`` are carried
along, so a search along dx costs no walk over the matrix.

Two dual points certify an iterate. ``y = phi'(z)`` has ``gap = |grad P|^2 / (2 lam)``, exactly. The
quadratic models of the losses say that y will be ``phi' + s phi'' dz`` at the end of the step; the
gap of that point is of fourth order in dz, with no 1/lam in it.

An intercept b is the last entry of x, without a lam. It is always at its best for the present x:
see ``_intercept.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from .._flat import FlatProblem
from .._machine import Machine
from .._threads import Threads
from ..certificate import LEVEL
from ._intercept import centre, level
from ._preconditioner import Preconditioner
from ._sample import nested_samples, restricted
from ._search import search
from ._term import Term
from ._walks import walks_over

_FORCING = 0.2
_MOST_PRODUCTS = 200
_CLOSE = 0.05
"""The dual point of the models is worth a look once a step promises less than this share of P."""
_QUADRATIC_PRODUCTS = 1000
_LONG, _SHORT = 0.3, 0.1
"""Steps, as shares of Newton's, after which lam may come down, and has to go up."""
_EASE, _EASED_GAP = 10.0, 1e-2
_EASY = 0.1
"""The lam that suits m rows, as a share of the trace of the Hessian over m."""
_EASIEST = 0.01
"""The lam at which all steps are long, as a share of that trace."""
_MOST_SHORT = 3
"""So many short steps on all rows, and the run begins anew at the easiest lam."""
_LEVEL = 1e-15
_MOST_SHIFTS = 30


class SmoothNewton:
    """The state of a run; `iterate` does one iteration on the rows in use."""

    def __init__(
        self,
        problem: FlatProblem,
        threads: Threads,
        machine: Machine,
        rng: np.random.Generator,
        term: Term,
        x: np.ndarray,
    ) -> None:
        self.term, self._target = term, term
        self._problem, self._threads, self._past_passes = problem, threads, 0.0
        self._penalised = term.penalised
        self._free = problem.size > self._penalised
        self.x = np.clip(x, term.low, term.high)
        self.primal, self.dual = np.inf, -np.inf
        self.stuck, self._fails = False, 0
        self.walks = walks_over(problem, threads)
        self._preconditioner = Preconditioner(self.walks, machine, rng)
        self._samples = []
        self._short_steps, self._careful = 0, False
        self._last: tuple[float, np.ndarray, np.ndarray] | None = None
        if self._may_sample(x):
            self._samples = nested_samples(problem.total, problem.size, rng)
        self._begin_level()

    # --- samples of rows, then all of them ---

    def _may_sample(self, x: np.ndarray) -> bool:
        """Whether to begin with a part of the rows: not where a start or one solve tell more."""
        return not (self.walks.quadratic or x.any())

    @property
    def passes(self) -> float:
        """Visits of rows so far, in multiples of n."""
        return self._past_passes + self.walks.passes

    @property
    def sampling(self) -> bool:
        """Whether the present iterate belongs to a sample of the rows."""
        return self.walks.share < 1.0

    def _begin_level(self) -> None:
        """Go on with the next larger sample, or with all rows."""
        problem, share = self._problem, 1.0
        while self._samples and share == 1.0:
            order = self._samples.pop(0)
            part = restricted(self._problem, order, self._threads)
            if part.entries:  # a few sparse rows may be empty, all of them
                problem, share = part, order.size / self._problem.total
        self._past_passes += self.walks.passes
        self.walks = walks = walks_over(problem, self._threads, share)
        self._preconditioner.move_to(walks)
        size = walks.n * walks.outputs
        self.z, self._dz, self._q = np.zeros(size), np.zeros(size), np.zeros(size)
        self._at, self._next = walks.expansion(), walks.expansion()
        self.y, self._candidate = np.zeros(size), np.empty(size)
        self.refresh()
        self._change_lam(self._easy() if self.sampling and self._may_ease() else 0.0)

    def refresh(self) -> None:
        """Margins anew from x, and what follows from them."""
        self.z[:] = 0.0
        if self.x.any():
            self.walks.push(self.x, self.z)
        self._expand()

    def restart(self) -> None:
        """Begin anew at x: what was certified proved wrong by rounding."""
        self.primal, self.dual = np.inf, -np.inf
        self.refresh()

    def _expand(self) -> None:
        """Everything that depends on z, with the intercept at its best."""
        if self._free:
            self.x[self._penalised :] += centre(self.walks, self.z, self._at)
        loss, _, _ = self.walks.expand(self.z, self._dz, 0.0, self._at)
        self.value = loss + self.term.value(self.x)

    def _noise(self) -> float:
        """By how much the least value over a sample deceives: about d parameters were fitted."""
        slope = self._at.slope
        curvature = self.walks.curvatures(self._at)
        spread = float(slope @ slope) / max(float(curvature.sum()), 1e-300)
        return 0.5 * spread * self.walks.size / self.walks.n

    # --- one iteration ---

    def iterate(self, enough: float, pause: Callable[[], bool]) -> None:
        """Certify the iterate, and unless the gap is within ``enough`` move it."""
        r = self.walks.pull(self._at.slope).copy()
        r[self._penalised :] = 0.0  # all but rounding, by `centre`
        if self._settled(r, enough):
            return
        gradient = r + self.term.shift * self.x
        dx, curved = self._direction(gradient, enough, pause)
        promise = -float(gradient @ dx)
        step, value = self._search(dx, promise)
        if step == 0.0:
            self._no_progress()
            return
        if self.certified and promise <= _CLOSE * abs(self.value):
            self._certify_models(r + step * curved, step)
        self._take(dx, step, value)
        if self.sampling and promise <= self._noise():
            self._begin_level()

    def _settled(self, r: np.ndarray, enough: float) -> bool:
        """Certify the iterate; whether it is good enough. Takes an eased lam down."""
        while self._careful and self.easing and self._solved(r, enough):
            self._change_lam(self.term.lam / _EASE)
        if not self.certified:
            return False
        self._certify(r)
        return self.primal - self.dual <= enough

    def _solved(self, r: np.ndarray, enough: float) -> bool:
        """Whether the present lam is done with."""
        return self.term.gap(self.x, r) <= max(_EASED_GAP * abs(self.value), enough)

    def _certify(self, r: np.ndarray) -> None:
        """P and D at x and ``phi'(z)``."""
        self.primal = min(self.primal, self.value)
        if self._free and not self._level_holds():
            self._certify_models(None, 0.0)
            return
        dual = self.value - self.term.gap(self.x, r)
        if dual > self.dual:
            self.dual = dual
            self.y[:] = self._at.slope

    def _level_holds(self) -> bool:
        """Whether the slopes add up to zero as closely as a certificate asks for.

        Where margins are far from zero and slopes are tiny, rounding of the margins leaves more.
        """
        size = float(np.abs(self._at.slope).mean())
        return float(np.abs(level(self.walks, self._at)).max()) <= 0.5 * LEVEL * size

    def _certify_models(self, r: np.ndarray | None, step: float) -> None:
        """D at the dual point of the models; r is its r if known and none of it was moved."""
        walks, at, shift = self.walks, self._at, 0.0
        conjugate, off, bend, moved = walks.propose_dual(at, self._dz, step, 0.0, self._candidate)
        if self._free:
            if conjugate == np.inf:
                return
            size = float(np.abs(self._candidate).mean())
            for _ in range(_MOST_SHIFTS):
                if abs(off) <= _LEVEL * size or bend <= 0.0:
                    break
                shift -= off / bend
                conjugate, off, bend, moved = walks.propose_dual(
                    at, self._dz, step, shift, self._candidate
                )
            if abs(off) > _LEVEL * size:
                return
        if r is None or moved or shift:
            r = walks.pull(self._candidate)
        dual = -conjugate - self.term.conjugate_at_minus(r)
        if dual > self.dual:
            self.dual = dual
            self.y, self._candidate = self._candidate, self.y

    def _search(self, dx: np.ndarray, promise: float) -> tuple[float, float]:
        """How far to go along dx, and the objective there."""
        x, own, lam = self.x[: self._penalised], dx[: self._penalised], self.term.lam
        here, across, ahead = (0.5 * lam * float(a @ b) for a, b in ((x, x), (x, own), (own, own)))

        def along(step: float) -> tuple[float, float, float]:
            value, slope, curvature = self.walks.expand(self.z, self._dz, step, self._next)
            return (
                value + here + step * (2.0 * across + step * ahead),
                slope + 2.0 * (across + step * ahead),
                curvature + 2.0 * ahead,
            )

        return search(along, self.value, -promise)

    def _take(self, dx: np.ndarray, step: float, value: float) -> None:
        self.x += step * dx
        self._arrive(step, value)

    def _arrive(self, step: float, value: float) -> None:
        """Margins, slopes and values of the x that lies ``step`` ahead."""
        self.z += step * self._dz
        self.value = value
        self._at, self._next = self._next, self._at
        if self._free:
            self._expand()
        if self.certified:
            self.primal = min(self.primal, self.value)
        if not self.sampling:
            self._adapt_lam(step)

    # --- continuation in lam ---

    @property
    def easing(self) -> bool:
        """Whether the present iterate belongs to a larger lam."""
        return self.term is not self._target

    @property
    def certified(self) -> bool:
        """Whether the present iterate belongs to the problem itself."""
        return not (self.sampling or self.easing)

    def _may_ease(self) -> bool:
        """Not where one solve does it, nor where every lam on the way costs many products."""
        return self._preconditioner.factors_pay and not self.walks.quadratic

    def _trace(self) -> float:
        return float(self.walks.diagonal(self._at)[: self._penalised].sum())

    def _easy(self) -> float:
        """A lam at which as many rows as there are determine a solution well."""
        return _EASY * self._trace() / self.walks.n

    def _adapt_lam(self, step: float) -> None:
        """Ease lam after a short step; come back after a long one.

        Where a problem is nearly separable there is curvature in few directions only, and Newton's
        steps go far along all others, where rows wait whose curvature they know nothing of.
        """
        if self._careful or not self._may_ease():
            return
        if step < _SHORT:
            self._short_steps += 1
            if self._short_steps == _MOST_SHORT:
                self._begin_anew()
            else:
                self._change_lam(min(_EASE * self.term.lam, self._easy()))
        elif step >= _LONG and self.easing:
            self._change_lam(self.term.lam / _EASE)

    def _begin_anew(self) -> None:
        """From zero at the easiest lam, coming down only where a solution has been found."""
        self._careful = True
        self.x[:] = np.clip(0.0, self.term.low, self.term.high)
        self.refresh()
        self._change_lam(_EASIEST * self._trace())

    def _change_lam(self, lam: float) -> None:
        """Work with this lam from now on, or with that of the problem if it is larger."""
        self.value -= self.term.value(self.x)
        enough = lam <= 1.5 * self._target.lam
        self.term = self._target if enough else self._target.at_lam(lam)
        self.value += self.term.value(self.x)

    def go_on_with(self, term: Term, x: np.ndarray) -> None:
        """Solve for another lam from here on, or from x if that is lower, with all rows."""
        self._samples = []
        if self.sampling:
            self._begin_level()
        self._past_passes, self.walks.passes = 0.0, 0.0
        self.primal, self.dual = np.inf, -np.inf
        self.stuck, self._fails = False, 0
        self._short_steps, self._careful = 0, False
        before, self._target = self._target.lam, term
        self._change_lam(term.lam)
        self._foresee(log(before), log(term.lam))
        if not np.array_equal(x, self.x):
            self._consider(x)

    def _consider(self, x: np.ndarray) -> None:
        """Go to x if the objective is lower there, or unknown here."""
        here, value = self.x, self.value
        self.x = np.clip(x, self.term.low, self.term.high)
        self.refresh()
        if value < self.value:
            self.x = here
            self.refresh()

    def _foresee(self, here: float, there: float) -> None:
        """Go where x moves if it goes on as it did from the last lam to this one, if that is lower.

        The margins are as linear in x as ever. ``here`` and ``there`` are logarithms of lam.
        """
        last, self._last = self._last, (here, self.x.copy(), self.z.copy())
        if last is None or here in (last[0], there) or not self.term.smooth:
            return
        ahead = (there - here) / (here - last[0])
        self._dz[:] = self.z - last[2]
        x = self.x + ahead * (self.x - last[1])
        loss, _, _ = self.walks.expand(self.z, self._dz, ahead, self._next)
        value = loss + self.term.value(x)
        if value < self.value:
            self.x[:] = x
            self.z += ahead * self._dz
            self._at, self._next, self.value = self._next, self._at, value

    def _no_progress(self) -> None:
        """The search found nothing better: go on with all rows, or give up."""
        if self.sampling:
            self._begin_level()
            return
        if self.easing:
            self._preconditioner.discard()
            self._change_lam(self.term.lam / _EASE)
            return
        self._fails += 1
        self.stuck = self._preconditioner.exact or self._fails > 1
        self._preconditioner.discard()

    # --- directions ---

    def _direction(
        self, gradient: np.ndarray, enough: float, pause: Callable[[], bool]
    ) -> tuple[np.ndarray, np.ndarray]:
        """``dx`` with ``(H + lam) dx = -gradient``, about, and ``H dx``; leaves A dx in dz."""
        preconditioner = self._preconditioner
        preconditioner.prepare(self._at, self.term.shift)
        if preconditioner.exact:
            dx = -preconditioner.solve(gradient)
            self.walks.push(dx, self._dz)
            return dx, -gradient - self.term.shift * dx
        return self._conjugate_gradients(gradient, enough, pause)

    def _conjugate_gradients(
        self,
        gradient: np.ndarray,
        enough: float,
        pause: Callable[[], bool],
        free: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same by conjugate gradients, on the free coordinates if there are others."""
        walks, preconditioner = self.walks, self._preconditioner
        forcing = 0.0 if walks.quadratic else _FORCING**2
        dx, curved = np.zeros_like(gradient), np.zeros_like(gradient)
        self._dz[:] = 0.0
        residual = -gradient
        direction = preconditioner.solve(residual)
        size = first = float(residual @ direction)
        products = 0
        most = _QUADRATIC_PRODUCTS if walks.quadratic else _MOST_PRODUCTS
        while products < most and size > 0.0:
            product = walks.curve(self._at, direction, self._q)
            products += 1
            bent = product + self.term.shift * direction
            if free is not None:
                bent[~free] = 0.0
            along = float(direction @ bent)
            if not 0.0 < along < np.inf:
                break  # beyond the range of floating-point numbers
            length = size / along
            dx += length * direction
            curved += length * product
            self._dz += length * self._q
            residual -= length * bent
            near = float(residual @ residual) <= 0.4 * self.term.lam * enough
            if near or pause() or preconditioner.overdue(products):
                break
            solved = preconditioner.solve(residual)
            previous, size = size, float(residual @ solved)
            if not size > forcing * first:
                break
            direction = solved + (size / previous) * direction
        preconditioner.count(products)
        walks.push_flat(self._at, dx, self._dz)
        return dx, curved
