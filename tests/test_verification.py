"""The independent certificate agrees with the solver's, and notices what is wrong."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adaspdc import ERM, losses, regularizers, solve
from adaspdc.model import Model
from adaspdc.verification import verify

RNG = np.random.default_rng(1)
X = RNG.standard_normal((80, 6))
SCORE = X @ RNG.standard_normal(6) + 0.3 * RNG.standard_normal(80)
CLASSES = np.digitize(SCORE, [-1.0, 1.0])
LOSSES: list[Any] = [
    losses.Squared(),
    losses.Logistic(),
    losses.SmoothHinge(0.3),
    losses.SquaredHinge(),
    losses.Huber(0.7),
    losses.SmoothPinball(0.8, 0.2),
    losses.SmoothEpsilonInsensitive(0.1, 0.5),
    losses.SquaredEpsilonInsensitive(0.1),
    losses.Multinomial(),
    losses.SmoothCrammerSinger(0.4),
]
PENALTIES: list[Any] = [
    regularizers.L2(0.02),
    regularizers.ElasticNet(0.02, 0.01),
    regularizers.NonNegative(0.02),
    regularizers.Box(0.02, -0.4, 0.6),
    regularizers.Box(0.02, [-1.0, 0.0, -1.0, 0.0, -1.0, 0.0], 0.5),
    regularizers.GroupL2(0.02, [0.01, 0.02], [1, 1, 1, 2, 2, 2]),
]


def fitted(loss: Any, penalty: Any, tol: float = 1e-9, **options: Any) -> tuple[Model, Any]:
    y: Any = {"binary": np.sign(SCORE), "multiclass": CLASSES}.get(loss.kind, SCORE)
    problem = ERM(X, y, loss, penalty)
    return Model.of(problem, solve(problem, tol=tol, **options)), y


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
def test_agrees_with_the_solver(loss: Any, penalty: Any) -> None:
    model, y = fitted(loss, penalty)
    found = verify(model, sparse.csr_array(X), y)
    assert found.holds, found.problems
    scale = 1e-10 * max(1.0, abs(found.primal))
    assert abs(found.primal - model.certificate["primal"]) <= scale
    assert abs(found.dual - model.certificate["dual"]) <= scale


@pytest.mark.filterwarnings("ignore::adaspdc.ConvergenceWarning")
def test_unfinished_fits_verify_their_own_gap() -> None:
    model, y = fitted(losses.Logistic(), regularizers.L2(1e-4), 1e-12, max_passes=2)
    found = verify(model, X, y)
    assert found.holds
    assert found.gap > found.tol


def changed(model: Model, **attributes: Any) -> Model:
    return Model(**{**vars(model), **attributes})


def test_notices_other_coefficients() -> None:
    model, y = fitted(losses.Logistic(), regularizers.L2(0.01))
    found = verify(changed(model, coef=model.coef * 1.001), X, y)
    assert not found.holds
    assert "primal is" in found.problems[0]


def test_notices_another_dual_point() -> None:
    model, y = fitted(losses.Logistic(), regularizers.L2(0.01))
    assert not verify(changed(model, dual=model.dual * 0.99), X, y).holds
    outside = verify(changed(model, dual=model.dual * 5), X, y)
    assert outside.dual == -np.inf
    assert not outside.holds


def test_notices_a_false_claim() -> None:
    model, y = fitted(losses.Logistic(), regularizers.L2(0.01), 1e-3)
    claim = {**model.certificate, "gap": 1e-15, "tol": 1e-15}
    found = verify(changed(model, certificate=claim), X, y)
    assert any("above the tolerance" in problem for problem in found.problems)


def test_notices_other_data() -> None:
    model, y = fitted(losses.Squared(), regularizers.L2(0.01))
    assert not verify(model, X, y + 1e-4).holds
    assert not verify(model, X[::-1], y).holds
    with pytest.raises(ValueError, match="not its training data"):
        verify(model, X[:-1], y[:-1])
    with pytest.raises(ValueError, match="not its training data"):
        verify(model, X[:, :-1], y)
    with pytest.raises(ValueError, match="text"):
        verify(model, X, np.array(["a"] * 80))


@pytest.mark.filterwarnings("ignore::adaspdc.ConvergenceWarning")
def test_rounding_is_allowed_for_and_small_on_ordinary_data() -> None:
    model, y = fitted(losses.Squared(), regularizers.L2(0.01))
    assert verify(model, X, y).rounding < 1e-13
    far = X + 1e6  # sums of such numbers lose six digits
    problem = ERM(far, SCORE, losses.Squared(), regularizers.L2(0.01), intercept=True)
    found = verify(Model.of(problem, solve(problem, max_seconds=5), intercept=True), far, SCORE)
    assert found.rounding > 1e-10
    assert found.holds, found.problems


def test_unknown_label() -> None:
    model, y = fitted(losses.Logistic(), regularizers.L2(0.01))
    with pytest.raises(ValueError, match=r"label 7\.0 is unknown"):
        verify(model, X, np.where(y > 0, 7.0, y))


def test_text_labels_and_one_class() -> None:
    for y in (np.where(SCORE > 0, "b", "a"), np.array(["a"] * 80), np.full(80, -2.0)):
        problem = ERM(X, y, losses.Logistic(), regularizers.L2(0.01))
        assert verify(Model.of(problem, solve(problem)), X, y).holds
