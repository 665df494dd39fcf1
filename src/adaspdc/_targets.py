"""Targets as users give them, turned into the numbers that losses take."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arguments import refuse_mask

Floats: TypeAlias = NDArray[np.float64]


def encode(y: ArrayLike, n: int, kind: str, name: str) -> tuple[Floats, NDArray[Any] | None]:
    """Targets as the kernels want them, and the original classes: see `Loss.encode_targets`."""
    array = _as_target_array(y, n, name, columns=kind == "multioutput")
    if kind == "binary":
        return _encode_binary(array, name)
    if kind == "multiclass":
        return _encode_classes(array, name)
    return _encode_numbers(array, name), None


def _as_target_array(y: ArrayLike, n: int, name: str, columns: bool) -> NDArray[Any]:
    """``y`` as an array of a supported type with one row per row of the data."""
    refuse_mask("y", y)
    try:
        array = np.asarray(y)
    except ValueError as error:
        msg = f"y is not a rectangular array: {error}"
        raise ValueError(msg) from error
    if array.dtype == object and array.size and all(isinstance(v, str) for v in array.flat):
        array = array.astype(str)  # how pandas hands over strings
    if array.dtype.kind not in "biufUST":
        msg = (
            f"y has dtype {array.dtype}, but {name} needs real numbers"
            " (or, to classify, strings or booleans); convert it, e.g. with y.astype(float)"
        )
        raise ValueError(msg)
    wanted = f"({n},) or ({n}, number of outputs)" if columns else f"({n},)"
    if array.ndim == 0 or array.ndim > (2 if columns else 1) or array.shape[0] != n:
        flat = array.ndim == 2 and array.shape == (n, 1)
        remedy = "; pass y.ravel()" if flat else "; y needs one entry per row of X"
        msg = f"y must have shape {wanted}, got {array.shape}{remedy}"
        raise ValueError(msg)
    if array.size == 0:
        msg = f"y is empty (shape {array.shape}); at least one row is needed"
        raise ValueError(msg)
    return array


def _require_finite(array: NDArray[Any]) -> None:
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            row = int(np.argwhere(~finite)[0][0])
            msg = f"y contains {array[row]} in row {row}; drop such rows or fill them in"
            raise ValueError(msg)


def _encode_numbers(array: NDArray[Any], name: str) -> Floats:
    if array.dtype.kind not in "biuf":
        msg = f"y must hold numbers for {name}, got strings ({array.dtype}); use y.astype(float)"
        raise ValueError(msg)
    numbers: Floats = np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
    _require_finite(array)
    _require_finite(numbers)  # a longer float type may overflow
    return numbers


def _encode_binary(array: NDArray[Any], name: str) -> tuple[Floats, NDArray[Any]]:
    if array.dtype.kind in "UST":
        labels = np.unique(array)
    else:  # without sorting
        low, high = array.min(), array.max()
        if not (np.isfinite(low) and np.isfinite(high)):
            _require_finite(array)
        labels = np.array([low, high] if low < high else [low], dtype=array.dtype)
    positive = array == labels[-1]
    if labels.size > 2 or np.count_nonzero(positive | (array == labels[0])) < array.size:
        classes = np.unique(array)
        msg = (
            f"y has {classes.size} classes ({', '.join(map(str, classes[:4]))}, ...), but {name} "
            "is for two; use Multinomial() or SmoothCrammerSinger(), or one class against the rest"
        )
        raise ValueError(msg)
    if labels.size == 1:
        is_string = array.dtype.kind in "UST"
        sign = 1.0 if is_string or labels[0] > 0 else -1.0
        return np.full(array.size, sign), labels
    is_encoded = labels[0] == -1.0 and labels[1] == 1.0 and array.dtype == np.float64
    if is_encoded and array.flags.c_contiguous:
        return array, labels
    return np.where(positive, 1.0, -1.0), labels


def _encode_classes(array: NDArray[Any], name: str) -> tuple[Floats, NDArray[Any]]:
    _require_finite(array)
    labels, index = np.unique(array, return_inverse=True)
    if array.dtype.kind == "f" and labels.size > max(20, array.size // 2):
        msg = (
            f"y has {labels.size} distinct numbers in {array.size} rows, which does not look like "
            f"classes for {name}; use a regression loss such as Squared()"
        )
        raise ValueError(msg)
    return index.astype(np.float64), labels
