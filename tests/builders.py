"""Small problems in two versions: for the package, and for the oracles of ``naive``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

import naive
from adaspdc import ERM, SaddlePoint, losses, regularizers
from naive import Array

N, D, K = 14, 6, 3
"""Rows, features and outputs of the small problems."""

Spec = tuple[losses.Loss, str, dict[str, float]]

LOSSES: dict[str, Spec] = {
    "squared": (losses.Squared(), "squared", {}),
    "smooth hinge": (losses.SmoothHinge(0.5), "smooth_hinge", {"gamma": 0.5}),
    "logistic": (losses.Logistic(), "logistic", {}),
    "squared hinge": (losses.SquaredHinge(), "squared_hinge", {}),
    "huber": (losses.Huber(0.7), "huber", {"delta": 0.7}),
    "pinball": (
        losses.SmoothPinball(0.3, 0.5),
        "smooth_pinball",
        {"quantile": 0.3, "gamma": 0.5},
    ),
    "insensitive": (
        losses.SmoothEpsilonInsensitive(0.2, 0.5),
        "smooth_epsilon_insensitive",
        {"epsilon": 0.2, "gamma": 0.5},
    ),
    "squared insensitive": (
        losses.SquaredEpsilonInsensitive(0.2),
        "squared_epsilon_insensitive",
        {"epsilon": 0.2},
    ),
    "multinomial": (losses.Multinomial(), "multinomial", {}),
    "crammer-singer": (losses.SmoothCrammerSinger(0.5), "smooth_crammer_singer", {"gamma": 0.5}),
    "multi-output": (losses.MultiOutputSquared(), "squared", {}),
}

_LOW = np.array([-0.1, 0.0, -np.inf, -0.2, -1.0, 0.05])
_HIGH = np.array([0.1, np.inf, 0.05, 0.2, -0.3, 0.05])
_GROUPS = np.array([4, 4, 7, 4, 7, 1])
_GROUP_WEIGHT = np.array([0.02, 0.05, 0.1])

REGULARIZERS: dict[str, tuple[Callable[[float], Any], naive.Regularizer]] = {
    "l2": (regularizers.L2, naive.Regularizer()),
    "elastic net": (
        lambda lam: regularizers.ElasticNet(lam, 0.03),
        naive.Regularizer("elastic_net", {"l1": 0.03}),
    ),
    "group": (
        lambda lam: regularizers.GroupL2(lam, _GROUP_WEIGHT, _GROUPS),
        naive.Regularizer("group", {"weight": _GROUP_WEIGHT, "groups": _GROUPS}),
    ),
    "nonnegative": (regularizers.NonNegative, naive.Regularizer("nonnegative")),
    "box": (
        lambda lam: regularizers.Box(lam, _LOW, _HIGH),
        naive.Regularizer("box", {"low": _LOW, "high": _HIGH}),
    ),
}

STORAGES: dict[str, Callable[[Array], Any]] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr64": lambda X: with_wide_indices(sparse.csr_array(X)),
}


def with_wide_indices(matrix: Any) -> Any:
    """The same CSR matrix with 64-bit indices."""
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


@dataclass(frozen=True)
class Thinned(naive.Problem):
    """A problem without its idle blocks; the loss terms left have weight ``share`` together."""

    share: float = 1.0

    @cached_property
    def s_hat(self) -> Array:
        s = np.asarray(self.weights, dtype=float)
        return self.share * self.n * s / s.sum()


@dataclass(frozen=True)
class Pair:
    """One problem twice, and which blocks and dual coordinates the oracle's version keeps."""

    problem: ERM | SaddlePoint
    oracle: naive.Problem
    kept: Any
    """Indices into the flat dual vector of the package."""

    def with_loss(self, loss: losses.Loss, regularizer: Any = None) -> "Pair":
        """The same ERM problem with a loss (and regulariser) of the same meaning."""
        given = self.problem
        t = given.target.reshape(given.rows.n, -1)
        problem = ERM(
            given.rows,
            t if loss.kind == "multioutput" else t[:, 0],
            loss,
            given.regularizer if regularizer is None else regularizer,
            given.sample_weight,
        )
        return Pair(problem, self.oracle, self.kept)


def matrix(rng: np.random.Generator, n: int = N, d: int = D, holes: bool = False) -> Array:
    """Rows of unequal norms, exact in float32; ``holes``: sparse, an empty row, an empty column."""
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 2.0, size=(n, 1))
    if holes:
        X *= rng.random((n, d)) < 0.5
        X[np.arange(n), np.arange(n) % (d - 1)] = 1.0
        X[n // 2] = 0.0
        X[:, d - 1] = 0.0
    return X.astype(np.float32).astype(np.float64)


def targets(rng: np.random.Generator, loss: losses.Loss, n: int = N) -> Array:
    """Targets as the losses encode them."""
    if loss.kind == "binary":
        return np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if loss.kind == "multiclass":
        return np.resize(np.arange(K), n).astype(float)
    return rng.normal(size=(n, K) if loss.kind == "multioutput" else n)


def erm(
    loss: str = "squared",
    regularizer: str = "l2",
    storage: str = "dense",
    lam: float = 1e-2,
    weighted: bool = False,
    seed: int = 0,
) -> Pair:
    """An ERM problem; sparse storages have an empty row and column, weights have a zero."""
    rng = np.random.default_rng(seed)
    X = matrix(rng, holes=storage.startswith("csr"))
    weights = None
    if weighted:
        weights = rng.integers(1, 4, size=N).astype(float)
        weights[3] = 0.0
    public, name, params = LOSSES[loss]
    t = targets(rng, public)
    make, g = REGULARIZERS[regularizer]
    problem = ERM(STORAGES[storage](X), t, public, make(lam), sample_weight=weights)
    s = np.ones(N) if weights is None else weights
    outputs = problem.n_outputs
    active = (s > 0) & X.any(axis=1)
    whole = naive.erm(X, t, name, lam, g, s, outputs, **params)
    return Pair(problem, _thinned(whole, active, s.sum()), _coordinates(active, [outputs] * N))


def saddle_point(
    regularizer: str = "l2",
    is_sparse: bool = False,
    lam: float = 1e-2,
    mixed: bool = True,
    seed: int = 0,
) -> Pair:
    """Blocks of 1 to 4 rows, of one loss or of all of them, weighted; a sparse one is empty."""
    rng = np.random.default_rng(seed)
    heights = [1, 3, 2, 4, 1, 2, 3, 2, 1, 3, 2]
    blocks = [matrix(rng, q, D) for q in heights]
    if is_sparse:
        blocks = [block * (rng.random(block.shape) < 0.5) for block in blocks]
        blocks[6][:] = 0.0
    cycle = [name for name in LOSSES if name != "multi-output"] if mixed else ["huber"]
    names = [cycle[i % len(cycle)] for i in range(len(heights))]
    if mixed:  # a loss of vectors needs two coordinates
        names = ["squared" if q == 1 else n for q, n in zip(heights, names, strict=True)]
    weights = rng.uniform(0.5, 2.0, size=len(heights))
    conjugates, oracles = [], []
    for name, q, weight in zip(names, heights, weights, strict=True):
        public, theirs, params = LOSSES[name]
        goal = rng.integers(q) if public.couples_outputs else targets(rng, public, q)
        conjugates.append(public.at(goal, weight=weight))
        oracles.append(naive.Loss(theirs, goal, params))
    make, g = REGULARIZERS[regularizer]
    if is_sparse:
        stacked = STORAGES["csr64"](np.vstack(blocks))
        problem = SaddlePoint(stacked, conjugates, make(lam), sizes=heights)
    else:
        problem = SaddlePoint(blocks, conjugates, make(lam))
    whole = naive.Problem(blocks, oracles, lam, g, weights)
    active = np.array([block.any() for block in blocks])
    return Pair(problem, _thinned(whole, active, len(heights)), _coordinates(active, heights))


def _thinned(whole: naive.Problem, active: Array, total: float) -> Thinned:
    weights = np.asarray(whole.weights)[active]
    kept = np.flatnonzero(active)
    return Thinned(
        [whole.blocks[i] for i in kept],
        [whole.losses[i] for i in kept],
        whole.lam,
        whole.g,
        weights,
        float(weights.sum() / total),
    )


def _coordinates(active: Array, heights: list[int]) -> Array:
    return np.flatnonzero(np.repeat(active, heights))
