"""SaddlePoint: the ways to write a problem with matrix blocks down, and what goes wrong in them."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import builders
import naive
from adaspdc import ERM, Result, SaddlePoint, losses, regularizers, solve
from naive import Array

HEIGHTS = [1, 3, 2, 4, 1]
ONES = (1.0,) * len(HEIGHTS)
D = 5
L2 = regularizers.L2(0.05)
SQUARED = losses.Squared().at()
EYE = np.eye(2)


def matrices() -> list[Array]:
    rng = np.random.default_rng(2)
    return [(0.5 + i) * rng.normal(size=(q, D)) for i, q in enumerate(HEIGHTS)]


def goals() -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=q) for q in HEIGHTS]


def conjugates(weights: Any = ONES) -> list[losses.Conjugate]:
    squared = losses.Squared()
    return [squared.at(t, weight=w) for t, w in zip(goals(), weights, strict=True)]


def ridge_solution(weights: Any = ONES) -> Array:
    """The minimiser of 0.05/2 |x|^2 + (1/n) sum_i w_i/2 |A_i x - b_i|^2."""
    normal, right = L2.lam * np.eye(D), np.zeros(D)
    for block, t, w in zip(matrices(), goals(), weights, strict=True):
        normal += w / len(HEIGHTS) * block.T @ block
        right += w / len(HEIGHTS) * block.T @ t
    return np.linalg.solve(normal, right)


def solution(problem: ERM | SaddlePoint, **options: Any) -> Result:
    result = solve(problem, tol=1e-13, max_passes=2000, **options)
    assert result.converged
    return result


# --- ways to give the same blocks -----------------------------------------------------------------


def stored(problem: SaddlePoint) -> Array:
    kernel = problem.rows.kernel
    if problem.rows.is_sparse:
        return sparse.csr_array((kernel.data, kernel.indices, kernel.indptr)).toarray()
    return kernel.values


def wide(block: Array) -> Any:
    return builders.with_wide_indices(sparse.csr_array(block))


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (matrices(), {}),
        (tuple(matrices()), {}),
        ([np.asfortranarray(block) for block in matrices()], {}),
        ([block.tolist() for block in matrices()], {}),
        ([block[0] if len(block) == 1 else block for block in matrices()], {}),
        ([sparse.coo_array(b[0]) if len(b) == 1 else b for b in matrices()], {}),
        ([sparse.csr_array(block) for block in matrices()], {}),
        ([sparse.csc_matrix(block) for block in matrices()], {}),
        ([matrices()[0], *map(sparse.coo_array, matrices()[1:])], {}),
        (np.vstack(matrices()), {"sizes": HEIGHTS}),
        (np.vstack(matrices()), {"sizes": np.array(HEIGHTS, dtype=np.uint8)}),
        (wide(np.vstack(matrices())), {"sizes": tuple(HEIGHTS)}),
    ],
    ids=[
        "list",
        "tuple",
        "Fortran",
        "nested lists",
        "a vector is one row",
        "a sparse vector is one row",
        "CSR",
        "CSC",
        "dense beside sparse",
        "stacked",
        "stacked, sizes as array",
        "stacked, sparse",
    ],
)
def test_blocks_may_be_given_in_many_ways(given: Any, options: dict[str, Any]) -> None:
    problem = SaddlePoint(given, conjugates(), L2, **options)
    assert problem.n == len(HEIGHTS)
    assert problem.shape == (D,)
    assert np.diff(problem.start).tolist() == HEIGHTS
    expected = SaddlePoint(matrices(), conjugates(), L2).flatten()
    np.testing.assert_allclose(problem.flatten().norms, expected.norms, rtol=1e-13)
    np.testing.assert_array_equal(stored(problem), np.vstack(matrices()))


def test_single_precision_stays_and_integers_become_doubles() -> None:
    single = [block.astype(np.float32) for block in matrices()]
    assert SaddlePoint(single, SQUARED, L2).rows.dtype == np.float32
    assert SaddlePoint([*single[:-1], matrices()[-1]], SQUARED, L2).rows.dtype == np.float64
    assert SaddlePoint([np.eye(D, dtype=int)], SQUARED, L2).rows.dtype == np.float64


def test_a_stacked_matrix_is_not_copied() -> None:
    stacked = np.vstack(matrices())
    problem = SaddlePoint(stacked, conjugates(), L2, sizes=HEIGHTS)
    assert np.shares_memory(problem.rows.kernel.values, stacked)


def test_one_conjugate_or_loss_serves_all_blocks() -> None:
    one = SaddlePoint(matrices(), losses.Huber(0.5).at(0.25, weight=2.0), L2)
    each = SaddlePoint(matrices(), [losses.Huber(0.5).at(0.25, weight=2.0) for _ in HEIGHTS], L2)
    np.testing.assert_array_equal(solution(one).x, solution(each).x)
    plain = SaddlePoint(matrices(), losses.Squared(), L2)
    assert solution(plain).primal == 0.0  # at(), that is targets 0 and weight 1


def test_the_representation_tells_the_sizes() -> None:
    text = repr(SaddlePoint(matrices(), SQUARED, L2))
    assert text == "SaddlePoint(n=5, d=5, dual=11, regularizer=L2(lam=0.05))"


# --- the solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [ONES, (0.5, 2.0, 1.0, 0.1, 3.0)])
@pytest.mark.parametrize("method", ["spdhg", "pdhg"])
def test_squared_losses_give_ridge_regression(method: str, weights: tuple[float, ...]) -> None:
    result = solution(SaddlePoint(matrices(), conjugates(weights), L2), method=method)
    np.testing.assert_allclose(result.x, ridge_solution(weights), atol=1e-6)


def test_the_dual_solution_is_that_of_the_problem_as_written() -> None:
    # y_i is the gradient of the weighted phi_i, and x = -(1/n) sum_i A_i^T y_i / lam.
    weights = (0.5, 2.0, 1.0, 0.1, 3.0)
    problem = SaddlePoint(matrices(), conjugates(weights), L2)
    result = solution(problem)
    parts = problem.split(result.y)
    assert [part.size for part in parts] == HEIGHTS
    for part, block, conjugate in zip(parts, matrices(), problem.conjugates, strict=True):
        np.testing.assert_allclose(part, conjugate.derivative(block @ result.x), atol=1e-5)
    r = sum(block.T @ part for block, part in zip(matrices(), parts, strict=True)) / problem.n
    np.testing.assert_allclose(result.x, -r / L2.lam, atol=1e-5)
    fenchel = [c.value(part) for c, part in zip(problem.conjugates, parts, strict=True)]
    assert result.dual == pytest.approx(-np.mean(fenchel) - L2.conjugate(-r), rel=1e-12)


@pytest.mark.parametrize("regularizer", ["l2", "group", "box"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_mixed_losses_reach_the_reference(regularizer: str, is_sparse: bool) -> None:
    pair = builders.saddle_point(regularizer, is_sparse, lam=0.1)
    wanted = naive.solve_reference(pair.oracle).x
    np.testing.assert_allclose(solution(pair.problem).x, wanted, atol=1e-6)


def test_a_split_dual_starts_a_run() -> None:
    problem = SaddlePoint(matrices(), conjugates((0.5, 2.0, 1.0, 0.1, 3.0)), L2)
    result = solution(problem)
    parts = problem.split(result.y)
    for y in (result.y, parts, tuple(parts), [part.tolist() for part in parts]):
        assert solution(problem, warm_start=(result.x, y)).passes == 0


# --- rows in blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("block_size", [1, 4, builders.N])
@pytest.mark.parametrize(
    ("loss", "regularizer", "storage"),
    [
        ("logistic", "l2", "dense"),
        ("huber", "elastic net", "csr64"),
        ("smooth hinge", "box", "dense"),
    ],
)
def test_rows_in_blocks_have_the_optimum_of_the_rows(
    loss: str, regularizer: str, storage: str, block_size: int
) -> None:
    problem = builders.erm(loss, regularizer, storage, lam=0.1).problem
    blocks = problem.as_saddle_point(block_size)
    assert np.diff(blocks.start).max() == block_size
    assert blocks.start[-1] == builders.N
    assert blocks.rows is problem.rows
    expected, result = solution(problem), solution(blocks)
    np.testing.assert_allclose(result.x, expected.x, atol=1e-6)
    assert result.primal == pytest.approx(expected.primal, rel=1e-10)
    # The dual variable of a row counts 1/n in the ERM problem and 1/(number of blocks) here.
    ratio = builders.N / blocks.n
    np.testing.assert_allclose(result.y * ratio, expected.y, atol=1e-5)


def test_blocks_of_one_row_are_the_rows() -> None:
    problem = builders.erm("squared").problem
    one, two = problem.flatten(), problem.as_saddle_point(1).flatten()
    np.testing.assert_allclose(two.norms, one.norms)
    np.testing.assert_array_equal(two.blocks.mass, 1.0)
    assert two.gamma == one.gamma


def test_a_block_couples_less_than_its_rows_together() -> None:
    problem = builders.erm("squared").problem
    rows = problem.flatten().norms.reshape(-1, 2)
    weight = problem.as_saddle_point(2).conjugates[0].weight
    assert weight == 0.5  # (1/7) sum over 7 blocks of w (two rows) = (1/14) sum over rows
    norms = problem.as_saddle_point(2).flatten().norms / np.sqrt(weight)
    assert (norms >= rows.max(axis=1)).all()
    assert (norms <= np.hypot(*rows.T) * (1 + 1e-12)).all()


@pytest.mark.parametrize("block_size", [0, -1, builders.N + 1, 2.5, "2", None])
def test_block_size_is_checked(block_size: Any) -> None:
    problem = builders.erm().problem
    with pytest.raises((TypeError, ValueError), match="block_size"):
        problem.as_saddle_point(block_size)


@pytest.mark.parametrize("options", [{"weighted": True}, {"loss": "multinomial"}])
def test_what_rows_in_blocks_cannot_do_says_what_can(options: dict[str, Any]) -> None:
    problem = builders.erm(**options).problem
    with pytest.raises(ValueError, match=r"build SaddlePoint\(blocks, conjugates, regularizer\)"):
        problem.as_saddle_point(2)


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([EYE, np.eye(3)], r"blocks\[1\] has 3 columns but blocks\[0\] has 2.*same d"),
        ([EYE, np.ones((2, 2, 2))], r"blocks\[1\] must be a \(q_i, d\) matrix.*3 dimensions"),
        ([EYE, 1.0], r"blocks\[1\] must be a \(q_i, d\) matrix"),
        ([EYE, "two"], r"blocks\[1\] must be"),
        ([EYE, [[1.0, 2.0], [3.0]]], r"blocks\[1\] .*matrix"),
        ([EYE, np.ones((0, 2))], r"blocks\[1\] has no rows; leave it out"),
        ([EYE, sparse.csr_array((0, 2))], r"blocks\[1\] has no rows; leave it out"),
        ([np.ones((2, 0))], "blocks .*column"),
        ([], "blocks is empty; give at least one"),
        ([EYE, 1j * EYE], "blocks must hold real numbers"),
        ([EYE, np.ma.masked_equal(EYE, 1.0)], r"blocks\[1\].*mask"),
        (EYE, "sizes must say how many rows each block has; or give a list"),
        (np.ones((2, 3, 2)), "blocks .*list"),
        (aslinearoperator(EYE), "blocks .*list"),
        (None, "blocks must"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_wrong_blocks_are_named(blocks: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SaddlePoint(blocks, SQUARED, L2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_numbers_that_are_not_finite_are_refused(bad: float, make: Any) -> None:
    problem = SaddlePoint([EYE, make([[1.0, bad]])], SQUARED, L2)
    with pytest.raises(ValueError, match=r"blocks must be finite.*row 2, column 1"):
        problem.flatten()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1, 1], "sizes add up to 2, but blocks has 3 rows"),
        ([2, 2], "sizes add up to 4, but blocks has 3 rows"),
        ([3, 0], r"sizes\[1\] is 0; a block needs a row"),
        ([4, -1], r"sizes\[1\] is -1"),
        ([1.0, 2.0], "sizes must be a list of whole numbers"),
        ([], "sizes must be a list of whole numbers"),
        (3, "sizes must be a list of whole numbers"),
        ([[1, 2]], "sizes must be a list of whole numbers"),
        ([[1], [1, 1]], "sizes must be a list of whole numbers"),
        ("12", "sizes must be a list of whole numbers"),
    ],
    ids=str,
)
def test_wrong_sizes_are_named(sizes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SaddlePoint(np.eye(3), SQUARED, L2, sizes=sizes)


def test_a_list_of_blocks_takes_no_sizes() -> None:
    with pytest.raises(ValueError, match="sizes goes with one stacked matrix"):
        SaddlePoint([EYE, EYE], SQUARED, L2, sizes=[2, 2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([SQUARED], "conjugates has 1 entries for 2 blocks; give one per block"),
        ([SQUARED] * 3, "conjugates has 3 entries for 2 blocks"),
        ([SQUARED, "squared"], r"conjugates\[1\] must be a Conjugate from a loss, e\.g\."),
        ([SQUARED, losses.Squared], r"conjugates\[1\] must be a Conjugate"),
        (None, "conjugates must be a Conjugate or a list of 2"),
        (losses.Squared, "conjugates must be a Conjugate or a list of 2"),
        (
            [SQUARED, losses.Squared().at([1.0, 2.0, 3.0])],
            r"conjugates\[1\] does not fit blocks\[1\]: .*2 coordinates but 3 targets; give one",
        ),
        (
            [SQUARED, losses.Multinomial().at(2)],
            r"conjugates\[1\] does not fit blocks\[1\]: .*class indices 0\.\.1",
        ),
    ],
)
def test_wrong_conjugates_are_named(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SaddlePoint([EYE, EYE], given, L2)


@pytest.mark.parametrize("given", [0.1, regularizers.L2, None])
def test_a_wrong_regularizer_is_named(given: Any) -> None:
    with pytest.raises(TypeError, match="regularizer must be a Regularizer from adaspdc"):
        SaddlePoint([EYE], SQUARED, given)


def test_a_regularizer_of_another_dimension_is_refused() -> None:
    box = regularizers.Box(0.1, np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match="low has 3 entries but there are 2 features"):
        solve(SaddlePoint([EYE], SQUARED, box))


def test_a_custom_loss_does_not_mix_with_others() -> None:
    custom = losses.Custom(
        lambda z, t: 0.5 * (z - t) ** 2,
        lambda y, t: y * t + 0.5 * y * y,
        lambda v, sigma, t: (v - sigma * t) / (1.0 + sigma),
        gamma=1.0,
    )
    with pytest.raises(TypeError, match="conjugates mixes a custom loss with other losses"):
        SaddlePoint([EYE, EYE], [SQUARED, custom.at()], L2).flatten()


@pytest.mark.parametrize("y", [np.zeros(3), np.zeros(5), np.zeros((2, 3))])
def test_only_a_dual_vector_of_the_problem_can_be_split(y: Array) -> None:
    with pytest.raises(ValueError, match="y "):
        SaddlePoint([EYE, EYE], SQUARED, L2).split(y)
