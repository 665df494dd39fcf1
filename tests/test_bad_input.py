"""Bad input is refused by name, and odd but valid input is solved."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adaspdc
from adaspdc import ERM, Method, SaddlePoint, losses, regularizers, sampling
from test_certificate import ANY_REGULARIZER, METHODS, assert_honest, recomputed, run

Array = np.ndarray[Any, Any]
X = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.0], [3.0, 1.0]])
B = np.array([1.0, -0.5, 2.0, 0.0])
LABELS = np.array([1.0, -1.0, 1.0, -1.0])
L2 = regularizers.L2(0.1)


def ridge(X: Any = X, y: Any = B, **settings: Any) -> ERM:
    return ERM(X, y, losses.Squared(), L2, **settings)


def changed(array: Array, index: Any, value: float) -> Array:
    copy = array.copy()
    copy[index] = value
    return copy


# ------------------------------------------------------------------------- NaN and infinity


@pytest.mark.parametrize("storage", [np.asarray, np.float32, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_in_the_data(storage: Callable[..., Any], value: float) -> None:
    with pytest.raises(ValueError, match=r"X must be finite, got (nan|-?inf) at row 2, column 1"):
        adaspdc.solve(ridge(storage(changed(X, (2, 1), value))))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_in_the_targets(value: float) -> None:
    with pytest.raises(ValueError, match=r"y contains (nan|-?inf) in row 1"):
        ridge(y=changed(B, 1, value))
    with pytest.raises(ValueError, match=r"y contains (nan|-?inf) in row 1"):
        ERM(X, changed(LABELS, 1, value), losses.Logistic(), L2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_in_the_weights(value: float) -> None:
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is (nan|-?inf); .*finite"):
        ridge(sample_weight=[1.0, 1.0, 1.0, value])


def test_not_finite_in_a_block() -> None:
    bad = changed(X, (1, 1), np.nan)
    with pytest.raises(ValueError, match=r"blocks must be finite, got nan at row 5, column 1"):
        adaspdc.solve(SaddlePoint([X, bad], losses.Squared().at(), L2))


def test_not_finite_in_the_targets_of_a_block() -> None:
    with pytest.raises(ValueError, match="targets must be finite"):
        losses.Squared().at([1.0, np.nan])


# ------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(4), r"X must be two-dimensional .* got shape \(4,\)"),
        (np.ones((4, 2, 1)), r"X must be two-dimensional .* got shape \(4, 2, 1\)"),
        (np.float64(3.0), r"X must be two-dimensional"),
        ([[1.0], [1.0, 2.0]], r"X cannot be read as a matrix"),
        (np.ones((0, 2)), r"X has shape \(0, 2\): it needs at least one row"),
        (np.ones((4, 0)), r"X has shape \(4, 0\): it needs at least one column"),
        (sparse.csr_array((0, 2)), r"X has shape \(0, 2\): it needs at least one row"),
        (sparse.csr_array((4, 0)), r"X has shape \(4, 0\): it needs at least one column"),
    ],
)
def test_shape_of_the_data(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ridge(given)


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 2), (), (4, 1), (1, 4)])
def test_shape_of_the_targets(shape: tuple[int, ...]) -> None:
    for loss in (losses.Squared(), losses.Logistic(), losses.Multinomial()):
        with pytest.raises(ValueError, match=r"y must have shape \(4,\), got"):
            ERM(X, np.ones(shape), loss, L2)


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1), ()])
def test_shape_of_the_weights(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(4,\)"):
        ridge(sample_weight=np.ones(shape))


def test_shapes_of_blocks_and_conjugates() -> None:
    part = losses.Squared().at()
    with pytest.raises(ValueError, match=r"blocks\[1\] has 3 columns but blocks\[0\] has 2"):
        SaddlePoint([X, np.ones((2, 3))], part, L2)
    with pytest.raises(ValueError, match=r"conjugates has 3 entries for 2 blocks"):
        SaddlePoint([X, X], [part] * 3, L2)
    with pytest.raises(ValueError, match=r"conjugates\[1\] does not fit blocks\[1\].* 4 .* 3"):
        SaddlePoint([X, X], [part, losses.Squared().at([1.0, 2.0, 3.0])], L2)
    with pytest.raises(ValueError, match=r"sizes add up to 3, but blocks has 4 rows"):
        SaddlePoint(X, part, L2, sizes=[1, 2])
    with pytest.raises(ValueError, match="sizes must say how many rows"):
        SaddlePoint(X, part, L2)
    with pytest.raises(ValueError, match="blocks is empty"):
        SaddlePoint([], part, L2)
    with pytest.raises(ValueError, match=r"blocks\[0\] has no rows"):
        SaddlePoint([np.ones((0, 2)), X], part, L2)


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (regularizers.Box(0.1, [0.0, 0.0, 0.0], 1.0), "low has 3 entries but there are 2 features"),
        (regularizers.Box(0.1, 0.0, [1.0]), "high has 1 entries but there are 2 features"),
        (regularizers.GroupL2(0.1, 1.0, [0, 0, 1]), "groups has 3 labels but there are 2 features"),
    ],
)
def test_a_regularizer_of_another_dimension(g: regularizers.Regularizer, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adaspdc.solve(ERM(X, B, losses.Squared(), g))


def test_a_warm_start_of_another_shape() -> None:
    with pytest.raises(ValueError, match="warm_start has 3 primal and 4 dual numbers"):
        adaspdc.solve(ridge(), warm_start=(np.zeros(3), np.zeros(4)))
    with pytest.raises(ValueError, match="warm_start holds NaN or infinity"):
        adaspdc.solve(ridge(), warm_start=(np.zeros(2), np.full(4, np.nan)))
    with pytest.raises(ValueError, match="warm_start must be a Result or a pair"):
        adaspdc.solve(ridge(), warm_start=3.0)


def test_a_warm_start_that_is_transposed_is_not_read_in_the_wrong_order() -> None:
    problem = ERM(X, np.ones((4, 3)), losses.MultiOutputSquared(), L2)
    x, y = np.zeros((2, 3)), np.zeros((4, 3))
    for start in ((x, y), (x.ravel(), y.ravel())):
        assert run(problem, max_passes=0, warm_start=start).passes == 0
    for start, name in (((x.T, y), "x"), ((x, y.T), "y")):
        with pytest.raises(ValueError, match=rf"warm_start must be .*: {name} has shape \(3, "):
            adaspdc.solve(problem, warm_start=start)


# ------------------------------------------------------------------------- labels


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SquaredHinge(), losses.SmoothHinge()])
def test_labels_that_are_not_two_classes(loss: losses.Loss) -> None:
    with pytest.raises(ValueError, match=rf"y has 3 classes .* {loss.name} is for two; use Multi"):
        ERM(X, [0, 1, 2, 1], loss, L2)
    with pytest.raises(ValueError, match="y has 4 classes"):
        ERM(X, ["a", "b", "c", "d"], loss, L2)


def test_strings_as_regression_targets() -> None:
    with pytest.raises(ValueError, match="y must hold numbers for squared, got strings"):
        ridge(y=["1", "2", "3", "4"])


# ------------------------------------------------------------------------- weights


def test_negative_weights() -> None:
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -0.5; weights must not be neg"):
        ridge(sample_weight=[1.0, -0.5, 1.0, 1.0])


def test_masked_targets_and_weights_are_not_taken_at_face_value() -> None:
    """NumPy gave the numbers below the mask."""
    masked = np.ma.masked_array(B, mask=B > 1)
    with pytest.raises(TypeError, match=r"y is a masked array.*filled"):
        ridge(y=masked)
    with pytest.raises(TypeError, match=r"sample_weight is a masked array.*filled"):
        ridge(sample_weight=masked + 3)
    with pytest.raises(TypeError, match=r"targets is a masked array.*filled"):
        losses.Squared().at(masked)


def test_weights_that_are_all_zero() -> None:
    with pytest.raises(ValueError, match="sample_weight is zero everywhere"):
        ridge(sample_weight=np.zeros(4))


# ------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("lam", [0.0, -1.0])
def test_lam_that_is_not_positive(lam: float) -> None:
    for make in (
        regularizers.L2,
        regularizers.NonNegative,
        lambda lam: regularizers.ElasticNet(lam, 0.1),
        lambda lam: regularizers.Box(lam, 0.0, 1.0),
        lambda lam: regularizers.GroupL2(lam, 0.1, [0, 1]),
    ):
        with pytest.raises(ValueError, match=rf"needs lam > 0, got lam={lam}.* e\.g\. 1e-6"):
            make(lam)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_gamma_that_is_not_positive(gamma: float) -> None:
    for make in (
        losses.SmoothHinge,
        losses.SmoothCrammerSinger,
        lambda gamma: losses.SmoothPinball(0.5, gamma),
        lambda gamma: losses.SmoothEpsilonInsensitive(0.1, gamma),
    ):
        with pytest.raises(
            ValueError, match=rf"gamma must be a positive finite number, got {gamma}"
        ):
            make(gamma)


def test_a_method_that_cannot_take_the_regularizer_names_those_that_can() -> None:
    problem = ERM(X, B, losses.Squared(), regularizers.ElasticNet(0.1, 0.1))
    known = ", ".join(ANY_REGULARIZER)
    with pytest.raises(ValueError, match=rf"'sag' handles regularizers\.L2 only.*one of: {known}"):
        adaspdc.solve(problem, "sag")


def test_an_unknown_method_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=rf"'sgd' is unknown; .*{', '.join(METHODS)}"):
        adaspdc.solve(ridge(), "sgd")


def test_a_step_for_a_method_without_one_lists_those_with_one() -> None:
    with pytest.raises(ValueError, match=r"'spdhg' .*takes no step=0.5; these do: sag, saga"):
        Method("spdhg", step=0.5)


def test_an_unknown_sampling_lists_the_known_ones() -> None:
    known = ", ".join(sampling.SAMPLERS)
    with pytest.raises(ValueError, match=rf"sampling 'random' is unknown; .*{known}"):
        Method("adaspdc", sampling="random")


@pytest.mark.parametrize("loss", ["logistic", losses.Logistic, None, 3])
def test_an_unknown_loss(loss: Any) -> None:
    with pytest.raises(TypeError, match=r"loss must be a Loss from adaspdc\.losses"):
        ERM(X, B, loss, L2)


@pytest.mark.parametrize("g", ["l2", regularizers.L2, 1e-3, None])
def test_an_unknown_regularizer(g: Any) -> None:
    with pytest.raises(TypeError, match=r"regularizer must be a Regularizer from adaspdc\.regul"):
        ERM(X, B, losses.Squared(), g)


@pytest.mark.parametrize("size", [0, -1, 5, 10**9])
@pytest.mark.parametrize("method", METHODS)
def test_a_batch_size_outside_the_blocks(method: str, size: int) -> None:
    with pytest.raises(ValueError, match=rf"batch_size must be in 1\.\.4; got {size}"):
        adaspdc.solve(ridge(), method, batch_size=size)


# ------------------------------------------------------------------------- types


@pytest.mark.parametrize("dtype", [complex, np.complex64, object])
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda dtype: ridge(X.astype(dtype)), "X must hold real numbers"),
        (lambda dtype: ridge(y=B.astype(dtype)), "y has dtype"),
        (lambda dtype: ridge(sample_weight=np.ones(4).astype(dtype)), "sample_weight"),
        (lambda dtype: SaddlePoint([X.astype(dtype)], losses.Squared(), L2), "blocks"),
        (lambda dtype: losses.Squared().at(B.astype(dtype)), "targets"),
        (
            lambda dtype: adaspdc.solve(ridge(), warm_start=(np.zeros(2).astype(dtype), B)),
            "warm_start",
        ),
    ],
    ids=["X", "y", "sample_weight", "blocks", "targets", "warm_start"],
)
def test_dtypes_that_are_not_real(use: Callable[..., Any], message: str, dtype: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        use(dtype)


def test_a_block_without_numbers_beside_a_sparse_one_is_named() -> None:
    """SciPy's error about its own types came through."""
    for dtype in (object, complex, str):
        with pytest.raises(TypeError, match="blocks must hold real numbers"):
            SaddlePoint([sparse.csr_array(X), X.astype(dtype)], losses.Squared(), L2)


def test_complex_sparse_data() -> None:
    with pytest.raises(TypeError, match="X must hold real numbers"):
        ridge(sparse.csr_array(X.astype(complex)))


# ------------------------------------------------------------------------- not errors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_zero_rows_and_columns(method: str, storage: Callable[..., Any]) -> None:
    wide = np.zeros((7, 5))
    wide[np.ix_([1, 2, 4, 6], [0, 3])] = X
    t = np.array([5.0, *B[:2], -3.0, B[2], 0.5, B[3]])
    for size in (1, 3, 7):
        problem = ridge(storage(wide), t)
        result = run(problem, method, batch_size=size, tol=1e-9, max_passes=3000)
        exact = np.linalg.solve(wide.T @ wide / 7 + 0.1 * np.eye(5), wide.T @ t / 7)
        assert result.converged
        assert result.x == pytest.approx(exact, abs=1e-3)
        assert (result.x[[1, 2, 4]] == 0).all()
        assert result.y[[0, 3, 5]] == pytest.approx(-t[[0, 3, 5]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_nothing_but_zero_rows(method: str, storage: Callable[..., Any]) -> None:
    result = run(ridge(storage(np.zeros((4, 2)))), method, batch_size=2)
    assert result.converged
    assert (result.x == 0).all()
    assert result.y == pytest.approx(-B)


def test_weight_on_zero_rows_only() -> None:
    result = run(ridge(np.array([[1.0], [0.0]]), [1.0, 2.0], sample_weight=[0, 1]))
    assert result.converged
    assert (result.x == 0).all()
    assert result.primal == pytest.approx(2.0)


def test_blocks_of_zeros() -> None:
    zero = np.zeros((2, 2))
    part = losses.Huber(0.5).at(1.0)
    result = run(SaddlePoint([zero, X], part, L2), tol=1e-9)
    assert result.converged
    everything = run(SaddlePoint([zero, zero], part, L2), tol=1e-9)
    assert everything.converged
    assert (everything.x == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_one_row_and_one_column(method: str) -> None:
    for shape in ((1, 1), (1, 3), (4, 1)):
        A = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) / 3
        t = np.arange(shape[0]) - 1.5
        problem = ERM(A, t, losses.Squared(), regularizers.L2(0.5))
        result = run(problem, method, tol=1e-9, max_passes=3000)
        gram = A.T @ A / shape[0] + 0.5 * np.eye(shape[1])
        assert result.converged
        assert result.x == pytest.approx(np.linalg.solve(gram, A.T @ t / shape[0]), abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_duplicate_rows(method: str) -> None:
    twice, t = np.vstack([X, X, X]), np.tile(LABELS, 3)
    for size in (1, 5):
        whole = run(
            ERM(twice, t, losses.Logistic(), L2), method, batch_size=size, tol=1e-9, max_passes=3000
        )
        once = run(ERM(X, LABELS, losses.Logistic(), L2), "spdhg", tol=1e-12, max_passes=3000)
        assert whole.converged
        assert whole.primal == pytest.approx(once.primal, rel=1e-8)


@pytest.mark.parametrize("label", [1, -1, 0, 7, "yes", True, False])
def test_constant_labels(label: Any) -> None:
    sign = 1.0 if label in (1, 7, "yes", True) else -1.0
    same = np.full(4, sign)
    for method in METHODS:
        problem = ERM(X, [label] * 4, losses.SmoothHinge(0.5), L2)
        result = run(problem, method, tol=1e-7, max_passes=3000)
        primal, dual, _ = recomputed(X, same, problem.loss, L2, result.x, result.y)
        assert result.converged
        assert (primal, dual) == pytest.approx((result.primal, result.dual), rel=1e-10)


def test_one_class_of_several() -> None:
    result = run(ERM(X, ["only"] * 4, losses.Multinomial(), L2), tol=1e-7)
    assert result.converged


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(400, 2), (3, 400)])
def test_tall_and_wide_data(method: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    A, t = rng.normal(size=shape) / np.sqrt(shape[1]), rng.normal(size=shape[0])
    problem = ERM(A, t, losses.Squared(), regularizers.L2(0.05))
    result = run(problem, method, tol=1e-8, max_passes=2000)
    exact = A.T @ np.linalg.solve(A @ A.T / shape[0] + 0.05 * np.eye(shape[0]), t / shape[0])
    assert result.converged
    assert result.x == pytest.approx(exact, abs=1e-3)


# ------------------------------------------------------------------------- extreme norms


@pytest.mark.parametrize("method", METHODS)
def test_an_infinite_objective_is_not_within_an_infinite_tolerance(method: str) -> None:
    """Targets whose squares overflow came back as converged, with a gap of infinity."""
    with pytest.raises(ValueError, match=r"objective at x = 0 is inf.*rescale y"):
        adaspdc.solve(ridge(y=B * 1e200), method)
    with np.errstate(over="ignore"):
        result = run(ridge(y=B * 1e150), method, tol=1e100, max_passes=5)
    assert np.isfinite(result.gap)


@pytest.mark.parametrize("exponent", [-150, -120, -80, -20, -8, 8, 20, 80, 120, 150])
@pytest.mark.parametrize("method", METHODS)
def test_norms_of_any_size(method: str, exponent: int) -> None:
    """Correct or refused: rows of size 10^e, with lam as hard as usual or matched to the rows."""
    rng = np.random.default_rng(3)
    A, t = rng.normal(size=(6, 2)) * 10.0**exponent, rng.normal(size=6) + 1.0
    for lam in (1e-3, 1e-3 * 10.0 ** min(2 * exponent, 300)):
        g = regularizers.L2(lam) if lam > 0 else L2
        problem = ERM(A, t, losses.Squared(), g)
        try:
            result = run(problem, method, tol=1e-7, max_passes=300)
        except ValueError as error:
            assert "float64" in str(error)  # noqa: PT017 - one of two outcomes
            continue
        primal, dual, scale = recomputed(A, t, problem.loss, g, result.x, result.y)
        assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12 * scale)
        assert result.dual == pytest.approx(dual, rel=1e-9, abs=1e-12 * scale)
        assert result.converged or result.gap > 1e-7 * scale


@pytest.mark.parametrize("method", METHODS)
def test_norms_of_very_different_size(method: str) -> None:
    """Rows of norm 1e-150 to 1e150 in one problem."""
    rng = np.random.default_rng(4)
    for span in (3, 20, 80, 150):
        A = rng.normal(size=(7, 3)) * 10.0 ** np.linspace(-span, span, 7)[:, None]
        for loss, t in ((losses.Squared(), rng.normal(size=7)), (losses.Logistic(), np.ones(7))):
            problem = ERM(A, t, loss, regularizers.L2(1e-2))
            try:
                result = run(problem, method, batch_size=2, max_passes=100)
            except ValueError as error:
                assert "float64" in str(error)  # noqa: PT017 - one of two outcomes
                continue
            primal, dual, scale = recomputed(A, t, loss, problem.regularizer, result.x, result.y)
            assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12 * scale)
            assert result.dual <= dual + 1e-9 * abs(dual) + 1e-12 * scale


def test_weights_of_very_different_size() -> None:
    for weights in ([1.0, 1e-300, 1.0, 1.0], [1e300, 1.0, 1e-5, 1e300], [1e-310] * 4, [1e308] * 4):
        try:
            result = run(ridge(sample_weight=weights), tol=1e-9)
        except ValueError as error:
            assert "float64" in str(error)  # noqa: PT017 - one of two outcomes
            continue
        assert result.converged
        s = np.array(weights) / max(weights)
        gram = (X.T * s) @ X / s.sum() + 0.1 * np.eye(2)
        assert result.x == pytest.approx(np.linalg.solve(gram, (X.T * s) @ B / s.sum()), abs=1e-3)


def test_nothing_is_lost_when_the_fallback_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule to fall back on may refuse norms that the method itself can take (here 1e155)."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 3)) * 1e155
    problem = ERM(A, rng.normal(size=5), losses.Squared(), regularizers.L2(1e-2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
        seen: list[float] = []
        try:
            result = adaspdc.solve(
                problem, "adaspdc", max_passes=50, callback=lambda now: seen.append(now.passes)
            )
        except ValueError:
            assert len(seen) == 0, "refused in the middle of a run: the best point is lost"
        else:
            assert_honest(result)
