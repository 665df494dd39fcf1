"""The flat containers that drivers hand to the compiled kernels.

They are plain named tuples of arrays and numbers: numba picks the code for each by its type, so one
kernel source serves dense and sparse rows, and every regulariser.
"""

from typing import Any, NamedTuple

import numpy as np


class Dense(NamedTuple):
    """Rows stored one after another: ``values`` is (n, d), C-contiguous and read-only."""

    values: np.ndarray


class CSR(NamedTuple):
    """Compressed sparse rows with unsigned, read-only index arrays.

    Unsigned because numba otherwise checks every index for being negative.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Separable(NamedTuple):
    """``lam/2 x^2 + l1 |x|`` on ``[low, high]``, the same or another interval per coordinate.

    ``low`` and ``high`` have one entry and ``stride`` 0, or one per coordinate and ``stride`` 1.
    """

    lam: float
    l1: float
    low: np.ndarray
    high: np.ndarray
    stride: int


class Grouped(NamedTuple):
    """``lam/2 |x|^2 + sum_g weight[g] |x_g|`` over the groups of a partition of the coordinates.

    ``group[j]`` is the group of coordinate j; ``members[start[g]:start[g + 1]]`` lists group g.
    """

    lam: float
    weight: np.ndarray
    group: np.ndarray
    members: np.ndarray
    start: np.ndarray


class UserSeparable(NamedTuple):
    """A user's regulariser: (None, prox, value, conjugate, gradient), compiled scalars.

    The None is there because numba warns of tuples that begin with a function.
    """

    lam: float
    functions: tuple[Any, ...]


class Blocks(NamedTuple):
    """The n dual blocks over the rows of a matrix.

    Block i owns the rows ``start[i]`` to ``start[i + 1]``; an empty ``start`` means one row a
    block, without an array that says so. Every row carries ``outputs`` dual coordinates (the block
    of a K-output model is ``a_i (x) I_K``). ``mass[i * mass_stride]`` is the weight s_i of the
    block's loss in ``(1/n) sum_i s_i phi_i``.
    """

    rows: Any
    start: np.ndarray
    outputs: np.uint64
    mass: np.ndarray
    mass_stride: np.uint64
    n: float


class BuiltinLoss(NamedTuple):
    """Built-in losses by number, one for all blocks (``stride`` 0) or one for each (``stride`` 1).

    Row k has the targets ``target[k * per_row]`` to ``target[(k + 1) * per_row]``.
    """

    code: np.ndarray
    a: np.ndarray
    b: np.ndarray
    stride: np.uint64
    target: np.ndarray
    per_row: np.uint64


class UserLoss(NamedTuple):
    """A user's scalar loss: (None, value, conjugate, prox, derivative), compiled."""

    functions: tuple[Any, ...]
    target: np.ndarray
    per_row: np.uint64


class UserBlockLoss(NamedTuple):
    """A user's loss on whole blocks: the same functions on vectors, two of them writing to ``out``.

    ``single`` says that a block has one target (a class index), not one per coordinate.
    """

    functions: tuple[Any, ...]
    target: np.ndarray
    per_row: np.uint64
    single: bool


class Team(NamedTuple):
    """One thread's place in a team that shares a kernel call: see ``_kernels/team.py``."""

    member: np.uint64
    size: np.uint64
    arrivals: np.ndarray


class Steps(NamedTuple):
    """Step sizes of a chunk of iterations.

    ``sigma[i]`` for block i; ``tau[t * moving]`` and ``theta[t * moving]`` for iteration t;
    ``weight[i * weight_stride]`` is the factor c_i of the batch term in the primal step.
    ``gradient`` takes ``phi'`` for the dual proposal instead of the prox; ``explicit`` steps along
    the gradient of the L2 term instead of through its prox (SAG).
    """

    sigma: np.ndarray
    weight: np.ndarray
    weight_stride: np.uint64
    tau: np.ndarray
    theta: np.ndarray
    moving: np.uint64
    lam: float
    gradient: bool
    explicit: bool


class Work(NamedTuple):
    """Buffers of a kernel: the dual moves of the last two batches and what they were multiplied by.

    ``delta[slot, s * width:]`` and ``factor[slot, s]`` belong to block ``before[s]`` or to the
    current batch; ``scratch`` has one row of ``2 * width`` numbers for each thread.
    """

    delta: np.ndarray
    factor: np.ndarray
    before: np.ndarray
    scratch: np.ndarray
    width: np.uint64
