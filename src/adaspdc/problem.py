"""The problems that can be solved, as a person writes them down.

Both classes describe

    min_x max_y  g(x) + (1/n) sum_i ( <x, A_i y_i> - phi_i*(y_i) ),

``ERM`` with one row of X a block, ``SaddlePoint`` with any matrices as blocks. ``flatten`` turns
either into the arrays the kernels take.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arguments import laid_out, real_array, whole_number
from ._containers import Blocks
from ._flat import FlatProblem, has_user_code, many_losses, one_loss
from ._operators import (
    as_blocks,
    check_conjugate,
    missing_methods,
    operator_norms,
    plain_gamma,
    stacked_norm,
    weight_of,
)
from .losses import Conjugate, Loss
from .regularizers import Regularizer

if TYPE_CHECKING:
    from ._rows import Rows

_NO_ARRAY = np.zeros(0, dtype=np.uint64)


class ERM:
    """Regularised empirical risk minimisation with linear predictors.

    Minimises over x

        (1/n) sum_i phi(<a_i, x>; y_i) + g(x)

    where a_i are the rows of X and g contains ``lam/2 |x|^2``. With sample weights s the mean
    becomes ``sum_i s_i phi_i / sum_i s_i``, so integer weights mean repeated rows. Here ``lam``
    weighs against the *mean* loss: scikit-learn's C corresponds to ``lam = 1 / (C * n)``.

    Parameters
    ----------
    X : array of shape (n, d), dense or SciPy sparse
        float32 or float64, used as it is where it is C-ordered or CSR: no copy, read-only memory
        maps included. Other layouts are converted once.
    y : array of shape (n,) or (n, K)
        Regression targets, two classes, class labels, or one target per output.
    loss : Loss
        See `adaspdc.losses`.
    regularizer : Regularizer
        See `adaspdc.regularizers`.
    sample_weight : array of shape (n,), optional
        Non-negative, not all zero.
    intercept : bool
        Add an intercept b (one per output) to every margin, <a_i, x> + b, which g does not
        penalise. Only method "auto" takes it; the result has it as ``intercept``. Without it, a
        column of ones in X is an intercept that is penalised like every other coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from adaspdc import ERM, losses, regularizers, solve
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> problem = ERM(X, [1.0, 2.0, 2.0], losses.Squared(), regularizers.L2(0.1))
    >>> solve(problem, tol=1e-9).status.value
    'converged'
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        regularizer: Regularizer,
        sample_weight: Any = None,
        intercept: bool = False,
    ) -> None:
        from ._rows import as_rows

        _require(loss, Loss, "loss", "adaspdc.losses, for example losses.Logistic()")
        _require(regularizer, Regularizer, "regularizer", "adaspdc.regularizers, e.g. L2(1e-6)")
        self.loss = loss
        self.regularizer = regularizer
        self.rows: Rows = as_rows(X)
        self.target, self.labels = loss.encode_targets(y, self.rows.n)
        self.sample_weight = _checked_weights(sample_weight, self.rows.n)
        self.n_outputs = self._outputs()
        if not isinstance(intercept, bool | np.bool_):
            raise TypeError(f"intercept must be True or False; got {intercept!r}")
        self.intercept = bool(intercept)

    def _outputs(self) -> int:
        if self.loss.kind == "multiclass":
            return max(2, len(self.labels)) if self.labels is not None else 2
        return self.target.size // self.rows.n if self.loss.kind == "multioutput" else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x: (d,), or (d, K) for a loss with K outputs."""
        single = self.loss.kind not in ("multiclass", "multioutput")
        return (self.rows.d,) if single else (self.rows.d, self.n_outputs)

    def __repr__(self) -> str:
        return (
            f"ERM(n={self.rows.n}, d={self.rows.d}, nnz={self.rows.nnz}, "
            f"loss={self.loss!r}, regularizer={self.regularizer!r}"
            + (", intercept=True)" if self.intercept else ")")
        )

    def flatten(self) -> FlatProblem:
        """The problem as arrays, with the norms of its rows."""
        from ._norms import row_norms

        rows, outputs = self.rows, self.n_outputs
        norms = row_norms(rows)
        if self.intercept:
            norms = np.sqrt(norms**2 + 1.0)
        idle = norms == 0.0
        mass = np.ones(1)
        if self.sample_weight is not None:
            mass = self.sample_weight / self.sample_weight.sum()
            idle |= mass == 0.0
        count = rows.n - int(np.count_nonzero(idle))
        if self.sample_weight is not None:
            mass = mass * max(count, 1)
            norms = norms * np.sqrt(mass)
        elif count < rows.n:
            mass = np.array([max(count, 1) / rows.n])
            norms = norms * np.sqrt(mass)
        blocks = Blocks(
            rows.kernel,
            _NO_ARRAY,
            np.uint64(outputs),
            mass,
            np.uint64(mass.size > 1),
            float(max(count, 1)),
        )
        per_row = outputs if self.loss.kind == "multioutput" else 1
        return FlatProblem(
            blocks=blocks,
            loss=one_loss(self.loss, self.target, per_row),
            regularizer=self.regularizer,
            regularizer_kernel=self.regularizer.kernel(rows.d, outputs),
            shape=self.shape,
            dual_size=rows.n * outputs,
            norms=norms,
            total=rows.n,
            gamma=float(self.loss.gamma),
            active=np.flatnonzero(~idle).astype(np.uint32) if count < rows.n else None,
            idle=np.flatnonzero(idle),
            width=outputs,
            entries=rows.nnz,
            user_code=has_user_code(self.loss, self.regularizer),
            intercept=self.intercept,
        )

    def at_lam(self, lam: float) -> ERM:
        """The same problem with another strong convexity of g; the data are shared."""
        other: ERM = _at_lam(self, lam)
        return other

    def shape_dual(self, y: np.ndarray) -> np.ndarray:
        """The dual vector in the shape a user sees."""
        return y.reshape(self.rows.n, -1) if len(self.shape) == 2 else y

    def flat_dual(self, y: Any) -> np.ndarray:
        """A user's dual vector as the kernels take it."""
        given = laid_out("y", y, (self.rows.n, self.n_outputs))
        return np.asarray(given, dtype=np.float64).reshape(-1)

    def stacked_norm(self, scale: np.ndarray) -> float:
        """Norm of all rows stacked, row i times ``scale[i]``, or an upper bound."""
        from ._norms import whole_norm

        return whole_norm(self.rows, scale)

    def as_saddle_point(self, block_size: int) -> SaddlePoint:
        """The same problem with blocks of ``block_size`` consecutive rows.

        A block of rows couples to x through its spectral norm, which is at most sqrt(block_size)
        and often little more than 1 times that of a row: the block version of the paper.
        """
        if self.sample_weight is not None or len(self.shape) == 2 or self.intercept:
            raise ValueError(
                "as_saddle_point supports no sample_weight, several outputs or intercept; "
                "build SaddlePoint(blocks, conjugates, regularizer) with weighted conjugates"
            )
        n = self.rows.n
        block_size = whole_number("block_size", block_size, 1, n)
        start = np.append(np.arange(0, n, block_size), n)
        total = len(start) - 1
        conjugates = [
            self.loss.at(self.target[a:b], weight=total / n) for a, b in pairwise(start.tolist())
        ]
        return SaddlePoint._from_rows(self.rows, start, conjugates, self.regularizer)


class SaddlePoint:
    """The separable saddle-point problem with matrix blocks.

    Solves ``min_x max_y g(x) + (1/n) sum_i ( <x, A_i y_i> - phi_i*(y_i) )``.

    Parameters
    ----------
    blocks : list of (q_i, d) arrays, or one (sum q_i, d) array with ``sizes``
        The paper's A_i transposed: each row is a dual coordinate. Dense or SciPy sparse, of any and
        unequal heights; or SciPy LinearOperators of shape (q_i, d) with matvec and rmatvec, which
        run at the speed of Python, on one thread (their norms first take min(q_i, d) products
        each, once per problem). One operator in the list makes operators of all.
    conjugates : Conjugate, or list of one per block
        phi_i*: ``loss.at(targets, weight=1.0)`` for any loss; one object may serve all blocks. With
        LinearOperators also any object with ``gamma``, ``value(y)``, ``primal_value(z)`` and
        ``prox(v, sigma)`` that mean what they mean for a `Conjugate`, its weight included.
    regularizer : Regularizer
        g, strongly convex.
    sizes : list of int, optional
        Heights q_i of the blocks where ``blocks`` is one stacked matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from adaspdc import SaddlePoint, losses, regularizers, solve
    >>> blocks = [np.eye(2), np.ones((1, 2))]
    >>> conjugates = [losses.Squared().at([1.0, 2.0]), losses.Huber(1.0).at([3.0])]
    >>> result = solve(SaddlePoint(blocks, conjugates, regularizers.L2(0.1)), tol=1e-9)
    >>> result.converged
    True
    """

    def __init__(
        self,
        blocks: Any,
        conjugates: Any,
        regularizer: Regularizer,
        sizes: Sequence[int] | None = None,
    ) -> None:
        from ._blocks import stack_blocks

        _require(regularizer, Regularizer, "regularizer", "adaspdc.regularizers, e.g. L2(0.1)")
        self.rows, self.operators, self.start = stack_blocks(blocks, sizes)
        self.regularizer = regularizer
        self.conjugates = _checked_conjugates(
            conjugates, len(self.start) - 1, compiled=self.rows is not None
        )
        self._check_heights()

    @classmethod
    def _from_rows(
        cls, rows: Rows, start: np.ndarray, conjugates: list[Conjugate], regularizer: Regularizer
    ) -> SaddlePoint:
        problem = cls.__new__(cls)
        problem.rows, problem.operators, problem.start = rows, None, start
        problem.conjugates, problem.regularizer = conjugates, regularizer
        return problem

    def _check_heights(self) -> None:
        for i, conjugate in enumerate(self.conjugates):
            if not isinstance(conjugate, Conjugate):
                continue
            height = int(self.start[i + 1] - self.start[i])
            try:
                conjugate.targets_for(height)
            except ValueError as error:
                raise ValueError(f"conjugates[{i}] does not fit blocks[{i}]: {error}") from None

    @property
    def n(self) -> int:
        """Number of blocks."""
        return len(self.start) - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        if self.rows is not None:
            return (self.rows.d,)
        assert self.operators is not None
        return (int(self.operators[0].shape[1]),)

    def __repr__(self) -> str:
        return (
            f"SaddlePoint(n={self.n}, d={self.shape[0]}, dual={int(self.start[-1])}, "
            f"regularizer={self.regularizer!r})"
        )

    def split(self, y: np.ndarray) -> list[np.ndarray]:
        """Cut a stacked dual vector into its blocks."""
        given = np.asarray(y)
        if given.shape != (int(self.start[-1]),):
            raise ValueError(
                f"y must have shape ({int(self.start[-1])},), one number per row of the blocks; "
                f"got {given.shape}"
            )
        return np.split(given, self.start[1:-1].astype(int))

    @property
    def _weights(self) -> np.ndarray:
        """Weights that are not part of a conjugate's own functions."""
        return np.array([weight_of(conjugate) for conjugate in self.conjugates])

    @cached_property
    def _operator_norms(self) -> np.ndarray:
        assert self.operators is not None
        return operator_norms(self.operators)

    def _norms(self) -> np.ndarray:
        from ._norms import block_norms

        if self.rows is None:
            return self._operator_norms
        norms: np.ndarray = block_norms(self.rows, self.start)[0]
        return norms

    def stacked_norm(self, scale: np.ndarray) -> float:
        """Norm of all blocks stacked, block i times ``scale[i]``, or an upper bound."""
        from ._norms import whole_norm

        if self.operators is not None:
            return stacked_norm(self.operators, self._operator_norms, scale)
        assert self.rows is not None
        return whole_norm(self.rows, np.repeat(scale, np.diff(self.start).astype(int)))

    def _parts(self) -> tuple[Any, Any, int]:
        """Rows, losses, number of entries: what the kernels take, or what takes its place."""
        if self.rows is not None:
            return self.rows.kernel, many_losses(self.conjugates, self.start), self.rows.nnz
        assert self.operators is not None
        blocks = as_blocks(self.operators, self.conjugates, self.start)
        return blocks, None, int(self.start[-1]) * self.shape[0]

    def flatten(self) -> FlatProblem:
        """The problem as arrays, with the spectral norms of its blocks."""
        plain = self._norms()
        rows, loss, entries = self._parts()
        idle = plain == 0.0
        count = self.n - int(np.count_nonzero(idle))
        mass = self._weights * (max(count, 1) / self.n)
        gamma = np.array([plain_gamma(conjugate) for conjugate in self.conjugates])
        compiled = [] if loss is None else [conjugate.loss for conjugate in self.conjugates]
        blocks = Blocks(
            rows,
            self.start.astype(np.uint64),
            np.uint64(1),
            mass,
            np.uint64(1),
            float(max(count, 1)),
        )
        return FlatProblem(
            blocks=blocks,
            loss=loss,
            regularizer=self.regularizer,
            regularizer_kernel=self.regularizer.kernel(self.shape[0], 1),
            shape=self.shape,
            dual_size=int(self.start[-1]),
            norms=plain * np.sqrt(mass),
            total=self.n,
            gamma=gamma if np.ptp(gamma) > 0 else float(gamma[0]),
            active=np.flatnonzero(~idle).astype(np.uint32) if count < self.n else None,
            idle=np.flatnonzero(idle),
            width=int(np.diff(self.start).max()),
            entries=entries,
            user_code=any(has_user_code(loss, self.regularizer) for loss in [None, *compiled]),
        )

    def at_lam(self, lam: float) -> SaddlePoint:
        """The same problem with another strong convexity of g; the data are shared."""
        other: SaddlePoint = _at_lam(self, lam)
        return other

    def _scale(self) -> np.ndarray:
        """Weight of each dual coordinate: (w phi)*(y) = w phi*(y/w), and the kernels keep y/w."""
        return np.repeat(self._weights, np.diff(self.start).astype(int))

    def shape_dual(self, y: np.ndarray) -> np.ndarray:
        """The dual vector of the problem as it was written down.

        Rounded towards zero, which every built-in conjugate has in its domain: divided by its
        weight again, a value at the edge must not lie outside.
        """
        scale = self._scale()
        scaled: np.ndarray = y * scale
        beyond = np.abs(scaled / scale) > np.abs(y)
        scaled[beyond] = np.nextafter(scaled[beyond], 0.0)
        return scaled

    def flat_dual(self, y: Any) -> np.ndarray:
        """A user's dual vector as the kernels take it."""
        if isinstance(y, list | tuple):
            y = np.concatenate([np.ravel(part) for part in y])
        scaled: np.ndarray = real_array("y", y).astype(np.float64).reshape(-1) / self._scale()
        return scaled


Problem = ERM | SaddlePoint


def _at_lam(problem: Any, lam: float) -> Any:
    other = copy(problem)
    other.regularizer = replace(problem.regularizer, lam=lam)
    return other


# --- pieces ---------------------------------------------------------------------------------------


def _require(value: object, kind: type, name: str, remedy: str) -> None:
    if not isinstance(value, kind):
        hint = f"{value.__name__}()" if isinstance(value, type) else repr(value)[:80]
        raise TypeError(f"{name} must be a {kind.__name__} from {remedy}; got {hint}")


def _checked_weights(weights: Any, n: int) -> np.ndarray | None:
    if weights is None:
        return None
    checked = np.asarray(real_array("sample_weight", weights), dtype=np.float64)
    if checked.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape ({n},), one weight per row; got {checked.shape}"
        )
    if not np.isfinite(checked).all():
        where = int(np.flatnonzero(~np.isfinite(checked))[0])
        raise ValueError(f"sample_weight[{where}] is {checked[where]}; weights must be finite")
    if checked.min() < 0:
        where = int(checked.argmin())
        raise ValueError(
            f"sample_weight[{where}] is {checked[where]}; weights must not be negative"
        )
    if not checked.max() > 0:
        raise ValueError("sample_weight is zero everywhere; give at least one row a weight")
    with np.errstate(over="ignore", under="ignore"):
        shares: np.ndarray = checked / checked.max()
    if not np.isfinite(shares.sum()):
        raise ValueError("sample_weight overflows; divide the weights by their maximum")
    return shares


def _checked_conjugates(conjugates: Any, n: int, compiled: bool) -> list[Any]:
    if isinstance(conjugates, Conjugate | Loss) or not missing_methods(conjugates):
        conjugates = [conjugates] * n
    try:
        checked = [c.at() if isinstance(c, Loss) else c for c in conjugates]
    except TypeError:
        raise TypeError(
            f"conjugates must be a Conjugate or a list of {n} of them; got {conjugates!r}"
        ) from None
    if len(checked) != n:
        raise ValueError(
            f"conjugates has {len(checked)} entries for {n} blocks; give one per block"
        )
    for i, conjugate in enumerate(checked):
        check_conjugate(conjugate, f"conjugates[{i}]", compiled)
    return checked
