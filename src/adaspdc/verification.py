"""The certificate of a model, computed again from the data by code of its own.

Nothing here calls the solver, its losses, its regularisers or compiled code: plain NumPy formulas
with sums in extended precision, so that a mistake there cannot hide itself here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._catalogue import describe
from .model import Model

__all__ = ["Verification", "verify"]

Array = NDArray[Any]
_AGREEMENT = 1e-10
_LEVEL = 1e-11
_PRODUCT = 4.0 * float(np.finfo(np.float64).eps)
"""Relative error of a sum of products, beside the sum of their absolute values."""


@dataclass(frozen=True)
class Verification:
    """What was recomputed, beside what the model claims.

    Attributes
    ----------
    primal, dual, gap : float
        Recomputed from the data.
    tol : float
        The absolute gap that the fit was asked for.
    rounding : float
        How far rounding may move primal and dual on these data: next to nothing, unless features
        are far from zero or of very different sizes.
    claimed : dict
        ``primal``, ``dual`` and ``gap`` as the model has them.
    problems : tuple of str
        What is wrong, in sentences; empty where the certificate holds.
    """

    primal: float
    dual: float
    gap: float
    tol: float
    rounding: float
    claimed: dict[str, float]
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the model is as close to the optimum as it claims to be."""
        return not self.problems


def verify(model: Model, X: Any, y: Any) -> Verification:
    """Recompute objective, bound and gap of a model on the data it was fitted to.

    Parameters
    ----------
    model : Model
    X : array or CSR array of shape (n, d)
    y : array of shape (n,)
        The labels as they stood in the training data.
    """
    n = X.shape[0]
    dual = model.dual.reshape(n, -1) if model.dual.shape[0] == n else None
    if dual is None or X.shape[1] != model.n_features:
        raise ValueError(
            f"the data have {n} rows and {X.shape[1]} columns, the model was fitted to "
            f"{model.dual.shape[0]} and {model.n_features}: this is not its training data"
        )
    targets = _targets(model, np.asarray(y))
    coef = model.coef.reshape(model.n_features, -1)
    margins = np.asarray(X @ coef) + model.intercept
    spec, lam = describe(model.penalty), float(model.penalty.lam)
    loss = _LOSSES[describe(model.loss)["name"]](targets, **_parameters(describe(model.loss)))
    r = np.asarray(X.T @ dual) / n
    primal = _mean(loss.value(margins)) + _penalty(spec, lam, coef)
    bound = -_mean(loss.conjugate(dual)) - _penalty_conjugate(spec, lam, -r)
    if model.has_intercept and np.any(np.abs(_sum(dual)) > _LEVEL * _sum(np.abs(dual))):
        bound = -np.inf
    rounding = _rounding(X, coef, dual, lam)
    return _judged(model, float(primal), float(bound), rounding)


def _rounding(X: Any, coef: Array, dual: Array, lam: float) -> float:
    """What errors of the products with X do to P and D, to first order, and to D in the square."""
    n, sizes = X.shape[0], abs(X)
    of_margins = _PRODUCT * (sizes @ np.abs(coef))
    of_r = _PRODUCT * (sizes.T @ np.abs(dual)) / n
    primal = (np.abs(dual) * of_margins).sum() / n
    return float(primal + (np.abs(coef) * of_r).sum() + (of_r**2).sum() / lam)


def _judged(model: Model, primal: float, bound: float, rounding: float) -> Verification:
    claimed = {name: float(model.certificate[name]) for name in ("primal", "dual", "gap")}
    tol, gap = float(model.certificate["tol"]), primal - bound
    slack = _AGREEMENT * max(1.0, abs(primal)) + rounding
    problems = []
    for name, value in (("primal", primal), ("dual", bound)):
        if not abs(value - claimed[name]) <= slack:
            problems.append(f"{name} is {value:.12g}, the model claims {claimed[name]:.12g}")
    if not gap <= claimed["gap"] + slack:
        problems.append(f"the gap is {gap:.3e}, the model claims {claimed['gap']:.3e}")
    if model.certificate["status"] == "converged" and not gap <= tol + slack:
        problems.append(f"the gap is {gap:.3e}, above the tolerance {tol:.3e}")
    if gap < -slack:
        problems.append(f"the gap is negative, {gap:.3e}: this cannot be the training data")
    return Verification(primal, bound, gap, tol, rounding, claimed, tuple(problems))


def _targets(model: Model, y: Array) -> Array:
    """Targets as the formulas take them: numbers, -1 and +1, or the number of the class."""
    if model.labels is None:
        if y.dtype.kind not in "fiub":
            raise ValueError("the labels are text, but the model is one of regression")
        return y.astype(np.float64)
    position = {label: k for k, label in enumerate(model.labels)}
    try:
        index = np.array([position[label] for label in y.tolist()])
    except KeyError as error:
        raise ValueError(f"label {error.args[0]!r} is unknown to the model") from None
    if model.loss.kind != "binary":
        return index
    if len(model.labels) == 1:
        alone = model.labels[0]
        return np.full(len(y), 1.0 if isinstance(alone, str) or alone > 0 else -1.0)
    return 2.0 * index - 1.0


def _parameters(spec: dict[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in spec.items() if key != "name"}


def _sum(values: Array) -> Any:
    return values.sum(axis=0, dtype=np.longdouble)


def _mean(values: Array) -> Any:
    return values.sum(dtype=np.longdouble) / values.shape[0]


# --- losses: value(margins), conjugate(dual), both of shape (n,) ----------------------------------


@dataclass(frozen=True)
class _Formulas:
    value: Callable[[Array], Array]
    conjugate: Callable[[Array], Array]


def _inside(condition: Array, values: Array) -> Array:
    """The values where the condition holds, infinity elsewhere."""
    return np.where(condition, values, np.inf)


def _xlogx(u: Array) -> Array:
    return np.where(u > 0, u * np.log(np.where(u > 0, u, 1.0)), 0.0)


def _squared(b: Array) -> _Formulas:
    return _Formulas(lambda z: (z[:, 0] - b) ** 2 / 2, lambda y: y[:, 0] ** 2 / 2 + b * y[:, 0])


def _logistic(b: Array) -> _Formulas:
    def conjugate(y: Array) -> Array:
        u: Array = -b * y[:, 0]
        return _inside((u >= 0) & (u <= 1), _xlogx(u) + _xlogx(1 - u))

    return _Formulas(lambda z: np.logaddexp(0.0, -b * z[:, 0]), conjugate)


def _smooth_hinge(b: Array, gamma: float) -> _Formulas:
    def value(z: Array) -> Array:
        short = 1 - b * z[:, 0]
        return np.where(
            short <= 0, 0.0, np.where(short >= gamma, short - gamma / 2, short**2 / (2 * gamma))
        )

    def conjugate(y: Array) -> Array:
        u = b * y[:, 0]
        return _inside((u >= -1) & (u <= 0), u + gamma * y[:, 0] ** 2 / 2)

    return _Formulas(value, conjugate)


def _squared_hinge(b: Array) -> _Formulas:
    def conjugate(y: Array) -> Array:
        u = b * y[:, 0]
        return _inside(u <= 0, u + y[:, 0] ** 2 / 2)

    return _Formulas(lambda z: np.maximum(1 - b * z[:, 0], 0.0) ** 2 / 2, conjugate)


def _huber(b: Array, delta: float) -> _Formulas:
    def value(z: Array) -> Array:
        off: Array = np.abs(z[:, 0] - b)
        return np.asarray(np.where(off <= delta, off**2 / 2, delta * off - delta**2 / 2))

    def conjugate(y: Array) -> Array:
        return _inside(np.abs(y[:, 0]) <= delta, y[:, 0] ** 2 / 2 + b * y[:, 0])

    return _Formulas(value, conjugate)


def _smooth_pinball(b: Array, quantile: float, gamma: float) -> _Formulas:
    def value(z: Array) -> Array:
        off: Array = z[:, 0] - b
        u: Array = np.clip(off / gamma, -quantile, 1 - quantile)
        return np.asarray(u * off - gamma * u**2 / 2)

    def conjugate(y: Array) -> Array:
        u = y[:, 0]
        return _inside((u >= -quantile) & (u <= 1 - quantile), b * u + gamma * u**2 / 2)

    return _Formulas(value, conjugate)


def _smooth_epsilon_insensitive(b: Array, epsilon: float, gamma: float) -> _Formulas:
    def value(z: Array) -> Array:
        beyond = np.maximum(np.abs(z[:, 0] - b) - epsilon, 0.0)
        return np.asarray(np.where(beyond >= gamma, beyond - gamma / 2, beyond**2 / (2 * gamma)))

    def conjugate(y: Array) -> Array:
        u = y[:, 0]
        return _inside(np.abs(u) <= 1, b * u + epsilon * np.abs(u) + gamma * u**2 / 2)

    return _Formulas(value, conjugate)


def _squared_epsilon_insensitive(b: Array, epsilon: float) -> _Formulas:
    return _Formulas(
        lambda z: np.maximum(np.abs(z[:, 0] - b) - epsilon, 0.0) ** 2 / 2,
        lambda y: b * y[:, 0] + epsilon * np.abs(y[:, 0]) + y[:, 0] ** 2 / 2,
    )


def _on_simplex(y: Array, index: Array) -> tuple[Array, Array]:
    """u = y + e_b, and whether it lies in the unit simplex up to the rounding of its sum."""
    u = y.copy()
    u[np.arange(len(u)), index] += 1.0
    return u, (u.min(axis=1) >= -1e-15) & (np.abs(u.sum(axis=1) - 1) <= 1e-12)


def _multinomial(index: Array) -> _Formulas:
    def value(z: Array) -> Array:
        top = z.max(axis=1)
        own = z[np.arange(len(z)), index]
        return np.asarray(np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - own)

    def conjugate(y: Array) -> Array:
        u, inside = _on_simplex(y, index)
        return _inside(inside, _xlogx(u).sum(axis=1))

    return _Formulas(value, conjugate)


def _smooth_crammer_singer(index: Array, gamma: float) -> _Formulas:
    def value(z: Array) -> Array:
        rows = np.arange(len(z))
        own = np.zeros_like(z)
        own[rows, index] = 1.0
        excess = z - z[rows, index][:, None] + (1.0 - own)
        u = _projected(own + excess / gamma)
        return np.asarray((u * excess).sum(axis=1) - gamma / 2 * ((u - own) ** 2).sum(axis=1))

    def conjugate(y: Array) -> Array:
        _, inside = _on_simplex(y, index)
        others = y.sum(axis=1) - y[np.arange(len(y)), index]
        return _inside(inside, -others + gamma / 2 * (y**2).sum(axis=1))

    return _Formulas(value, conjugate)


def _projected(v: Array) -> Array:
    """Each row's nearest point of the unit simplex."""
    ordered = -np.sort(-v, axis=1)
    level = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, v.shape[1] + 1)
    last = (ordered > level).sum(axis=1) - 1
    projected: Array = np.maximum(v - level[np.arange(len(v)), last][:, None], 0.0)
    return projected


_LOSSES: dict[str, Callable[..., _Formulas]] = {
    "squared": _squared,
    "logistic": _logistic,
    "smooth_hinge": _smooth_hinge,
    "squared_hinge": _squared_hinge,
    "huber": _huber,
    "smooth_pinball": _smooth_pinball,
    "smooth_epsilon_insensitive": _smooth_epsilon_insensitive,
    "squared_epsilon_insensitive": _squared_epsilon_insensitive,
    "multinomial": _multinomial,
    "smooth_crammer_singer": _smooth_crammer_singer,
}


# --- penalties ------------------------------------------------------------------------------------


def _penalty(spec: dict[str, Any], lam: float, x: Array) -> Any:
    """g(x), infinity outside its domain."""
    square = lam / 2 * (x * x).sum(dtype=np.longdouble)
    name = spec["name"]
    if name == "elasticnet":
        return square + spec["l1"] * np.abs(x).sum(dtype=np.longdouble)
    if name == "group_l2":
        weights, norms = _groups(spec, x)
        return square + (weights * norms).sum(dtype=np.longdouble)
    low, high = _bounds(spec)
    return square if bool(np.all((x >= low) & (x <= high))) else np.inf


def _penalty_conjugate(spec: dict[str, Any], lam: float, s: Array) -> Any:
    """g*(s) = max_x <s, x> - g(x)."""
    name = spec["name"]
    if name == "elasticnet":
        return (np.maximum(np.abs(s) - spec["l1"], 0.0) ** 2).sum(dtype=np.longdouble) / (2 * lam)
    if name == "group_l2":
        weights, norms = _groups(spec, s)
        return (np.maximum(norms - weights, 0.0) ** 2).sum(dtype=np.longdouble) / (2 * lam)
    low, high = _bounds(spec)
    x = np.clip(s / lam, low, high)
    return (s * x - lam / 2 * x * x).sum(dtype=np.longdouble)


def _bounds(spec: dict[str, Any]) -> tuple[Array, Array]:
    """Of each coefficient; infinite for a penalty without."""
    low = 0.0 if spec["name"] == "nonnegative" else spec.get("low", -np.inf)
    high = spec.get("high", np.inf)
    columns = [np.asarray(bound, dtype=np.float64).reshape(-1, 1) for bound in (low, high)]
    return columns[0], columns[1]


def _groups(spec: dict[str, Any], x: Array) -> tuple[Array, Array]:
    """Weight and Euclidean norm of each group."""
    names, group = np.unique(np.asarray(spec["groups"]), return_inverse=True)
    squares = np.bincount(group, weights=(x * x).sum(axis=1), minlength=len(names))
    return np.broadcast_to(np.asarray(spec["group_weight"]), names.shape), np.sqrt(squares)
