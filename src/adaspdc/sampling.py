"""Which blocks each iteration visits.

A sampler hands out batches of ``batch_size`` distinct block numbers. Its state is explicit and its
own, so the batches depend on the seed alone: not on how many are drawn at a time, nor on threads.
To add a way of sampling, write a class with the signature below and enter it in `SAMPLERS`.
"""

import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Batches: TypeAlias = NDArray[np.uint32]
FloatArray: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None

_SUM_TOLERANCE = 1e-8


class Sampler(Protocol):
    """Batches of distinct blocks, drawn in any number of pieces."""

    n: int
    batch_size: int

    @property
    def inclusion(self) -> float | FloatArray:
        """Probability that block i is in a batch: one number where all are equal, else (n,)."""

    def draw(self, iterations: int) -> Batches:
        """Return the next ``iterations`` batches, of shape (iterations, batch_size).

        ``draw(a)`` followed by ``draw(b)`` gives the batches of ``draw(a + b)``.
        """


class Iid:
    """Each batch is an independent, uniform subset of the blocks."""

    def __init__(
        self,
        n: int,
        batch_size: int = 1,
        probabilities: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n, self.batch_size = _checked_sizes(n, batch_size)
        _refuse_unequal("iid", probabilities, self.n, self.batch_size)
        self._state = _generator_state(random_state)
        several = self.batch_size > 1
        self._order = np.arange(self.n if several else 0, dtype=np.uint32)

    @property
    def inclusion(self) -> float:
        return self.batch_size / self.n

    def draw(self, iterations: int) -> Batches:
        from ._kernels import sampling as kernels

        out = _empty_batches(iterations, self.batch_size)
        if self.batch_size == 1:
            kernels.uniform_singles(self._state, self.n, out)
        else:
            kernels.uniform_subsets(self._state, self._order, out)
        return out


class Permutation:
    """Consecutive pieces of fresh shuffles: every block once per shuffle.

    Where n is not a multiple of the batch size, a batch takes the end of one shuffle and the
    beginning of the next; the next shuffle is conditioned to begin with other blocks.
    """

    def __init__(
        self,
        n: int,
        batch_size: int = 1,
        probabilities: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n, self.batch_size = _checked_sizes(n, batch_size)
        _refuse_unequal("permutation", probabilities, self.n, self.batch_size)
        self._state = _generator_state(random_state)
        self._order = np.arange(n, dtype=np.uint32)
        self._position = 0

    @property
    def inclusion(self) -> float:
        return self.batch_size / self.n

    def draw(self, iterations: int) -> Batches:
        from ._kernels import sampling as kernels

        out = _empty_batches(iterations, self.batch_size)
        self._position = int(
            kernels.permutation_batches(self._state, self._order, self._position, out)
        )
        return out


class Importance:
    """Each batch is drawn independently, with given probabilities of inclusion.

    Single blocks come from an alias table (Vose, IEEE TSE 17, 1991). Larger batches come from
    systematic sampling (Madow, 1949) along one random arrangement of the blocks, which has exactly
    the wanted probabilities of inclusion and a fixed size.
    """

    def __init__(
        self,
        n: int,
        batch_size: int = 1,
        probabilities: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        from ._kernels import sampling as kernels

        self.n, self.batch_size = _checked_sizes(n, batch_size)
        self._state = _generator_state(random_state)
        table = _checked_probabilities(probabilities, n, self.batch_size)
        self._table = table if table.flags.writeable else table.copy()
        if self.batch_size == 1:
            self._table *= n / self._table.sum()
            self._blocks = np.empty(n, dtype=np.uint32)
            kernels.build_alias_table(self._table, self._blocks)
        else:
            self._blocks = kernels.random_order(self._state, n)
            np.cumsum(self._table[self._blocks], out=self._table)

    @property
    def inclusion(self) -> FloatArray:
        """The probabilities as the tables realise them, so equal to those given up to rounding."""
        if self.batch_size == 1:
            given_away = np.bincount(self._blocks, weights=1.0 - self._table, minlength=self.n)
            return (self._table + given_away) / self.n
        result = np.empty(self.n)
        result[self._blocks] = np.diff(self._table, prepend=0.0)
        result *= self.batch_size / self._table[-1]
        return result

    def draw(self, iterations: int) -> Batches:
        from ._kernels import sampling as kernels

        out = _empty_batches(iterations, self.batch_size)
        if self.batch_size == 1:
            kernels.alias_singles(self._state, self._table, self._blocks, out)
        else:
            kernels.weighted_subsets(self._state, self._table, self._blocks, out)
        return out


class Systematic:
    """Passes that visit each block as nearly as possible as often as its probability asks.

    A pass has L = n // batch_size batches and holds block i either floor(L pi_i) or ceil(L pi_i)
    times; the order of its batches is random. Every batch has the given probabilities of
    inclusion, but the batches of a pass are not independent.
    """

    def __init__(
        self,
        n: int,
        batch_size: int = 1,
        probabilities: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n, self.batch_size = _checked_sizes(n, batch_size)
        self._state = _generator_state(random_state)
        self._probabilities = _checked_probabilities(probabilities, n, self.batch_size)
        length = n // self.batch_size
        self._picks = np.zeros(length * self.batch_size + 1, dtype=np.uint32)
        self._position = length  # the pass before the first is used up

    @property
    def inclusion(self) -> FloatArray:
        view = self._probabilities.view()
        view.flags.writeable = False
        return view

    def draw(self, iterations: int) -> Batches:
        from ._kernels import sampling as kernels

        out = _empty_batches(iterations, self.batch_size)
        self._position = int(
            kernels.systematic_batches(
                self._state, self._probabilities, self._picks, self._position, out
            )
        )
        return out


class Replay:
    """Repeats given batches for ever, for comparing methods under the same block sequence.

    Parameters
    ----------
    batches : integer array of shape (T, batch_size)
        Block numbers, distinct within each row.
    n : int, optional
        Number of blocks; by default one more than the largest number in ``batches``.

    Attributes
    ----------
    inclusion : ndarray of shape (n,)
        The fraction of the given batches that hold each block.
    """

    def __init__(self, batches: ArrayLike, n: int | None = None) -> None:
        try:
            given = np.asarray(batches)
        except ValueError as error:
            raise ValueError(
                f"batches must be an array of shape (T, batch_size): {error}"
            ) from None
        if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(
                "batches must be a non-empty integer array of shape (T, batch_size), "
                f"got shape {given.shape} of {given.dtype}"
            )
        self.n = int(given.max()) + 1 if n is None else _checked_sizes(n, given.shape[1])[0]
        if given.min() < 0 or given.max() >= self.n:
            raise ValueError(
                f"batches hold block numbers from {given.min()} to {given.max()}: "
                f"they must lie in 0..{self.n - 1}"
            )
        ordered = np.sort(given, axis=1)
        repeats = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if repeats.size:
            raise ValueError(f"batches[{repeats[0]}] holds a block twice: a batch is a set")
        self._batches = given.astype(np.uint32)
        self._position = 0
        self.batch_size: int = given.shape[1]

    @property
    def inclusion(self) -> FloatArray:
        visits: FloatArray = np.bincount(self._batches.ravel(), minlength=self.n).astype(float)
        visits /= self._batches.shape[0]
        return visits

    def draw(self, iterations: int) -> Batches:
        length = self._batches.shape[0]
        rows = (self._position + np.arange(_checked_count(iterations))) % length
        self._position = (self._position + rows.size) % length
        batches: Batches = self._batches[rows]
        return batches


SamplerFactory: TypeAlias = Callable[[int, int, ArrayLike | None, RandomState], Sampler]

SAMPLERS: dict[str, SamplerFactory] = {
    "iid": Iid,
    "permutation": Permutation,
    "importance": Importance,
    "systematic": Systematic,
}
"""Samplers by name: called as ``(n, batch_size, probabilities or None, random_state)``.

``probabilities`` are probabilities of inclusion: each in (0, 1], with sum ``batch_size``.
"""


def _generator_state(random_state: RandomState) -> NDArray[np.uint64]:
    """Four words of generator state from anything NumPy accepts as a seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(0, 2**64, size=4, dtype=np.uint64)
    try:
        seed = (
            random_state
            if isinstance(random_state, np.random.SeedSequence)
            else np.random.SeedSequence(random_state)
        )
        return seed.generate_state(4, np.uint64).astype(np.uint64, copy=False)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r} is not a seed: pass None, an integer >= 0, a "
            "numpy.random.SeedSequence or a numpy.random.Generator"
        ) from error


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} must be an integer") from None


def _checked_sizes(n: int, batch_size: int) -> tuple[int, int]:
    n, batch_size = _whole("n", n), _whole("batch_size", batch_size)
    if not 1 <= n < 2**32:
        raise ValueError(f"n={n}: the number of blocks must lie in 1..2**32 - 1")
    if not 1 <= batch_size <= n:
        raise ValueError(f"batch_size={batch_size} must lie in 1..{n}, the number of blocks")
    return n, batch_size


def _checked_count(iterations: int) -> int:
    iterations = _whole("iterations", iterations)
    if iterations < 0:
        raise ValueError(f"iterations={iterations} must not be negative")
    return iterations


def _empty_batches(iterations: int, batch_size: int) -> Batches:
    return np.empty((_checked_count(iterations), batch_size), dtype=np.uint32)


def _checked_probabilities(probabilities: ArrayLike | None, n: int, batch_size: int) -> FloatArray:
    """The probabilities of inclusion, uniform ones for None.

    A copy, except of an array that nobody can write to.
    """
    if probabilities is None:
        return np.full(n, batch_size / n)
    result = np.asarray(probabilities, dtype=np.float64)
    if result.flags.writeable or result.base is not None:
        result = result.copy()
    if result.shape != (n,):
        raise ValueError(f"probabilities must have shape ({n},), got {result.shape}")
    wrong = np.flatnonzero(~((result > 0.0) & (result <= 1.0 + _SUM_TOLERANCE)))
    if wrong.size:
        raise ValueError(
            f"probabilities[{wrong[0]}]={result[wrong[0]]} must lie in (0, 1]: leave out blocks "
            "that are never to be visited, and cap the others at 1"
        )
    total = float(result.sum())
    if abs(total - batch_size) > _SUM_TOLERANCE * batch_size:
        raise ValueError(
            f"probabilities sum to {total}: probabilities of inclusion sum to the batch size "
            f"{batch_size}; multiply them by batch_size / probabilities.sum()"
        )
    return np.minimum(result, 1.0) if result.max() > 1.0 else result


def _refuse_unequal(name: str, probabilities: ArrayLike | None, n: int, batch_size: int) -> None:
    if probabilities is None:
        return
    if not np.allclose(_checked_probabilities(probabilities, n, batch_size), batch_size / n):
        raise ValueError(
            f"sampling {name!r} visits all blocks equally often and cannot follow unequal "
            "probabilities: use 'importance' or 'systematic'"
        )
