"""Rules for SPDC's extrapolation: of SPDC itself, weighted, and of AdaSPDC."""

import math

import numpy as np
from numpy.typing import ArrayLike

from ._checks import checked_batch, checked_blocks, checked_lam, largest_coupling, usable
from ._sizes import BatchSteps, ConstantSteps, FloatArray
from ._spdhg import fill, rate_holds


def adaspdc(norms: ArrayLike, gamma: ArrayLike, lam: float, batch_size: int = 1) -> BatchSteps:
    """AdaSPDC's steps (Zhu and Storkey 2015), for equal gamma the paper's to the letter.

    ``sigma_i = sqrt(n lam / (m gamma_i)) / (2 R_i)``; per batch, with ``C = max_S rho_i``,
    ``tau = sqrt(m / (n lam)) / (2 C)`` and ``theta = 1 - 1/(n/m + C sqrt((n/m)/lam))``.
    No proof covers these random steps, and with very unequal norms they can diverge.
    """
    norms, gamma = checked_blocks(norms, gamma, "norms")
    n, m = norms.size, checked_batch(batch_size, norms.size)
    ratio = math.sqrt(n / m)
    root_lam = math.sqrt(checked_lam(lam))
    with np.errstate(all="ignore"):
        root_gamma = np.sqrt(gamma)
        sigma = norms * root_gamma
        np.divide(0.5 * ratio * root_lam, sigma, out=sigma)
        # One gamma for all goes into the constants, which spares a vector.
        coupling = norms if gamma.ndim == 0 else norms / root_gamma
        scale = float(root_gamma) if gamma.ndim == 0 else 1.0
    tau_scale = 0.5 / ratio / root_lam * scale
    slope = usable("theta's slope", ratio / root_lam / scale)
    steps = BatchSteps(usable("sigma", sigma), 1.0 / m, coupling, tau_scale, slope, n / m)
    with np.errstate(all="ignore"):
        for extreme in (coupling.argmin(), coupling.argmax()):
            tau, theta = steps.primal(np.array([[extreme]]))
            usable("tau", tau)
            usable("theta", theta)
    return steps


def spdc(norms: ArrayLike, gamma: ArrayLike, lam: float, batch_size: int = 1) -> ConstantSteps:
    """SPDC's steps (Zhang and Xiao, ICML 2015, eq. 10): AdaSPDC's with the largest coupling.

    ``C = max_i rho_i``, ``sigma_i = sqrt(n lam / m) / (2 C gamma_i)``, ``tau`` and ``theta`` as in
    `adaspdc`. Provably linear with factor ``theta`` per iteration.
    """
    norms, gamma = checked_blocks(norms, gamma, "norms")
    n, m = norms.size, checked_batch(batch_size, norms.size)
    coupling = largest_coupling(norms, gamma)
    root_lam = math.sqrt(checked_lam(lam))
    ratio = math.sqrt(n / m)
    with np.errstate(all="ignore"):
        sigma = np.broadcast_to(0.5 * ratio * root_lam / coupling / gamma, norms.shape).copy()
    drag = ratio * (coupling / root_lam)
    return _constant(sigma, 0.5 / ratio / root_lam / coupling, n / m, drag, 1.0 / m)


def spdc_nonuniform(
    norms: ArrayLike, gamma: ArrayLike, lam: float, batch_size: int = 1, alpha: float = 0.5
) -> tuple[ConstantSteps, FloatArray]:
    """SPDC with weighted sampling (Zhang and Xiao 2015, section 4): steps and probabilities.

    ``pi_i = m ((1 - alpha)/n + alpha rho_i / sum rho)``, capped at 1; with ``B = mean(rho)/alpha``
    ``tau = sqrt(m/(n lam))/(2B)``, ``sigma_i = sqrt(n lam m)/(2 B n pi_i gamma_i)``,
    ``theta = 1 - 1/(n/((1 - alpha) m) + B sqrt((n/m)/lam))``; their rule at m = 1.
    Where the cap binds, ``B`` grows to ``max_i m rho_i/(n pi_i)``, so that `is_valid_spdc` holds.
    """
    norms, gamma = checked_blocks(norms, gamma, "norms")
    n, m = norms.size, checked_batch(batch_size, norms.size)
    root_lam = math.sqrt(checked_lam(lam))
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must lie strictly between 0 and 1, e.g. 0.5")
    with np.errstate(all="ignore"):
        coupling = usable("coupling", norms / np.sqrt(gamma))
        mean = float(np.mean(coupling / coupling.max()) * coupling.max())
        inclusion = fill(coupling / mean * (alpha / n) + (1.0 - alpha) / n, m)
        bound = max(mean / alpha, float(np.max(coupling / inclusion)) * (m / n))
        del coupling
        ratio = math.sqrt(n / m)
        # sqrt(n lam m) / n = sqrt(lam) / ratio * (m / n) * ratio**2
        sigma = (0.5 * root_lam / ratio / bound) / inclusion / gamma
        weight = n * inclusion
        weight = usable("weight", np.divide(1.0, weight, out=weight))
    passes, drag = n / ((1.0 - alpha) * m), ratio * (bound / root_lam)
    steps = _constant(sigma, 0.5 / ratio / root_lam / bound, passes, drag, weight)
    return steps, inclusion


def is_valid_spdc(
    steps: ConstantSteps,
    norms: ArrayLike,
    gamma: ArrayLike,
    lam: float,
    batch_size: int = 1,
    rtol: float = 1e-12,
) -> bool:
    """Whether SPDC's proof covers these steps, so that they contract by theta per iteration.

    (A) and (B) of `is_valid_spdhg`, and ``4 m tau sigma_i R_i^2 <= n pi_i`` for every block: SPDC's
    two cross terms may use half of the quadratic terms each. ``pi_i`` is read off ``steps.weight``.
    """
    norms, gamma = checked_blocks(norms, gamma, "norms")
    inclusion = 1.0 / (norms.size * np.asarray(steps.weight))
    with np.errstate(all="ignore"):
        drift = 2.0 * math.sqrt(batch_size * steps.tau) * norms * np.sqrt(steps.sigma)
    bounded = drift <= np.sqrt(norms.size * inclusion) * (1.0 + rtol)
    return bool(np.all(bounded)) and rate_holds(steps, gamma, lam, inclusion, rtol)


def _constant(
    sigma: FloatArray, tau: float, passes: float, drag: float, weight: float | FloatArray
) -> ConstantSteps:
    """Checked steps; ``theta = 1 - 1/(passes + drag)`` without cancellation for small drag."""
    theta = ((passes - 1.0) + drag) / (passes + drag)
    return ConstantSteps(usable("sigma", sigma), usable("tau", tau), usable("theta", theta), weight)
