"""What every loss offers, alone and as the conjugate phi_i* of one block of a problem."""

from __future__ import annotations

import math
import sys
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arguments import is_real, real_array
from ._targets import encode

Floats: TypeAlias = NDArray[np.float64]


def require_positive(owner: str, name: str, value: object) -> None:
    """Raise ValueError naming the parameter ``name`` of ``owner``."""
    if not (is_real(value) and 0 < value < math.inf):  # type: ignore[operator]
        msg = f"{owner}: {name} must be a positive finite number, got {value!r}; try {name}=1.0"
        raise ValueError(msg)


def _writable(array: ArrayLike) -> Floats:
    """A C-ordered writable float64 array: the one array type the row kernels are compiled for."""
    return np.require(np.asarray(array, dtype=np.float64), requirements=["C", "W"])


class Loss:
    """What every loss offers; ``target`` is an encoded target (see :meth:`encode_targets`).

    ``gamma`` is the modulus of strong convexity of phi*, so phi has a 1/gamma-Lipschitz gradient.
    Losses of a scalar act elementwise on arrays of any shape; losses of a vector act on the last
    axis of ``z`` and want one class index (or one row of targets) per vector.
    """

    name: ClassVar[str] = ""
    code: ClassVar[int] = -1
    kind: ClassVar[str] = "regression"

    @property
    def gamma(self) -> float:
        """Strong convexity of phi*."""
        return 1.0

    @property
    def params(self) -> tuple[float, float]:
        """The two numbers that the kernels take beside ``code``."""
        return 0.0, 0.0

    @property
    def couples_outputs(self) -> bool:
        """Whether a block holds one class index instead of one target per coordinate."""
        return self.kind == "multiclass"

    @property
    def is_scalar(self) -> bool:
        """Whether phi is a function of one number."""
        return self.kind in ("regression", "binary")

    def value(self, z: ArrayLike, target: ArrayLike) -> Any:
        """phi(z), per element (scalar losses) or per vector on the last axis."""
        return self._map_to_numbers("value", z, target)

    def conjugate(self, y: ArrayLike, target: ArrayLike) -> Any:
        """phi*(y), +inf outside its domain."""
        return self._map_to_numbers("conjugate", y, target)

    def derivative(self, z: ArrayLike, target: ArrayLike) -> Any:
        """phi'(z), or the gradient for a loss of a vector."""
        rows, targets, shape = self._as_rows(z, target)
        out = np.empty_like(rows)
        self._run("derivative", rows, targets, out)
        return out.reshape(shape)[()]

    def prox(self, v: ArrayLike, sigma: ArrayLike, target: ArrayLike) -> Any:
        """argmin_u sigma phi*(u) + |u - v|^2 / 2; one sigma per element or per vector."""
        if self.is_scalar:
            shape = np.broadcast_shapes(np.shape(v), np.shape(sigma), np.shape(target))
            v, sigma, target = (np.broadcast_to(a, shape) for a in (v, sigma, target))
        rows, targets, shape = self._as_rows(v, target)
        steps_shape = shape if self.is_scalar else shape[:-1]
        steps = _writable(np.broadcast_to(np.asarray(sigma), steps_shape))
        if not np.all(steps > 0):
            msg = f"sigma must be positive, got {float(steps.min())!r}"
            raise ValueError(msg)
        out = np.empty_like(rows)
        self._run("prox", rows, steps.reshape(-1), targets, out)
        return out.reshape(shape)[()]

    def encode_targets(self, y: ArrayLike, n: int) -> tuple[Floats, NDArray[Any] | None]:
        """Targets as the kernels want them, and the original classes (None unless classifying).

        Parameters
        ----------
        y : array_like of shape (n,), or (n, K) for several outputs
            Numbers; for classification also booleans or strings.
        n : int
            Number of rows of the data.

        Returns
        -------
        encoded : ndarray of float64, one-dimensional
            The numbers themselves (row after row for several outputs); -1 and +1 for two classes,
            the larger class being +1; the class index for several classes. No copy is made of an
            array that is already in this form.
        labels : ndarray or None
            The classes in increasing order.
        """
        return encode(y, n, self.kind, self.name)

    def n_outputs(self, encoded: Floats, n: int | None = None) -> int:
        """Outputs per row: 1 for a scalar loss, else the number of classes or of columns.

        ``n``, the number of rows, is needed only when there is one target per output.
        """
        if self.is_scalar:
            return 1
        if self.couples_outputs:
            return max(2, int(encoded.max()) + 1)
        if n is None:
            msg = f"n (the number of rows) is needed to count the outputs of {self.name}"
            raise ValueError(msg)
        return encoded.size // n

    def at(self, targets: ArrayLike = 0.0, weight: float = 1.0) -> Conjugate:
        """phi_i* of a block with phi_i(z) = weight * sum_k phi(z_k; targets_k)."""
        return Conjugate(self, targets, weight)

    def _map_to_numbers(self, function: str, z: ArrayLike, target: ArrayLike) -> Any:
        rows, targets, shape = self._as_rows(z, target)
        out = np.empty(rows.shape[0])
        self._run(function, rows, targets, out)
        return out.reshape(shape if self.is_scalar else shape[:-1])[()]

    def _as_rows(self, z: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats, tuple[int, ...]]:
        """(rows, targets of each row, shape of z), both two-dimensional."""
        if self.is_scalar:
            shape = np.broadcast_shapes(np.shape(z), np.shape(target))
            points, goals = (
                np.broadcast_to(np.asarray(a, dtype=np.float64), shape) for a in (z, target)
            )
            self._check_targets(goals, 1)
            return _writable(points).reshape(-1, 1), _writable(goals).reshape(-1, 1), points.shape
        points = np.asarray(z, dtype=np.float64)
        if points.ndim == 0 or points.shape[-1] == 0:
            msg = f"z must have one entry per output of {self.name} on its last axis, got {z!r}"
            raise ValueError(msg)
        goals = np.asarray(target, dtype=np.float64)
        if self.couples_outputs:
            goals = np.broadcast_to(goals, points.shape[:-1])
        else:
            whole = goals.size == points.size
            goals = goals.reshape(points.shape) if whole else np.broadcast_to(goals, points.shape)
        width = points.shape[-1]
        self._check_targets(goals, width)
        rows = _writable(points).reshape(-1, width)
        return rows, _writable(goals).reshape(rows.shape[0], -1), points.shape

    def _check_targets(self, targets: NDArray[Any], width: int) -> None:
        if self.kind == "binary" and not np.all(np.abs(targets) == 1.0):
            msg = f"targets of {self.name} must be -1 or +1, got {targets!r}; see encode_targets"
            raise ValueError(msg)
        indices = self.couples_outputs and not np.all(
            (targets >= 0) & (targets < width) & (targets == np.floor(targets))
        )
        if indices:
            msg = (
                f"targets of {self.name} must be class indices 0..{width - 1} for {width} outputs, "
                f"got {targets!r}; see encode_targets"
            )
            raise ValueError(msg)

    def _run(self, function: str, *arrays: Floats) -> None:
        from ._kernels import losses

        getattr(losses, f"rows_{function}")(self.code, *self.params, *arrays)


class Conjugate:
    """phi_i*, the conjugate of phi_i(z) = weight * sum_k phi(z_k; targets_k) of one block.

    Parameters
    ----------
    loss : Loss
        A loss of a vector stands for the whole sum.
    targets : array_like
        A number, or one per coordinate, encoded (-1/+1 for two classes); a class index for a loss
        of a vector.
    weight : float
        Positive factor; ``gamma`` becomes ``loss.gamma / weight``.
    """

    def __init__(self, loss: Loss, targets: ArrayLike = 0.0, weight: float = 1.0) -> None:
        require_positive(f"{loss.name} loss", "weight", weight)
        values = _writable(real_array("targets", targets))
        if values.ndim > 1 or values.size == 0 or not np.isfinite(values).all():
            msg = f"targets must be finite numbers, one or one per coordinate, got {targets!r}"
            raise ValueError(msg)
        if loss.couples_outputs and values.size != 1:
            msg = f"targets of {loss.name} must be one class index, got {targets!r}"
            raise ValueError(msg)
        loss._check_targets(values, sys.maxsize)
        self.loss = loss
        self.targets = values.reshape(-1)
        self.weight = float(weight)

    def __repr__(self) -> str:
        return f"Conjugate({self.loss!r}, targets={self.targets!r}, weight={self.weight!r})"

    @property
    def gamma(self) -> float:
        """Strong convexity of phi_i*."""
        return self.loss.gamma / self.weight

    def targets_for(self, size: int) -> Floats:
        """The targets of a block of ``size`` coordinates, one number per coordinate.

        A class index stands first, with zeros behind it.
        """
        if not self.loss.couples_outputs:
            return self._block(np.zeros(size))[1].reshape(-1)
        self.loss._check_targets(self.targets, size)
        return np.append(self.targets, np.zeros(size - 1))

    def value(self, y: ArrayLike) -> float:
        """phi_i*(y)."""
        return self._number("conjugate", _writable(y) / self.weight)

    def primal_value(self, z: ArrayLike) -> float:
        """phi_i(z)."""
        return self._number("value", z)

    def derivative(self, z: ArrayLike) -> Floats:
        """The gradient of phi_i at z."""
        row, targets = self._block(z)
        out = np.empty_like(row)
        self.loss._run("derivative", row, targets, out)
        out *= self.weight
        return out.reshape(-1)

    def prox(self, v: ArrayLike, sigma: float) -> Floats:
        """argmin_u sigma phi_i*(u) + |u - v|^2 / 2."""
        require_positive("prox", "sigma", sigma)
        row, targets = self._block(_writable(v) / self.weight)
        out = np.empty_like(row)
        self.loss._run("prox", row, np.array([sigma / self.weight]), targets, out)
        out *= self.weight
        return out.reshape(-1)

    def _number(self, function: str, point: ArrayLike) -> float:
        row, targets = self._block(point)
        out = np.empty(1)
        self.loss._run(function, row, targets, out)
        return self.weight * float(out[0])

    def _block(self, point: ArrayLike) -> tuple[Floats, Floats]:
        row = np.atleast_1d(_writable(point))
        if row.ndim != 1 or row.size == 0:
            msg = f"a block takes a vector, got an array of shape {np.shape(point)}"
            raise ValueError(msg)
        if self.loss.couples_outputs:
            self.loss._check_targets(self.targets, row.size)
            return row[None], self.targets[None]
        if self.targets.size not in (1, row.size):
            msg = (
                f"the block has {row.size} coordinates but {self.targets.size} targets; "
                "give one target, or one per coordinate"
            )
            raise ValueError(msg)
        return row[None], _writable(np.broadcast_to(self.targets, row.shape))[None]
