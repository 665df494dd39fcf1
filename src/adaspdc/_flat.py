"""A problem as the kernels see it: flat arrays, losses by number, and a few sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._containers import Blocks, BuiltinLoss, UserBlockLoss, UserLoss
from ._operators import UNCOMPILED
from .losses import Conjugate, Custom, CustomBlock, Loss
from .regularizers import L2, Regularizer
from .regularizers import Custom as CustomRegularizer

_NO_NORMS = np.zeros(0)


@dataclass(frozen=True)
class FlatProblem:
    """A problem as the kernels see it.

    ``norms[i]`` is ``sqrt(mass_i) |A_i|``: rescaling the dual of block i by ``sqrt(mass_i)`` gives
    a block of that norm whose conjugate is gamma-strongly convex again, so step rules need no
    weights. Blocks in ``idle`` (zero matrix or zero weight) are never sampled: their optimal dual
    value is known, and ``count`` does not include them. Where the blocks are linear operators,
    ``blocks.rows`` is `Operators`, which hold the conjugates too, and ``loss`` is None.

    With ``intercept`` a primal vector holds one more number per output, last, which g leaves alone.
    """

    blocks: Blocks
    loss: Any
    regularizer: Regularizer
    regularizer_kernel: Any
    shape: tuple[int, ...]
    dual_size: int
    norms: np.ndarray
    total: int
    gamma: float | np.ndarray
    active: np.ndarray | None
    idle: np.ndarray
    width: int
    entries: int
    user_code: bool
    intercept: bool = False

    def without_norms(self) -> FlatProblem:
        """The same problem for the iterations, which need no norms."""
        return replace(self, norms=_NO_NORMS)

    @property
    def dimension(self) -> int:
        """Number of primal coordinates that g is a function of."""
        return int(np.prod(self.shape))

    @property
    def size(self) -> int:
        """Length of a primal vector: the coordinates of g, and the intercepts."""
        return self.dimension + (int(self.blocks.outputs) if self.intercept else 0)

    @property
    def count(self) -> int:
        """Number of blocks that are sampled: the n of the step rules."""
        return int(self.blocks.n)

    @property
    def lam(self) -> float:
        """Strong convexity of g."""
        return float(self.regularizer.lam)

    @property
    def scalar(self) -> bool:
        """Whether every block is one row with one output."""
        one_by_one = self.blocks.start.size == 0 and int(self.blocks.outputs) == 1
        return one_by_one and not isinstance(self.loss, UserBlockLoss)

    @property
    def plain_l2(self) -> bool:
        """Whether g is ``lam/2 |x|^2`` and nothing else."""
        return isinstance(self.regularizer, L2)

    @property
    def settled(self) -> bool:
        """Whether no block depends on x, so that every optimal value is known beforehand."""
        return self.active is not None and self.active.size == 0

    def active_norms(self) -> np.ndarray:
        """Norms of the blocks that are sampled, in the order of ``active``."""
        return self.norms if self.active is None else self.norms[self.active]

    def active_gamma(self) -> float | np.ndarray:
        """Strong convexity of the conjugates of those blocks."""
        if self.active is None or np.ndim(self.gamma) == 0:
            return self.gamma
        chosen: np.ndarray = np.asarray(self.gamma)[self.active]
        return chosen


def has_user_code(loss: Loss | None, regularizer: Regularizer) -> bool:
    return isinstance(loss, Custom | CustomBlock) or isinstance(regularizer, CustomRegularizer)


def one_loss(loss: Loss, target: np.ndarray, per_row: int) -> Any:
    target = _frozen(target)
    if isinstance(loss, CustomBlock):
        functions = (None, *loss.compiled())
        return UserBlockLoss(functions, target, np.uint64(per_row), loss.couples_outputs)
    if isinstance(loss, Custom):
        return UserLoss((None, *loss.compiled()), target, np.uint64(per_row))
    a, b = loss.params
    return BuiltinLoss(
        np.array([loss.code]),
        np.array([float(a)]),
        np.array([float(b)]),
        np.uint64(0),
        target,
        np.uint64(per_row),
    )


def many_losses(conjugates: list[Conjugate], start: np.ndarray) -> Any:
    heights = np.diff(start).astype(int)
    target = np.concatenate(
        [c.targets_for(q) for c, q in zip(conjugates, heights, strict=True)] or [np.zeros(0)]
    )
    first = conjugates[0].loss
    if any(isinstance(c.loss, Custom | CustomBlock) for c in conjugates):
        if any(c.loss is not first for c in conjugates):
            raise TypeError(
                "conjugates mixes a custom loss with other losses; the compiled solver takes "
                "either built-in losses in any mixture or one custom loss for all blocks; "
                + UNCOMPILED
            )
        try:
            return one_loss(first, target, 1)
        except TypeError as error:
            raise TypeError(f"{error}; {UNCOMPILED}") from error
    params = np.array([c.loss.params for c in conjugates], dtype=np.float64).reshape(-1, 2)
    return BuiltinLoss(
        np.array([c.loss.code for c in conjugates]),
        np.ascontiguousarray(params[:, 0]),
        np.ascontiguousarray(params[:, 1]),
        np.uint64(1),
        _frozen(target),
        np.uint64(1),
    )


def _frozen(target: np.ndarray) -> np.ndarray:
    """A read-only view: one array type for the kernels, whatever flags a user's array has."""
    view = target.view()
    view.flags.writeable = False
    return view
