"""Slow, plain NumPy versions of every method, the oracles of the test-suite.

Nothing here imports ``adaspdc``: formulas are written once more from the papers, so that a mistake
has to be made twice, in two different ways, to go unnoticed.  The problem is

    min_x  P(x) = g(x) + sum_i omega_i phi_i(A_i^T x),   omega_i = s_i / sum(s),

    D(y) = -sum_i omega_i phi_i*(y_i) - g*(-r),          r = sum_i omega_i A_i y_i,

with weights s_i (all one by default) and s_hat_i = n omega_i.  The dual variable ``y_i`` is the
*unweighted* one: y_i in dom phi_i*, and y_i = phi_i'(A_i^T x) at the optimum.

How weights enter the primal-dual steps
---------------------------------------
The unweighted theory treats  g(x) + (1/n) sum_i ( <x, A_i w_i> - psi_i*(w_i) ).  Here
psi_i = s_hat_i phi_i, hence psi_i*(w) = s_hat_i phi_i*(w / s_hat_i), w_i = s_hat_i y_i, and psi_i*
is only (gamma / s_hat_i)-strongly convex.  Rules that want one gamma get it by rescaling the rows:
with B_i = sqrt(s_hat_i) A_i and u_i = w_i / sqrt(s_hat_i) = sqrt(s_hat_i) y_i, the products
B_i u_i = A_i w_i = s_hat_i A_i y_i are unchanged and u -> s_hat_i phi_i*(u / sqrt(s_hat_i)) is
gamma-strongly convex again.  Three consequences, used by every method below:

* norms:  R_i = |B_i| = sqrt(s_hat_i) |A_i|, with gamma_i = gamma, go into every step rule;
* dual step:  the prox of u with step sigma_i minimises
  s_hat_i [ phi_i*(y) - <A_i^T x, y> + |y - y_i|^2 / (2 sigma_i) ],
  that is the *unweighted* prox in y, at A_i^T x, with the same sigma_i;
* primal step:  block i contributes B_i du_i = s_hat_i A_i dy_i.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax, wrightomega, xlog1py, xlogy

Array = NDArray[np.float64]
Batches = Iterable[Sequence[int]] | NDArray[Any]

# ------------------------------------------------------------------------------------- the problem


@dataclass(frozen=True)
class Loss:
    """phi_i: ``target`` has one entry per coordinate, or is the class index of a vector loss.

    Names (parameters): squared, smooth_hinge(gamma), logistic, squared_hinge, huber(delta),
    smooth_pinball(quantile, gamma), smooth_epsilon_insensitive(epsilon, gamma),
    squared_epsilon_insensitive(epsilon), all summed over the coordinates of the block;
    multinomial, smooth_crammer_singer(gamma), which couple them.
    """

    name: str
    target: Any
    params: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Regularizer:
    """g without its lam: l2, elastic_net(l1), group(weight, groups), nonnegative, box(low, high).

    ``groups`` labels every coordinate of x; ``weight`` is a scalar or one per sorted label.
    """

    name: str = "l2"
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """Blocks ``A_i^T`` of shape (q_i, d), one loss each; y is kept flat, block after block."""

    blocks: list[Array]
    losses: list[Loss]
    lam: float
    g: Regularizer = field(default_factory=Regularizer)
    weights: ArrayLike | None = None

    @property
    def n(self) -> int:
        return len(self.blocks)

    @property
    def d(self) -> int:
        return int(self.blocks[0].shape[1])

    @cached_property
    def s_hat(self) -> Array:
        s = np.ones(self.n) if self.weights is None else np.asarray(self.weights, dtype=float)
        return self.n * s / math.fsum(s)

    @cached_property
    def norms(self) -> Array:
        """R_i = sqrt(s_hat_i) |A_i|, spectral norms."""
        return np.sqrt(self.s_hat) * [np.linalg.norm(block, 2) for block in self.blocks]

    @cached_property
    def gamma(self) -> Array:
        return np.array([strong_convexity(loss) for loss in self.losses])

    @cached_property
    def total_size(self) -> int:
        return sum(len(block) for block in self.blocks)

    def split(self, y: Array) -> list[Array]:
        """Views of the flat ``y``, one per block."""
        return np.split(y, np.cumsum([len(block) for block in self.blocks])[:-1])

    def column(self, i: int, y_i: Array) -> Array:
        """Return s_hat_i A_i y_i."""
        return self.s_hat[i] * (self.blocks[i].T @ y_i)

    def residual(self, y: Array) -> Array:
        """r = (1/n) sum_i s_hat_i A_i y_i, every coordinate summed without rounding."""
        columns = [self.column(i, y_i) for i, y_i in enumerate(self.split(y))]
        return np.array([math.fsum(c) for c in np.transpose(columns)]) / self.n


class Iterate(NamedTuple):
    """State after an iteration: x flat of length d, y flat over the blocks, r = A(y)/n."""

    x: Array
    y: Array
    r: Array


def erm(
    X: ArrayLike,
    targets: ArrayLike,
    loss: str,
    lam: float,
    g: Regularizer | None = None,
    weights: ArrayLike | None = None,
    n_outputs: int = 1,
    **params: float,
) -> Problem:
    """One block per row of X; with K outputs A_i = a_i kron I_K and x is (d, K) row-major.

    Bounds and groups given per feature are repeated for the K outputs of the feature.
    """
    X = np.asarray(X, dtype=float)
    blocks = [np.kron(row[None, :], np.eye(n_outputs)) for row in X]
    losses = [Loss(loss, target, params) for target in np.asarray(targets)]
    g = g or Regularizer()
    spread = {
        key: np.repeat(value, n_outputs) if key != "weight" and np.ndim(value) == 1 else value
        for key, value in g.params.items()
    }
    return Problem(blocks, losses, lam, Regularizer(g.name, spread), weights)


# ------------------------------------------------------------------------------------------ losses


def _quadratic_conjugate(loss: Loss) -> tuple[float, float, Array, Array, Array]:
    """(gamma, eps, low, high, b) of  phi*(y) = b y + eps |y| + gamma y^2 / 2  on [low, high]."""
    b = np.atleast_1d(np.asarray(loss.target, dtype=float))
    p, positive, zero, infinite = loss.params, b > 0, np.zeros_like(b), np.full_like(b, np.inf)
    match loss.name:
        case "squared":
            return 1.0, 0.0, -infinite, infinite, b
        case "smooth_hinge":  # b y in [-1, 0]
            return p["gamma"], 0.0, np.where(positive, -1.0, 0), np.where(positive, 0.0, 1), b
        case "squared_hinge":  # b y <= 0
            low, high = np.where(positive, -np.inf, 0.0), np.where(positive, 0.0, np.inf)
            return 1.0, 0.0, low, high, b
        case "huber":
            return 1.0, 0.0, zero - p["delta"], zero + p["delta"], b
        case "smooth_pinball":
            return p["gamma"], 0.0, zero - p["quantile"], zero + (1 - p["quantile"]), b
        case "smooth_epsilon_insensitive":
            return p["gamma"], p["epsilon"], zero - 1, zero + 1, b
        case "squared_epsilon_insensitive":
            return 1.0, p["epsilon"], -infinite, infinite, b
    raise ValueError(f"unknown loss {loss.name!r}")


def strong_convexity(loss: Loss) -> float:
    """Return gamma, the strong convexity of phi*."""
    constants = {"logistic": 4.0, "multinomial": 2.0}
    if loss.name == "smooth_crammer_singer":
        return loss.params["gamma"]
    return constants.get(loss.name) or _quadratic_conjugate(loss)[0]


def loss_value(loss: Loss, z: Array) -> float:
    """phi(z), in its primal textbook form."""
    p = loss.params
    if loss.name == "multinomial":
        return float(logsumexp(z) - z[int(loss.target)])
    if loss.name == "smooth_crammer_singer":
        y = loss_derivative(loss, z)  # the maximiser of <z, y> - phi*(y)
        return float(z @ y) - loss_conjugate(loss, y)
    t = np.atleast_1d(np.asarray(loss.target, dtype=float))
    margin, res = t * z, z - t
    match loss.name:
        case "squared":
            terms = res**2 / 2
        case "logistic":
            terms = np.logaddexp(0.0, -margin)
        case "smooth_hinge":
            gap = np.maximum(1 - margin, 0)
            terms = np.where(gap <= p["gamma"], gap**2 / (2 * p["gamma"]), gap - p["gamma"] / 2)
        case "squared_hinge":
            terms = np.maximum(1 - margin, 0) ** 2 / 2
        case "huber":
            far = p["delta"] * (abs(res) - p["delta"] / 2)
            terms = np.where(abs(res) <= p["delta"], res**2 / 2, far)
        case "smooth_pinball":
            slope = np.where(res > 0, 1 - p["quantile"], p["quantile"])
            far = slope * abs(res) - p["gamma"] * slope**2 / 2
            terms = np.where(abs(res) <= p["gamma"] * slope, res**2 / (2 * p["gamma"]), far)
        case "smooth_epsilon_insensitive":
            gap = np.maximum(abs(res) - p["epsilon"], 0)
            terms = np.where(gap <= p["gamma"], gap**2 / (2 * p["gamma"]), gap - p["gamma"] / 2)
        case "squared_epsilon_insensitive":
            terms = np.maximum(abs(res) - p["epsilon"], 0) ** 2 / 2
        case _:
            raise ValueError(f"unknown loss {loss.name!r}")
    return math.fsum(terms)


def loss_conjugate(loss: Loss, y: Array) -> float:
    """phi*(y), infinite outside the domain."""
    if loss.name in ("multinomial", "smooth_crammer_singer"):
        u, others = _simplex_point(loss, y)
        if u.min() < 0 or abs(math.fsum(u) - 1) > 1e-9:
            return math.inf
        if loss.name == "multinomial":
            return math.fsum(xlogy(u, u))
        return loss.params["gamma"] / 2 * math.fsum(y**2) - math.fsum(others * u)
    if loss.name == "logistic":
        u = -np.asarray(loss.target, dtype=float) * y
        if u.min() < 0 or u.max() > 1:
            return math.inf
        return math.fsum(xlogy(u, u) + xlog1py(1 - u, -u))
    gamma, eps, low, high, b = _quadratic_conjugate(loss)
    if np.any(y < low) or np.any(y > high):
        return math.inf
    return math.fsum(b * y + eps * abs(y) + gamma * y**2 / 2)


def loss_derivative(loss: Loss, z: Array) -> Array:
    """phi'(z), the gradient for a block of several coordinates."""
    if loss.name == "multinomial":
        label = np.arange(len(z)) == int(loss.target)
        return softmax(z) - label
    if loss.name == "smooth_crammer_singer":
        label = np.arange(len(z)) == int(loss.target)
        return project_simplex(label + (z + ~label) / loss.params["gamma"]) - label
    if loss.name == "logistic":
        t = np.asarray(loss.target, dtype=float)
        return -t * np.exp(-np.logaddexp(0.0, t * z))
    gamma, eps, low, high, b = _quadratic_conjugate(loss)
    return np.clip(_soft(z - b, eps) / gamma, low, high)


def loss_prox(loss: Loss, z: Array, y: Array, sigma: float) -> Array:
    """argmin_u phi*(u) - <z, u> + |u - y|^2 / (2 sigma);  sigma = inf gives phi'(z)."""
    if math.isinf(sigma):
        return loss_derivative(loss, z)
    if loss.name == "multinomial":
        return _multinomial_prox(loss, z, y, sigma)
    if loss.name == "smooth_crammer_singer":
        u, others = _simplex_point(loss, y)
        gamma = loss.params["gamma"]
        centre = sigma * (gamma * (1 - others) + others + z) + u
        return project_simplex(centre / (1 + gamma * sigma)) - (1 - others)
    if loss.name == "logistic":
        t = np.broadcast_to(np.asarray(loss.target, dtype=float), y.shape)
        return np.array([_logistic_prox(*a, sigma) for a in zip(t, z, y, strict=True)])
    gamma, eps, low, high, b = _quadratic_conjugate(loss)
    if sigma >= 1:  # both forms are the same number; each avoids one overflow
        return np.clip(_soft(y / sigma + (z - b), eps) / (1 / sigma + gamma), low, high)
    return np.clip(_soft(y + sigma * (z - b), sigma * eps) / (1 + sigma * gamma), low, high)


def _logistic_prox(t: float, z: float, y: float, sigma: float) -> float:
    """Root of  s + t z + (u(s) - u0) / sigma  in s = logit(u), u = -t y, by Brent's method."""
    u0 = -t * y

    def u(s: float) -> float:
        return 1 / (1 + math.exp(-s)) if s > 0 else math.exp(s) / (1 + math.exp(s))

    def slope(s: float) -> float:
        return s + t * z + (u(s) - u0) / sigma

    # Beyond |s| = 760 the float64 u is 0 or 1.
    low, high = np.clip([-t * z - (1 - u0) / sigma, -t * z + u0 / sigma], -760.0, 760.0)
    return -t * u(_root(slope, low, high))


def _multinomial_prox(loss: Loss, z: Array, y: Array, sigma: float) -> Array:
    """Solve  ln u_k + u_k / sigma = a_k - nu  for every k, with nu such that sum(u) = 1."""
    u0, others = _simplex_point(loss, y)
    a = z - z.max() + u0 / sigma

    def u(nu: float) -> Array:
        omega = wrightomega(a - nu - math.log(sigma))  # u = sigma omega, ln u = a - nu - omega
        return np.where(omega < 1, np.exp(np.minimum(a - nu - omega, 1)), sigma * omega)

    # The largest u_k is 1 at the left end, so the sum is >= 1; it is 1/K at the right end.
    low, high = a.max() - 1 / sigma, a.max() + math.log(len(z)) - 1 / (len(z) * sigma)
    solution = u(_root(lambda nu: 1 - u(nu).sum(), low, high))
    return solution / solution.sum() - (1 - others)


def _root(increasing: Any, low: float, high: float) -> float:
    """Zero of an increasing function, an end of the bracket if rounding hides the sign change."""
    if increasing(low) >= 0:
        return low
    if increasing(high) <= 0:
        return high
    return brentq(increasing, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=1000)


def project_simplex(v: Array) -> Array:
    """Nearest point with non-negative entries that sum to one: the support of size k that fits."""
    v = v - v.max()
    ordered = np.sort(v)[::-1]
    for k in range(len(v), 0, -1):
        threshold = (math.fsum(ordered[:k]) - 1) / k
        if ordered[k - 1] > threshold:
            return np.maximum(v - threshold, 0)
    raise AssertionError("the support of size one always fits")


def _simplex_point(loss: Loss, y: Array) -> tuple[Array, Array]:
    """u = y + e_target, and the indicator of the other classes."""
    label = np.arange(len(y)) == int(loss.target)
    return y + label, np.where(label, 0.0, 1.0)


def _soft(u: Array, threshold: float) -> Array:
    return np.sign(u) * np.maximum(abs(u) - threshold, 0)


# ------------------------------------------------------------------------------------ regularisers


def _groups(g: Regularizer) -> list[tuple[NDArray[np.bool_], float]]:
    labels = np.unique(g.params["groups"])
    weights = np.broadcast_to(g.params["weight"], labels.shape)
    return [(g.params["groups"] == label, w) for label, w in zip(labels, weights, strict=True)]


def g_value(problem: Problem, x: Array) -> float:
    """g(x), infinite outside the domain."""
    g, quadratic = problem.g, problem.lam / 2 * math.fsum(x**2)
    match g.name:
        case "elastic_net":
            return quadratic + g.params["l1"] * math.fsum(abs(x))
        case "group":
            return quadratic + math.fsum(w * np.linalg.norm(x[m]) for m, w in _groups(g))
        case "nonnegative":
            return quadratic if np.all(x >= 0) else math.inf
        case "box":
            inside = np.all(x >= g.params["low"]) and np.all(x <= g.params["high"])
            return quadratic if inside else math.inf
        case "l2":
            return quadratic
    raise ValueError(f"unknown regulariser {g.name!r}")


def g_prox(problem: Problem, u: Array, tau: float) -> Array:
    """argmin_x g(x) + |x - u|^2 / (2 tau)."""
    g, shrink = problem.g, 1 + tau * problem.lam
    match g.name:
        case "l2":
            return u / shrink
        case "elastic_net":
            return _soft(u, tau * g.params["l1"]) / shrink
        case "group":
            out = np.zeros_like(u)
            for member, weight in _groups(g):
                norm = np.linalg.norm(u[member])
                if norm > tau * weight:
                    out[member] = (1 - tau * weight / norm) * u[member] / shrink
            return out
        case "nonnegative":
            return np.maximum(u, 0) / shrink
        case "box":
            return np.clip(u / shrink, g.params["low"], g.params["high"])
    raise ValueError(f"unknown regulariser {g.name!r}")


def g_conjugate_gradient(problem: Problem, s: Array) -> Array:
    """argmax_x <s, x> - g(x): the limit of prox_{tau g}(tau s) for large tau."""
    g, lam = problem.g, problem.lam
    match g.name:
        case "l2":
            return s / lam
        case "elastic_net":
            return _soft(s, g.params["l1"]) / lam
        case "group":
            out = np.zeros_like(s)
            for member, weight in _groups(g):
                norm = np.linalg.norm(s[member])
                out[member] = s[member] / lam * (max(norm - weight, 0) / norm if norm > 0 else 0)
            return out
        case "nonnegative":
            return np.maximum(s, 0) / lam
        case "box":
            return np.clip(s / lam, g.params["low"], g.params["high"])
    raise ValueError(f"unknown regulariser {g.name!r}")


def g_conjugate(problem: Problem, s: Array) -> float:
    """g*(s)."""
    g, lam = problem.g, problem.lam
    match g.name:
        case "l2":
            return math.fsum(s**2) / (2 * lam)
        case "elastic_net":
            return math.fsum(np.maximum(abs(s) - g.params["l1"], 0) ** 2) / (2 * lam)
        case "group":
            excess = (max(np.linalg.norm(s[member]) - w, 0.0) for member, w in _groups(g))
            return math.fsum(e**2 for e in excess) / (2 * lam)
        case "nonnegative":
            return math.fsum(np.maximum(s, 0) ** 2) / (2 * lam)
    w = g_conjugate_gradient(problem, s)
    return math.fsum(s * w) - lam / 2 * math.fsum(w**2)


# -------------------------------------------------------------------------------------- objectives


def primal(problem: Problem, x: Array) -> float:
    """P(x), accurately summed."""
    terms = (
        s * loss_value(loss, block @ x)
        for s, loss, block in zip(problem.s_hat, problem.losses, problem.blocks, strict=True)
    )
    return math.fsum(terms) / problem.n + g_value(problem, x)


def dual(problem: Problem, y: Array) -> float:
    """D(y), accurately summed, with r computed afresh."""
    terms = (
        s * loss_conjugate(loss, y_i)
        for s, loss, y_i in zip(problem.s_hat, problem.losses, problem.split(y), strict=True)
    )
    return -math.fsum(terms) / problem.n - g_conjugate(problem, -problem.residual(y))


def gradient_point(problem: Problem, x: Array) -> Array:
    """The dual point y_i = phi_i'(A_i^T x), flat."""
    pairs = zip(problem.losses, problem.blocks, strict=True)
    return np.concatenate([loss_derivative(loss, block @ x) for loss, block in pairs])


# ----------------------------------------------------------------------------------------- methods


def _start(
    problem: Problem, x0: Array | None, y0: Array | None
) -> tuple[Array, list[Array], Array]:
    x = np.zeros(problem.d) if x0 is None else np.array(x0, dtype=float)
    y = np.zeros(problem.total_size) if y0 is None else np.array(y0, dtype=float)
    return x, [y_i.copy() for y_i in problem.split(y)], problem.residual(y)


def _changes(
    problem: Problem, batch: Sequence[int], z_point: Array, y: list[Array], sigma: Array
) -> list[tuple[int, Array]]:
    """Move the y_i of the batch by their prox at ``z_point``; return (i, s_hat_i A_i dy_i)."""
    columns = []
    for i in batch:
        new = loss_prox(problem.losses[i], problem.blocks[i] @ z_point, y[i], sigma[i])
        columns.append((i, problem.column(i, new - y[i])))
        y[i] = new
    return columns


def extrapolated(
    problem: Problem,
    batches: Batches,
    sigma: ArrayLike,
    tau: ArrayLike,
    theta: ArrayLike,
    c: ArrayLike,
    x0: Array | None = None,
    y0: Array | None = None,
    xbar0: Array | None = None,
) -> list[Iterate]:
    """Dual step at the extrapolated xbar, then the primal step, for AdaSPDC and SPDC.

    ``sigma`` and ``c`` have one entry per block, ``tau`` and ``theta`` one per iteration (a scalar
    stands for all).  ``c_j`` is 1/m for uniform batches of m blocks, 1/(n p_j) for single blocks
    drawn with probability p_j.
    """
    batches = np.asarray(batches)
    sigma, c = np.broadcast_to(sigma, problem.n), np.broadcast_to(c, problem.n)
    tau, theta = np.broadcast_to(tau, len(batches)), np.broadcast_to(theta, len(batches))
    x, y, r = _start(problem, x0, y0)
    xbar = x if xbar0 is None else xbar0
    path = []
    for t, batch in enumerate(batches):
        columns = _changes(problem, batch, xbar, y, sigma)
        correction = sum(c[j] * column for j, column in columns)
        x_new = g_prox(problem, x - tau[t] * (r + correction), tau[t])
        xbar = x_new + theta[t] * (x_new - x)
        r = r + sum(column for _, column in columns) / problem.n
        x = x_new
        path.append(Iterate(x, np.concatenate(y), r))
    return path


class Steps(NamedTuple):
    """Arguments of `extrapolated`."""

    sigma: Array
    tau: Array | float
    theta: Array | float
    c: Array | float


def adaspdc_steps(problem: Problem, batches: Batches) -> Steps:
    """AdaSPDC: tau and theta come from the largest norm of the batch of the moment.

    With rho_i = R_i / sqrt(gamma_i):  sigma_i = sqrt(n lam / (m gamma_i)) / (2 R_i),
    tau = sqrt(m / (n lam)) / (2 max_S rho),  theta = 1 - 1 / (n/m + max_S rho sqrt((n/m) / lam)).
    """
    batches = np.asarray(batches)
    n, m, lam, rho = problem.n, batches.shape[1], problem.lam, _coupling(problem)
    with np.errstate(divide="ignore"):  # a block of zeros: any step is right
        sigma = np.sqrt(n * lam / (m * problem.gamma)) / (2 * problem.norms)
    largest = np.array([max(rho[i] for i in batch) for batch in batches])
    if np.any(largest == 0):
        raise ValueError("a batch holds blocks of zeros only: leave such blocks out")
    tau = np.sqrt(m / (n * lam)) / (2 * largest)
    theta = 1 - 1 / (n / m + largest * np.sqrt((n / m) / lam))
    return Steps(sigma, tau, theta, 1 / m)


def spdc_steps(problem: Problem, m: int) -> Steps:
    """SPDC of Zhang and Xiao, eq. (10): the same with the largest norm of all blocks."""
    n, lam, largest = problem.n, problem.lam, _coupling(problem).max()
    sigma = np.sqrt(n * lam / m) / (2 * largest * problem.gamma)
    tau = np.sqrt(m / (n * lam)) / (2 * largest)
    return Steps(sigma, tau, 1 - 1 / (n / m + largest * np.sqrt((n / m) / lam)), 1 / m)


def spdc_nonuniform_probabilities(problem: Problem, alpha: float = 0.5) -> Array:
    """p_i = (1 - alpha)/n + alpha rho_i / sum(rho)."""
    rho = _coupling(problem)
    return (1 - alpha) / problem.n + alpha * rho / rho.sum()


def spdc_nonuniform_steps(problem: Problem, probabilities: Array, alpha: float = 0.5) -> Steps:
    """SPDC with weighted sampling (Zhang and Xiao, section 4), one block per iteration."""
    n, lam, mean = problem.n, problem.lam, _coupling(problem).mean()
    sigma = alpha / (2 * mean) * np.sqrt(n * lam)
    tau = alpha / (2 * mean) * np.sqrt(1 / (n * lam))
    theta = 1 - 1 / (n / (1 - alpha) + mean / alpha * np.sqrt(n / lam))
    draws = probabilities * n
    return Steps(sigma / (draws * problem.gamma), tau, theta, 1 / draws)


def _coupling(problem: Problem) -> Array:
    return problem.norms / np.sqrt(problem.gamma)


def adaspdc(
    problem: Problem, batches: Batches, x0: Array | None = None, y0: Array | None = None
) -> list[Iterate]:
    """Algorithm 1 of the AdaSPDC paper, literally."""
    return extrapolated(problem, batches, *adaspdc_steps(problem, batches), x0, y0)


def spdc(
    problem: Problem, batches: Batches, x0: Array | None = None, y0: Array | None = None
) -> list[Iterate]:
    """SPDC with uniform sampling."""
    steps = spdc_steps(problem, np.asarray(batches).shape[1])
    return extrapolated(problem, batches, *steps, x0, y0)


def spdc_nonuniform(
    problem: Problem,
    batches: Batches,
    probabilities: Array | None = None,
    x0: Array | None = None,
    y0: Array | None = None,
) -> list[Iterate]:
    """SPDC with weighted sampling; batches of one block."""
    if np.asarray(batches).shape[1] != 1:
        raise ValueError("weighted SPDC visits one block per iteration")
    if probabilities is None:
        probabilities = spdc_nonuniform_probabilities(problem)
    return extrapolated(problem, batches, *spdc_nonuniform_steps(problem, probabilities), x0, y0)


def spdhg_steps(problem: Problem, m: int = 1) -> tuple[Array, Array, float, float]:
    """(pi, sigma, tau, theta) of SPDHG with importance sampling in closed form.

    v_i = m R_i^2 bounds every sampling of m distinct blocks.  Raises when some pi_i exceeds one.
    """
    n, lam, gamma = problem.n, problem.lam, problem.gamma
    kappa = np.sqrt(1 + m * problem.norms**2 / (n * lam * gamma))
    total = np.sum(1 + kappa)
    pi = m * (1 + kappa) / total
    if pi.max() > 1 + 1e-12:
        raise ValueError("an inclusion probability exceeds one: use a smaller batch")
    with np.errstate(divide="ignore"):  # a block of zeros: any step is right
        sigma = 1 / ((kappa - 1) * gamma)
    return pi, sigma, m / ((total - 2 * m) * lam), 1 - 2 * m / total


def spdhg(
    problem: Problem,
    batches: Batches,
    pi: ArrayLike,
    sigma: ArrayLike,
    tau: ArrayLike,
    theta: ArrayLike,
    x0: Array | None = None,
    y0: Array | None = None,
) -> list[Iterate]:
    """Primal step at r + q, then the dual step at the new x; q compensates the last change.

    ``pi`` and ``sigma`` have one entry per block, ``tau`` and ``theta`` are scalars or have one
    entry per iteration; q = theta sum_S s_hat_j A_j dy_j / (n pi_j), zero at the start.
    """
    batches = np.asarray(batches)
    pi, sigma = np.broadcast_to(pi, problem.n), np.broadcast_to(sigma, problem.n)
    tau, theta = np.broadcast_to(tau, len(batches)), np.broadcast_to(theta, len(batches))
    x, y, r = _start(problem, x0, y0)
    q = np.zeros_like(r)
    path = []
    for t, batch in enumerate(batches):
        x = g_prox(problem, x - tau[t] * (r + q), tau[t])
        columns = _changes(problem, batch, x, y, sigma)
        r = r + sum(column for _, column in columns) / problem.n
        q = theta[t] * sum(column / (problem.n * pi[j]) for j, column in columns)
        path.append(Iterate(x, np.concatenate(y), r))
    return path


def sdca_sigma(problem: Problem, m: int) -> Array:
    """sigma_i = n lam / (m R_i^2), infinite for a block of zeros."""
    with np.errstate(divide="ignore"):
        return problem.n * problem.lam / (m * problem.norms**2)


def sdca(problem: Problem, batches: Batches, y0: Array | None = None) -> list[Iterate]:
    """Dual coordinate ascent: x = grad g*(-r) before and after every iteration."""
    batches = np.asarray(batches)
    sigma = sdca_sigma(problem, batches.shape[1])
    _, y, r = _start(problem, None, y0)
    x = g_conjugate_gradient(problem, -r)
    path = []
    for batch in batches:
        columns = _changes(problem, batch, x, y, sigma)
        r = r + sum(column for _, column in columns) / problem.n
        x = g_conjugate_gradient(problem, -r)
        path.append(Iterate(x, np.concatenate(y), r))
    return path


def smoothness(problem: Problem) -> float:
    """L = max_i R_i^2 / gamma_i + lam, of one term of the finite sum (L2 part included)."""
    return float(np.max(problem.norms**2 / problem.gamma) + problem.lam)


def sag(
    problem: Problem,
    batches: Batches,
    eta: float,
    x0: Array | None = None,
    y0: Array | None = None,
) -> list[Iterate]:
    """Stochastic average gradient, g = lam/2 |x|^2; y is the table of derivatives."""
    if problem.g.name != "l2":
        raise ValueError("SAG has no proximal step: use SAGA")
    infinite = np.full(problem.n, np.inf)  # the prox with an infinite step is the derivative
    x, y, r = _start(problem, x0, y0)
    path = []
    for batch in batches:
        columns = _changes(problem, batch, x, y, infinite)
        r = r + sum(column for _, column in columns) / problem.n
        x = x - eta * (r + problem.lam * x)
        path.append(Iterate(x, np.concatenate(y), r))
    return path


def saga(
    problem: Problem,
    batches: Batches,
    eta: float,
    x0: Array | None = None,
    y0: Array | None = None,
) -> list[Iterate]:
    """SAGA with the whole of g in the proximal step; the average r is updated after it."""
    infinite = np.full(problem.n, np.inf)
    x, y, r = _start(problem, x0, y0)
    path = []
    for batch in batches:
        total = sum(column for _, column in _changes(problem, batch, x, y, infinite))
        x = g_prox(problem, x - eta * (r + total / len(batch)), eta)
        r = r + total / problem.n
        path.append(Iterate(x, np.concatenate(y), r))
    return path


def pdhg_steps(problem: Problem) -> tuple[Array, float, float]:
    """(sigma, tau, theta) of Chambolle and Pock 2011, algorithm 3, in the scaling of P."""
    scale = np.sqrt(problem.s_hat / problem.gamma)
    stacked = np.vstack([a * block for a, block in zip(scale, problem.blocks, strict=True)])
    mu = 2 * math.sqrt(problem.lam * problem.n) / np.linalg.norm(stacked, 2)
    return mu / (2 * problem.gamma), mu / (2 * problem.lam), 1 / (1 + mu)


def pdhg(
    problem: Problem,
    iterations: int,
    sigma: ArrayLike,
    tau: float,
    theta: float,
    x0: Array | None = None,
    y0: Array | None = None,
) -> list[Iterate]:
    """Chambolle and Pock: all blocks at xbar, then x at the new r, then xbar."""
    sigma = np.broadcast_to(sigma, problem.n)
    x, y, r = _start(problem, x0, y0)
    xbar = x
    path = []
    for _ in range(iterations):
        columns = _changes(problem, range(problem.n), xbar, y, sigma)
        r = r + sum(column for _, column in columns) / problem.n
        x_new = g_prox(problem, x - tau * r, tau)
        xbar = x_new + theta * (x_new - x)
        x = x_new
        path.append(Iterate(x, np.concatenate(y), r))
    return path


# --------------------------------------------------------------------------------------- reference


def solve_reference(problem: Problem, tol: float = 1e-12, max_iter: int = 200_000) -> Iterate:
    """Solution of a small problem with |x - x*| <= tol (1 + |x*|), and its dual point.

    Accelerated proximal gradient on P, which shares no step with the primal-dual methods.  With
    the step eta = 1/L from v to x+, P has a subgradient of norm <= 2 |x+ - v| / eta at x+, hence
    |x+ - x*| <= 2 |x+ - v| / (eta lam).  Ridge regression is solved by its normal equations.
    """
    scale = np.sqrt(problem.s_hat / problem.n)
    stacked = np.vstack([a * block for a, block in zip(scale, problem.blocks, strict=True)])
    if problem.g.name == "l2" and all(loss.name == "squared" for loss in problem.losses):
        targets = [
            a * np.atleast_1d(loss.target) for a, loss in zip(scale, problem.losses, strict=True)
        ]
        normal = stacked.T @ stacked + problem.lam * np.eye(problem.d)
        x = np.linalg.solve(normal, stacked.T @ np.concatenate(targets))
    else:
        smooth = np.linalg.norm(stacked, 2) ** 2 / problem.gamma.min()
        x = _accelerated(problem, float(smooth), tol, max_iter)
    y = gradient_point(problem, x)
    return Iterate(x, y, problem.residual(y))


def _accelerated(problem: Problem, smooth: float, tol: float, max_iter: int) -> Array:
    root = math.sqrt(problem.lam / (smooth + problem.lam))
    eta, momentum = 1 / smooth, (1 - root) / (1 + root)
    x = v = g_prox(problem, np.zeros(problem.d), eta)
    for _ in range(max_iter):
        r = problem.residual(gradient_point(problem, v))
        x_new = g_prox(problem, v - eta * r, eta)
        step = np.linalg.norm(x_new - v)
        v = x_new + momentum * (x_new - x)
        x = x_new
        if 2 * step / (eta * problem.lam) <= tol * (1 + np.linalg.norm(x)):
            return x
    raise RuntimeError(f"the reference did not reach tol={tol}: use a better conditioned problem")
