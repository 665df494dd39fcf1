"""Loss functions phi of one row, together with their convex conjugates phi*.

The solver only touches a loss through phi, phi*, phi' and the proximal operator of phi*. A built-in
loss is a number for the compiled kernels plus two parameters; :class:`Custom` and
:class:`CustomBlock` carry a user's own functions instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _codes
from ._arguments import is_real
from ._laws import check_loss
from ._loss import Conjugate, Loss, require_positive

__all__ = [
    "Conjugate",
    "Custom",
    "CustomBlock",
    "Huber",
    "Logistic",
    "Loss",
    "MultiOutputSquared",
    "Multinomial",
    "SmoothCrammerSinger",
    "SmoothEpsilonInsensitive",
    "SmoothHinge",
    "SmoothPinball",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]

Floats: TypeAlias = NDArray[np.float64]
ScalarFunction: TypeAlias = Callable[..., Any]


def _require_between(owner: str, name: str, value: object, low: float, high: float) -> None:
    if not (is_real(value) and low < value < high):  # type: ignore[operator]
        msg = f"{owner}: {name} must lie strictly between {low:g} and {high:g}, got {value!r}"
        raise ValueError(msg)


def _require_width(owner: str, epsilon: object, limit: str) -> None:
    if not (is_real(epsilon) and 0.0 <= epsilon < math.inf):  # type: ignore[operator]
        msg = f"{owner}: epsilon must be finite and at least 0, got {epsilon!r}; epsilon=0 {limit}"
        raise ValueError(msg)


# --- The built-in losses ---


@dataclass(frozen=True)
class Squared(Loss):
    """phi(z) = (z - b)^2 / 2."""

    name: ClassVar[str] = "squared"
    code: ClassVar[int] = _codes.SQUARED


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """max(0, 1 - bz) with its corner rounded over a margin of width ``gamma``; b = -1 or +1.

    phi*(y) = by + gamma y^2 / 2 for -1 <= by <= 0. It exceeds the hinge nowhere and falls short of
    it by at most gamma/2.
    """

    gamma: float = 1.0
    name: ClassVar[str] = "smooth hinge"
    code: ClassVar[int] = _codes.SMOOTH_HINGE
    kind: ClassVar[str] = "binary"

    def __post_init__(self) -> None:
        require_positive("SmoothHinge", "gamma", self.gamma)

    @property
    def params(self) -> tuple[float, float]:
        """(gamma, unused)."""
        return float(self.gamma), 0.0


@dataclass(frozen=True)
class Logistic(Loss):
    """phi(z) = log(1 + exp(-bz)), b = -1 or +1; gamma = 4."""

    name: ClassVar[str] = "logistic"
    code: ClassVar[int] = _codes.LOGISTIC
    kind: ClassVar[str] = "binary"

    @property
    def gamma(self) -> float:
        """Strong convexity of phi*."""
        return 4.0


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """phi(z) = max(0, 1 - bz)^2 / 2, b = -1 or +1 (half of liblinear's L2 loss)."""

    name: ClassVar[str] = "squared hinge"
    code: ClassVar[int] = _codes.SQUARED_HINGE
    kind: ClassVar[str] = "binary"


@dataclass(frozen=True)
class Huber(Loss):
    """(z - b)^2 / 2 where abs(z - b) <= delta, delta abs(z - b) - delta^2 / 2 elsewhere."""

    delta: float = 1.0
    name: ClassVar[str] = "huber"
    code: ClassVar[int] = _codes.HUBER

    def __post_init__(self) -> None:
        require_positive("Huber", "delta", self.delta)

    @property
    def params(self) -> tuple[float, float]:
        """(delta, unused)."""
        return float(self.delta), 0.0


@dataclass(frozen=True)
class SmoothPinball(Loss):
    """Quantile loss q max(b - z, 0) + (1 - q) max(z - b, 0), its corner rounded by ``gamma``.

    phi*(y) = by + gamma y^2 / 2 for -q <= y <= 1 - q; at most gamma/2 max(q, 1-q)^2 below the
    quantile loss.
    """

    quantile: float = 0.5
    gamma: float = 1.0
    name: ClassVar[str] = "smooth pinball"
    code: ClassVar[int] = _codes.SMOOTH_PINBALL

    def __post_init__(self) -> None:
        _require_between("SmoothPinball", "quantile", self.quantile, 0.0, 1.0)
        require_positive("SmoothPinball", "gamma", self.gamma)

    @property
    def params(self) -> tuple[float, float]:
        """(quantile, gamma)."""
        return float(self.quantile), float(self.gamma)


@dataclass(frozen=True)
class SmoothEpsilonInsensitive(Loss):
    """max(abs(z - b) - epsilon, 0) with its two corners rounded by ``gamma``.

    phi*(y) = by + epsilon abs(y) + gamma y^2 / 2 for -1 <= y <= 1.
    """

    epsilon: float = 0.1
    gamma: float = 1.0
    name: ClassVar[str] = "smooth epsilon-insensitive"
    code: ClassVar[int] = _codes.SMOOTH_EPSILON_INSENSITIVE

    def __post_init__(self) -> None:
        limit = "gives a smoothed absolute loss"
        _require_width("SmoothEpsilonInsensitive", self.epsilon, limit)
        require_positive("SmoothEpsilonInsensitive", "gamma", self.gamma)

    @property
    def params(self) -> tuple[float, float]:
        """(epsilon, gamma)."""
        return float(self.epsilon), float(self.gamma)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """phi(z) = max(abs(z - b) - epsilon, 0)^2 / 2 (half of liblinear's L2 loss).

    phi*(y) = by + epsilon abs(y) + y^2 / 2.
    """

    epsilon: float = 0.1
    name: ClassVar[str] = "squared epsilon-insensitive"
    code: ClassVar[int] = _codes.SQUARED_EPSILON_INSENSITIVE

    def __post_init__(self) -> None:
        _require_width("SquaredEpsilonInsensitive", self.epsilon, "is the squared loss")

    @property
    def params(self) -> tuple[float, float]:
        """(epsilon, unused)."""
        return float(self.epsilon), 0.0


@dataclass(frozen=True)
class Multinomial(Loss):
    """phi(z) = log(sum_k exp(z_k)) - z_b for class index b; gamma = 2."""

    name: ClassVar[str] = "multinomial"
    code: ClassVar[int] = _codes.MULTINOMIAL
    kind: ClassVar[str] = "multiclass"

    @property
    def gamma(self) -> float:
        """Strong convexity of phi* (the Hessian of phi is at most 1/2)."""
        return 2.0


@dataclass(frozen=True)
class MultiOutputSquared(Loss):
    """phi(z) = |z - b|^2 / 2 for a vector of targets b."""

    name: ClassVar[str] = "multi-output squared"
    code: ClassVar[int] = _codes.SQUARED
    kind: ClassVar[str] = "multioutput"


@dataclass(frozen=True)
class SmoothCrammerSinger(Loss):
    """max_k (z_k - z_b + [k != b]), the multiclass hinge, rounded by ``gamma``.

    phi*(y) = -sum_{k != b} y_k + gamma/2 |y|^2 where y + e_b lies in the unit simplex.
    """

    gamma: float = 1.0
    name: ClassVar[str] = "smooth crammer-singer"
    code: ClassVar[int] = _codes.SMOOTH_CRAMMER_SINGER
    kind: ClassVar[str] = "multiclass"

    def __post_init__(self) -> None:
        require_positive("SmoothCrammerSinger", "gamma", self.gamma)

    @property
    def params(self) -> tuple[float, float]:
        """(gamma, unused)."""
        return float(self.gamma), 0.0


# --- A user's own losses ---


class Custom(Loss):
    """A loss of one number, given as plain Python functions of floats that numba can compile.

    Parameters
    ----------
    value : callable ``(z, t)``
        phi(z) for target t.
    conjugate : callable ``(y, t)``
        phi*(y) = max_z yz - phi(z); ``math.inf`` outside its domain.
    prox : callable ``(v, sigma, t)``
        argmin_u sigma phi*(u) + (u - v)^2 / 2, a point of the domain.
    gamma : float
        Strong convexity of phi* (phi has a 1/gamma-Lipschitz derivative).
    derivative : callable ``(z, t)``, optional
        phi'(z); by default a very long step of ``prox``, good to eight digits.
    name : str
        How messages call the loss.
    kind : {"regression", "binary"}
        What targets are: numbers, or two classes that become -1 and +1.
    """

    _kinds: ClassVar[tuple[str, ...]] = ("regression", "binary")
    _is_block: ClassVar[bool] = False

    def __init__(
        self,
        value: ScalarFunction,
        conjugate: ScalarFunction,
        prox: ScalarFunction,
        gamma: float,
        derivative: ScalarFunction | None = None,
        name: str = "custom",
        kind: str | None = None,
    ) -> None:
        owner = type(self).__name__
        require_positive(owner, "gamma", gamma)
        kind = self._kinds[0] if kind is None else kind
        if kind not in self._kinds:
            msg = f"{owner}: kind must be one of {self._kinds}, got {kind!r}"
            raise ValueError(msg)
        given = {"value": value, "conjugate": conjugate, "prox": prox, "derivative": derivative}
        for role, function in given.items():
            if not callable(function) and not (role == "derivative" and function is None):
                msg = f"{owner}: {role} must be a function, got {function!r}"
                raise TypeError(msg)
        self._functions = (value, conjugate, prox, derivative)
        self._gamma = float(gamma)
        self.name = name  # type: ignore[misc]
        self.kind = kind  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, gamma={self._gamma!r})"

    @property
    def gamma(self) -> float:
        """Strong convexity of phi*."""
        return self._gamma

    def compiled(self) -> tuple[Any, Any, Any, Any]:
        """The named tuple (value, conjugate, prox, derivative) compiled, on first use.

        Raises
        ------
        TypeError
            Where numba cannot compile one of them, naming it and the reason.
        """
        from ._kernels.user_functions import compile_loss

        functions: tuple[Any, Any, Any, Any] = compile_loss(self._functions, self._is_block)
        return functions

    def check(self) -> None:
        """Test the laws that convergence and the certificate rest on, at a few points.

        Raises
        ------
        ValueError
            With the law that fails and the numbers at which it does.
        """
        check_loss(self)

    def _run(self, function: str, *arrays: Floats) -> None:
        compiled = getattr(self.compiled(), function)
        *inputs, out = arrays
        for i in range(out.shape[0]):
            row = [array[i] for array in inputs]
            if not self._is_block:
                results = [compiled(*numbers) for numbers in zip(*_widened(row), strict=True)]
                out[i] = sum(results) if out.ndim == 1 else results
            elif out.ndim == 1:
                out[i] = compiled(*row)
            else:
                compiled(*row, out[i])


class CustomBlock(Custom):
    """A loss of a whole vector, given as Python functions of one-dimensional float64 arrays.

    As :class:`Custom`, except that ``z``, ``y``, ``v`` and ``t`` are arrays, ``prox(v, sigma, t,
    out)`` and ``derivative(z, t, out)`` write their answer into ``out``, and ``kind`` is
    "multioutput" (t has one number per output) or "multiclass" (t holds the class index alone).
    """

    _kinds: ClassVar[tuple[str, ...]] = ("multioutput", "multiclass")
    _is_block: ClassVar[bool] = True


def _widened(row: list[Any]) -> list[Any]:
    """Repeat a step size, one number, for each coordinate of the row."""
    return [x if np.ndim(x) else np.full(row[0].shape, x) for x in row]
