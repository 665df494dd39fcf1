"""From the blocks a person wrote down to one stacked matrix (or a list of linear operators)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arguments import refuse_mask

if TYPE_CHECKING:
    from ._rows import Rows


def stack_blocks(
    blocks: Any, sizes: Sequence[int] | None
) -> tuple[Rows | None, list[Any] | None, np.ndarray]:
    """Rows of all blocks on top of each other and where each block starts; or the operators."""
    from ._rows import as_rows

    if not isinstance(blocks, list | tuple):
        _refuse_unstacked(blocks)
        return as_rows(blocks, "blocks"), None, _starts_of_sizes(blocks, sizes)
    if sizes is not None:
        raise ValueError("sizes goes with one stacked matrix; a list of blocks has its own heights")
    if not blocks:
        raise ValueError("blocks is empty; give at least one block")
    if any(_is_operator(block) for block in blocks):
        operators = [_as_operator(block, i) for i, block in enumerate(blocks)]
        heights = _common_width([operator.shape for operator in operators])
        return None, operators, heights
    checked = [_as_block(block, i) for i, block in enumerate(blocks)]
    start = _common_width([block.shape for block in checked])
    return as_rows(_stack(checked), "blocks"), None, start


def _refuse_unstacked(blocks: Any) -> None:
    if _is_operator(blocks) and not hasattr(blocks, "toarray"):
        raise TypeError("blocks is one LinearOperator: put it into a list, one operator a block")
    if np.ndim(blocks) > 2:
        raise ValueError(
            f"blocks has shape {np.shape(blocks)}: give a list of (q_i, d) matrices, "
            "e.g. list(blocks), or one stacked matrix with sizes"
        )


def _starts_of_sizes(blocks: Any, sizes: Sequence[int] | None) -> np.ndarray:
    if sizes is None:
        raise ValueError(
            "blocks is one matrix, so sizes must say how many rows each block has; "
            "or give a list of blocks"
        )
    try:
        heights = np.asarray(sizes)
    except ValueError as error:
        raise ValueError(f"sizes must be a list of whole numbers: {error}") from None
    if heights.ndim != 1 or heights.dtype.kind not in "iu" or heights.size == 0:
        raise ValueError(f"sizes must be a list of whole numbers; got {sizes!r}")
    if heights.min() < 1:
        raise ValueError(f"sizes[{int(heights.argmin())}] is {heights.min()}; a block needs a row")
    rows = np.shape(blocks)[0] if np.ndim(blocks) == 2 or hasattr(blocks, "shape") else -1
    if heights.sum() != rows:
        raise ValueError(f"sizes add up to {heights.sum()}, but blocks has {rows} rows")
    return np.append(0, np.cumsum(heights, dtype=np.int64))


def _is_operator(block: Any) -> bool:
    return hasattr(block, "matvec") and hasattr(block, "rmatvec")


def _as_operator(block: Any, i: int) -> Any:
    from scipy.sparse.linalg import aslinearoperator

    try:
        operator = aslinearoperator(block)
    except TypeError as error:
        raise TypeError(f"blocks[{i}] is not a matrix or LinearOperator: {error}") from None
    if np.dtype(operator.dtype or np.float64).kind == "c":
        raise TypeError(f"blocks[{i}] is complex; split it into real and imaginary rows")
    return operator


def _as_block(block: Any, i: int) -> Any:
    """One block as a two-dimensional matrix; a vector is a block of one row."""
    from scipy import sparse

    from ._rows import storage_dtype

    name = f"blocks[{i}]"
    if sparse.issparse(block):
        storage_dtype(block.dtype, "blocks")
        return block.reshape(1, -1) if block.ndim == 1 else block
    refuse_mask(name, block)
    try:
        array = np.asarray(block)
    except ValueError as error:
        raise ValueError(f"{name} must be a (q_i, d) matrix: {error}") from None
    if array.ndim == 1:
        array = array[np.newaxis, :]
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a (q_i, d) matrix; got {array.ndim} dimensions, shape {array.shape}"
        )
    storage_dtype(array.dtype, "blocks")
    return array


def _common_width(shapes: list[tuple[int, ...]]) -> np.ndarray:
    widths = {shape[1] for shape in shapes}
    if len(widths) != 1:
        first = shapes[0][1]
        i = next(i for i, shape in enumerate(shapes) if shape[1] != first)
        raise ValueError(
            f"blocks[{i}] has {shapes[i][1]} columns but blocks[0] has {first}; "
            "every block is (q_i, d) with the same d"
        )
    heights = [shape[0] for shape in shapes]
    if min(heights) < 1:
        raise ValueError(f"blocks[{heights.index(min(heights))}] has no rows; leave it out")
    return np.append(0, np.cumsum(heights))


def _stack(blocks: list[Any]) -> Any:
    from scipy import sparse

    if any(sparse.issparse(block) for block in blocks):
        return sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr")
    return blocks[0] if len(blocks) == 1 else np.vstack(blocks)
