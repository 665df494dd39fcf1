"""Samplers: right frequencies, distinct blocks, and a sequence that depends on the seed alone."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adaspdc.sampling import SAMPLERS, Iid, Importance, Permutation, Replay, Sampler, Systematic

UNEQUAL = np.array([0.9, 0.05, 0.3, 0.2, 1.0, 0.15, 0.4])  # sums to 3
UNIFORM_NAMES = ["iid", "permutation"]
WEIGHTED_NAMES = ["importance", "systematic"]


def counts(sampler: Sampler, iterations: int, n: int) -> NDArray[np.int64]:
    return np.bincount(sampler.draw(iterations).ravel(), minlength=n)


def chi_square(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(((observed - expected) ** 2 / expected).sum())


def all_distinct(batches: NDArray[np.uint32]) -> bool:
    ordered = np.sort(batches, axis=1)
    return not (ordered[:, 1:] == ordered[:, :-1]).any()


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (2, 2), (5, 3), (7, 7), (8, 4), (50, 9)])
def test_batches_are_sets_of_valid_blocks(name: str, n: int, m: int) -> None:
    sampler = SAMPLERS[name](n, m, None, 3)
    batches = sampler.draw(200)
    assert batches.shape == (200, m)
    assert batches.dtype == np.uint32
    assert batches.flags.c_contiguous
    assert batches.max() < n
    assert all_distinct(batches)
    assert sampler.batch_size == m
    np.testing.assert_allclose(sampler.inclusion, m / n, rtol=1e-12)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("m", [1, 3])
@given(pieces=st.lists(st.integers(0, 25), max_size=6))
def test_pieces_do_not_matter(name: str, m: int, pieces: list[int]) -> None:
    inclusion = UNEQUAL / 3 * m if name in WEIGHTED_NAMES else None
    whole = SAMPLERS[name](7, m, inclusion, 11).draw(sum(pieces))
    sampler = SAMPLERS[name](7, m, inclusion, 11)
    in_pieces = [sampler.draw(piece) for piece in pieces]
    np.testing.assert_array_equal(np.concatenate([whole[:0], *in_pieces]), whole)


@pytest.mark.parametrize("name", SAMPLERS)
def test_seed_decides(name: str) -> None:
    def draw(seed: int | np.random.SeedSequence | np.random.Generator | None) -> bytes:
        return SAMPLERS[name](40, 2, None, seed).draw(60).tobytes()

    assert draw(5) == draw(5) == draw(np.random.SeedSequence(5))
    assert draw(5) != draw(6)
    assert draw(None) != draw(None)
    assert draw(np.random.default_rng(1)) == draw(np.random.default_rng(1))


@pytest.mark.parametrize("m", [1, 3])
def test_iid_visits_uniformly(m: int) -> None:
    n, iterations = 10, 30_000
    observed = counts(Iid(n, m, random_state=0), iterations, n)
    # 9 degrees of freedom; without replacement the spread is smaller still.
    assert chi_square(observed, np.full(n, iterations * m / n)) < 27.9


def test_iid_subsets_are_equally_likely_and_independent() -> None:
    batches = np.sort(Iid(4, 2, random_state=2).draw(12_000), axis=1)
    subset = batches[:, 0] * 4 + batches[:, 1]
    names, observed = np.unique(subset, return_counts=True)
    assert names.size == 6
    assert chi_square(observed, np.full(6, 2000.0)) < 20.6  # 5 degrees of freedom, 0.1 %
    pairs = subset[0::2].astype(np.int64) * 16 + subset[1::2]
    names, observed = np.unique(pairs, return_counts=True)
    assert names.size == 36
    assert chi_square(observed, np.full(36, 6000 / 36)) < 66.7  # 35 degrees of freedom


@pytest.mark.parametrize(("n", "m"), [(6, 1), (6, 3), (7, 3), (5, 4), (4, 4)])
def test_permutation_visits_each_block_once_per_shuffle(n: int, m: int) -> None:
    shuffles = Permutation(n, m, random_state=1).draw(n * 50).reshape(-1, n)
    np.testing.assert_array_equal(np.sort(shuffles, axis=1), np.tile(np.arange(n), (50 * m, 1)))


def test_permutation_is_uniform_over_orders() -> None:
    shuffles = Permutation(4, 1, random_state=4).draw(4 * 12_000).reshape(-1, 4)
    names, observed = np.unique(shuffles @ [64, 16, 4, 1], return_counts=True)
    assert names.size == 24
    assert chi_square(observed, np.full(24, 500.0)) < 49.7  # 23 degrees of freedom


@pytest.mark.parametrize("m", [2, 3, 4])
def test_permutation_pieces_across_shuffles_stay_uniform(m: int) -> None:
    n, iterations = 5, 20_000
    batches = Permutation(n, m, random_state=6).draw(iterations)
    for column in batches.T:
        observed = np.bincount(column, minlength=n)
        assert chi_square(observed, np.full(n, iterations / n)) < 18.5  # 4 degrees of freedom


def test_importance_single_blocks_follow_the_probabilities() -> None:
    p = np.array([0.5, 0.25, 0.2, 0.04, 0.01])
    sampler = Importance(5, 1, p, 8)
    np.testing.assert_allclose(sampler.inclusion, p, rtol=1e-12)
    assert chi_square(counts(sampler, 40_000, 5), 40_000 * p) < 18.5
    batches = sampler.draw(40_000)[:, 0].reshape(-1, 2).astype(np.int64)
    observed = np.bincount(batches @ [5, 1], minlength=25)
    assert chi_square(observed, 20_000 * np.outer(p, p).ravel()) < 51.2  # 24 degrees of freedom


def test_importance_table_keeps_tiny_probabilities() -> None:
    p = np.array([1e-12, 1.0, 1e-9, 3.0, 1e-15])
    p /= p.sum()
    np.testing.assert_allclose(Importance(5, 1, p, 0).inclusion, p, rtol=1e-9)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40), st.integers(0, 5))
def test_importance_tables_realise_any_probabilities(weights: list[float], seed: int) -> None:
    p = np.array(weights) / np.sum(weights)
    np.testing.assert_allclose(Importance(p.size, 1, p, seed).inclusion, p, rtol=1e-9)


@pytest.mark.parametrize("make", [Importance, Systematic])
def test_batches_have_the_wanted_inclusion_probabilities(
    make: type[Importance] | type[Systematic],
) -> None:
    iterations = 20_000
    sampler = make(7, 3, UNEQUAL, 5)
    np.testing.assert_allclose(sampler.inclusion, UNEQUAL, rtol=1e-12)
    batches = sampler.draw(iterations)
    assert all_distinct(batches)
    error = np.bincount(batches.ravel(), minlength=7) - iterations * UNEQUAL
    spread = np.sqrt(iterations * UNEQUAL * (1 - UNEQUAL))
    assert (np.abs(error) <= 4 * spread + 1e-9).all()


def test_systematic_passes_are_stratified() -> None:
    p = np.array([0.31, 0.02, 0.17, 0.26, 0.14, 0.1])
    passes = Systematic(6, 1, p, 2).draw(6 * 3000).reshape(-1, 6)
    visits = np.stack([(passes == block).sum(axis=1) for block in range(6)], axis=1)
    assert (visits >= np.floor(6 * p)).all()
    assert (visits <= np.ceil(6 * p)).all()
    np.testing.assert_allclose(visits.mean(axis=0), 6 * p, atol=0.05)


def test_systematic_order_within_a_pass_is_random() -> None:
    first = Systematic(6, 1, None, 9).draw(6 * 6000)[::6, 0]
    assert chi_square(np.bincount(first, minlength=6), np.full(6, 1000.0)) < 20.6


@pytest.mark.parametrize("name", WEIGHTED_NAMES)
def test_neighbours_meet_in_batches(name: str) -> None:
    """Systematic sampling in the stored order would never put two neighbours of small weight
    together."""
    together: set[tuple[int, int]] = set()
    for seed in range(40):
        batches = SAMPLERS[name](12, 3, None, seed).draw(20)
        together |= {(int(a), int(b)) for row in batches for a in row for b in row}
    assert len(together) == 144


@pytest.mark.parametrize("name", WEIGHTED_NAMES)
@given(
    st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=30), st.floats(0.0, 1.0), st.integers(0, 9)
)
def test_capped_probabilities_still_give_sets(
    name: str, weights: list[float], share: float, seed: int
) -> None:
    n = len(weights)
    m = 1 + round(share * (n - 1))
    inclusion = np.array(weights)
    for _ in range(n + 1):  # fill up to sum m with a cap at 1
        free = inclusion < 1.0
        if free.any():
            inclusion[free] *= (m - np.count_nonzero(~free)) / inclusion[free].sum()
        inclusion = np.clip(inclusion, 1e-12, 1.0)
    if abs(inclusion.sum() - m) > 1e-9:
        return
    batches = SAMPLERS[name](n, m, inclusion, seed).draw(3 * n)
    assert all_distinct(batches)
    certain = np.flatnonzero(inclusion == 1.0)
    held = (batches[:, :, np.newaxis] == certain).any(axis=1)
    assert held.mean() > 0.99 if certain.size else True


def test_replay_repeats_and_reports_frequencies() -> None:
    replay = Replay([[0, 2], [1, 0], [2, 0]], n=4)
    assert replay.batch_size == 2
    np.testing.assert_allclose(replay.inclusion, [1, 1 / 3, 2 / 3, 0])
    np.testing.assert_array_equal(replay.draw(2), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(replay.draw(3), [[2, 0], [0, 2], [1, 0]])
    assert replay.draw(1).dtype == np.uint32


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Iid(0), "n=0"),
        (lambda: Iid(3, 4), "batch_size=4 must lie in 1..3"),
        (lambda: Iid(3, 1, [0.2, 0.2, 0.6]), "'importance' or 'systematic'"),
        (lambda: Permutation(3, 1, [0.2, 0.2, 0.6]), "'importance' or 'systematic'"),
        (lambda: Importance(3, 1, [0.5, 0.5]), r"shape \(3,\)"),
        (lambda: Importance(2, 1, [1.0, 0.0]), r"probabilities\[1\]=0.0"),
        (lambda: Systematic(2, 1, [math.nan, 1.0]), r"probabilities\[0\]=nan"),
        (lambda: Systematic(3, 2, [0.1, 0.2, 0.7]), "sum to 1"),
        (lambda: Systematic(3, 2, [0.3, 0.2, 1.5]), r"probabilities\[2\]=1.5"),
        (lambda: Iid(3, 1, None, -1), "random_state=-1"),
        (lambda: Iid(3).draw(-1), "iterations=-1"),
        (lambda: Replay([[0, 0]]), "twice"),
        (lambda: Replay([[0, 4]], n=3), r"0\.\.2"),
        (lambda: Replay([0, 1]), "shape"),
        (lambda: Replay([[0.5]]), "integer"),
    ],
)
def test_bad_arguments_are_named(act: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act()


def test_wrong_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"batch_size=1\.5"):
        Iid(3, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="random_state="):
        Iid(3, 1, None, "seed")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SAMPLERS)
def test_callers_probabilities_are_left_alone(name: str) -> None:
    given_probabilities = np.full(4, 0.25)
    SAMPLERS[name](4, 1, given_probabilities, 0).draw(9)
    np.testing.assert_array_equal(given_probabilities, 0.25)
