"""Algorithm 1 on ridge regression as what it is there: a product of random matrices."""

from __future__ import annotations

import numpy as np

from .. import steps as rules


def iteration_maps(rows: np.ndarray, lam: float, rule: str = "adaspdc") -> list[np.ndarray]:
    """One linear map of (x, xbar, y_1 .. y_n) minus its limit per row that may be drawn.

    Ridge regression with gamma = 1 in one dimension, one row an iteration; ``rule`` is a step rule
    of the package, "adaspdc" or "spdc".
    """
    n = rows.size
    steps = getattr(rules, rule)(np.abs(rows), 1.0, lam, 1)
    maps = []
    for i, a in enumerate(rows):
        tau, theta = (float(values[0]) for values in steps.primal(np.array([[i]])))
        sigma = float(steps.sigma[i])
        moved = np.zeros(n + 2)  # y_i after the step, as a function of the state
        moved[1], moved[2 + i] = a * sigma / (1.0 + sigma), 1.0 / (1.0 + sigma)
        kept = np.eye(n + 2)
        total = np.concatenate([[0.0, 0.0], rows / n]) + a * (moved - kept[2 + i])
        x = (kept[0] - tau * total) / (1.0 + lam * tau)
        after = kept.copy()
        after[0], after[1], after[2 + i] = x, x + theta * (x - kept[0]), moved
        maps.append(after)
    return maps


def mean_square_radius(maps: list[np.ndarray]) -> float:
    """The factor per iteration by which the expected square of the distance grows or shrinks."""
    operator = np.mean([np.kron(step, step) for step in maps], axis=0)
    return float(np.abs(np.linalg.eigvals(operator)).max())


def lyapunov(maps: list[np.ndarray], iterations: int = 20_000, seed: int = 0) -> float:
    """The exponent per iteration at which almost every run grows (above 0) or shrinks."""
    rng = np.random.default_rng(seed)
    state = rng.standard_normal(maps[0].shape[0])
    total = 0.0
    for i in rng.integers(len(maps), size=iterations):
        state = maps[i] @ state
        size = float(np.linalg.norm(state))
        total += np.log(size)
        state /= size
    return total / iterations


def distances(maps: list[np.ndarray], start: np.ndarray, iterations: int, seeds: int) -> np.ndarray:
    """``|x - x*|`` after 0, 1, ... iterations, one row per seed, from a state minus its limit."""
    chosen = np.random.default_rng(0).integers(len(maps), size=(seeds, iterations))
    stacked = np.array(maps)
    states = np.tile(start, (seeds, 1))
    found = [np.abs(states[:, 0])]
    for step in chosen.T:
        states = np.einsum("sij,sj->si", stacked[step], states)
        found.append(np.abs(states[:, 0]))
    return np.array(found).T
