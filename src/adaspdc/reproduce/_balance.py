"""Algorithm 1 with a primal-dual balance that tunes itself: sigma times omega, tau over omega."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._engine import engine_for
from .._threads import Threads
from ..certificate import Certificate
from ..methods import Method, plan
from ..problem import ERM
from ._jobs import Task, build

_DAMPING = 0.2
"""Share of the way to the balance that the last pass suggests, in logarithms."""


@dataclass(frozen=True)
class Balanced:
    """Objective and omega after every pass."""

    objective: np.ndarray
    omega: np.ndarray


def balanced_run(task: Task, passes: int, tuned: bool, seed: int) -> Balanced:
    """Algorithm 1 for some passes; with ``tuned`` omega moves after each, otherwise it is 1.

    Omega follows the travel of a pass: the dual travel, weighted by the norms as in the steps,
    over the primal one. Where the dual moves more, its steps were too short.
    """
    problem = build(task)
    assert isinstance(problem, ERM)
    flat = problem.flatten()
    planned = plan(Method("adaspdc"), problem, flat, 1, seed)
    norms, gamma, count = flat.active_norms(), float(np.mean(flat.active_gamma())), flat.count
    active = slice(None) if flat.active is None else flat.active
    lean = flat.without_norms()
    objective, omegas, omega = [], [], 1.0
    with Threads(1) as team:
        engine = engine_for(lean, team)
        certificate = Certificate(lean, engine, engine.loss_at_zero())
        y = np.zeros(lean.dual_size)
        engine.make_feasible(y)
        state = engine.start(
            "extrapolated", np.zeros(lean.size), y, engine.dual_sum(y), batch_size=1
        )
        x_before, y_before = np.zeros(lean.size), y.copy()
        for number in range(passes + 1):
            if number:
                _one_pass(state, planned, count, omega)
            points = state.points()
            check = certificate.check(*points, state.y)
            objective.append(check.objective)
            omegas.append(omega)
            x, y = points[0].copy(), state.y.copy()
            if tuned and number:
                dual = float(norms @ (y - y_before)[active] ** 2) / float(norms.mean())
                primal = float(np.sum((x - x_before) ** 2)) * count * lean.lam / gamma
                omega = _moved(omega, dual, primal)
            state.rebase(check.r, *points)
            x_before, y_before = x, y
    return Balanced(np.array(objective), np.array(omegas))


def _one_pass(state: Any, planned: Any, count: int, omega: float) -> None:
    batches, steps = planned.draw(count)
    state.advance(batches, steps._replace(sigma=steps.sigma * omega, tau=steps.tau / omega))


def _moved(omega: float, dual: float, primal: float) -> float:
    """Part of the way from omega to the ratio that a pass suggests; nowhere after no travel."""
    if not (0.0 < dual < np.inf and 0.0 < primal < np.inf):
        return omega
    return float(omega ** (1.0 - _DAMPING) * (dual / primal) ** (_DAMPING / 2.0))
