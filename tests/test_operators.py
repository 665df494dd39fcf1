"""Blocks that are linear operators, and conjugates that are plain Python objects."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import adaspdc
from adaspdc import Method, SaddlePoint, losses, regularizers, solve
from adaspdc.methods import METHODS
from adaspdc.sampling import Replay

Array = NDArray[np.float64]

D = 7
HEIGHTS = (1, 3, 2, 4, 1)
L2 = regularizers.L2(0.05)
ELASTIC = regularizers.ElasticNet(0.05, 0.02)


def matrices() -> list[Array]:
    random = np.random.default_rng(3)
    return [(0.5 + i) * random.standard_normal((q, D)) for i, q in enumerate(HEIGHTS)]


def conjugates() -> list[losses.Conjugate]:
    """A loss of each sort, with weights and unequal gamma; the second couples its coordinates."""
    random = np.random.default_rng(4)
    return [
        losses.Logistic().at([1.0]),
        losses.Multinomial().at(2, weight=0.7),
        losses.Squared().at(random.standard_normal(2), weight=3.0),
        losses.SmoothPinball(0.3, 0.5).at(random.standard_normal(4), weight=0.9),
        losses.SmoothHinge(0.4).at(-1.0),
    ]


def both(regularizer: Any, **changes: Any) -> tuple[SaddlePoint, SaddlePoint]:
    """The same problem with compiled blocks and with operators."""
    blocks = changes.get("blocks", matrices())
    given = changes.get("conjugates", conjugates())
    return (
        SaddlePoint(blocks, given, regularizer),
        SaddlePoint([aslinearoperator(block) for block in blocks], given, regularizer),
    )


def operator(matrix: Array, transpose: Array | None = None, **functions: Any) -> LinearOperator:
    """An operator of functions, as a user writes one."""
    back = matrix.T if transpose is None else transpose
    pair = {"matvec": lambda x: matrix @ x, "rmatvec": lambda y: back @ y, **functions}
    return LinearOperator(matrix.shape, dtype=np.float64, **pair)


def quietly(problem: SaddlePoint, method: str | Method, **options: Any) -> adaspdc.Result:
    with pytest.warns(adaspdc.ConvergenceWarning):
        return solve(problem, method, tol=0.0, **options)


# --- the same as the kernels ----------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 2])
@pytest.mark.parametrize("regularizer", [L2, ELASTIC], ids=["l2", "elastic-net"])
@pytest.mark.parametrize("name", METHODS)
def test_iterates_are_those_of_the_kernels(name: str, regularizer: Any, batch_size: int) -> None:
    if METHODS[name].l2_only and regularizer is not L2:
        pytest.skip("this method is for L2 only")
    random = np.random.default_rng(5)
    batches = np.array([random.permutation(len(HEIGHTS))[:batch_size] for _ in range(60)])
    runs = []
    for problem in both(regularizer):
        seen: list[Array] = []
        method = Method(name, sampling=Replay(batches, len(HEIGHTS)), watch=False)
        result = quietly(
            problem,
            method,
            batch_size=batch_size,
            max_passes=8,
            check_every=2,
            callback=lambda progress, seen=seen: seen.append(progress.x),
        )
        runs.append((np.array(seen), result))
    (compiled_x, compiled), (x, result) = runs
    assert len(x) == 5
    assert np.abs(x[-1]).max() > 1e-3
    np.testing.assert_allclose(x, compiled_x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.y, compiled.y, rtol=1e-9, atol=1e-9)
    for column in ("objective", "primal", "dual", "passes"):
        np.testing.assert_allclose(result.history[column], compiled.history[column], rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_certifies_the_same_solution(name: str) -> None:
    blocks = [matrix / np.linalg.norm(matrix, 2) for matrix in matrices()]
    compiled, problem = both(regularizers.L2(0.2), blocks=blocks)
    expected = solve(compiled, tol=1e-11, max_passes=3000)
    result = solve(problem, name, tol=1e-7, max_passes=3000)
    assert result.converged
    assert result.gap <= result.tol
    assert abs(result.primal - expected.primal) <= result.tol
    assert np.linalg.norm(result.x - expected.x) <= math.sqrt(4.0 * result.tol / 0.2)


@pytest.mark.parametrize(
    "regularizer",
    [
        regularizers.NonNegative(0.05),
        regularizers.Box(0.05, -0.1, np.linspace(0.1, 0.3, D)),
        regularizers.GroupL2(0.05, 0.02, [0, 0, 1, 1, 1, 2, 2]),
    ],
    ids=lambda regularizer: type(regularizer).__name__,
)
def test_every_regularizer(regularizer: Any) -> None:
    compiled, problem = both(regularizer)
    expected = solve(compiled, tol=1e-9, max_passes=3000)
    result = solve(problem, batch_size=2, tol=1e-7, max_passes=3000)
    assert result.converged
    assert abs(result.primal - expected.primal) <= result.tol


def test_custom_regularizer() -> None:
    own = regularizers.Custom(
        0.05, lambda x: 0.025 * x * x, lambda u, tau: u / (1 + 0.05 * tau), lambda s: 10 * s * s
    )
    expected = solve(both(L2)[0], tol=1e-9, max_passes=3000)
    result = solve(both(own)[1], batch_size=2, tol=1e-7, max_passes=3000)
    assert abs(result.primal - expected.primal) <= result.tol


def test_start_and_result_are_those_of_the_kernels() -> None:
    """Idle blocks, warm starts and the shape of the answer."""
    blocks = matrices()
    blocks[3] = np.zeros((4, D))
    compiled, problem = both(ELASTIC, blocks=blocks)
    first = quietly(problem, "spdhg", max_passes=20)
    twin = quietly(compiled, "spdhg", max_passes=20)
    np.testing.assert_allclose(first.y, twin.y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first.y[6:10], conjugates()[3].derivative(np.zeros(4)))
    again = solve(problem, tol=1e-8, max_passes=3000, warm_start=first)
    assert again.history["gap"][0] == pytest.approx(first.gap, rel=1e-6)
    assert again.converged
    assert [part.size for part in problem.split(again.y)] == list(HEIGHTS)


def test_matrices_and_operators_mix() -> None:
    blocks: list[Any] = matrices()
    expected = solve(SaddlePoint(blocks, conjugates(), L2), tol=1e-10, max_passes=3000)
    blocks[1] = operator(blocks[1])
    blocks[2] = sparse.csr_array(blocks[2])
    result = solve(SaddlePoint(blocks, conjugates(), L2), tol=1e-8, max_passes=3000)
    assert abs(result.primal - expected.primal) <= result.tol


def test_a_diverging_run_falls_back() -> None:
    blocks = [np.array([[1.0]]), np.array([[0.1]])]
    _, problem = both(
        regularizers.L2(1e-4),
        blocks=blocks,
        conjugates=[losses.Squared().at(1.0), losses.Squared().at(-1.0)],
    )
    result = solve(problem, "adaspdc", tol=1e-8, max_passes=20_000, random_state=1)
    assert result.converged
    assert any("rolled back" in event for event in result.events)


def test_time_limit_and_callback_stop_a_run() -> None:
    _, problem = both(L2)
    assert quietly(problem, "spdhg", max_seconds=0.0).status == "max_seconds"
    assert quietly(problem, "spdhg", callback=lambda progress: True).status == "stopped"


def test_pdhg_with_too_many_numbers_to_materialise(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc import _operators

    stacked = [aslinearoperator(matrix) for matrix in matrices()]
    norms = _operators.operator_norms(stacked)
    scale = np.arange(1.0, 6.0)
    whole = np.vstack([factor * a for factor, a in zip(scale, matrices(), strict=True)])
    exact = _operators.stacked_norm(stacked, norms, scale)
    assert exact == pytest.approx(np.linalg.norm(whole, 2), rel=1e-11)
    monkeypatch.setattr(_operators, "_MATERIALISED", 10)
    bound = _operators.stacked_norm(stacked, norms, scale)
    assert exact < bound <= math.sqrt(len(HEIGHTS)) * exact
    _, problem = both(L2)
    assert solve(problem, "pdhg", tol=1e-6, max_passes=5000).converged


# --- conjugates in plain Python -------------------------------------------------------------------


class Robust:
    """The Huber loss of a block, written without a thought of numba."""

    gamma = 1.0

    def __init__(self, targets: Array, delta: float = 0.5) -> None:
        self.targets = {"here": targets}
        self.delta = delta

    def value(self, y: Array) -> float:
        if np.abs(y).max() > self.delta * (1 + 1e-12):
            return math.inf
        return float(y @ y / 2 + y @ self.targets["here"])

    def primal_value(self, z: Array) -> float:
        off = np.abs(z - self.targets["here"])
        small = np.minimum(off, self.delta)
        return float(np.sum(small * (off - small / 2)))

    def prox(self, v: Array, sigma: float) -> Array:
        free = (v - sigma * self.targets["here"]) / (1 + sigma)
        return np.clip(free, -self.delta, self.delta)


def huber_pair() -> tuple[list[LinearOperator], list[losses.Conjugate], list[Robust]]:
    random = np.random.default_rng(6)
    targets = [random.standard_normal(q) for q in HEIGHTS]
    operators = [operator(matrix) for matrix in matrices()]
    builtin = [losses.Huber(0.5).at(target) for target in targets]
    return operators, builtin, [Robust(target) for target in targets]


@pytest.mark.parametrize("name", ["spdhg", "saga", "sag", "sdca", "pdhg"])
def test_own_conjugates(name: str) -> None:
    """Methods that step along gradients find them by long proximal steps."""
    operators, builtin, own = huber_pair()
    method = Method(name, sampling=Replay([[0], [3], [1], [4], [2]]))
    expected = quietly(SaddlePoint(operators, builtin, L2), method, max_passes=10)
    method = Method(name, sampling=Replay([[0], [3], [1], [4], [2]]))
    result = quietly(SaddlePoint(operators, own, L2), method, max_passes=10)
    np.testing.assert_allclose(result.x, expected.x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.y, expected.y, rtol=1e-9, atol=1e-9)
    assert result.gap == pytest.approx(expected.gap, rel=1e-6)


def test_one_own_conjugate_serves_all_blocks() -> None:
    blocks = [operator(matrix) for matrix in np.random.default_rng(7).random((4, 2, D))]
    assert solve(SaddlePoint(blocks, Robust(np.ones(2)), L2), tol=1e-8, max_passes=2000).converged


def test_own_conjugate_with_compiled_blocks_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"conjugates\[0\].*Robust.*cannot be.*aslinearoperator"):
        SaddlePoint([np.eye(2)], [Robust(np.ones(2))], L2)


def test_incomplete_conjugates_are_named() -> None:
    class Partial:
        gamma = 1.0
        value = primal_value = staticmethod(lambda y: 0.0)

    with pytest.raises(TypeError, match=r"conjugates\[0\] \(Partial\) lacks prox"):
        SaddlePoint([aslinearoperator(np.eye(2))], [Partial()], L2)
    with pytest.raises(TypeError, match=r"conjugates\[0\] must be a Conjugate"):
        SaddlePoint([aslinearoperator(np.eye(2))], ["squared"], L2)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"prox": lambda v, sigma: v[:1]}, r"conjugates\[0\].prox returned .*shape \(1,\)"),
        ({"prox": lambda v, sigma: v * math.nan}, r"conjugates\[0\].prox returned NaN"),
        ({"value": lambda y: 0.0}, r"conjugates\[0\] contradicts itself"),
        ({"primal_value": lambda z: -1.0}, r"conjugates\[0\] contradicts itself"),
        ({"gamma": 0.0}, r"conjugates\[0\].gamma is 0"),
    ],
)
def test_wrong_conjugates_are_refused(broken: dict[str, Any], message: str) -> None:
    conjugate = Robust(np.array([0.3, -0.2]))
    vars(conjugate).update(broken)
    with pytest.raises(ValueError, match=message):
        solve(SaddlePoint([aslinearoperator(np.eye(2))], [conjugate], L2))


def uncompilable_loss(**options: Any) -> losses.Custom:
    """Half the squared distance; numba refuses the dictionary that holds strings and numbers."""
    mixed = {"scale": 1.0, "name": "squared"}
    return losses.Custom(
        value=lambda z, t: mixed["scale"] * (z - t) ** 2 / 2,
        conjugate=lambda y, t: y * y / 2 + mixed["scale"] * y * t,
        prox=lambda v, sigma, t: (v - sigma * t * mixed["scale"]) / (1 + sigma),
        gamma=1.0,
        **options,
    )


@pytest.mark.parametrize("slope", [None, lambda z, t: z - t], ids=["prox", "derivative"])
def test_custom_loss_that_numba_cannot_compile(slope: Callable[..., Any] | None) -> None:
    own = [uncompilable_loss(derivative=slope).at(0.5, weight=2.0) for _ in HEIGHTS]
    problem = SaddlePoint([operator(matrix) for matrix in matrices()], own, L2)
    squared = [losses.Squared().at(0.5, weight=2.0) for _ in HEIGHTS]
    expected = solve(SaddlePoint(matrices(), squared, L2), tol=1e-12, max_passes=3000)
    for name in ("spdhg", "saga"):
        result = solve(problem, name, tol=1e-9, max_passes=5000)
        assert abs(result.primal - expected.primal) <= result.tol
    with pytest.raises(TypeError, match=r"numba cannot compile.*LinearOperators"):
        solve(SaddlePoint(matrices(), own[0], L2))


def test_custom_block_loss_that_numba_cannot_compile() -> None:
    def prox(v: Array, sigma: float, t: Array, out: Array) -> None:
        out[:] = (v - sigma * np.asarray([*t.tolist()] or {})) / (1 + sigma)

    loss = losses.CustomBlock(
        value=lambda z, t: float(np.sum((z - t) ** 2)) / 2,
        conjugate=lambda y, t: float(y @ y / 2 + y @ t),
        prox=prox,
        gamma=1.0,
    )
    targets = [np.arange(1.0, q + 1) for q in HEIGHTS]
    own = [loss.at(target) for target in targets]
    squared = [losses.Squared().at(target) for target in targets]
    expected = solve(SaddlePoint(matrices(), squared, L2), tol=1e-12, max_passes=3000)
    problem = SaddlePoint([operator(matrix) for matrix in matrices()], own, L2)
    result = solve(problem, tol=1e-9, max_passes=3000)
    assert abs(result.primal - expected.primal) <= result.tol


# --- operators that are wrong ---------------------------------------------------------------------

SQUARED = losses.Squared().at(1.0)


def test_blocks_of_different_widths() -> None:
    with pytest.raises(ValueError, match=r"blocks\[1\] has 3 columns but blocks\[0\] has 2"):
        SaddlePoint([aslinearoperator(np.eye(2)), aslinearoperator(np.eye(3))], SQUARED, L2)


def test_targets_of_the_wrong_length() -> None:
    with pytest.raises(ValueError, match=r"conjugates\[0\] does not fit blocks\[0\]"):
        SaddlePoint([aslinearoperator(np.eye(2))], [losses.Squared().at([1.0, 2.0, 3.0])], L2)


def test_number_of_conjugates() -> None:
    with pytest.raises(ValueError, match="2 entries for 1 blocks"):
        SaddlePoint([aslinearoperator(np.eye(2))], [SQUARED, SQUARED], L2)


def test_complex_operators() -> None:
    with pytest.raises(TypeError, match=r"blocks\[0\] is complex"):
        SaddlePoint([aslinearoperator(1j * np.eye(2))], SQUARED, L2)


@pytest.mark.parametrize(
    ("functions", "kind", "message"),
    [
        ({"matvec": lambda x: x[:1]}, ValueError, r"blocks\[0\].matvec fails .*\(3,\)"),
        ({"rmatvec": lambda y: y[:1]}, ValueError, r"blocks\[0\].rmatvec fails .*\(3,\)"),
        ({"rmatvec": None}, TypeError, r"blocks\[0\].rmatvec is not implemented"),
        ({"matvec": lambda x: x * math.nan}, ValueError, r"blocks\[0\].matvec returned NaN"),
        ({"rmatvec": lambda y: y * math.inf}, ValueError, r"blocks\[0\].rmatvec returned NaN"),
        ({"matvec": lambda x: x * 1j}, TypeError, r"blocks\[0\].matvec returned dtype complex"),
        ({"rmatvec": lambda y: -y}, ValueError, r"blocks\[0\]: matvec and rmatvec are not adj"),
        ({"matvec": lambda x: x + 1.0}, ValueError, r"blocks\[0\]: matvec and rmatvec are not"),
    ],
)
def test_wrong_operators_are_refused(
    functions: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        solve(SaddlePoint([operator(np.eye(3), **functions)], SQUARED, L2))


def test_adjoint_of_a_neighbour_is_noticed() -> None:
    """One wrong entry among many."""
    matrix = np.random.default_rng(8).standard_normal((20, 30))
    other = matrix.T.copy()
    other[4, 5] += 0.1
    with pytest.raises(ValueError, match="not adjoint"):
        solve(SaddlePoint([operator(matrix, other)], SQUARED, L2))


def test_single_precision_operators_pass() -> None:
    matrix = np.random.default_rng(9).standard_normal((20, 30)).astype(np.float32)
    single = operator(
        matrix,
        matvec=lambda x: matrix @ x.astype(np.float32),
        rmatvec=lambda y: matrix.T @ y.astype(np.float32),
    )
    assert solve(SaddlePoint([single], SQUARED, L2), tol=1e-4).converged


def test_nan_in_the_middle_of_a_run_is_an_error() -> None:
    calls = []

    def matvec(x: Array) -> Array:
        calls.append(1)
        return x * (math.nan if len(calls) > 30 else 1.0)

    with pytest.raises(ValueError, match=r"blocks\[1\].matvec returned NaN or infinity"):
        solve(SaddlePoint([np.eye(3), operator(np.eye(3), matvec=matvec)], SQUARED, L2), tol=0.0)


def test_foreign_code_cannot_change_the_iterate() -> None:
    def matvec(x: Array) -> Array:
        x *= 2.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        solve(SaddlePoint([operator(np.eye(3), matvec=matvec)], SQUARED, L2))
