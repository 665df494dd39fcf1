"""Rules of the other methods: SDCA, SAG, SAGA and PDHG."""

import math

import numpy as np
from numpy.typing import ArrayLike

from ._checks import (
    checked_batch,
    checked_blocks,
    checked_gamma,
    checked_lam,
    largest_coupling,
    usable,
)
from ._sizes import ConstantSteps, DualSteps, GradientSteps


def sdca(norms: ArrayLike, lam: float, batch_size: int = 1) -> DualSteps:
    """SDCA's dual steps, ``sigma_i = n lam / (m R_i^2)``, with x kept at ``grad g*(-r)``.

    The exact maximisation of a quadratic minorant of the dual, which is the dual itself for L2 and
    m = 1; safe at any m since ``|sum_S A_j h_j|^2 <= m sum_S R_j^2 |h_j|^2``.
    """
    norms, _ = checked_blocks(norms, 1.0, "norms")
    n, m = norms.size, checked_batch(batch_size, norms.size)
    with np.errstate(all="ignore"):
        root = math.sqrt(n / m) * math.sqrt(checked_lam(lam)) / norms
        root *= root
    return DualSteps(usable("sigma", root))


def sag(norms: ArrayLike, gamma: ArrayLike, lam: float, scale: float = 1.0 / 16.0) -> GradientSteps:
    """SAG's step ``scale / L`` with ``L = max_i R_i^2/gamma_i + lam`` (Schmidt et al. 2017)."""
    norms, gamma = checked_blocks(norms, gamma, "norms")
    coupling = largest_coupling(norms, gamma)
    smoothness = usable("smoothness", coupling * coupling + checked_lam(lam))
    return GradientSteps(usable("tau", scale / smoothness), smoothness)


def saga(norms: ArrayLike, gamma: ArrayLike, lam: float) -> GradientSteps:
    """SAGA's step ``1 / (3 L)``, with L as in `sag` (Defazio, Bach and Lacoste-Julien 2014)."""
    return sag(norms, gamma, lam, scale=1.0 / 3.0)


def pdhg(operator_norm: float, gamma: ArrayLike, lam: float, n: int) -> ConstantSteps:
    """The strongly convex schedule of Chambolle and Pock (2011, algorithm 3), all blocks at once.

    ``mu = 2 sqrt(lam n)/|A|``, ``tau = mu/(2 lam)``, ``sigma_i = mu/(2 gamma_i)``,
    ``theta = 1/(1 + mu)``, where ``operator_norm`` is the norm of ``[A_i / sqrt(gamma_i)]_i``,
    stacked over all blocks, or an upper bound on it.
    """
    gamma = checked_gamma(gamma, n)
    root_lam = math.sqrt(checked_lam(lam))
    if not 0.0 < operator_norm < math.inf:
        raise ValueError(f"operator_norm={operator_norm!r} must be positive and finite")
    half = math.sqrt(n) * (root_lam / operator_norm)
    with np.errstate(all="ignore"):
        sigma = np.broadcast_to(half / gamma, (n,)).copy()
    return ConstantSteps(
        sigma=usable("sigma", sigma),
        tau=usable("tau", math.sqrt(n) / root_lam / operator_norm),
        theta=usable("theta", 1.0 / (1.0 + 2.0 * half)),
        weight=1.0 / n,
    )
