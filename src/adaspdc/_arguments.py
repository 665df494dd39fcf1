"""Checks of what a caller passed: numbers, whole numbers, arrays of real numbers."""

from __future__ import annotations

import operator
import sys
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_real(value: object) -> bool:
    """Whether a value is one real number; truth values, text and arrays are not."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """The value as an int in ``low..high``."""
    span = f"in {low}..{high}" if high is not None else f"{low} or more"
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, {span}; got {value!r}") from None
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {span}; got {number}")
    return number


def real_array(name: str, values: Any) -> NDArray[Any]:
    """The values as an array of floats, integers or booleans, in whatever shape they have."""
    refuse_mask(name, values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as an array ({error}): give every row the same length."
        ) from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}: convert to float.")
    return array


def laid_out(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values as an array in one piece or of this shape; never of its transpose."""
    array = real_array(name, values)
    if array.ndim > 1 and array.shape != shape and 1 not in array.shape:
        raise ValueError(f"{name} has shape {array.shape}, but here it must have {shape}.")
    return array


def refuse_mask(name: str, values: Any) -> None:
    """NumPy would hand out the numbers below a mask as if they counted."""
    masked = sys.modules.get("numpy.ma")  # where nobody imported it, there is no masked array
    if masked is not None and isinstance(values, masked.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and its masked entries have no meaning here. "
            f"Fill them first, e.g. {name}.filled(0.0)."
        )
