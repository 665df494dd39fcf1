"""The certificate: values recomputed here by code that shares nothing with the package.

``recomputed`` and ``run`` also serve the other files that judge whole solves.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp, xlogy

import adaspdc
from adaspdc import ERM, ConvergenceWarning, Method, Result, SaddlePoint, losses, regularizers
from adaspdc import Status as S

METHODS = ("adaspdc", "spdc", "spdc-nonuniform", "spdhg", "sdca", "sag", "saga", "pdhg")
ANY_REGULARIZER = tuple(name for name in METHODS if name != "sag")
Array = np.ndarray[Any, Any]


# --------------------------------------------------------------------- the independent verifier


def loss_values(loss: losses.Loss, z: Array, t: Array) -> Array:
    """phi of every row of margins z (n, q) with targets t (n, q), or (n,) class indices."""
    match loss:
        case losses.Squared() | losses.MultiOutputSquared():
            each = 0.5 * (z - t) ** 2
        case losses.Logistic():
            each = np.where(t * z > 0, 0.0, -t * z) + np.log1p(np.exp(-np.abs(z)))
        case losses.SquaredHinge():
            each = 0.5 * np.maximum(1 - t * z, 0.0) ** 2
        case losses.SmoothHinge(gamma):
            short = 1 - t * z
            curved = np.clip(short, 0, gamma) ** 2 / (2 * gamma)
            each = np.where(short > gamma, short - gamma / 2, curved)
        case losses.Huber(delta):
            far = np.abs(z - t)
            each = np.where(far <= delta, far**2 / 2, delta * far - delta**2 / 2)
        case losses.SmoothPinball(q, gamma):  # Moreau envelope of the quantile loss
            near = z - np.clip((z - t) / gamma, -q, 1 - q) * gamma
            each = np.maximum(q * (t - near), (q - 1) * (t - near)) + (z - near) ** 2 / (2 * gamma)
        case losses.SmoothEpsilonInsensitive(epsilon, gamma):
            over = np.maximum(np.abs(z - t) - epsilon, 0.0)
            each = np.where(over <= gamma, over**2 / (2 * gamma), over - gamma / 2)
        case losses.SquaredEpsilonInsensitive(epsilon):
            each = 0.5 * np.maximum(np.abs(z - t) - epsilon, 0.0) ** 2
        case losses.Multinomial():
            return logsumexp(z, axis=1) - np.take_along_axis(z, t[:, None].astype(int), 1)[:, 0]
        case losses.SmoothCrammerSinger(gamma):
            own = np.eye(z.shape[1])[t.astype(int)]
            y = simplex_projection((z + 1 - own) / gamma + own) - own
            return (z * y).sum(1) - loss_conjugates(loss, y, t)
        case _:
            raise NotImplementedError(loss)
    return each.sum(1)


def simplex_projection(rows: Array) -> Array:
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)


def loss_conjugates(loss: losses.Loss, y: Array, t: Array) -> Array:
    """phi* of every row of duals y, +inf outside the domain."""
    if isinstance(loss, losses.Multinomial | losses.SmoothCrammerSinger):
        own = np.eye(y.shape[1])[t.astype(int)]
        u = y + own
        outside = (u.min(1) < 0) | (np.abs(u.sum(1) - 1) > 1e-9)
        if isinstance(loss, losses.Multinomial):
            inside = xlogy(u, np.maximum(u, 0)).sum(1)
        else:
            inside = -(u * (1 - own)).sum(1) + loss.gamma / 2 * (y**2).sum(1)
        return np.where(outside, np.inf, inside)
    quadratic: tuple[Any, Any, Any, Any]  # gamma, epsilon, low, high of the common form
    match loss:
        case losses.Squared() | losses.MultiOutputSquared():
            quadratic = 1, 0, -np.inf, np.inf
        case losses.Logistic():
            u = -t * y
            each = np.where(
                (u < 0) | (u > 1), np.inf, xlogy(u, np.abs(u)) + xlogy(1 - u, np.abs(1 - u))
            )
            return each.sum(1)
        case losses.SquaredHinge():
            quadratic = 1, 0, np.where(t > 0, -np.inf, 0), np.where(t > 0, 0, np.inf)
        case losses.SmoothHinge(gamma):
            quadratic = gamma, 0, np.where(t > 0, -1, 0), np.where(t > 0, 0, 1)
        case losses.Huber(delta):
            quadratic = 1, 0, -delta, delta
        case losses.SmoothPinball(q, gamma):
            quadratic = gamma, 0, -q, 1 - q
        case losses.SmoothEpsilonInsensitive(epsilon, gamma):
            quadratic = gamma, epsilon, -1, 1
        case losses.SquaredEpsilonInsensitive(epsilon):
            quadratic = 1, epsilon, -np.inf, np.inf
        case _:
            raise NotImplementedError(loss)
    gamma, epsilon, low, high = quadratic
    each = t * y + epsilon * np.abs(y) + gamma * y**2 / 2
    return np.where((y < low) | (y > high), np.inf, each).sum(1)


def regularizer_values(g: regularizers.Regularizer, x: Array, s: Array) -> tuple[float, float]:
    """g(x) and g*(s) for arrays of shape (d, K)."""
    lam = g.lam
    ridge = lam / 2 * np.sum(x**2)
    match g:
        case regularizers.L2():
            return ridge, np.sum(s**2) / (2 * lam)
        case regularizers.ElasticNet():
            over = np.maximum(np.abs(s) - g.l1, 0.0)
            return ridge + g.l1 * np.abs(x).sum(), np.sum(over**2) / (2 * lam)
        case regularizers.GroupL2():
            labels = np.unique(np.asarray(g.groups))
            weights = np.broadcast_to(np.asarray(g.group_weight), labels.shape)
            total, conjugate = ridge, 0.0
            for label, weight in zip(labels, weights, strict=True):
                members = np.asarray(g.groups) == label
                total += weight * np.linalg.norm(x[members])
                conjugate += max(np.linalg.norm(s[members]) - weight, 0.0) ** 2 / (2 * lam)
            return total, conjugate
        case regularizers.NonNegative():
            low, high = np.zeros((1, 1)), np.full((1, 1), np.inf)
        case regularizers.Box():
            low, high = (np.asarray(b, dtype=float).reshape(-1, 1) for b in (g.low, g.high))
        case _:
            raise NotImplementedError(g)
    best = np.clip(s / lam, low, high)
    inside = bool(np.all((x >= low) & (x <= high)))
    return (ridge if inside else np.inf), float(np.sum(s * best) - lam / 2 * np.sum(best**2))


def recomputed(
    X: Any,
    targets: Any,
    loss: losses.Loss,
    g: regularizers.Regularizer,
    x: Array,
    y: Array,
    weights: Any = None,
) -> tuple[float, float, float]:
    """P(x), D(y) and |P(0)| (or P at the point of g's domain nearest to 0) in plain NumPy."""
    A = (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float64)
    t = np.asarray(targets, dtype=np.float64)
    if not isinstance(loss, losses.Multinomial | losses.SmoothCrammerSinger) and t.ndim == 1:
        t = t[:, None]
    share = np.ones(len(A)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    x2 = np.reshape(x, (A.shape[1], -1))
    y2 = np.reshape(y, (len(A), -1))
    counted = share > 0
    with np.errstate(all="ignore"):
        r = A.T @ (share[:, None] * y2)
        own, conjugate = regularizer_values(g, x2, -r)
        primal = share @ loss_values(loss, A @ x2, t) + own
        dual = -(share[counted] @ loss_conjugates(loss, y2, t)[counted]) - conjugate
        origin = g.conjugate_gradient(np.zeros_like(x2))
        start = share @ loss_values(loss, A @ origin, t) + regularizer_values(g, origin, -r)[0]
    return float(primal), float(dual), max(1e-300, abs(float(start)))


# ------------------------------------------------------------------------- solving under watch


def assert_honest(result: Result) -> None:
    """What must hold of every result whatever happened on the way."""
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.y).all()
    assert result.gap >= 0.0  # so not NaN either
    assert not np.isnan(result.primal)
    assert not np.isnan(result.dual)
    if result.gap > 0.0:
        assert result.gap == result.primal - result.dual
    assert 0.0 <= result.tol < np.inf
    assert (result.status is S.CONVERGED) == (result.gap <= result.tol)
    assert result.message.strip()
    history = result.history
    assert len(history) >= 1
    assert not np.isnan([history["primal"], history["dual"], history["gap"]]).any()
    assert (np.diff(history["primal"]) <= 0).all()
    assert (np.diff(history["dual"]) >= 0).all()
    assert (np.diff(history["passes"]) >= 0).all()
    assert history["gap"][-1] == result.gap
    assert (history["primal"][-1], history["dual"][-1]) == (result.primal, result.dual)


def run(problem: Any, method: Any = "spdhg", **settings: Any) -> Result:
    """Solve; a ConvergenceWarning must come exactly where the status is not converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = adaspdc.solve(problem, method, **settings)
    kinds = [entry.category for entry in caught]
    assert kinds == ([] if result.converged else [ConvergenceWarning]), [str(w) for w in caught]
    assert_honest(result)
    return result


# --------------------------------------------------------------------------------------- tests

N, D, K = 24, 5, 3
GROUPS = np.array([7, 2, 7, 2, -1])
REGRESSION = (
    losses.Squared(),
    losses.Huber(0.4),
    losses.SmoothPinball(0.3, 0.5),
    losses.SmoothEpsilonInsensitive(0.2, 0.3),
)
BINARY = (losses.Logistic(), losses.SquaredHinge(), losses.SmoothHinge(0.5))
VECTOR = (losses.Multinomial(), losses.SmoothCrammerSinger(0.7), losses.MultiOutputSquared())
REGULARIZERS = (
    regularizers.L2(0.03),
    regularizers.ElasticNet(0.03, 0.02),
    regularizers.GroupL2(0.03, [0.05, 0.0, 0.02], GROUPS),
    regularizers.NonNegative(0.03),
    regularizers.Box(0.03, -0.2, [0.1, np.inf, 0.3, 0.0, 2.0]),
)


def example(loss: losses.Loss, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-1, 1, size=(N, 1))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[3] = 0.0
    match loss.kind:
        case "binary":
            return X, np.where(rng.random(N) < 0.4, -1.0, 1.0)
        case "multiclass":
            return X, np.resize(np.arange(K), N)
        case "multioutput":
            return X, rng.normal(size=(N, K)) + 1.0
        case _:
            return X, rng.normal(size=N) + 1.0


@pytest.mark.parametrize("g", REGULARIZERS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("loss", REGRESSION + BINARY + VECTOR, ids=lambda loss: loss.name)
def test_a_separate_computation_agrees(loss: losses.Loss, g: regularizers.Regularizer) -> None:
    X, t = example(loss)
    weights = np.random.default_rng(1).integers(0, 4, size=N).astype(float)
    for storage in (np.asarray, sparse.csr_array):
        for s in (None, weights):
            problem = ERM(storage(X), t, loss, g, sample_weight=s)
            for method, size in (("spdhg", 1), ("adaspdc", 4), ("sdca", 1), ("pdhg", 1)):
                result = run(problem, method, batch_size=size, tol=1e-9, max_passes=7)
                primal, dual, scale = recomputed(X, t, loss, g, result.x, result.y, s)
                assert abs(result.primal - primal) <= 1e-10 * abs(primal)
                assert abs(result.dual - dual) <= 1e-10 * max(abs(dual), abs(primal))
                assert abs(result.gap - (primal - dual)) <= 1e-10 * max(abs(primal), abs(dual))
                assert result.tol == pytest.approx(1e-9 * scale, rel=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_certified_the_same_way(method: str) -> None:
    X, t = example(losses.Logistic())
    for size in (1, 3, N):
        problem = ERM(X, t, losses.Logistic(), regularizers.L2(1e-3))
        result = run(problem, method, batch_size=size, tol=1e-10, max_passes=12)
        primal, dual, scale = recomputed(
            X, t, problem.loss, problem.regularizer, result.x, result.y
        )
        assert result.primal == pytest.approx(primal, rel=1e-10)
        assert result.dual == pytest.approx(dual, rel=1e-10, abs=1e-10 * scale)


def test_blocks_of_unequal_height_are_certified() -> None:
    rng = np.random.default_rng(2)
    blocks = [rng.normal(size=(q, D)) for q in (1, 4, 2, 7, 1)]
    parts = [
        losses.Huber(0.5).at(rng.normal(size=1), weight=2.0),
        losses.Squared().at(rng.normal(size=4)),
        losses.Logistic().at([1.0, -1.0], weight=0.25),
        losses.SquaredHinge().at(np.where(rng.random(7) < 0.5, -1.0, 1.0)),
        losses.SmoothEpsilonInsensitive(0.1, 0.2).at(0.3),
    ]
    g = regularizers.ElasticNet(0.05, 0.01)
    problem = SaddlePoint(blocks, parts, g)
    for method in ANY_REGULARIZER:
        result = run(problem, method, batch_size=2, tol=1e-9, max_passes=10)
        primal, conjugates, r = 0.0, 0.0, np.zeros(D)
        for block, part, y in zip(blocks, parts, problem.split(result.y), strict=True):
            t = np.broadcast_to(part.targets, y.shape)[:, None]
            primal += part.weight * loss_values(part.loss, (block @ result.x)[:, None], t).sum() / 5
            scaled = y[:, None] / part.weight
            conjugates += part.weight * loss_conjugates(part.loss, scaled, t).sum() / 5
            r += block.T @ y / 5
        own, conjugate = regularizer_values(g, result.x, -r)
        assert result.primal == pytest.approx(primal + own, rel=1e-10)
        assert result.dual == pytest.approx(-conjugates - conjugate, rel=1e-10, abs=1e-10)


@given(
    seed=st.integers(0, 10**6),
    method=st.sampled_from(METHODS),
    size=st.integers(1, 6),
    passes=st.integers(0, 40),
    spread=st.floats(0.0, 3.0),
    lam=st.floats(-8.0, 1.0),
)
def test_the_gap_is_never_negative(
    seed: int, method: str, size: int, passes: int, spread: float, lam: float
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 3)) * 10.0 ** rng.uniform(-spread, spread, size=(6, 1))
    problem = ERM(X, rng.normal(size=6), losses.Squared(), regularizers.L2(10.0**lam))
    run(problem, method, batch_size=size, max_passes=passes, tol=1e-12, random_state=seed)


@pytest.mark.parametrize("method", ANY_REGULARIZER)
def test_an_origin_outside_the_box_does_not_loosen_the_tolerance(method: str) -> None:
    X, t = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([3.0, 4.0])
    g = regularizers.Box(0.1, 0.2, 0.3)  # P(0) = +inf
    result = run(ERM(X, t, losses.Squared(), g), method, tol=1e-6, max_passes=2000)
    assert result.converged
    assert result.gap <= 1e-5
    assert result.x == pytest.approx([0.3, 0.3], abs=1e-3)


def test_the_best_points_may_come_from_different_checks() -> None:
    """Primal and dual values never get worse, even where the iterate does."""
    X = np.array([[1.0], [0.1]])
    problem = ERM(X, [1.0, -1.0], losses.Squared(), regularizers.L2(1e-4))
    result = run(problem, Method("adaspdc", watch=False), max_passes=60, check_every=1)
    objective = result.history["objective"]
    assert objective[-1] > 100 * result.primal  # the iterate has left
    assert result.primal == objective.min()


def test_a_wrong_conjugate_is_no_convergence() -> None:
    """A custom loss whose conjugate is too small would certify anything: it must not."""

    def value(z: float, t: float) -> float:
        return 0.5 * (z - t) ** 2

    def conjugate(y: float, t: float) -> float:
        return 0.5 * y * y + t * y - 10.0

    def prox(v: float, sigma: float, t: float) -> float:
        return (v - sigma * t) / (1.0 + sigma)

    broken = losses.Custom(value, conjugate, prox, gamma=1.0)
    problem = ERM(np.eye(2), [1.0, 2.0], broken, regularizers.L2(0.1))
    with pytest.warns(ConvergenceWarning, match="trouble"):
        result = adaspdc.solve(problem)
    assert result.status is S.NUMERICAL_TROUBLE
    assert np.isfinite(result.x).all()


def test_the_error_bound_in_the_documentation() -> None:
    """|x - x*| <= sqrt(2 gap / lam)."""
    X, t = example(losses.Squared())
    lam = 0.05
    exact = np.linalg.solve(X.T @ X / N + lam * np.eye(D), X.T @ t / N)
    for passes in (0, 1, 3, 10, 50):
        problem = ERM(X, t, losses.Squared(), regularizers.L2(lam))
        result = run(problem, max_passes=passes, tol=1e-13)
        assert np.linalg.norm(result.x - exact) <= np.sqrt(2 * result.gap / lam) + 1e-12
