"""Problems on which the paper's Algorithm 1 diverges: every run must end honestly all the same."""

import numpy as np
import pytest

from adaspdc import ERM, Method, Status, losses, regularizers
from test_certificate import METHODS, recomputed, run

ROWS = np.array([[1.0], [0.1]])
TARGETS = np.array([1.0, -1.0])
LAM = 1e-4
OPTIMUM = float((ROWS[:, 0] @ TARGETS / 2) / (ROWS[:, 0] @ ROWS[:, 0] / 2 + LAM))


def two_rows() -> ERM:
    return ERM(ROWS, TARGETS, losses.Squared(), regularizers.L2(LAM))


def best_value() -> float:
    x = np.array([OPTIMUM])
    return recomputed(ROWS, TARGETS, losses.Squared(), regularizers.L2(LAM), x, -TARGETS)[0]


@pytest.mark.parametrize("seed", range(10))
def test_the_paper_diverges_here(seed: int) -> None:
    """Without a watch the iterate runs away; the answer is the best point it met."""
    result = run(
        two_rows(), Method("adaspdc", watch=False), random_state=seed, max_passes=400, check_every=1
    )
    assert result.history["objective"][-1] > 1e3
    assert result.primal <= result.history["primal"][0]
    assert not result.events


@pytest.mark.parametrize("seed", range(10))
def test_the_run_notices_rolls_back_and_converges(seed: int) -> None:
    result = run(two_rows(), "adaspdc", tol=1e-6, max_passes=500, random_state=seed)
    assert result.status is Status.CONVERGED
    assert result.primal - best_value() <= result.gap + 1e-15
    assert len(result.events) == 1
    for words in ("adaspdc gave up", "rolled back to the best point", "went on with spdhg"):
        assert words in result.events[0]
        assert words in result.message
    assert result.method == "adaspdc"
    assert abs(result.x[0] - OPTIMUM) <= np.sqrt(2 * result.gap / LAM)


@pytest.mark.parametrize("sampling", ["iid", "permutation", "systematic"])
def test_the_rollback_does_not_depend_on_the_sampling(sampling: str) -> None:
    result = run(two_rows(), Method("adaspdc", sampling=sampling), tol=1e-6, max_passes=500)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_at_every_batch_size_is_honest(method: str, size: int) -> None:
    for seed in range(5):
        result = run(two_rows(), method, batch_size=size, random_state=seed)
        g = regularizers.L2(LAM)
        primal, dual, _ = recomputed(ROWS, TARGETS, losses.Squared(), g, result.x, result.y)
        assert (result.primal, result.dual) == pytest.approx((primal, dual), rel=1e-10)
        assert result.dual - 1e-12 <= best_value() <= result.primal + 1e-12
        assert result.gap < result.history["gap"][0]


def six_decades(seed: int, method: str) -> list[bool]:
    """Whether the runs of one method on one random problem converged, honest all of them."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 51)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d))
    X *= 10.0 ** rng.uniform(-3, 3, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    loss = (losses.Squared(), losses.Logistic(), losses.SmoothHinge(0.5))[seed % 3]
    t = np.where(rng.random(n) < 0.5, -1.0, 1.0) * (1.0 if seed % 3 else rng.uniform(0, 9, n))
    t[0] = -t[0] if abs(t.sum()) == n else t[0]
    problem = ERM(X, t, loss, regularizers.L2(10.0 ** float(rng.uniform(-6, 0))))
    converged = []
    for size in sorted({1, 2, n // 2 or 1, n}):
        result = run(problem, method, batch_size=size, random_state=seed)
        primal, dual, scale = recomputed(X, t, loss, problem.regularizer, result.x, result.y)
        assert result.primal == pytest.approx(primal, rel=1e-9)
        assert result.dual == pytest.approx(dual, rel=1e-9, abs=1e-11 * scale)
        converged.append(result.converged)
    return converged


@pytest.mark.parametrize("method", METHODS)
def test_norms_over_six_decades(method: str) -> None:
    for seed in range(12):
        six_decades(seed, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_more_norms_over_six_decades(method: str) -> None:
    for seed in range(12, 60):
        six_decades(seed, method)


def test_adaspdc_ends_no_worse_than_its_fallback() -> None:
    """What is lost to a wrong start is passes, not accuracy."""
    for seed in range(6):
        rng = np.random.default_rng(100 + seed)
        n = int(rng.integers(5, 30))
        X = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
        problem = ERM(X, rng.normal(size=n), losses.Squared(), regularizers.L2(1e-2))
        safe = run(problem, "spdhg", max_passes=20_000)
        paper = run(problem, "adaspdc", max_passes=40_000)
        assert paper.converged >= safe.converged, (safe, paper)


def test_the_log_tells_of_the_rollback(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(two_rows(), "adaspdc", verbose=1)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("* ")]
    assert lines == [f"* {event}" for event in result.events]
