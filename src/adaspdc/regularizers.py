"""The strongly convex term g of the objective.

Every class is the *full* term, with ``lam/2 |x|^2`` in it, and is not divided by the number of
samples. ``x`` is a vector of d coefficients, or a (d, K) array for K outputs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arguments import is_real, real_array
from ._containers import Grouped, Separable, UserSeparable
from ._laws import check_regularizer

__all__ = ["L2", "Box", "Custom", "ElasticNet", "GroupL2", "NonNegative", "Regularizer"]

Array: TypeAlias = NDArray[np.float64]
Kernel: TypeAlias = Separable | Grouped | UserSeparable


@dataclass(frozen=True, eq=False)
class Regularizer(ABC):
    """A regulariser ``g``, strongly convex with constant ``lam``.

    Parameters
    ----------
    lam : float
        Strong convexity of g, positive: every method and every certificate here needs it.
    """

    lam: float

    def __post_init__(self) -> None:
        lam = _finite_float("lam", self.lam)
        if not lam > 0:
            raise ValueError(
                f"{type(self).__name__} needs lam > 0, got lam={lam!r}: all methods and the "
                "certificate rest on strong convexity. For a problem without it, use a small "
                "value, e.g. 1e-6."
            )
        object.__setattr__(self, "lam", lam)

    @abstractmethod
    def kernel(self, dimension: int, n_outputs: int = 1) -> Kernel:
        """What the compiled code takes: g of ``dimension * n_outputs`` flat coordinates.

        The coordinates are those of a (dimension, n_outputs) array, row by row.
        """

    def value(self, x: ArrayLike) -> float:
        """``g(x)``, +inf outside the domain."""
        flat, kernel = self._flat("x", x)
        return float(self._compiled("call_value")(kernel, flat))

    def conjugate(self, s: ArrayLike) -> float:
        """``g*(s) = max_x <s, x> - g(x)``."""
        flat, kernel = self._flat("s", s)
        return float(self._compiled("call_conjugate")(kernel, flat))

    def conjugate_gradient(self, s: ArrayLike) -> Array:
        """``argmax_x <s, x> - g(x)``, the gradient of g* at s."""
        flat, kernel = self._flat("s", s)
        out = np.empty_like(flat)
        self._compiled("call_conjugate_gradient")(kernel, flat, out)
        return out.reshape(np.shape(s))

    def prox(self, u: ArrayLike, tau: float) -> Array:
        """``argmin_x g(x) + |x - u|^2 / (2 tau)``."""
        step = _finite_float("tau", tau)
        if not step > 0:
            raise ValueError(f"tau must be positive, got {tau!r}: it is the length of a step.")
        flat, kernel = self._flat("u", u)
        out = np.empty_like(flat)
        self._compiled("call_prox")(kernel, flat, step, out)
        return out.reshape(np.shape(u))

    def _flat(self, name: str, x: ArrayLike) -> tuple[Array, Kernel]:
        array = real_array(name, x)
        if array.ndim not in (1, 2):
            raise ValueError(
                f"{name} must have shape (d,) or (d, K), got {array.shape}: give one coefficient "
                "per feature, or one per feature and output."
            )
        kernel = self.kernel(array.shape[0], array.shape[1] if array.ndim == 2 else 1)
        # A copy: always the same layout and always writable, hence compiled once.
        return np.array(array, dtype=np.float64, order="C").reshape(-1), kernel

    def _compiled(self, name: str) -> Any:
        from ._kernels import regularizers

        return getattr(regularizers, name)


@dataclass(frozen=True)
class L2(Regularizer):
    """``g(x) = lam/2 |x|^2``.

    Parameters
    ----------
    lam : float
        Weight of the squared norm, positive.
    """

    def kernel(self, dimension: int, n_outputs: int = 1) -> Separable:
        return _separable(self.lam)


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """``g(x) = lam/2 |x|^2 + l1 |x|_1``.

    Parameters
    ----------
    lam : float
        Weight of the squared norm, positive.
    l1 : float
        Weight of the absolute values, zero or positive.
    """

    l1: float

    def __post_init__(self) -> None:
        super().__post_init__()
        l1 = _finite_float("l1", self.l1)
        if l1 < 0:
            raise ValueError(f"l1 must be zero or positive, got {self.l1!r}: use l1=0 for no L1.")
        object.__setattr__(self, "l1", l1)

    def kernel(self, dimension: int, n_outputs: int = 1) -> Separable:
        return _separable(self.lam, l1=self.l1)


@dataclass(frozen=True)
class NonNegative(Regularizer):
    """``g(x) = lam/2 |x|^2`` where every coefficient is zero or positive, else +inf.

    Parameters
    ----------
    lam : float
        Weight of the squared norm, positive.
    """

    def kernel(self, dimension: int, n_outputs: int = 1) -> Separable:
        return _separable(self.lam, low=np.zeros(1))


@dataclass(frozen=True, eq=False)
class Box(Regularizer):
    """``g(x) = lam/2 |x|^2`` where ``low <= x <= high`` in every coefficient, else +inf.

    Parameters
    ----------
    lam : float
        Weight of the squared norm, positive.
    low, high : float or array of shape (d,)
        The bounds, one for all features or one per feature; -inf and +inf mean no bound. With K
        outputs a feature has the same bounds in each. ``low == high`` fixes a coefficient.
    """

    low: ArrayLike
    high: ArrayLike

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = _bound("low", self.low), _bound("high", self.high)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise ValueError(
                f"low and high must have the same length, got {low.size} and {high.size}: give "
                "one bound per feature, or a single number."
            )
        empty = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
        if empty.size:
            first = int(empty[0])
            at = f" in feature {first}" if low.ndim or high.ndim else ""
            pair = [float(np.broadcast_to(b, max(low.size, high.size))[first]) for b in (low, high)]
            raise ValueError(
                f"low must not exceed high, and there must be a finite number between them; got "
                f"low={pair[0]!r}, high={pair[1]!r}{at}: are they swapped?"
            )
        for name, bound in (("low", low), ("high", high)):
            bound.setflags(write=False)
            object.__setattr__(self, name, bound if bound.ndim else float(bound))

    def kernel(self, dimension: int, n_outputs: int = 1) -> Separable:
        bounds = np.asarray(self.low), np.asarray(self.high)
        if not any(bound.ndim for bound in bounds):
            return _separable(self.lam, low=bounds[0].reshape(1), high=bounds[1].reshape(1))
        for name, bound in zip(("low", "high"), bounds, strict=True):
            if bound.ndim and bound.size != dimension:
                raise ValueError(
                    f"{name} has {bound.size} entries but there are {dimension} features: give "
                    "one per feature, or a single number."
                )
        low, high = (np.repeat(np.broadcast_to(b, dimension), n_outputs) for b in bounds)
        return Separable(self.lam, 0.0, low, high, stride=1)


@dataclass(frozen=True, eq=False)
class GroupL2(Regularizer):
    """``g(x) = lam/2 |x|^2 + sum_G group_weight_G |x_G|``, with Euclidean norms (not squared).

    Parameters
    ----------
    lam : float
        Weight of the squared norm, positive.
    group_weight : float or array of shape (number of groups,)
        Weight of the norms, one for all groups or one per group in the sorted order of the labels;
        zero or positive.
    groups : integer array of shape (d,)
        The label of the group of each feature. With K outputs a group holds all of them.
    """

    group_weight: ArrayLike
    groups: ArrayLike

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            groups = np.array(self.groups)
        except (TypeError, ValueError) as error:
            raise ValueError(f"groups must be a flat list of integer labels: {error}") from None
        if groups.ndim != 1 or groups.size == 0:
            raise ValueError(
                f"groups must be a non-empty array of shape (d,), got shape {groups.shape}: give "
                "one integer label per feature."
            )
        if groups.dtype.kind not in "iu":
            raise TypeError(f"groups must be integers, got dtype {groups.dtype}: number them.")
        weight = real_array("group_weight", self.group_weight).astype(np.float64)
        count = np.unique(groups).size
        if weight.ndim and weight.shape != (count,):
            raise ValueError(
                f"group_weight has shape {weight.shape} but groups has {count} distinct labels: "
                "give one weight per label in sorted order, or a single number."
            )
        wrong = weight[~(np.isfinite(weight) & (weight >= 0))]
        if wrong.size:
            raise ValueError(
                f"group_weight must be finite and zero or positive, got {float(wrong[0])!r}: use 0 "
                "for a group without a penalty."
            )
        groups.setflags(write=False)
        weight.setflags(write=False)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "group_weight", weight if weight.ndim else float(weight))

    def kernel(self, dimension: int, n_outputs: int = 1) -> Grouped:
        labels, group = np.unique(np.asarray(self.groups), return_inverse=True)
        if group.size != dimension:
            raise ValueError(
                f"groups has {group.size} labels but there are {dimension} features: give one "
                "label per feature."
            )
        size = dimension * n_outputs
        index = np.int32 if size <= np.iinfo(np.int32).max else np.int64
        group = np.repeat(group, n_outputs)
        start = np.zeros(labels.size + 1, dtype=index)
        np.cumsum(np.bincount(group), out=start[1:])
        weight = np.array(np.broadcast_to(np.asarray(self.group_weight), labels.shape))
        members = np.argsort(group, kind="stable").astype(index)
        return Grouped(self.lam, weight, group.astype(index), members, start)


class Custom(Regularizer):
    """``g(x) = sum_j h(x_j)`` for a function h that you write in plain Python; it runs compiled.

    Parameters
    ----------
    lam : float
        Strong convexity of h, positive. h is the full term: ``lam/2 x^2`` is part of it.
    value : callable
        ``value(x) -> h(x)`` of one float; ``math.inf`` outside the domain.
    prox : callable
        ``prox(u, tau) -> argmin_x h(x) + (x - u)^2 / (2 tau)``.
    conjugate : callable
        ``conjugate(s) -> max_x s x - h(x)``.
    conjugate_gradient : callable, optional
        ``conjugate_gradient(s) -> argmax_x s x - h(x)``. By default it is found with ``prox`` at
        large values of ``tau``.

    Notes
    -----
    The certificate of a solution is as right as these functions: call `check` once.
    """

    _given: tuple[Any, Any, Any, Any]

    def __init__(
        self,
        lam: float,
        value: Callable[[float], float],
        prox: Callable[[float, float], float],
        conjugate: Callable[[float], float],
        conjugate_gradient: Callable[[float], float] | None = None,
    ) -> None:
        super().__init__(lam)
        object.__setattr__(self, "_given", (value, prox, conjugate, conjugate_gradient))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lam, *self._given)

    def __repr__(self) -> str:
        names = (getattr(f, "__name__", repr(f)) for f in self._given if f is not None)
        return f"Custom(lam={self.lam!r}, {', '.join(names)})"

    def kernel(self, dimension: int, n_outputs: int = 1) -> UserSeparable:
        # Without the leading None numba takes the tuple for one of function pointers, and warns.
        return UserSeparable(self.lam, (None, *self.compiled()))

    def compiled(self) -> tuple[Any, Any, Any, Any]:
        """The compiled (prox, value, conjugate, conjugate_gradient)."""
        return self._functions

    @cached_property
    def _functions(self) -> tuple[Any, Any, Any, Any]:
        from ._kernels.user_functions import compile_regularizer

        functions: tuple[Any, Any, Any, Any] = compile_regularizer(self._given, self.lam)
        return functions

    def _compiled(self, name: str) -> Any:
        from ._kernels._jit import uncached

        return uncached(super()._compiled(name))

    def check(self) -> None:
        """Raise ValueError where the functions contradict each other on a few dozen points."""
        check_regularizer(self.compiled(), self.lam)


def _separable(
    lam: float, l1: float = 0.0, low: Array | None = None, high: Array | None = None
) -> Separable:
    below = np.array([-np.inf]) if low is None else np.array(low)
    above = np.array([np.inf]) if high is None else np.array(high)
    return Separable(lam, l1, below, above, stride=0)


def _finite_float(name: str, number: Any) -> float:
    if not is_real(number):
        raise TypeError(f"{name} must be a real number, got {number!r}: give a single float.")
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number!r}: give a finite number.")
    return float(number)


def _bound(name: str, values: ArrayLike) -> Array:
    bound = np.array(real_array(name, values), dtype=np.float64)
    if bound.ndim > 1:
        raise ValueError(
            f"{name} must be a number or have shape (d,), got shape {bound.shape}: give one bound "
            "per feature."
        )
    if np.isnan(bound).any():
        raise ValueError(f"{name} must not be NaN, got {values!r}: use -inf or inf for no bound.")
    return bound
