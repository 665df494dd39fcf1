"""Blocks that are linear operators: their checks, their norms, and how each answers the solver.

Nothing here is compiled. A block is a pair of Python functions and a conjugate with a few methods,
so an iteration costs some Python calls and O(d) work on top of the operator's own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._norms import WHOLE_LIMIT, operator_norm
from .losses import Conjugate, Custom

Floats = NDArray[np.float64]

_ORDINARY = 1e100
"""Not finite for an argument below this is a mistake, above it may be a run that diverges."""
_ADJOINT_TOLERANCE = 1e-6
"""Passes operators that compute in float32; a worse pair would show in the certificate."""
_LAW_TOLERANCE = 1e-6
_MATERIALISED = 10_000_000
"""Most entries of all blocks stacked that are held for a moment to find the exact norm."""
UNCOMPILED = (
    "blocks that are LinearOperators (scipy.sparse.linalg.aslinearoperator(block)) take conjugates "
    "that are not compiled, at the speed of Python"
)
_REQUIRED = ("gamma", "value", "primal_value", "prox")


class ConjugateLike(Protocol):
    """What a user's own phi_i* must offer; `losses.Conjugate` does.

    ``gamma`` is its strong convexity, ``value(y)`` is phi_i*(y), ``primal_value(z)`` is phi_i(z)
    and ``prox(v, sigma)`` is ``argmin_u sigma phi_i*(u) + |u - v|^2 / 2``, all on vectors of length
    q_i. ``derivative(z)``, the gradient of phi_i, is optional. Any weight is part of these
    functions.
    """

    @property
    def gamma(self) -> float:
        """Strong convexity of phi_i*."""

    def value(self, y: Floats) -> float:
        """phi_i*(y), +inf outside its domain."""

    def primal_value(self, z: Floats) -> float:
        """phi_i(z)."""

    def prox(self, v: Floats, sigma: float) -> Any:
        """A point of the domain of phi_i*."""


class Operators(NamedTuple):
    """Takes the place of the rows of a matrix in `Blocks`: a list of `Block`."""

    blocks: list[Block]


class Block:
    """One operator with its conjugate: calls both, and says which block gave a bad answer.

    ``weight`` is that of a `Conjugate`, whose methods are called without it, so that its dual value
    is the one the kernels keep; ``own`` is where that value stands in the stacked dual vector.
    """

    def __init__(self, number: int, operator: Any, conjugate: Any, own: slice) -> None:
        self._number = number
        self._operator = operator
        self._conjugate = _executable(conjugate, own.stop - own.start)
        self.weight = weight_of(conjugate)
        self.own = own
        if not isinstance(conjugate, Conjugate):
            _check_laws(self)

    @property
    def gamma(self) -> float:
        """Strong convexity of the conjugate without its weight."""
        return float(self._conjugate.gamma)

    def margins(self, x: Floats) -> Floats:
        """``A_i^T x``."""
        return self._finite(
            f"blocks[{self._number}].matvec", self._operator.matvec(_shown(x)), x, self._size
        )

    def image(self, y: Floats) -> Floats:
        """``A_i y``."""
        width = int(self._operator.shape[1])
        return self._finite(
            f"blocks[{self._number}].rmatvec", self._operator.rmatvec(_shown(y)), y, width
        )

    def value(self, y: Floats) -> float:
        """phi_i*(y), without the weight."""
        return float(self._conjugate.value(_shown(y)))

    def primal_value(self, z: Floats) -> float:
        """phi_i(z), without the weight."""
        return float(self._conjugate.primal_value(_shown(z)))

    def prox(self, v: Floats, sigma: float) -> Floats:
        """argmin_u sigma phi_i*(u) + |u - v|^2 / 2."""
        given = self._conjugate.prox(_shown(v), sigma)
        return self._finite(f"conjugates[{self._number}].prox", given, v, self._size)

    def derivative(self, z: Floats) -> Floats:
        """The gradient of phi_i; where it is not given, the limit of long proximal steps."""
        derivative = getattr(self._conjugate, "derivative", None)
        if derivative is not None:
            name = f"conjugates[{self._number}].derivative"
            return self._finite(name, derivative(_shown(z)), z, self._size)
        sigma = 1e6 / self.gamma
        slope = np.zeros(z.size)
        for _ in range(3):  # each a million times as close
            slope = self.prox(slope + sigma * z, sigma)
        return slope

    @property
    def _size(self) -> int:
        return int(self.own.stop - self.own.start)

    def _finite(self, name: str, result: Any, given: Floats, size: int) -> Floats:
        """The answer as a vector of our own; an error where it can be none."""
        answer = np.array(result, dtype=np.float64)
        if answer.shape != (size,):
            raise ValueError(
                f"{name} returned an array of shape {answer.shape}; it must have shape ({size},)"
            )
        if not np.isfinite(answer).all() and bool(np.abs(given).max() < _ORDINARY):
            raise ValueError(f"{name} returned NaN or infinity for a finite vector; check it")
        return answer


def as_blocks(operators: list[Any], conjugates: list[Any], start: NDArray[Any]) -> Operators:
    """The operators with their conjugates, each owning a piece of the stacked dual vector."""
    own = [slice(a, b) for a, b in pairwise(start.tolist())]
    parts = zip(operators, conjugates, own, strict=True)
    return Operators([Block(i, *part) for i, part in enumerate(parts)])


def _shown(vector: Floats) -> Floats:
    """A view that foreign code cannot write to."""
    view = vector.view()
    view.flags.writeable = False
    return view


# --- conjugates ---------------------------------------------------------------------------------


def missing_methods(conjugate: object) -> list[str]:
    """What an object lacks to serve as a conjugate."""
    if isinstance(conjugate, type):
        return list(_REQUIRED)
    return [name for name in _REQUIRED if not hasattr(conjugate, name)]


def check_conjugate(conjugate: Any, name: str, compiled: bool) -> None:
    """Refuse what is no conjugate, or none for blocks that are compiled."""
    if isinstance(conjugate, Conjugate):
        return
    missing = missing_methods(conjugate)
    if not missing and compiled:
        raise TypeError(
            f"{name} is an object of type {type(conjugate).__name__}, whose methods cannot be "
            "compiled: blocks that are matrices take losses.Custom(...).at(targets) for your own "
            f"functions; {UNCOMPILED}"
        )
    if compiled or len(missing) == len(_REQUIRED):
        hint = f"{conjugate.__name__}()" if isinstance(conjugate, type) else repr(conjugate)[:80]
        raise TypeError(
            f"{name} must be a Conjugate from a loss, e.g. losses.Squared().at(targets); got {hint}"
        )
    if missing:
        raise TypeError(f"{name} ({type(conjugate).__name__}) lacks {', '.join(missing)}")


def weight_of(conjugate: Any) -> float:
    """The weight of a `Conjugate`; other objects have theirs inside their functions."""
    return conjugate.weight if isinstance(conjugate, Conjugate) else 1.0


def plain_gamma(conjugate: Any) -> float:
    """Strong convexity of phi_i*, without the weight of a `Conjugate`."""
    return float(conjugate.loss.gamma if isinstance(conjugate, Conjugate) else conjugate.gamma)


def _executable(conjugate: Any, size: int) -> Any:
    """A conjugate without its weight; in plain Python if it is a `Custom` numba cannot compile."""
    if not isinstance(conjugate, Conjugate):
        return conjugate
    if isinstance(conjugate.loss, Custom):
        try:
            conjugate.loss.compiled()
        except TypeError:
            return _Uncompiled(conjugate.loss, conjugate.targets_for(size))
    return Conjugate(conjugate.loss, conjugate.targets)


class _Uncompiled:
    """A user's loss as the Python functions that were given."""

    def __init__(self, loss: Custom, targets: Floats) -> None:
        self.gamma = loss.gamma
        self._value, self._conjugate, self._prox, slope = loss._functions
        self._whole = loss._is_block
        self._targets = targets[:1] if loss.couples_outputs else targets
        if slope is not None:
            self.derivative = lambda z: self._vector(slope, z)

    def value(self, y: Floats) -> float:
        return self._number(self._conjugate, y)

    def primal_value(self, z: Floats) -> float:
        return self._number(self._value, z)

    def prox(self, v: Floats, sigma: float) -> Floats:
        return self._vector(self._prox, v, sigma)

    def _number(self, function: Any, point: Floats) -> float:
        if self._whole:
            return float(function(point, self._targets))
        pairs = zip(point.tolist(), self._targets.tolist(), strict=True)
        return float(sum(function(number, target) for number, target in pairs))

    def _vector(self, function: Any, point: Floats, *step: float) -> Floats:
        out = np.empty(point.size)
        if self._whole:
            function(point, *step, self._targets, out)
            return out
        pairs = zip(point.tolist(), self._targets.tolist(), strict=True)
        out[:] = [function(number, *step, target) for number, target in pairs]
        return out


def _check_laws(block: Block) -> None:
    """Refuse functions that belong to different phi: the certificate rests on them.

    With p = prox(v, 1), v - p is a subgradient of phi* at p, so phi*(p) + phi(v - p) = <v - p, p>.
    """
    name = f"conjugates[{block._number}]"
    if not 0.0 < block.gamma < np.inf:
        raise ValueError(
            f"{name}.gamma is {block.gamma}; it must be the strong convexity of phi_i*, a positive "
            "number (phi_i has a 1/gamma-Lipschitz gradient)"
        )
    random = np.random.default_rng(0)
    for size in (1.0, 10.0):
        v = size * random.standard_normal(block._size)
        p = block.prox(v, 1.0)
        z = v - p
        terms = block.value(p), block.primal_value(z), -float(z @ p)
        if not abs(sum(terms)) <= _LAW_TOLERANCE * (1.0 + sum(map(abs, terms))):
            raise ValueError(
                f"{name} contradicts itself: with v={v}, p=prox(v, 1)={p} and z=v-p, value(p) "
                f"+ primal_value(z) = {terms[0]:.6g} + {terms[1]:.6g} should be <z, p> = "
                f"{-terms[2]:.6g}; all three must belong to the same phi_i"
            )


# --- operators ----------------------------------------------------------------------------------


def operator_norms(operators: list[Any]) -> Floats:
    """Norm of every operator, exact or an upper bound, after a check that it is one."""
    for i, operator in enumerate(operators):
        _check_operator(i, operator)
    return np.array([operator_norm(op, f"blocks[{i}]")[0] for i, op in enumerate(operators)])


def _check_operator(number: int, operator: Any) -> None:
    """Shapes, and ``<A x, y> = <x, A^T y>`` for random x and y."""
    name = f"blocks[{number}]"
    q, d = operator.shape
    random = np.random.default_rng(number)
    x, y = random.standard_normal(d), random.standard_normal(q)
    forward = _tried(f"{name}.matvec", operator.matvec, x, q)
    backward = _tried(f"{name}.rmatvec", operator.rmatvec, y, d)
    left, right = float(forward @ y), float(x @ backward)
    size = max(
        np.linalg.norm(forward) * np.linalg.norm(y), np.linalg.norm(x) * np.linalg.norm(backward)
    )
    if abs(left - right) > _ADJOINT_TOLERANCE * size:
        raise ValueError(
            f"{name}: matvec and rmatvec are not adjoint to each other: for random x and y, "
            f"<A x, y> = {left:.9g} but <x, A^T y> = {right:.9g}; rmatvec must multiply by the "
            "transpose of what matvec multiplies by"
        )


def _tried(name: str, apply: Any, vector: Floats, size: int) -> Floats:
    try:
        answer = np.array(apply(_shown(vector)))
    except NotImplementedError:
        raise TypeError(
            f"{name} is not implemented; the solver multiplies by the operator and its transpose"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"{name} fails for a vector of shape {vector.shape}: {error}; it must return shape "
            f"({size},)"
        ) from error
    if answer.dtype.kind not in "biuf":
        raise TypeError(f"{name} returned dtype {answer.dtype}; it must return real numbers")
    if not np.isfinite(answer).all():
        raise ValueError(f"{name} returned NaN or infinity for a finite vector; check it")
    return answer.astype(np.float64)


def stacked_norm(operators: list[Any], norms: Floats, scale: Floats) -> float:
    """Norm of all operators stacked, operator i times ``scale[i]``, or an upper bound.

    Exact where few enough numbers are involved, else ``sqrt(sum_i (scale_i |A_i|)^2)``.
    """
    from scipy.sparse.linalg import LinearOperator

    bound = float(np.linalg.norm(scale * norms)) * (1.0 + 1e-12)
    start = np.append(0, np.cumsum([operator.shape[0] for operator in operators]))
    height, width = int(start[-1]), int(operators[0].shape[1])
    if min(height, width) > WHOLE_LIMIT or height * width > _MATERIALISED:
        return bound
    pairs = list(zip(scale, operators, strict=True))

    def forward(x: Floats) -> Floats:
        return np.concatenate([factor * op.matvec(x.ravel()) for factor, op in pairs])

    def backward(y: Floats) -> Floats:
        parts = np.split(y.ravel(), start[1:-1])
        total: Floats = sum(
            (factor * op.rmatvec(part) for (factor, op), part in zip(pairs, parts, strict=True)),
            start=np.zeros(width),
        )
        return total

    stacked = LinearOperator((height, width), forward, backward, dtype=np.float64)
    return min(bound, operator_norm(stacked)[0] * (1.0 + 1e-12))
