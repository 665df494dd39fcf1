"""Arrays that grow in place, so that reading a file needs little more than its content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SMALLEST = 1 << 12


class Growing:
    """Pieces joined along the first axis; the system moves pages instead of copying them."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        shape = (_SMALLEST,) if width is None else (_SMALLEST // max(1, width) + 1, width)
        self._array: Array = np.empty(shape, dtype=dtype)
        self.size = 0

    def append(self, piece: Array) -> None:
        """Copy a piece behind what is there."""
        end = self.size + len(piece)
        if end > len(self._array):
            self._resize(max(end, len(self._array) + len(self._array) // 4))
        self._array[self.size : end] = piece
        self.size = end

    def finished(self) -> Array:
        """All of it, without room to spare."""
        self._resize(self.size)
        return self._array

    def _resize(self, length: int) -> None:
        self._array.resize((length, *self._array.shape[1:]), refcheck=False)
