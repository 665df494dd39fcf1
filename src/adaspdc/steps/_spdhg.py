"""SPDHG's rules, provable for any sampling."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ._checks import checked_batch, checked_blocks, checked_inclusion, checked_lam, usable
from ._sizes import ConstantSteps, FloatArray

_CHUNK = 1 << 14  # blocks handled at a time: temporaries stay small and in cache


def fixed_size_eso(norms: ArrayLike, batch_size: int = 1) -> FloatArray:
    """Constants v_i with ``E|sum_S A_i h_i|^2 <= sum_i pi_i v_i |h_i|^2``: here ``m R_i^2``.

    They serve every sampling whose batches all have ``batch_size`` blocks, and are exact at 1.
    """
    norms, _ = checked_blocks(norms, 1.0, "norms")
    with np.errstate(all="ignore"):
        return usable("norms squared", checked_batch(batch_size, norms.size) * norms**2)


def spdhg_probabilities(
    eso: ArrayLike, gamma: ArrayLike, lam: float, batch_size: int = 1, uniform_share: float = 0.0
) -> FloatArray:
    """Probabilities of inclusion with the best provable rate, for given ESO constants.

    ``pi_i = m (1 + kappa_i) / sum(1 + kappa)``, ``kappa_i = sqrt(1 + v_i/(n lam gamma_i))``,
    capped at 1 with the excess spread over the other blocks in proportion; then mixed with the
    uniform ``m/n`` by ``uniform_share`` (0.5 at most halves the rate and never starves a block).
    """
    eso, gamma = checked_blocks(eso, gamma, "eso")
    n, m = eso.size, checked_batch(batch_size, eso.size)
    lam = checked_lam(lam)
    if not 0.0 <= uniform_share <= 1.0:
        raise ValueError(f"uniform_share={uniform_share!r} must lie in 0..1")
    with np.errstate(all="ignore"):
        weights = _pull(eso, gamma, n, lam)
        for part in _chunks(n):
            weights[part] = 2.0 + _excess(weights[part])
        result = fill(weights, m)
        result *= 1.0 - uniform_share
        result += uniform_share * (m / n)
        return np.minimum(usable("probabilities", result), 1.0, out=result)


def spdhg(
    eso: ArrayLike,
    gamma: ArrayLike,
    lam: float,
    inclusion: ArrayLike,
    balance: float = 1.0,
    slowest: float = 1.0,
) -> ConstantSteps:
    """SPDHG's steps (Chambolle, Ehrhardt, Richtarik and Schoenlieb 2018) for any sampling.

    The best ``tau`` for these probabilities, divided by ``balance``; with it the smallest
    ``theta`` that meets (A), (B), (C) of `is_valid_spdhg`, and the largest ``sigma_i``. Provably
    linear with factor ``theta`` per iteration. At balance 1 and the probabilities of
    `spdhg_probabilities` (uncapped), with ``S = sum(1 + kappa)``: ``theta = 1 - 2m/S``,
    ``tau = 1/((S/m - 2) lam)``, ``sigma_i = 1/((kappa_i - 1) gamma_i)``.

    Parameters
    ----------
    eso : array of shape (n,)
        Constants v_i of the sampling, see `fixed_size_eso`.
    inclusion : float or array of shape (n,)
        Probability pi_i that block i is in a batch.
    balance : float
        Larger favours the dual variables: ``tau`` is divided by it, ``sigma`` about multiplied.
    slowest : float
        Where coordinate j takes the step ``tau m_j``, the smallest m_j: it stands for tau in (A).
        ``eso`` is then in the metric of the m_j, ``sum_j m_j a_ij^2`` for a row.
    """
    eso, gamma = checked_blocks(eso, gamma, "eso")
    n, lam = eso.size, checked_lam(lam)
    pi = checked_inclusion(inclusion, n)
    if not 0.0 < balance < math.inf:
        raise ValueError(f"balance={balance!r} must be positive and finite; 1 is neutral")
    with np.errstate(all="ignore"):
        pull = _pull(eso, gamma, n, lam)
        step = _best_step(pull, pi) / balance
        theta = _smallest_theta(pull, pi, step, slowest)
        sigma = pull  # in place from here on: sigma_i = pi_i / (gamma_i theta step pull_i^2)
        sigma *= math.sqrt(theta * step)
        for part in _chunks(n):
            root = np.sqrt(_part(pi, part) / _part(gamma, part))
            np.divide(root, sigma[part], out=sigma[part])
        sigma *= sigma
        weight = n * pi
        weight = np.divide(1.0, weight, out=weight if pi.ndim else None)
    return ConstantSteps(
        sigma=usable("sigma", sigma),
        tau=usable("tau", step / lam),
        theta=usable("theta", theta),
        weight=float(weight) if pi.ndim == 0 else usable("weight", weight),
    )


def is_valid_spdhg(
    steps: ConstantSteps,
    eso: ArrayLike,
    gamma: ArrayLike,
    lam: float,
    inclusion: ArrayLike,
    rtol: float = 1e-12,
) -> bool:
    """Whether SPDHG's proof covers these steps, so that they contract by theta per iteration.

    (A) ``theta >= 1/(1 + 2 lam tau)``,
    (B) ``theta >= 1 - 2 pi_i gamma_i sigma_i/(1 + 2 gamma_i sigma_i)`` for every block,
    (C) ``theta tau sigma_i v_i <= n pi_i`` for every block, up to ``rtol``.
    """
    eso, gamma = checked_blocks(eso, gamma, "eso")
    pi = checked_inclusion(inclusion, eso.size)
    with np.errstate(all="ignore"):
        drift = math.sqrt(steps.theta * steps.tau) * np.sqrt(steps.sigma) * np.sqrt(eso)
    bounded = drift <= np.sqrt(eso.size * pi) * (1.0 + rtol)
    return bool(np.all(bounded)) and rate_holds(steps, gamma, lam, pi, rtol)


def _pull(eso: FloatArray, gamma: FloatArray, n: int, lam: float) -> FloatArray:
    """``sqrt(v_i / (n lam gamma_i))``: how far block i is from solving itself."""
    result = np.sqrt(eso)
    result /= np.sqrt(gamma) * (math.sqrt(n) * math.sqrt(lam))
    return result


def _excess(pull: FloatArray) -> FloatArray:
    """``kappa_i - 1``, without the cancellation for small pull."""
    result: FloatArray = pull * (pull / (1.0 + np.hypot(1.0, pull)))
    return result


def _best_step(pull: FloatArray, pi: FloatArray) -> float:
    """The ``lam tau`` at which the smallest admissible theta is smallest.

    With (A) and (C) tight, (B) reads ``1 - theta <= 2 pi_i / (1 + kappa_i)``.
    """
    rate, theta = math.inf, 0.0
    for part in _chunks(pull.size):
        excess, chance = _excess(pull[part]), _part(pi, part)
        total = 2.0 + excess
        rate = float(np.minimum(rate, (2.0 * chance / total).min()))
        theta = float(np.maximum(theta, ((excess + 2.0 * (1.0 - chance)) / total).max()))
    return 0.5 * rate / theta if theta > 0.0 else math.inf


def _smallest_theta(pull: FloatArray, pi: FloatArray, step: float, slowest: float = 1.0) -> float:
    """The smallest theta that meets (A), (B) and (C) for ``step = lam tau`` and some sigma.

    With (C) tight, (B) asks for the positive root of ``b theta^2 + (1 - b) theta - (1 - pi)``,
    where ``b = step pull^2 / (2 pi)``. Written with ``s = min(b, 1/b)`` it neither cancels nor
    overflows, and one square root serves both branches.
    """
    theta = 1.0 / (1.0 + 2.0 * slowest * step)
    for part in _chunks(pull.size):
        chance = _part(pi, part)
        b = (math.sqrt(0.5 * step) * pull[part]) ** 2 / chance
        s = np.minimum(b, 1.0 / b)
        root = np.sqrt((1.0 - s) ** 2 + 4.0 * s * (1.0 - chance))
        total = (1.0 - s) + root
        needed = np.where(b < 1.0, 2.0 * (1.0 - chance) / total, 0.5 * total)
        theta = float(np.maximum(theta, needed.max()))
    return theta


def rate_holds(
    steps: ConstantSteps, gamma: FloatArray, lam: float, pi: FloatArray, rtol: float
) -> bool:
    """Conditions (A) and (B), written as sums of positive terms."""
    with np.errstate(over="ignore"):
        primal = 1.0 / (1.0 + 2.0 * lam * steps.tau)
        dual = (1.0 - pi) + pi / (1.0 + 2.0 * gamma * steps.sigma)
    return bool(max(primal, float(np.max(dual))) <= steps.theta * (1.0 + rtol))


def fill(weights: FloatArray, total: int) -> FloatArray:
    """``min(1, c weights)`` with sum ``total``; overwrites ``weights``."""
    weights /= weights.max()
    weights *= total / weights.sum()
    while weights.max() > 1.0 + 1e-12:  # each round caps at least one more
        capped = weights >= 1.0
        weights[capped] = 1.0
        weights[~capped] *= (total - np.count_nonzero(capped)) / weights[~capped].sum()
    return np.minimum(weights, 1.0, out=weights)


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


def _part(values: FloatArray, part: slice) -> FloatArray:
    return values if values.ndim == 0 else values[part]
