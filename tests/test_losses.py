"""The public loss objects: arrays in and out, targets, blocks, and a user's own losses."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaspdc import losses as ls
from adaspdc._laws import check_loss

SCALAR = [
    ls.Squared(),
    ls.SmoothHinge(gamma=0.5),
    ls.Logistic(),
    ls.SquaredHinge(),
    ls.Huber(delta=0.8),
    ls.SmoothPinball(quantile=0.9, gamma=0.3),
    ls.SmoothEpsilonInsensitive(epsilon=0.2, gamma=0.4),
    ls.SquaredEpsilonInsensitive(epsilon=0.2),
]
VECTOR = [ls.Multinomial(), ls.SmoothCrammerSinger(gamma=0.7), ls.MultiOutputSquared()]
all_losses = pytest.mark.parametrize("loss", [*SCALAR, *VECTOR], ids=lambda loss: loss.name)
scalar_losses = pytest.mark.parametrize("loss", SCALAR, ids=lambda loss: loss.name)
binary_losses = pytest.mark.parametrize(
    "loss", [loss for loss in SCALAR if loss.kind == "binary"], ids=lambda loss: loss.name
)
MODULI = {"smooth hinge": 0.5, "logistic": 4.0, "smooth pinball": 0.3, "multinomial": 2.0,
          "smooth epsilon-insensitive": 0.4, "smooth crammer-singer": 0.7}  # fmt: skip


@all_losses
def test_loss_describes_itself(loss: ls.Loss) -> None:
    assert loss.gamma == MODULI.get(loss.name, 1.0)
    assert loss == pickle.loads(pickle.dumps(loss))
    assert type(loss).__name__ in repr(loss)
    assert all(isinstance(number, float) for number in loss.params)
    with pytest.raises(AttributeError):
        loss.gamma = 3.0  # type: ignore[misc]


@all_losses
def test_built_in_losses_obey_the_laws(loss: ls.Loss) -> None:
    check_loss(loss)


def test_importing_losses_does_not_import_numba() -> None:
    code = "import sys, adaspdc.losses; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ls.SmoothHinge(gamma=0.0), r"gamma must be a positive finite number, got 0.0"),
        (lambda: ls.SmoothHinge(gamma=math.nan), "gamma .* got nan"),
        (lambda: ls.SmoothHinge(gamma="1"), "gamma .* got '1'"),  # type: ignore[arg-type]
        (lambda: ls.Huber(delta=-1.0), "delta .* got -1.0"),
        (lambda: ls.SmoothPinball(quantile=1.0), "quantile .* between 0 and 1, got 1.0"),
        (lambda: ls.SmoothPinball(gamma=math.inf), "gamma .* got inf"),
        (lambda: ls.SmoothEpsilonInsensitive(epsilon=-0.1), "epsilon .* at least 0, got -0.1"),
        (lambda: ls.SquaredEpsilonInsensitive(math.nan), "epsilon .* got nan; .*the squared loss"),
        (lambda: ls.SmoothCrammerSinger(gamma=-2), "gamma .* got -2"),
        (lambda: ls.Logistic().at(0.0), "must be -1 or \\+1"),
        (lambda: ls.Squared().at(weight=0.0), "weight must be a positive finite number, got 0.0"),
        (lambda: ls.Squared().at(math.nan), "targets must be finite"),
        (lambda: ls.Multinomial().at([0.0, 1.0]), "one class index"),
        (lambda: ls.Multinomial().at(0.5), "class ind"),
        (lambda: ls.Multinomial().at(3).value([0.0, 0.0]), r"class indices 0\.\.1"),
        (lambda: ls.Squared().at([1.0, 2.0]).value([1.0, 2.0, 3.0]), "3 coordinates but 2 targets"),
        (lambda: ls.Squared().at().value(np.ones((2, 2))), r"shape \(2, 2\)"),
        (lambda: ls.Squared().prox(1.0, 0.0, 1.0), "sigma must be positive, got 0.0"),
        (lambda: ls.Squared().at().prox(1.0, -1.0), "sigma must be a positive"),
        (lambda: ls.Multinomial().value(np.ones((2, 3)), [0, 3]), r"class indices 0\.\.2"),
        (lambda: ls.Multinomial().value(1.0, 0), "z must have one entry per output"),
    ],
)
def test_bad_arguments_are_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@scalar_losses
def test_scalar_methods_work_elementwise(loss: ls.Loss) -> None:
    z, target = np.linspace(-2, 3, 12).reshape(3, 4), np.where(np.arange(4) % 2, 1.0, -1.0)
    y = loss.derivative(z, target)
    assert y.shape == z.shape
    np.testing.assert_allclose(loss.value(z, target) + loss.conjugate(y, target), z * y, atol=1e-14)
    sigma = np.array([[0.5], [1.0], [1e3]])
    u = loss.prox(z, sigma, target)
    for index in np.ndindex(z.shape):
        each = loss.prox(z[index], sigma[index[0], 0], target[index[1]])
        assert np.ndim(each) == 0
        assert u[index] == each


@scalar_losses
@settings(max_examples=50, deadline=None, derandomize=True)
@given(v=st.floats(-30, 30), w=st.floats(-30, 30), power=st.floats(-5, 5))
def test_prox_is_firmly_nonexpansive(loss: ls.Loss, v: float, w: float, power: float) -> None:
    """Even a contraction, by 1 + sigma gamma."""
    sigma = 10.0**power
    u = loss.prox([v, w], sigma, 1.0)
    gap, moved = v - w, u[0] - u[1]
    assert (1 + sigma * loss.gamma) * moved**2 <= moved * gap + 1e-9 * (1 + gap**2)


@scalar_losses
@settings(max_examples=50, deadline=None, derandomize=True)
@given(v=st.floats(-30, 30), power=st.floats(-5, 5))
def test_moreau_identity(loss: ls.Loss, v: float, power: float) -> None:
    """x = (v - u) / sigma minimises phi(x) + sigma/2 (x - v/sigma)^2, so phi'(x) = u."""
    sigma = 10.0**power
    u = loss.prox(v, sigma, -1.0)
    x = (v - u) / sigma
    slack = 1e-13 * (1 + abs(v)) / sigma  # rounding of x, times the largest curvature of phi
    assert loss.derivative(x, -1.0) == pytest.approx(u, abs=1e-12 + slack / loss.gamma)


def test_vector_methods_work_on_rows() -> None:
    z = np.random.default_rng(0).normal(size=(4, 3))
    for loss in (ls.Multinomial(), ls.SmoothCrammerSinger()):
        target = [0, 2, 1, 1]
        y = loss.derivative(z, target)
        assert y.shape == (4, 3)
        total = loss.value(z, target) + loss.conjugate(y, target)
        np.testing.assert_allclose(total, np.sum(z * y, axis=1))
        u = loss.prox(z, [0.1, 1.0, 2.0, 3.0], target)
        np.testing.assert_array_equal(u[3], loss.prox(z[3], 3.0, 1))
        assert np.isfinite(loss.conjugate(u, target)).all()


def test_multi_output_squared_takes_flat_or_shaped_targets() -> None:
    loss, rng = ls.MultiOutputSquared(), np.random.default_rng(0)
    z, target = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    expected = 0.5 * np.sum((z - target) ** 2, axis=1)
    np.testing.assert_allclose(loss.value(z, target), expected)
    np.testing.assert_allclose(loss.value(z, target.ravel()), expected)
    np.testing.assert_allclose(loss.derivative(z, target), z - target)


def test_inputs_are_left_alone_and_may_be_read_only() -> None:
    z, t = np.array([0.5, -1.0]), np.array([1.0, -1.0])
    z.setflags(write=False)
    t.setflags(write=False)
    for loss in (ls.Logistic(), ls.Squared()):
        loss.prox(z, 2.0, t)
        loss.derivative(z, t)
        loss.at(t).prox(z, 2.0)
    np.testing.assert_array_equal(z, [0.5, -1.0])


# --- Blocks ---


@all_losses
def test_block_is_the_conjugate_of_its_weighted_loss(loss: ls.Loss) -> None:
    rng, weight = np.random.default_rng(1), 2.5
    targets = 1.0 if loss.kind in ("binary", "multiclass") else rng.normal(size=3)
    block, plain = loss.at(targets, weight=weight), loss.at(targets)
    assert block.gamma == loss.gamma / weight
    for _ in range(20):
        z = 3 * rng.normal(size=3)
        assert block.primal_value(z) == pytest.approx(weight * plain.primal_value(z))
        y = block.derivative(z)
        assert block.primal_value(z) + block.value(y) == pytest.approx(z @ y, abs=1e-12)
        sigma = 10 ** rng.uniform(-2, 2)
        u = block.prox(z, sigma)
        cost = sigma * block.value(u) + 0.5 * np.sum((u - z) ** 2)
        for other in (y, 0.99 * u + 0.01 * y):
            growth = (1 + sigma * block.gamma) / 2 * np.sum((other - u) ** 2)
            there = sigma * block.value(other) + 0.5 * np.sum((other - z) ** 2)
            assert cost + growth <= there + 1e-10 * (1 + abs(there))


def test_block_sums_over_coordinates_and_broadcasts_targets() -> None:
    block = ls.Squared().at(1.0)
    assert block.primal_value([1.0, 2.0, 3.0]) == 2.5
    assert block.value(2.0) == 4.0
    np.testing.assert_allclose(block.prox([3.0, 5.0], 1.0), [1.0, 2.0])
    assert "Squared" in repr(block)


# --- Targets ---


@pytest.mark.parametrize(
    ("y", "encoded", "labels"),
    [
        ([0, 1, 1], [-1, 1, 1], [0, 1]),
        ([3.5, -2.0, 3.5], [1, -1, 1], [-2.0, 3.5]),
        ([True, False], [1, -1], [False, True]),
        (["no", "yes", "no"], [-1, 1, -1], ["no", "yes"]),
        (np.array([b"b", b"a"]), [1, -1], [b"a", b"b"]),
        (pd.Series(["spam", "ham"]), [1, -1], ["ham", "spam"]),
        (pd.Series([1, 2, 1], index=[5, 6, 7], dtype="int8"), [-1, 1, -1], [1, 2]),
        (np.array([200, 7], dtype=np.uint8), [1, -1], [7, 200]),
        ([2, 2], [1, 1], [2]),
        ([0, 0], [-1, -1], [0]),
        ([-1.0], [-1], [-1.0]),
        ([True, True], [1, 1], [True]),
        ([False], [-1], [False]),
        (["x", "x"], [1, 1], ["x"]),
    ],
)
@binary_losses
def test_binary_targets(loss: ls.Loss, y: Any, encoded: list[int], labels: list[Any]) -> None:
    result, classes = loss.encode_targets(y, len(encoded))
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, encoded)
    assert classes is not None
    assert classes.tolist() == labels
    assert loss.n_outputs(result) == 1


def test_targets_in_final_form_are_not_copied() -> None:
    y = np.array([1.0, -1.0, 1.0])
    assert ls.Logistic().encode_targets(y, 3)[0] is y
    assert np.shares_memory(ls.Squared().encode_targets(y, 3)[0], y)
    strided = np.array([1.0, 5.0, -1.0, 5.0])[::2]
    assert ls.Logistic().encode_targets(strided, 2)[0].flags.c_contiguous


def test_regression_and_several_outputs() -> None:
    encoded, labels = ls.Huber().encode_targets(np.array([3, 4], dtype=np.int32), 2)
    assert labels is None
    assert encoded.dtype == np.float64
    loss, y = ls.MultiOutputSquared(), np.arange(6.0).reshape(3, 2)
    for form in (y, np.asfortranarray(y), pd.DataFrame(y)):
        encoded, labels = loss.encode_targets(form, 3)
        np.testing.assert_array_equal(encoded, np.arange(6.0))
        assert labels is None
        assert loss.n_outputs(encoded, 3) == 2
    with pytest.raises(ValueError, match=r"n \(the number of rows\) is needed"):
        loss.n_outputs(encoded)


def test_multiclass_targets() -> None:
    loss = ls.Multinomial()
    encoded, labels = loss.encode_targets(["b", "c", "a", "b"], 4)
    np.testing.assert_array_equal(encoded, [1.0, 2.0, 0.0, 1.0])
    assert labels is not None
    assert labels.tolist() == ["a", "b", "c"]
    assert loss.n_outputs(encoded) == 3
    encoded, labels = loss.encode_targets([7, 7], 2)
    assert loss.n_outputs(encoded) == 2


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (ls.Squared(), [1.0, 2.0], r"y must have shape \(3,\), got \(2,\)"),
        (ls.Squared(), np.ones((3, 1)), r"got \(3, 1\); pass y.ravel\(\)"),
        (ls.Squared(), 1.0, r"got \(\)"),
        (ls.Squared(), [1.0, math.nan, 2.0], "y contains nan in row 1"),
        (ls.Squared(), [1.0, math.inf, 2.0], "y contains inf in row 1"),
        (ls.Squared(), np.ones(3, dtype=complex), "y has dtype complex128"),
        (ls.Squared(), np.array([1, None, 2], dtype=object), "y has dtype object"),
        (ls.Squared(), np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "y has dtype datetime"),
        (ls.Squared(), ["a", "b", "c"], "y must hold numbers for squared, got strings"),
        (ls.Squared(), [[1], [1, 2], [3]], "y is not a rectangular array"),
        (ls.Logistic(), [0, 1, 2], r"y has 3 classes \(0, 1, 2.* but logistic is for two"),
        (ls.Logistic(), ["a", "b", "c"], "y has 3 classes .*Multinomial"),
        (ls.Logistic(), [0.0, math.nan, 1.0], "y contains nan in row 1"),
        (ls.Logistic(), [0.0, 1.0, -math.inf], "y contains -inf in row 2"),
        (ls.Logistic(), np.ones((3, 2)), r"y must have shape \(3,\), got \(3, 2\)"),
        (ls.Multinomial(), [0.0, math.nan, 1.0], "y contains nan in row 1"),
        (ls.MultiOutputSquared(), np.ones((2, 2)), r"\(3, number of outputs\), got \(2, 2\)"),
        (ls.MultiOutputSquared(), np.ones((3, 0)), r"y is empty"),
    ],
)
def test_bad_targets_are_explained(loss: ls.Loss, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss.encode_targets(y, 3)


def test_continuous_targets_are_not_classes() -> None:
    y = np.random.default_rng(0).normal(size=50)
    with pytest.raises(ValueError, match="50 distinct numbers in 50 rows"):
        ls.Multinomial().encode_targets(y, 50)


# --- A user's own losses ---


def user_value(z: float, t: float) -> float:
    return math.log(math.cosh(z - t)) if abs(z - t) < 300 else abs(z - t) - math.log(2.0)


def user_conjugate(y: float, t: float) -> float:
    if abs(y) > 1:
        return math.inf
    ends = 0.0
    for u in (1 + y, 1 - y):
        if u > 0:
            ends += 0.5 * u * math.log(u)
    return t * y + ends


def user_prox(v: float, sigma: float, t: float) -> float:
    low, high = -1 + 1e-15, 1 - 1e-15  # sigma (t + atanh(u)) + u = v
    for _ in range(80):
        u = 0.5 * (low + high)
        if sigma * (t + math.atanh(u)) + u > v:
            high = u
        else:
            low = u
    return 0.5 * (low + high)


def user_derivative(z: float, t: float) -> float:
    return math.tanh(z - t)


def log_cosh(**changes: Any) -> ls.Custom:
    parts: dict[str, Any] = {
        "value": user_value, "conjugate": user_conjugate, "prox": user_prox, "gamma": 1.0,
        "derivative": user_derivative, "name": "log-cosh",
    }  # fmt: skip
    return ls.Custom(**(parts | changes))


def test_custom_loss_obeys_the_laws() -> None:
    loss = log_cosh()
    loss.check()
    assert (loss.kind, loss.gamma, loss.name) == ("regression", 1.0, "log-cosh")
    z = np.array([[0.3, -2.0]])
    np.testing.assert_allclose(loss.value(z, 1.0), np.log(np.cosh(z - 1.0)))
    np.testing.assert_allclose(loss.derivative(z, 1.0), np.tanh(z - 1.0))
    assert loss.prox(0.4, 2.0, 0.0) == pytest.approx(user_prox(0.4, 2.0, 0.0))
    assert loss.at(0.5, weight=2.0).value([0.1, 0.2]) < math.inf


def test_custom_derivative_defaults_to_a_long_prox() -> None:
    loss = log_cosh(derivative=None)
    loss.check()
    z = np.array([-3.0, 0.2, 1.0])
    np.testing.assert_allclose(loss.derivative(z, 0.5), np.tanh(z - 0.5), atol=1e-7)


needs_numba = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@needs_numba
def test_compiled_functions_are_dispatchers() -> None:
    functions = log_cosh().compiled()
    assert all(function.signatures for function in functions)
    assert functions[0](0.5, 0.0) == user_value(0.5, 0.0)
    assert log_cosh().compiled() is functions


def bad_name(z: float, t: float) -> float:
    return undefined_helper(z) + t  # type: ignore[name-defined,no-any-return]  # noqa: F821


def no_result(z: float, t: float) -> None:
    z + t


@needs_numba
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": bad_name}, "numba cannot compile value: .*undefined_helper.*; write it with"),
        ({"conjugate": no_result}, "conjugate must return a float .* numba infers none"),
        ({"prox": user_value}, "numba cannot compile prox"),
        ({"prox": 3.0}, "prox must be a function, got 3.0"),
    ],
)
def test_functions_that_do_not_compile(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        log_cosh(**changes).compiled()


compiled_value: Any = numba.njit(user_value)
compiled_prox: Any = numba.njit(user_prox)


def wrong_value(z: float, t: float) -> Any:
    return 1.1 * compiled_value(z, t)


def high_value(z: float, t: float) -> Any:
    return compiled_value(z, t) + 0.1


def wrong_prox(v: float, sigma: float, t: float) -> Any:
    return 0.99 * compiled_prox(v, sigma, t)


def wrong_derivative(z: float, t: float) -> float:
    return 0.9 * math.tanh(z - t)


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"value": wrong_value}, "Fenchel-Young .* target="),
        ({"value": high_value}, "Fenchel-Young equality"),
        ({"derivative": wrong_derivative}, "Fenchel-Young equality"),
        ({"prox": wrong_prox}, "optimality of prox.* prox=.* better="),
        ({"gamma": 1.5}, r"strong convexity of conjugate with gamma=1.5.* y1=.* y2="),
    ],
)
def test_check_names_the_broken_law(changes: dict[str, Any], law: str) -> None:
    with pytest.raises(ValueError, match="loss 'log-cosh' breaks .*" + law):
        log_cosh(**changes).check()


def test_custom_arguments_are_validated() -> None:
    with pytest.raises(ValueError, match="gamma must be a positive finite number, got 0"):
        log_cosh(gamma=0)
    with pytest.raises(ValueError, match=r"kind must be one of .*regression.* got 'ranking'"):
        log_cosh(kind="ranking")
    assert "log-cosh" in repr(log_cosh())


def block_value(z: Any, t: Any) -> float:
    return float(0.5 * np.sum((z - t) ** 2))


def block_conjugate(y: Any, t: Any) -> float:
    return float(0.5 * np.sum(y * y) + np.sum(t * y))


def block_prox(v: Any, sigma: float, t: Any, out: Any) -> None:
    out[:] = (v - sigma * t) / (1.0 + sigma)


def block_derivative(z: Any, t: Any, out: Any) -> None:
    out[:] = z - t


@pytest.mark.parametrize("derivative", [None, block_derivative])
def test_custom_block(derivative: Any) -> None:
    loss = ls.CustomBlock(block_value, block_conjugate, block_prox, 1.0, derivative, name="mine")
    loss.check()
    assert loss.kind == "multioutput"
    z, t = np.array([[1.0, 2.0], [0.0, -3.0]]), np.array([[0.5, 0.5], [1.0, 0.0]])
    built_in = ls.MultiOutputSquared()
    np.testing.assert_allclose(loss.value(z, t), built_in.value(z, t))
    np.testing.assert_allclose(loss.derivative(z, t), z - t, rtol=1e-7)
    np.testing.assert_allclose(loss.prox(z, 0.3, t), built_in.prox(z, 0.3, t))


def test_custom_block_with_a_wrong_modulus_is_caught() -> None:
    loss = ls.CustomBlock(block_value, block_conjugate, block_prox, 1.2, name="mine")
    with pytest.raises(ValueError, match="strong convexity"):
        loss.check()
