"""The regularisers against brute force, the laws of convex analysis, and wrong input."""

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adaspdc import regularizers
from adaspdc._containers import Grouped, Separable
from adaspdc._kernels import regularizers as kernels
from adaspdc._kernels._jit import jit
from adaspdc.regularizers import L2, Box, Custom, ElasticNet, GroupL2, NonNegative, Regularizer

Array = NDArray[np.float64]
D = 6


# Lasso-like term of a user, as in the README: h(x) = lam/2 x^2 + |x|, lam = 0.5.
def user_value(x: float) -> float:
    return 0.25 * x * x + abs(x)


def user_prox(u: float, tau: float) -> float:
    return math.copysign(max(abs(u) - tau, 0.0), u) / (1.0 + 0.5 * tau)


def user_conjugate(s: float) -> float:
    return max(abs(s) - 1.0, 0.0) ** 2


def user_gradient(s: float) -> float:
    return math.copysign(max(abs(s) - 1.0, 0.0), s) / 0.5


INFINITE = math.inf
BOUNDS = (
    np.array([-1.0, 0.0, -math.inf, 0.5, -2.0, 1.0]),
    np.array([1.0, 3.0, 0.2, 0.5, INFINITE, 2.0]),
)
REGULARIZERS: list[Regularizer] = [
    L2(0.3),
    ElasticNet(0.3, 0.7),
    ElasticNet(2.0, 0.0),
    NonNegative(0.3),
    Box(0.3, -0.5, 1.5),
    Box(0.3, *BOUNDS),
    Box(0.3, -1.0, BOUNDS[1] + 1.0),
    GroupL2(0.3, 0.8, [0, 1, 0, 2, 2, 1]),
    GroupL2(0.3, [0.0, 0.5, 40.0], [7, -3, -3, 7, 100, 7]),
    Custom(0.5, user_value, user_prox, user_conjugate),
    Custom(0.5, user_value, user_prox, user_conjugate, user_gradient),
]
each = pytest.mark.parametrize("g", REGULARIZERS, ids=lambda g: type(g).__name__)
# Fewer than usual: each law is tried on eleven regularisers, and on six coordinates at a time.
few = settings(max_examples=40)
vectors = st.lists(st.floats(-20.0, 20.0), min_size=D, max_size=D).map(np.array)
steps = st.floats(-6.0, 6.0).map(lambda e: 10.0**e)


def naive_value(g: Regularizer, x: Array) -> float:
    """g(x) of a (d, K) array, written down from the definition."""
    quadratic = g.lam / 2 * math.fsum(x.ravel() ** 2)
    match g:
        case ElasticNet():
            return quadratic + g.l1 * math.fsum(abs(x).ravel())
        case NonNegative():
            return quadratic if np.all(x >= 0) else math.inf
        case Box():
            low, high = (np.broadcast_to(np.asarray(b), len(x)) for b in (g.low, g.high))
            inside = np.all((low[:, None] <= x) & (x <= high[:, None]))
            return quadratic if inside else math.inf
        case GroupL2():
            labels = np.unique(np.asarray(g.groups))
            weights = np.broadcast_to(np.asarray(g.group_weight), labels.shape)
            members = [np.asarray(g.groups) == label for label in labels]
            norms = [np.linalg.norm(x[member]) for member in members]
            return quadratic + float(weights @ norms)
        case Custom():
            return quadratic + math.fsum(abs(x).ravel())
    return quadratic


def feasible(g: Regularizer, x: Array) -> Array:
    if isinstance(g, NonNegative):
        return abs(x)
    return np.clip(x, g.low, g.high) if isinstance(g, Box) else x


# ------------------------------------------------------------------------------- values


@each
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_value_is_the_definition(g: Regularizer, n_outputs: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = feasible(g, rng.normal(size=(n_outputs, D))).T
        assert g.value(x) == pytest.approx(naive_value(g, x), rel=1e-14)
        assert g.value(x[:, 0]) == pytest.approx(naive_value(g, x[:, :1]), rel=1e-14)


def test_outside_the_domain_the_value_is_infinite() -> None:
    assert NonNegative(1.0).value([1.0, -1e-300]) == math.inf
    assert Box(1.0, -1.0, 1.0).value([0.0, np.nextafter(1.0, 2.0)]) == math.inf
    assert Box(1.0, -1.0, 1.0).value([-1.0, 1.0]) == 1.0


@each
def test_nan_is_not_hidden(g: Regularizer) -> None:
    x = feasible(g, np.ones(D))
    x[2] = math.nan
    assert math.isnan(g.value(x))
    assert math.isnan(g.prox(x, 0.1)[2])
    if not isinstance(g, Custom):  # max(nan, 0) is Python's, and the user's, choice
        assert math.isnan(g.conjugate(x))
        assert math.isnan(g.conjugate_gradient(x)[2])


# ------------------------------------------------------------------------------- laws


@each
@few
@given(x=vectors, s=vectors)
def test_fenchel_young(g: Regularizer, x: Array, s: Array) -> None:
    x = feasible(g, x)
    value, conjugate = g.value(x), g.conjugate(s)
    assert value + conjugate >= float(s @ x) - 1e-12 * (1.0 + value + abs(conjugate))
    best = g.conjugate_gradient(s)
    scale = 1.0 + float(abs(s) @ abs(best))
    assert abs(g.value(best) + conjugate - float(s @ best)) <= 1e-12 * scale


@each
@few
@given(u=vectors, tau=steps)
def test_prox_is_optimal(g: Regularizer, u: Array, tau: float) -> None:
    p = g.prox(u, tau)
    s = (u - p) / tau  # a subgradient of g at p exactly if Fenchel-Young holds with equality
    rounding = abs(u).max() / tau * 1e-15
    slack = rounding * (abs(p).sum() + abs(g.conjugate_gradient(s)).sum() + D * rounding / g.lam)
    scale = abs(s) @ abs(p) + g.value(p)
    assert abs(g.value(p) + g.conjugate(s) - float(s @ p)) <= 1e-12 * (1.0 + scale) + 10 * slack


@each
@few
@given(x=vectors, tau=steps)
def test_moreau_identity(g: Regularizer, x: Array, tau: float) -> None:
    # q = prox_{g*/tau}(x/tau) minimises g*(q) + tau/2 |q - x/tau|^2: its gradient has to vanish.
    p = g.prox(x, tau)
    q = (x - p) / tau
    gradient = g.conjugate_gradient(q) + tau * (q - x / tau)
    rounding = 1e-15 * abs(x).max() * (1.0 + 1.0 / (tau * g.lam))
    assert np.all(abs(gradient) <= 1e-13 * (1.0 + abs(x)) + 20 * rounding)


@each
@few
@given(s=vectors, z=vectors)
def test_strong_convexity(g: Regularizer, s: Array, z: Array) -> None:
    # Of g, as it shows in g*: the gradient of g* is cocoercive with lam.
    change = g.conjugate_gradient(s) - g.conjugate_gradient(z)
    product = float((s - z) @ change)
    assert product >= g.lam * float(change @ change) - 1e-11 * (1.0 + abs(product))


@each
@few
@given(u=vectors, v=vectors, tau=steps)
def test_prox_contracts(g: Regularizer, u: Array, v: Array, tau: float) -> None:
    apart = np.linalg.norm(g.prox(u, tau) - g.prox(v, tau))
    scale = np.linalg.norm(u) + np.linalg.norm(v)
    assert apart <= (np.linalg.norm(u - v) + 1e-14 * scale) / (1.0 + g.lam * tau)


@each
def test_conjugate_gradient_is_the_derivative(g: Regularizer) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        s, step = 3 * rng.normal(size=D), 1e-6
        numerical = [
            (g.conjugate(s + step * e) - g.conjugate(s - step * e)) / (2 * step) for e in np.eye(D)
        ]
        # g* is once differentiable: at a kink of its gradient the error is step/lam.
        np.testing.assert_allclose(g.conjugate_gradient(s), numerical, atol=2 * step / g.lam)


# ------------------------------------------------------------------------------- brute force


def minimum(objective: Any) -> float:
    """The least value met by zooming in on the minimum over one coordinate of a convex function."""
    centre, width = 0.0, 20.0
    for _ in range(8):
        grid = np.append(np.linspace(centre - width, centre + width, 41), 0.0)
        values = [objective(v) for v in grid]
        centre, width = grid[np.argmin(values)], width / 10
    return float(min(values))


@each
def test_prox_and_conjugate_against_brute_force(g: Regularizer) -> None:
    # Along each coordinate axis from the claimed optimum, which is enough: apart from the separable
    # norms at their kink, g is smooth.
    rng = np.random.default_rng(3)
    for tau in (0.05, 1.0, 20.0):
        u = 2 * rng.normal(size=D)
        p, w = g.prox(u, tau), g.conjugate_gradient(u)
        for e in np.eye(D, dtype=bool):

            def near(v: float, u: Array = u, p: Array = p, e: Any = e, tau: float = tau) -> float:
                x = np.where(e, v, p)
                return g.value(x) + float((x - u) @ (x - u)) / (2 * tau)

            def dual(v: float, u: Array = u, w: Array = w, e: Any = e) -> float:
                x = np.where(e, v, w)
                return g.value(x) - float(u @ x)

            reached = g.value(p) + float((p - u) @ (p - u)) / (2 * tau)
            assert reached <= minimum(near) + 1e-12 * (1.0 + reached)
            assert -g.conjugate(u) <= minimum(dual) + 1e-12 * (1.0 + abs(g.conjugate(u)))


def test_group_prox_in_two_dimensions_against_a_grid() -> None:
    g, u, tau = GroupL2(0.4, 0.9, [0, 0]), np.array([1.1, -0.6]), 0.7
    axis = np.linspace(-2, 2, 401)
    a, b = np.meshgrid(axis, axis)
    objective = (
        0.2 * (a**2 + b**2) + 0.9 * np.hypot(a, b) + ((a - u[0]) ** 2 + (b - u[1]) ** 2) / 1.4
    )
    best = np.unravel_index(np.argmin(objective), objective.shape)
    np.testing.assert_allclose(g.prox(u, tau), [a[best], b[best]], atol=0.01)


# ------------------------------------------------------------------------------- extreme numbers


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("kind", [L2, NonNegative, "net", "box", "group"])
def test_scales_far_from_one(kind: Any, scale: float) -> None:
    def at(size: float) -> Regularizer:
        if kind == "net":
            return ElasticNet(0.5, 0.3 * size)
        if kind == "box":
            return Box(0.5, -0.2 * size, 0.9 * size)
        if kind == "group":
            return GroupL2(0.5, 0.4 * size, [0, 0, 1])
        return kind(0.5)  # type: ignore[no-any-return]

    u = np.array([1.0, -0.25, 3.0])
    expected = at(1.0).prox(u, 0.3), at(1.0).conjugate_gradient(u), at(1.0).conjugate(u)
    np.testing.assert_allclose(at(scale).prox(u * scale, 0.3), expected[0] * scale, rtol=1e-14)
    gradient = at(scale).conjugate_gradient(u * scale)
    np.testing.assert_allclose(gradient, expected[1] * scale, rtol=1e-14)
    assert at(scale).conjugate(u * scale) == pytest.approx(expected[2] * scale**2, rel=1e-13)


def test_group_norm_beyond_the_squares() -> None:
    g = GroupL2(1.0, 1.0, [0, 0])
    np.testing.assert_allclose(g.prox([3e200, 4e200], 1.0), [1.5e200, 2e200], rtol=1e-15)
    tiny = GroupL2(1.0, 1e-200, [0, 0])
    np.testing.assert_allclose(tiny.prox([3e-200, 4e-200], 1.0), [1.2e-200, 1.6e-200], rtol=1e-15)


# ------------------------------------------------------------------------------- kernels


def test_separable_kernels() -> None:
    for g in (L2(0.1), ElasticNet(0.1, 0.2), NonNegative(0.1), Box(0.1, -1, 1)):
        kernel = g.kernel(7, 3)
        assert isinstance(kernel, Separable)
        assert (kernel.stride, kernel.low.size, kernel.high.size) == (0, 1, 1)
    kernel = Box(0.1, [0.0, 1.0], 5).kernel(2, 3)
    np.testing.assert_array_equal(kernel.low, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(kernel.high, np.full(6, 5.0))
    assert kernel.stride == 1


def test_group_kernel_lists_each_coordinate_once() -> None:
    kernel = GroupL2(0.1, [1.0, 2.0], [9, -4, 9]).kernel(3, 2)
    assert isinstance(kernel, Grouped)
    np.testing.assert_array_equal(kernel.group, [1, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(kernel.members, [2, 3, 0, 1, 4, 5])
    np.testing.assert_array_equal(kernel.start, [0, 2, 6])
    assert {a.dtype for a in (kernel.group, kernel.members, kernel.start)} == {np.dtype(np.int32)}


@jit
def scalars(reg, u, tau, out):  # type: ignore[no-untyped-def]
    for j in range(u.shape[0]):
        out[j, 0] = kernels.separable_prox(reg, np.uint32(j), u[j], tau)
        out[j, 1] = kernels.separable_conjugate_gradient(reg, j, u[j])


@pytest.mark.parametrize("g", [ElasticNet(0.3, 0.7), Box(0.3, *BOUNDS)], ids=["net", "box"])
def test_scalar_and_vector_functions_agree(g: Regularizer) -> None:
    u, out = np.linspace(-2, 2, D), np.empty((D, 2))
    scalars(g.kernel(D), u, 0.4, out)
    np.testing.assert_array_equal(out, np.stack([g.prox(u, 0.4), g.conjugate_gradient(u)], axis=1))


@pytest.mark.parametrize("g", REGULARIZERS[:-2], ids=lambda g: type(g).__name__)
def test_in_place_and_read_only(g: Regularizer) -> None:
    u = np.linspace(-2.0, 2.0, D)
    kernel: Any = g.kernel(D)
    in_place: Any = kernels
    expected = g.prox(u, 0.4), g.conjugate_gradient(u)
    work = u.copy()
    in_place.call_prox(kernel, work, 0.4, work)
    np.testing.assert_array_equal(work, expected[0])
    work = u.copy()
    in_place.call_conjugate_gradient(kernel, work, work)
    np.testing.assert_array_equal(work, expected[1])
    u.setflags(write=False)
    np.testing.assert_array_equal(g.prox(u, 0.4), expected[0])


@each
def test_layouts_and_types_give_the_same(g: Regularizer) -> None:
    x = np.round(np.random.default_rng(4).normal(size=(D, 2)), 1).astype(np.float32)
    expected = g.prox(x.astype(float), 0.5)
    assert expected.shape == (D, 2)
    np.testing.assert_array_equal(g.prox(np.asfortranarray(x), 0.5), expected)
    assert g.conjugate(x.tolist()) == pytest.approx(g.conjugate(x), rel=1e-6)
    assert g.prox(np.ones(D, dtype=int), 0.5).dtype == np.float64


# ------------------------------------------------------------------------------- user's own


def test_custom_equals_builtin() -> None:
    custom, builtin = REGULARIZERS[-2], ElasticNet(0.5, 1.0)
    s = np.random.default_rng(5).normal(size=50) * 3
    np.testing.assert_allclose(custom.prox(s, 0.3), builtin.prox(s, 0.3), rtol=1e-15)
    np.testing.assert_allclose(
        custom.conjugate_gradient(s), builtin.conjugate_gradient(s), rtol=1e-14, atol=1e-14
    )
    assert custom.conjugate(s) == pytest.approx(builtin.conjugate(s), rel=1e-14)
    assert custom.value(s) == pytest.approx(builtin.value(s), rel=1e-14)


def test_custom_is_compiled_once_and_survives_pickling() -> None:
    custom = Custom(0.5, user_value, user_prox, user_conjugate)
    assert custom.compiled() is custom.compiled()
    again = pickle.loads(pickle.dumps(custom))
    assert again.prox([3.0], 1.0)[0] == custom.prox([3.0], 1.0)[0]
    assert "user_prox" in repr(custom)


def test_custom_gradient_from_prox_for_a_small_lam() -> None:
    lam = 1e-9

    def value(x: float) -> float:
        return 0.5 * lam * x * x if x >= 0 else math.inf

    def prox(u: float, tau: float) -> float:
        return max(u, 0.0) / (1.0 + lam * tau)

    def conjugate(s: float) -> float:
        return max(s, 0.0) ** 2 / (2 * lam)

    custom = Custom(lam, value, prox, conjugate)
    custom.check()
    np.testing.assert_allclose(
        custom.conjugate_gradient([2.0, -1.0, 0.0]), [2.0 / lam, 0.0, 0.0], rtol=1e-14
    )


def test_check_accepts_what_is_right() -> None:
    for g in REGULARIZERS[-2:]:
        assert isinstance(g, Custom)
        g.check()


def wrong_prox(u: float, tau: float) -> float:
    return math.copysign(max(abs(u) - tau, 0.0), u) / (1.0 + 0.6 * tau)


def wrong_conjugate(s: float) -> float:
    return 2 * max(abs(s) - 1.0, 0.0) ** 2


def wrong_value(x: float) -> float:
    return 0.2 * x * x + abs(x)


@pytest.mark.parametrize(
    ("functions", "lam"),
    [
        ((user_value, wrong_prox, user_conjugate), 0.5),
        ((user_value, user_prox, wrong_conjugate), 0.5),
        ((wrong_value, user_prox, user_conjugate), 0.5),
        ((user_value, user_prox, user_conjugate), 0.8),
        ((user_value, wrong_prox, user_conjugate, user_gradient), 0.5),
        ((user_value, user_prox, user_conjugate, user_conjugate), 0.5),
    ],
)
def test_check_finds_what_is_wrong(functions: tuple[Any, ...], lam: float) -> None:
    with pytest.raises(ValueError, match=r"break the law .* off by"):
        Custom(lam, *functions).check()


def unsupported(x: float) -> float:
    return float(sorted({"a": x}.items(), key=str)[0][1])


def returns_nothing(x: float) -> None:
    return None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unsupported, r"value \(unsupported\) cannot be compiled by numba: .+ It must take"),
        (returns_nothing, r"value \(returns_nothing\) cannot be compiled.* return a float"),
        (user_prox, r"value \(user_prox\) cannot be compiled"),
        (math.sqrt, "value must be a plain Python function"),
        (3.0, "value must be a plain Python function"),
    ],
)
def test_what_cannot_be_compiled_says_so(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Custom(0.5, function, user_prox, user_conjugate).compiled()


# ------------------------------------------------------------------------------- wrong input


def lam_first(lam: Any) -> list[Any]:
    return [
        lambda: L2(lam),
        lambda: ElasticNet(lam, 0.1),
        lambda: NonNegative(lam),
        lambda: Box(lam, 0, 1),
        lambda: GroupL2(lam, 1.0, [0]),
        lambda: Custom(lam, user_value, user_prox, user_conjugate),
    ]


@pytest.mark.parametrize("lam", [0, 0.0, -1.0])
def test_lam_must_be_positive(lam: float) -> None:
    for build in lam_first(lam):
        with pytest.raises(ValueError, match=r"needs lam > 0, got lam=.*e\.g\. 1e-6"):
            build()


def test_lam_must_be_a_finite_number() -> None:
    for build in lam_first(math.nan) + lam_first(math.inf):
        with pytest.raises(ValueError, match="lam must be finite"):
            build()
    for build in lam_first("1") + lam_first(True) + lam_first(1j) + lam_first(None):
        with pytest.raises(TypeError, match="lam must be a real number"):
            build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ElasticNet(1.0, -0.1), r"l1 must be zero or positive, got -0\.1"),
        (lambda: ElasticNet(1.0, math.nan), "l1 must be finite"),
        (lambda: Box(1.0, 2.0, 1.0), r"low must not exceed high.*low=2\.0, high=1\.0"),
        (lambda: Box(1.0, [0.0, 2.0], 1.0), r"low=2\.0, high=1\.0 in feature 1"),
        (lambda: Box(1.0, math.nan, 1.0), "low must not be NaN"),
        (lambda: Box(1.0, math.inf, math.inf), "finite number between"),
        (lambda: Box(1.0, [0.0, 0.0], [1.0, 1.0, 1.0]), "same length, got 2 and 3"),
        (lambda: Box(1.0, np.zeros((2, 2)), 1.0), r"low must be a number or have shape \(d,\)"),
        (lambda: Box(1.0, [0.0, 0.0], 1.0).kernel(3), "low has 2 entries but there are 3 features"),
        (lambda: GroupL2(1.0, 1.0, [0, 1]).kernel(3), "groups has 2 labels but there are 3"),
        (lambda: GroupL2(1.0, 1.0, []), "non-empty"),
        (lambda: GroupL2(1.0, 1.0, [[0, 1]]), r"shape \(1, 2\)"),
        (lambda: GroupL2(1.0, [1.0, 2.0, 3.0], [0, 1]), "groups has 2 distinct labels"),
        (lambda: GroupL2(1.0, -1.0, [0, 1]), r"group_weight must be finite.*got -1\.0"),
        (lambda: GroupL2(1.0, [1.0, math.nan], [0, 1]), "group_weight must be finite.*got nan"),
        (lambda: L2(1.0).prox([1.0], 0.0), "tau must be positive"),
        (lambda: L2(1.0).prox([1.0], math.nan), "tau must be finite"),
        (lambda: L2(1.0).value(1.0), r"x must have shape \(d,\) or \(d, K\)"),
        (lambda: L2(1.0).conjugate(np.zeros((2, 2, 2))), r"s must have shape"),
    ],
)
def test_wrong_values(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: ElasticNet(1.0, "a"),  # type: ignore[arg-type]
            "l1 must be a real number, got 'a'",
        ),
        (lambda: GroupL2(1.0, 1.0, [0.5, 1.0]), "groups must be integers, got dtype float64"),
        (lambda: GroupL2(1.0, "x", [0]), "group_weight must be real numbers"),
        (lambda: Box(1.0, [1j], 1.0), "low must be real numbers, got dtype complex128"),
        (lambda: L2(1.0).value([1j]), "x must be real numbers, got dtype complex128"),
        (
            lambda: L2(1.0).prox([1.0], "a"),  # type: ignore[arg-type]
            "tau must be a real number",
        ),
        (lambda: Regularizer(1.0), "abstract"),  # type: ignore[abstract]
    ],
)
def test_wrong_types(build: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


def test_parameters_are_copied_and_frozen() -> None:
    low, groups, weight = np.zeros(2), np.array([0, 1]), np.ones(2)
    box, group = Box(1.0, low, 1.0), GroupL2(1.0, weight, groups)
    low[:], groups[:], weight[:] = 9.0, 5, 7.0
    assert box.kernel(2).low.tolist() == [0.0, 0.0]
    assert isinstance(group.kernel(2), Grouped)
    assert group.value([1.0, 0.0]) == 1.5
    for frozen in (*REGULARIZERS, box, group):
        with pytest.raises(dataclasses.FrozenInstanceError):
            frozen.lam = 2.0  # type: ignore[misc]
    assert L2(1) == L2(1.0)
    assert ElasticNet(1.0, 0.5) != ElasticNet(1.0, 0.6)


def test_all_public_names_exist() -> None:
    assert all(hasattr(regularizers, name) for name in regularizers.__all__)
