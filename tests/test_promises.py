"""The promises a user can rely on, one section each; long ones are marked slow.

Left out here because they have files of their own: the independent verifier (test_certificate.py)
and what the issue calls bad input (test_bad_input.py).
"""

import functools
import hashlib
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import sparse

import adaspdc
from adaspdc import (
    ERM,
    Method,
    Result,
    SaddlePoint,
    Status,
    losses,
    regularizers,
    sampling,
)
from stopwatch import fastest
from test_certificate import ANY_REGULARIZER, METHODS, recomputed, run

Array = np.ndarray[Any, Any]
PACKAGE = Path(adaspdc.__file__).parent


# ------------------------------- 6: the certificate bounds the true error, against 60 digits


class Exact:
    """A small problem in 60-digit arithmetic: P, and its minimum."""

    def __init__(self, X: Array, t: Array, loss: losses.Loss, lam: float, weights: Array) -> None:
        self.rows = [[mpf(float(v)) for v in row] for row in X]
        self.t = [mpf(float(v)) for v in t]
        total = mpmath.fsum(mpf(float(w)) for w in weights)
        self.share = [mpf(float(w)) / total for w in weights]
        self.loss, self.lam = loss, mpf(lam)

    def value(self, x: Any) -> Any:
        loss = mpmath.fsum(
            s * self.curve(z, t)[0]
            for s, z, t in zip(self.share, self.margins(x), self.t, strict=True)
        )
        return loss + self.lam / 2 * mpmath.fsum(v * v for v in x)

    def margins(self, x: Any) -> list[Any]:
        return [mpmath.fdot(row, x) for row in self.rows]

    def curve(self, z: Any, t: Any) -> tuple[Any, Any, Any]:
        """phi, phi' and phi'' of one row."""
        match self.loss:
            case losses.Squared():
                return (z - t) ** 2 / 2, z - t, mpf(1)
            case losses.Logistic():
                e = mpmath.exp(-abs(z))
                own = e / (1 + e) if t * z > 0 else 1 / (1 + e)
                return mpmath.log1p(e) + max(-t * z, 0), -t * own, e / (1 + e) ** 2
            case losses.SquaredHinge():
                short = max(1 - t * z, 0)
                return short**2 / 2, -t * short, mpf(short > 0)
            case losses.SmoothHinge(gamma):
                short = 1 - t * z
                if short > gamma:
                    return short - mpf(gamma) / 2, -t, mpf(0)
                short = max(short, 0)
                return short**2 / (2 * gamma), -t * short / gamma, mpf(short > 0) / gamma
            case losses.Huber(delta):
                off = z - t
                if abs(off) > delta:
                    return delta * abs(off) - mpf(delta) ** 2 / 2, delta * mpmath.sign(off), mpf(0)
                return off**2 / 2, off, mpf(1)
            case losses.SquaredEpsilonInsensitive(epsilon):
                off = z - t
                over = max(abs(off) - mpf(epsilon), 0)
                return over**2 / 2, mpmath.sign(off) * over, mpf(over > 0)
        raise NotImplementedError(self.loss)

    def minimum(self, start: Array) -> Any:
        """P at the minimiser, by halved Newton steps; exact pieces for piecewise quadratics."""
        x = [mpf(float(v)) for v in start]
        size = range(len(x))
        value = self.value(x)
        for _ in range(200):
            curves = [self.curve(z, t) for z, t in zip(self.margins(x), self.t, strict=True)]
            gradient = [
                self.lam * x[j]
                + mpmath.fsum(
                    s * c[1] * row[j]
                    for s, c, row in zip(self.share, curves, self.rows, strict=True)
                )
                for j in size
            ]
            hessian = mpmath.matrix(len(x))
            for j in size:
                for k in size:
                    hessian[j, k] = self.lam * (j == k) + mpmath.fsum(
                        s * c[2] * row[j] * row[k]
                        for s, c, row in zip(self.share, curves, self.rows, strict=True)
                    )
            step = mpmath.lu_solve(hessian, mpmath.matrix(gradient))
            decrement = mpmath.fdot(gradient, step)
            if decrement <= mpf(10) ** -40 * (abs(value) + mpf(10) ** -300):
                return value - decrement / 2
            scale = mpf(1)
            while scale > mpf(2) ** -60:
                trial = [x[j] - scale * step[j] for j in size]
                new = self.value(trial)
                if new <= value - scale * decrement / 10:
                    break
                scale /= 2
            x, value = trial, new
        raise AssertionError("the oracle did not converge")


ORACLE_LOSSES = (
    losses.Squared(),
    losses.Logistic(),
    losses.SquaredHinge(),
    losses.SmoothHinge(0.5),
    losses.Huber(0.75),
    losses.SquaredEpsilonInsensitive(0.25),
)


def oracle_case(seed: int) -> None:
    """One random problem, one random run: what it certifies holds in exact arithmetic."""
    rng = np.random.default_rng(seed)
    # Mostly ridge, whose minimum is one linear solve away.
    loss = ORACLE_LOSSES[0] if seed % 10 < 7 else ORACLE_LOSSES[1 + seed % 5]
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=(n, 1))
    X[rng.random(X.shape) < 0.2] = 0.0
    X[0, 0] = 1.0
    t = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)
    if loss.kind == "binary":
        t = np.append(np.where(rng.random(n - 1) < 0.5, -1.0, 1.0), 1.0)
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    weights = rng.integers(1, 5, size=n) * 1.0 if rng.random() < 0.3 else None
    lam = float(10.0 ** rng.uniform(-6, 1))
    stored = sparse.csr_array(X) if rng.random() < 0.3 else X
    problem = ERM(stored, t, loss, regularizers.L2(lam), sample_weight=weights)
    result = run(
        problem,
        METHODS[int(rng.integers(len(METHODS)))],
        batch_size=int(rng.integers(1, n + 1)),
        tol=float(10.0 ** rng.uniform(-16, -1)),
        max_passes=float(rng.integers(0, 300)),
        random_state=seed,
    )
    with mp.workdps(60):
        exact = Exact(X, t, loss, lam, np.ones(n) if weights is None else weights)
        best = exact.minimum(result.x)
        value = exact.value([mpf(float(v)) for v in result.x])
        scale = abs(exact.value([mpf(0)] * d)) + abs(value)
        slack = mpf("1e-12") * scale
        context = f"seed {seed}: {result!r}"
        assert result.gap >= value - best - slack, context
        assert abs(result.primal - value) <= slack, context
        assert result.dual <= best + slack, context


def test_certificates_hold_in_exact_arithmetic() -> None:
    for seed in range(60):
        oracle_case(seed)


@pytest.mark.slow
def test_a_thousand_certificates_hold_in_exact_arithmetic() -> None:
    for seed in range(60, 1000):
        oracle_case(seed)


# ------------------------------- 7: converged means that the gap is within the tolerance


def test_converged_means_converged() -> None:
    """Every run of the suite goes through ``run``, which checks it; here tolerances are fuzzed.

    The tolerance is computed anew from the data, and so is the gap.
    """
    rng = np.random.default_rng(7)
    converged = 0
    for seed in range(300):
        n, d = int(rng.integers(1, 12)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3)
        t = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        loss = (losses.Squared(), losses.Logistic(), losses.SmoothHinge(0.3))[seed % 3]
        low = float(rng.normal())
        g = (
            regularizers.L2(0.01),
            regularizers.ElasticNet(0.01, 0.1),
            regularizers.Box(0.01, low, low + 1.0),
        )[int(rng.integers(3))]
        tol = float(10.0 ** rng.uniform(-15, 0))
        method = str(rng.choice(METHODS if isinstance(g, regularizers.L2) else ANY_REGULARIZER))
        problem = ERM(X, t, loss, g)
        result = run(problem, method, tol=tol, max_passes=float(rng.integers(0, 200)))
        targets = t if len(set(t)) > 1 or loss.kind == "regression" else np.full(n, t[0])
        primal, dual, scale = recomputed(X, targets, loss, g, result.x, result.y)
        rounding = 1e-12 * (abs(primal) + abs(dual))
        converged += result.converged
        if result.status == "converged":
            assert primal - dual <= tol * scale + rounding, (seed, result)
        else:
            assert primal - dual > tol * scale - rounding, (seed, result)
    assert converged > 50


# ------------------------------- 9: whatever the steps are, the answer is the best certified one


@pytest.fixture
def sound() -> ERM:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 4)) * 10.0 ** rng.uniform(-1, 1, size=(20, 1))
    return ERM(
        X, np.where(rng.random(20) < 0.5, -1.0, 1.0), losses.Logistic(), regularizers.L2(1e-2)
    )


def assert_no_worse_than_the_start(result: Result) -> None:
    history = result.history
    finite = history["objective"][np.isfinite(history["objective"])]
    assert result.primal <= history["primal"][0]
    assert result.primal <= finite.min()
    assert result.gap <= history["gap"][0]


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("method", ["sag", "saga"])
def test_huge_and_tiny_steps(sound: ERM, method: str, watch: bool) -> None:
    for exponent in (-300, -30, -3, 0, 0.5, 1, 2, 3, 8, 30, 100, 150, 200, 290):
        for size in (1, 7):
            try:
                chosen = Method(method, step=10.0**exponent, watch=watch)
                result = run(sound, chosen, batch_size=size, max_passes=40)
            except ValueError as error:
                assert "float64" in str(error)  # noqa: PT017 - refused is fine, nonsense is not
            else:
                assert_no_worse_than_the_start(result)


def test_a_divergent_step_is_noticed_and_the_run_still_converges(sound: ERM) -> None:
    for method in ("sag", "saga"):
        result = run(sound, Method(method, step=1e6), max_passes=3000)
        assert result.converged
        assert result.events
        assert "rolled back" in result.message


@dataclass(frozen=True)
class Spoiled:
    """A plan whose steps are multiplied by factors."""

    inner: Any
    factors: tuple[float, float, float]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def steps(self, positions: Array) -> Any:
        return self._spoil(self.inner.steps(positions))

    def draw(self, iterations: int) -> tuple[Array, Any]:
        batches, steps = self.inner.draw(iterations)
        return batches, self._spoil(steps)

    def _spoil(self, steps: Any) -> Any:
        sigma, tau, theta = self.factors
        return steps._replace(
            sigma=steps.sigma * sigma, tau=steps.tau * tau, theta=steps.theta * theta
        )


FACTORS = (0.0, 1e-300, 1e-8, 0.3, 1.0, 2.0, 30.0, 1e8, 1e150, 1e300, -1.0, np.inf, np.nan)


def fuzzed_steps(problem: Any, seeds: range, patch: pytest.MonkeyPatch) -> None:
    from adaspdc import _stochastic

    original = _stochastic.plan
    for seed in seeds:
        rng = np.random.default_rng(seed)
        factors = tuple(float(rng.choice(FACTORS)) for _ in range(3))
        name = str(rng.choice(METHODS))
        watch = bool(rng.random() < 0.7)

        def spoiled(method: Method, *args: Any, name: str = name, factors: Any = factors) -> Any:
            made = original(method, *args)
            asked_for = method.name == name and method.sampling is None
            return Spoiled(made, factors) if asked_for else made

        patch.setattr(_stochastic, "plan", spoiled)
        with np.errstate(all="ignore"):
            result = run(
                problem,
                Method(name, watch=watch),
                batch_size=int(rng.integers(1, 6)),
                max_passes=30,
                check_every=float(rng.integers(1, 6)),
            )
        assert_no_worse_than_the_start(result)


def test_fuzzed_steps(sound: ERM, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzed_steps(sound, range(150), monkeypatch)


@pytest.mark.parametrize(
    "g",
    [regularizers.ElasticNet(1e-2, 1e-2), regularizers.Box(1e-2, -0.5, 0.7)],
    ids=["elastic net", "box"],
)
def test_fuzzed_steps_with_lazy_coordinates(
    sound: ERM, g: regularizers.Regularizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ERM(sound.rows.kernel.values, sound.target, losses.Squared(), g)
    monkeypatch.setattr(sys.modules[__name__], "METHODS", ANY_REGULARIZER)
    fuzzed_steps(problem, range(60), monkeypatch)


POISONS = (np.nan, np.inf, -np.inf, 1e300, -1e200)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", ["y", "r"])
@pytest.mark.parametrize("poison", POISONS)
def test_poisoned_state(
    sound: ERM, method: str, part: str, poison: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something writes nonsense into the iterate at pass 3: the run goes on from its best point."""
    from adaspdc._stochastic import Stochastic

    state = {"pending": True, "passes": 0.0}
    original = Stochastic.advance

    def advance(self: Any, passes: float, pause: Any) -> float:
        taken = original(self, passes, pause)
        state["passes"] += taken
        if state["pending"] and state["passes"] >= 3:
            state["pending"] = False
            if part == "y":
                self._iteration.y[5] = poison
            else:
                x, w = (np.array(point) for point in self._iteration.points())
                self._iteration.rebase(np.full(self._bench.flat.dimension, poison), x, w)
        return taken

    monkeypatch.setattr(Stochastic, "advance", advance)
    with np.errstate(all="ignore"):
        result = run(sound, method, max_passes=3000, check_every=1)
    assert not state["pending"]
    assert_no_worse_than_the_start(result)
    assert result.converged, result.message


# ------------------------------- 10: feature scales from 1e-8 to 1e8


def scaled_features(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = 40, 5
    scales = 10.0 ** rng.uniform(-8, 8, size=d)
    X = rng.normal(size=(n, d)) * scales
    loss = (losses.Squared(), losses.Logistic(), losses.Huber(0.5))[seed % 3]
    t = np.where(X @ (rng.normal(size=d) / scales) > 0, 1.0, -1.0)
    lam = float(10.0 ** rng.uniform(-8, 0))
    stored = sparse.csr_array(X) if seed % 2 else X
    problem = ERM(stored, t, loss, regularizers.L2(lam))
    method = METHODS[seed % len(METHODS)]
    result = run(problem, method, batch_size=1 + seed % 3, max_passes=150)
    primal, dual, scale = recomputed(X, t, loss, problem.regularizer, result.x, result.y)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9, abs=1e-12 * scale)


def test_feature_scales() -> None:
    for seed in range(48):
        scaled_features(seed)


@pytest.mark.slow
def test_many_feature_scales() -> None:
    for seed in range(48, 400):
        scaled_features(seed)


# ------------------------------ 12: empty, duplicate, lonely rows and columns (also test_bad_input)


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_data(method: str) -> None:
    rng = np.random.default_rng(12)
    for n, d in ((1, 1), (1, 4), (5, 1), (6, 3), (3, 6)):
        for dead_rows in {0, n // 2, n - 1, n}:
            X = np.round(rng.normal(size=(n, d)), 1)  # duplicates are likely
            X[:dead_rows] = 0.0
            X[:, d // 2 + 1 :] = 0.0
            for t in (np.ones(n), np.where(np.arange(n) % 2, -1.0, 1.0)):
                problem = ERM(X, t, losses.Logistic(), regularizers.L2(0.1))
                result = run(problem, method, batch_size=max(1, n - 1), max_passes=2000)
                assert result.converged, (n, d, dead_rows, result.message)


def test_no_rows_no_columns_no_weight() -> None:
    squared, g = losses.Squared(), regularizers.L2(0.1)
    with pytest.raises(ValueError, match=r"X .* at least one row"):
        ERM(np.ones((0, 3)), [], squared, g)
    with pytest.raises(ValueError, match=r"X .* at least one column"):
        ERM(np.ones((3, 0)), [1, 2, 3], squared, g)
    with pytest.raises(ValueError, match="sample_weight"):
        ERM(np.ones((3, 1)), [1, 2, 3], squared, g, sample_weight=np.zeros(3))


# ------------------------------- 13: integer weights are repeated rows


WEIGHTED = (
    losses.Squared(),
    losses.Logistic(),
    losses.Huber(0.5),
    losses.SquaredHinge(),
    losses.Multinomial(),
)
WEIGHTS = np.array([1, 2, 0, 3, 1, 1, 4, 0, 2, 1])
REPEATED = np.repeat(np.arange(10), WEIGHTS)


def weighted_and_repeated(loss: losses.Loss) -> tuple[ERM, ERM]:
    rng = np.random.default_rng(13)
    X, g = rng.normal(size=(10, 3)), regularizers.L2(0.2)
    t = rng.normal(size=10) if loss.kind == "regression" else np.resize([1, 0, 1, 1, 0], 10)
    return ERM(X, t, loss, g, sample_weight=WEIGHTS), ERM(X[REPEATED], t[REPEATED], loss, g)


@pytest.mark.parametrize("loss", WEIGHTED, ids=lambda loss: loss.name)
@pytest.mark.parametrize("method", METHODS)
def test_integer_weights_are_repeated_rows(method: str, loss: losses.Loss) -> None:
    weighted, repeated = weighted_and_repeated(loss)
    first, second = (
        run(problem, method, tol=1e-15, max_passes=2000) for problem in (weighted, repeated)
    )
    assert first.primal == pytest.approx(second.primal, rel=1e-12)
    assert first.dual == pytest.approx(second.dual, rel=1e-12)
    # What a gap of rounding size can tell of x is the root of that.
    assert first.x == pytest.approx(second.x, abs=3e-6)
    assert first.y[REPEATED] == pytest.approx(second.y, abs=3e-6)
    # The same pair is worth the same in both.
    moved = run(repeated, method, warm_start=(first.x, first.y[REPEATED]), max_passes=0)
    assert (moved.primal, moved.dual) == pytest.approx((first.primal, first.dual), rel=1e-13)


@pytest.mark.parametrize("loss", WEIGHTED, ids=lambda loss: loss.name)
def test_integer_weights_are_repeated_rows_in_every_iterate(loss: losses.Loss) -> None:
    paths: list[list[Array]] = []
    for problem in weighted_and_repeated(loss):
        seen: list[Array] = []
        run(problem, "pdhg", tol=0.0, max_passes=60, callback=lambda now, s=seen: s.append(now.x))
        paths.append(seen)
    for first, second in zip(*paths, strict=False):
        assert first == pytest.approx(second, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("size", [1, 4])
def test_equal_weights_are_none(size: int) -> None:
    rng = np.random.default_rng(14)
    X, t = rng.normal(size=(12, 3)), rng.normal(size=12)
    for method in METHODS:
        for scale in (1.0, 1e-3, 1e6):
            results = [
                run(
                    ERM(X, t, losses.Squared(), regularizers.L2(0.1), sample_weight=weights),
                    method,
                    batch_size=size,
                    max_passes=30,
                    tol=1e-14,
                )
                for weights in (None, np.full(12, scale))
            ]
            assert results[0].x == pytest.approx(results[1].x, rel=1e-9, abs=1e-12)


# ------------------------------- 14: how the data is stored changes nothing


def storages(X: Array, folder: Path) -> Iterator[tuple[str, Any]]:
    yield "C", np.ascontiguousarray(X)
    yield "F", np.asfortranarray(X)
    yield "strided", np.repeat(X, 2, axis=1)[:, ::2]
    frozen = X.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen
    np.save(folder / "X.npy", X)
    yield "memmap", np.load(folder / "X.npy", mmap_mode="r")
    csr = sparse.csr_array(X)
    yield "CSR", csr
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "CSR, int64", wide
    backwards = csr.copy()
    for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        backwards.data[a:b] = csr.data[a:b][::-1]
        backwards.indices[a:b] = csr.indices[a:b][::-1]
    backwards.has_sorted_indices = False
    yield "CSR, unsorted", backwards
    fixed = csr.copy()
    for part in (fixed.data, fixed.indices, fixed.indptr):
        part.setflags(write=False)
    yield "CSR, read-only", fixed
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(csr, name))
    parts = tuple(
        np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
    )
    yield "CSR, memmap", sparse.csr_array(parts, shape=X.shape)
    yield "CSR matrix", sparse.csr_matrix(X)
    yield "CSC", sparse.csc_array(X)
    yield "COO", sparse.coo_array(X)


def iterates(problem: Any, method: str, size: int) -> Array:
    """Every iterate of 8 passes, and the final pair."""
    seen: list[Array] = []
    result = run(
        problem,
        method,
        batch_size=size,
        tol=0.0,
        max_passes=8,
        check_every=1,
        callback=lambda now: seen.append(now.x),
    )
    return np.concatenate([np.ravel(part) for part in (*seen, result.x, result.y)])


def assert_storage_is_irrelevant(
    stored: list[tuple[str, Any]],
    loss: losses.Loss,
    g: regularizers.Regularizer,
    method: str,
    size: int,
) -> None:
    n = stored[0][1].shape[0]
    rng = np.random.default_rng(15)
    t = rng.normal(size=n) if loss.kind == "regression" else np.resize([1, 0, 0, 1], n)
    paths = {name: iterates(ERM(X, t, loss, g), method, size) for name, X in stored}
    reference = paths[stored[0][0]]
    # Relative to the solution: after 8 passes a slow method is still next to its start at zero.
    scale = np.abs(adaspdc.solve(ERM(stored[0][1], t, loss, g), tol=1e-9).x).max()
    for name, path in paths.items():
        assert np.abs(path - reference).max() <= 1e-12 * scale, name


def sparse_example(dtype: type, density: float = 0.5) -> Array:
    rng = np.random.default_rng(14)
    X = rng.normal(size=(36, 18)) * 10.0 ** rng.uniform(-0.5, 0.5, size=(36, 1))
    X[rng.random(X.shape) > density] = 0.0
    X[np.arange(36), np.arange(36) % 18] = 1.0
    return X.astype(dtype)


@pytest.mark.parametrize("density", [0.1, 0.5])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("method", METHODS)
def test_storage_is_irrelevant(method: str, size: int, density: float, tmp_path: Path) -> None:
    stored = list(storages(sparse_example(np.float64, density), tmp_path))
    assert_storage_is_irrelevant(stored, losses.Squared(), regularizers.L2(0.05), method, size)


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("method", METHODS)
def test_storage_of_float32_is_irrelevant(method: str, size: int, tmp_path: Path) -> None:
    stored = list(storages(sparse_example(np.float32), tmp_path))
    assert_storage_is_irrelevant(stored, losses.Squared(), regularizers.L2(0.05), method, size)


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("method", ANY_REGULARIZER)
def test_storage_is_irrelevant_to_the_other_kernels(method: str, size: int, tmp_path: Path) -> None:
    chosen = ("C", "CSR", "CSR, int64")
    stored = [pair for pair in storages(sparse_example(np.float64), tmp_path) if pair[0] in chosen]
    g = regularizers.ElasticNet(0.05, 0.02)
    assert_storage_is_irrelevant(stored, losses.Logistic(), g, method, size)
    ridge = regularizers.L2(0.05)
    assert_storage_is_irrelevant(stored, losses.Multinomial(), ridge, method, size)


def test_float32_entries_are_exact_numbers() -> None:
    """Rounding happens when the data is made, not in the solver: its own numbers are float64."""
    X = sparse_example(np.float32)
    for method in METHODS:
        for stored in (np.asarray, sparse.csr_array):
            paths = [
                iterates(
                    ERM(
                        stored(X.astype(dtype)),
                        np.arange(36.0),
                        losses.Squared(),
                        regularizers.L2(0.1),
                    ),
                    method,
                    1,
                )
                for dtype in (np.float32, np.float64)
            ]
            assert paths[0] == pytest.approx(
                paths[1], rel=1e-12, abs=1e-12 * np.abs(paths[0]).max()
            )


# ------------------------------- 15: the same seed gives the same bits


@functools.cache
def broad() -> ERM:
    """Large enough that batches and checks are shared among threads."""
    rng = np.random.default_rng(15)
    X, t = rng.normal(size=(160, 300)), rng.normal(size=160)
    return ERM(X, t, losses.Huber(0.5), regularizers.L2(0.05))


def fingerprint(result: Result) -> str:
    digest = hashlib.sha256()
    for part in (result.x, result.y, *result.history.columns().values()):
        if part is not result.history.seconds:
            digest.update(np.asarray(part).tobytes())
    digest.update(repr((result.primal, result.dual, result.gap, result.passes)).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("size", [1, 40])
@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits(method: str, size: int) -> None:
    prints = {
        fingerprint(run(broad(), method, batch_size=size, max_passes=6, n_threads=threads))
        for threads in (1, 2, 3, 1, 2)
    }
    assert len(prints) == 1


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "g",
    [regularizers.ElasticNet(0.05, 0.01), regularizers.GroupL2(0.05, 0.01, np.arange(300) // 7)],
    ids=["elastic net", "groups"],
)
def test_same_bits_with_lazy_coordinates(
    g: regularizers.Regularizer, storage: Callable[..., Any]
) -> None:
    X = storage(broad().rows.kernel.values)
    for problem in (
        ERM(X, np.resize([0, 1, 2], 160), losses.Multinomial(), g),
        ERM(X, np.resize([0, 1, 1], 160), losses.SquaredHinge(), g),
    ):
        for method in ("adaspdc", "spdhg", "sdca", "pdhg"):
            prints = {
                fingerprint(run(problem, method, batch_size=40, max_passes=4, n_threads=threads))
                for threads in (1, 2, 3)
            }
            assert len(prints) == 1, method


@pytest.mark.slow
def test_same_bits_a_hundred_times() -> None:
    for method, size in (("spdhg", 1), ("spdhg", 40), ("adaspdc", 40), ("sdca", 1), ("pdhg", 1)):
        prints = {
            fingerprint(run(broad(), method, batch_size=size, max_passes=3, n_threads=1 + k % 4))
            for k in range(100)
        }
        assert len(prints) == 1, method


def test_other_seeds_give_other_bits() -> None:
    for method in METHODS:
        prints = [
            fingerprint(run(broad(), method, max_passes=3, random_state=seed)) for seed in (0, 1)
        ]
        assert (len(set(prints)) == 2) == (method != "pdhg")


def test_generators_seed_too() -> None:
    first, second = (
        fingerprint(run(broad(), max_passes=3, random_state=np.random.default_rng(5)))
        for _ in range(2)
    )
    assert first == second


# ------------------------------- 18: Ctrl-C

CHILD = """
import signal, sys, time, warnings
import numpy as np
import adaspdc
from adaspdc import ERM, losses, regularizers

warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
rng = np.random.default_rng(0)
{setup}
started = []

def ready(now):
    if not started:
        started.append(time.perf_counter())
        print("ready", flush=True)

result = adaspdc.solve(problem, tol={tol}, max_passes=1e12, callback=ready, **{settings})
print("returned", flush=True)
print(result.status, flush=True)
print(result.primal <= result.history["primal"][0] and bool(np.isfinite(result.x).all()))
print(result.message)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
again = adaspdc.solve(ERM(np.eye(2), [1.0, 2.0], losses.Squared(), regularizers.L2(0.1)))
print(again.status, flush=True)
"""

USUAL = """
X, t = rng.normal(size=(4000, 50)), rng.normal(size=4000)
problem = ERM(X, t, losses.Huber(0.3), {g})
"""
STUCK = """
# One row: after a few passes the iterate is a fixed point whose rounded gap is not quite zero.
rng = np.random.default_rng(79)
rng.integers(1, 6)
X, t = rng.normal(size=(1, 2)), rng.normal(size=1)
problem = ERM(X, t, losses.Squared(), regularizers.L2(10.0 ** rng.integers(-3, 1)))
"""


def interrupted(
    setup: str, settings: dict[str, Any], tol: float = -0.0, delay: float = 0.5
) -> list[str]:
    """Lines a child printed whose solve was interrupted, after checking how fast it returned."""
    lines: list[str] = []

    def seconds() -> float:
        spent, lines[:] = interrupted_once(setup, settings, tol, delay)
        return spent

    assert fastest(seconds, 1.0, attempts=4) < 1.0
    return lines


def interrupted_once(
    setup: str, settings: dict[str, Any], tol: float, delay: float
) -> tuple[float, list[str]]:
    code = CHILD.format(setup=setup, settings=settings, tol=abs(tol))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(15.0, child.kill)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        watchdog.start()
        child.send_signal(signal.SIGINT)
        begun = time.perf_counter()
        assert child.stdout.readline() == "returned\n", "the interrupt was not honoured"
        seconds = time.perf_counter() - begun
        lines = child.stdout.read().splitlines()
        assert child.wait(30) == 0
        return seconds, lines
    finally:
        watchdog.cancel()
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize(
    ("g", "settings"),
    [
        ("regularizers.L2(1e-9)", {"method": "spdhg"}),
        ("regularizers.L2(1e-9)", {"method": "pdhg", "n_threads": 2}),
        ("regularizers.L2(1e-9)", {"method": "spdc", "batch_size": 100, "n_threads": 2}),
        ("regularizers.L2(1e-9)", {"method": "adaspdc", "check_every": 1e9}),
        ("regularizers.ElasticNet(1e-9, 1e-4)", {"method": "sdca"}),
    ],
    ids=lambda value: value.get("method") if isinstance(value, dict) else "",
)
def test_ctrl_c_returns_the_best_point(g: str, settings: dict[str, Any]) -> None:
    status, kept, message, handler, again = interrupted(USUAL.format(g=g), settings)
    assert status == "stopped"
    assert kept == "True"
    assert "interrupted from the keyboard" in message
    assert handler == "True"
    assert again == "converged"


def test_ctrl_c_ends_a_run_that_can_get_no_further() -> None:
    status, *_, again = interrupted(STUCK, {"method": "spdhg"}, delay=1.5)
    assert (status, again) == ("stopped", "converged")


def test_a_callback_ends_a_run_that_can_get_no_further() -> None:
    """Every check calls back, also those at which the watch finds the safe method stuck."""
    rng = np.random.default_rng(79)
    rng.integers(1, 6)
    X, t = rng.normal(size=(1, 2)), rng.normal(size=1)
    problem = ERM(X, t, losses.Squared(), regularizers.L2(10.0 ** rng.integers(-3, 1)))
    seen: list[float] = []
    result = run(problem, tol=0.0, max_passes=2000, callback=lambda now: seen.append(now.passes))
    assert len(seen) >= len(result.history) - 1


def test_an_interrupt_outlives_a_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the watch reports trouble at every check: the run ends all the same."""
    from adaspdc import _watch

    monkeypatch.setattr(_watch.Watch, "trouble", lambda *_: "it looks bad")
    checks = 0

    def interrupt(now: Any) -> None:
        nonlocal checks
        checks += 1
        if checks == 1:
            signal.raise_signal(signal.SIGINT)

    original = adaspdc.solver._Run._check
    calls = 0

    def counted(self: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        assert calls < 1000, "the run neither moves nor stops"
        return original(self)

    monkeypatch.setattr(adaspdc.solver._Run, "_check", counted)
    rng = np.random.default_rng(0)
    problem = ERM(
        rng.normal(size=(9, 3)), rng.normal(size=9), losses.Squared(), regularizers.L2(1e-6)
    )
    result = run(problem, tol=1e-15, max_passes=10**6)
    assert result.status is Status.STOPPED


def test_ctrl_c_during_a_callback_counts() -> None:
    problem = broad()
    result = run(problem, tol=0.0, callback=lambda now: signal.raise_signal(signal.SIGINT))
    assert result.status is Status.STOPPED
    assert "interrupted from the keyboard" in result.message
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_application_keeps_its_own_handler() -> None:
    received: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        problem = broad()
        run(
            problem,
            tol=0.0,
            max_passes=5,
            callback=lambda now: signal.raise_signal(signal.SIGINT),
        )
    finally:
        signal.signal(signal.SIGINT, previous)
    assert received


# ------------------------------- 19: max_seconds is kept


LIMIT = 0.2


def overshoot(problem: Any, method: str, **settings: Any) -> None:
    """A run ends an epoch and 0.1 s after its limit at the latest.

    Other processes share the machine, and the time that they take is nobody's fault: from the last
    look that the run takes at the clock before its time is up, its own processor time counts.
    """
    started = [perf_counter_and_own()]

    def look() -> float:
        started.append(perf_counter_and_own())
        return started[-1][0]

    run(problem, method, max_passes=1, tol=0.0, **settings)  # compiled, paged in
    excess, epochs = [], []
    for _ in range(5):  # a processor that is shared is slower, too: the best attempt counts
        begun = time.thread_time()
        run(problem, method, max_passes=1, tol=0.0, **settings)
        epochs.append(time.thread_time() - begun)
        started[:] = [perf_counter_and_own()]
        deadline = started[0][0] + LIMIT
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("adaspdc._clock.perf_counter", look)
            result = run(problem, method, max_passes=1e12, max_seconds=LIMIT, tol=0.0, **settings)
        assert result.status is Status.MAX_SECONDS
        ended = time.thread_time()
        last, own = max(times for times in started if times[0] < deadline)
        excess.append(last + ended - own - deadline - result.compile_seconds)
        if excess[-1] <= min(epochs) + 0.1:
            return
    pytest.fail(
        f"{method} {settings}: {min(excess):.3f} s over, an epoch takes {min(epochs):.3f} s"
    )


def perf_counter_and_own() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("check_every", [None, 1e9])
def test_max_seconds_is_kept(check_every: float | None) -> None:
    rng = np.random.default_rng(19)
    X, t = rng.normal(size=(20_000, 60)), rng.normal(size=20_000)
    hard = regularizers.L2(1e-12)
    dense = ERM(X, t, losses.Huber(0.3), hard)
    thin = sparse.random_array((20_000, 3000), density=0.01, rng=rng, format="csr")
    for method in ("spdhg", "adaspdc", "sdca", "pdhg"):
        overshoot(dense, method, check_every=check_every)
        overshoot(ERM(thin, t, losses.Squared(), hard), method, check_every=check_every)
    overshoot(dense, "spdhg", batch_size=500, n_threads=2, check_every=check_every)
    net = regularizers.ElasticNet(1e-12, 1e-5)
    overshoot(ERM(thin, np.sign(t), losses.Logistic(), net), "spdhg", check_every=check_every)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("check_every", [None, 1e9])
def test_max_seconds_is_kept_with_many_outputs(check_every: float | None) -> None:
    rng = np.random.default_rng(19)
    X, t = rng.normal(size=(1000, 400)), rng.integers(0, 30, size=1000)
    problem = ERM(X, t, losses.Multinomial(), regularizers.L2(1e-12))
    for method in ("spdhg", "pdhg"):
        overshoot(problem, method, check_every=check_every)


@pytest.mark.slow
@pytest.mark.alone
def test_max_seconds_is_kept_where_a_row_is_short_and_its_loss_is_not() -> None:
    """Time once was reckoned by matrix entries alone: some of these took seconds too many."""
    rng = np.random.default_rng(19)
    X, t = rng.normal(size=(1000, 2)), rng.integers(0, 300, size=1000)
    hard = regularizers.L2(1e-12)
    column = ERM(X[:, :1], np.where(t < 150, 1.0, -1.0), losses.Logistic(), hard)
    outputs = ERM(X, t, losses.Multinomial(), hard)
    for problem, method, size in (
        (column, "pdhg", 1),
        (column, "spdhg", 20),
        (outputs, "pdhg", 1),
        (outputs, "spdhg", 1),
        (outputs, "sdca", 1),
    ):
        overshoot(problem, method, batch_size=size, check_every=1e9)


def test_no_time_at_all() -> None:
    result = run(broad(), tol=0.0, max_seconds=0)
    assert result.status is Status.MAX_SECONDS
    assert result.passes == 0


# ------------------------------- 23: memory does not grow


@pytest.mark.slow
def test_a_thousand_fits_leave_no_memory_behind(run_isolated: Callable[..., str]) -> None:
    code = """
import gc, warnings
import numpy as np, psutil
from scipy import sparse
import adaspdc
from adaspdc import ERM, SaddlePoint, losses, regularizers

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, t = rng.normal(size=(300, 40)), rng.normal(size=300)
thin = sparse.csr_array(np.where(rng.random(X.shape) < 0.2, X, 0.0))
methods = ("adaspdc", "spdhg", "sdca", "pdhg", "saga")

def fit(k):
    g = regularizers.ElasticNet(0.01, 0.01) if k % 3 == 0 else regularizers.L2(0.01)
    loss, y = (losses.Huber(0.5), t) if k % 2 else (losses.Logistic(), np.sign(t))
    problem = ERM(thin if k % 4 < 2 else X, y, loss, g)
    settings = dict(batch_size=1 + 9 * (k % 5), max_passes=6, n_threads=1 + k % 2, random_state=k)
    adaspdc.solve(problem, methods[k % 5], callback=lambda now: None, **settings)
    if k % 50 == 0:
        try:
            adaspdc.solve(ERM(np.full((300, 40), np.nan), t, losses.Squared(), g))
        except ValueError:
            pass

def resident():
    gc.collect()
    return psutil.Process().memory_info().rss

for k in range(300):
    fit(k)
before = resident()
for k in range(1000):
    fit(k)
print(resident() - before)
"""
    assert int(run_isolated(code)) < 5 * 2**20


# ------------------------------- 24: what is passed in stays as it is


def trace(*arrays: Any) -> list[tuple[Any, ...]]:
    parts: list[Array] = []
    for array in arrays:
        if sparse.issparse(array):
            parts += [
                getattr(array, name)
                for name in ("data", "indices", "indptr", "row", "col")
                if hasattr(array, name)
            ]
        else:
            parts.append(np.asarray(array))
    return [
        (
            part.dtype,
            part.shape,
            part.strides,
            part.flags.writeable,
            hashlib.sha256(part.tobytes()).digest(),
        )
        for part in parts
    ]


@pytest.mark.parametrize("method", METHODS)
def test_erm_leaves_its_inputs_alone(method: str) -> None:
    rng = np.random.default_rng(24)
    X = np.where(rng.random((12, 4)) < 0.6, rng.normal(size=(12, 4)), 0.0)
    duplicates = sparse.coo_array((np.ones(5), ([0, 0, 3, 3, 5], [1, 1, 2, 2, 3])), shape=(12, 4))
    unsummed = sparse.csr_array(
        (np.ones(4), np.array([2, 2, 0, 0]), np.array([0, 2, 4, *[4] * 10])), shape=(12, 4)
    )
    labels, weights = np.where(rng.random(12) < 0.5, -1.0, 1.0), rng.uniform(0, 2, 12)
    start = (rng.normal(size=4), np.where(labels > 0, -0.3, 5.0))
    low, high = np.full(4, -1.0), np.full(4, 1.0)
    groups, group_weight = np.array([3, 1, 3, 1]), np.array([0.1, 0.2])
    for stored in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X),
                   sparse.csc_array(X), duplicates, unsummed):  # fmt: skip
        given = (stored, labels, weights, *start, low, high, groups, group_weight)
        before = trace(*given)
        for g in (
            regularizers.L2(0.1),
            regularizers.Box(0.1, low, high),
            regularizers.GroupL2(0.1, group_weight, groups),
        ):
            if method == "sag" and not isinstance(g, regularizers.L2):
                continue
            problem = ERM(stored, labels, losses.Logistic(), g, sample_weight=weights)
            result = run(problem, method, batch_size=3, warm_start=start, max_passes=5, n_threads=2)
            kept = trace(result.x, result.y)
            run(problem, method, warm_start=result, max_passes=5)
            assert trace(result.x, result.y) == kept
        assert trace(*given) == before


def test_saddle_point_leaves_its_inputs_alone() -> None:
    rng = np.random.default_rng(25)
    blocks = [
        rng.normal(size=(3, 4)),
        sparse.csr_array(rng.normal(size=(2, 4))),
        rng.normal(size=4),
    ]
    stacked, sizes, targets = rng.normal(size=(6, 4)), np.array([1, 3, 2]), rng.normal(size=3)
    batches = np.array([[0, 1], [2, 0]])
    before = trace(*blocks, stacked, sizes, targets, batches)
    part = losses.Huber(0.5).at(targets)
    g = regularizers.L2(0.1)
    run(SaddlePoint(blocks, [part, losses.Squared().at(), part.loss.at(1.0)], g), max_passes=5)
    fixed = Method("adaspdc", sampling=sampling.Replay(batches, 3))
    run(
        SaddlePoint(stacked, losses.Squared().at(), g, sizes=sizes),
        fixed,
        batch_size=2,
        max_passes=5,
    )
    assert trace(*blocks, stacked, sizes, targets, batches) == before


def test_the_result_is_not_tied_to_the_problem() -> None:
    problem = broad()
    first = run(problem, max_passes=3)
    kept = first.x.copy()
    run(problem, max_passes=3, warm_start=first)
    first.y[:] = 0.0
    assert (first.x == kept).all()
    assert fingerprint(run(problem, max_passes=3)) == fingerprint(run(problem, max_passes=3))


# ------------------------------- 26: five hundred malformed arguments

X = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.0]])
T = np.array([1.0, -0.5, 2.0])
L2 = regularizers.L2(0.1)


def erm(**changes: Any) -> ERM:
    return ERM(**({"X": X, "y": T, "loss": losses.Squared(), "regularizer": L2} | changes))


def solve(**changes: Any) -> Result:
    settings = {"problem": erm(), "max_passes": 3} | changes
    return adaspdc.solve(**settings)


def saddle(**changes: Any) -> Result:
    parts = {"blocks": [X, X[:2]], "conjugates": losses.Squared().at(), "regularizer": L2} | changes
    return solve(problem=SaddlePoint(**parts))


class Stranger:
    """An object of no use to anyone."""

    def __repr__(self) -> str:
        return "<stranger>"


NAN, INF = float("nan"), float("inf")
NOT_REAL = (None, "much", "1", b"1", [], [1.0, 2.0], {}, {1}, 1j, Stranger(), Stranger, len,
            object(), np.array([1.0, 2.0]), np.array("a"), slice(3))  # fmt: skip
NOT_NUMBERS = (*NOT_REAL, True)
NOT_POSITIVE = (0, 0.0, -1, -1e-300, -INF, INF, NAN, np.float64(NAN), np.float32(-2))
NOT_WHOLE = (None, "2", b"2", 1.0, 2.5, NAN, INF, 1j, [], [1], {}, Stranger(), len, True,
             np.float64(1.0), np.array([1, 2]))  # fmt: skip
NOT_STRINGS = (None, 3, 2.5, b"spdhg", True, [], ["spdhg"], {}, {"spdhg"}, Stranger(), Method,
               len, 1j)  # fmt: skip
NOT_MATRICES = (None, 3, "abc", [], [1.0, 2.0, 3.0], [[1.0], [1.0, 2.0], [3.0]], [["a", "b"]] * 3,
                {}, {"a": X}, Stranger(), len, X.astype(complex), X.astype(object), X[:, 0],
                X[None], X.astype("U8"), X.astype("M8[s]"), X.astype("m8[s]"), X[:0], X[:, :0],
                np.ma.masked_array(X, X > 1), [[None, 1.0]] * 3, X.astype(np.longdouble),
                sparse.csr_array(X.astype(complex)), sparse.csr_array((0, 2)),
                sparse.csr_array((3, 0)))  # fmt: skip
NOT_TARGETS = (None, 3.0, "abc", [], [1.0, 2.0], [1.0] * 4, [[1.0], [2.0], [3.0]], [1.0, NAN, 2.0],
               [1.0, INF, 2.0], [1.0, None, 2.0], {}, {"y": T}, Stranger(), len, T.astype(complex),
               np.array([1.0, Stranger(), 2.0], dtype=object), T.astype("M8[s]"),
               [[1], [1, 2], [3]], np.ones((3, 2)), T[:0], range(2), ["a", 1.0, None])  # fmt: skip
NOT_WEIGHTS = (3.0, "abc", [], [1.0, 2.0], [1.0] * 4, [[1.0], [2.0], [3.0]], [1.0, NAN, 2.0],
               [1.0, INF, 2.0], [1.0, None, 2.0], [1.0, -1.0, 2.0], [0.0, 0.0, 0.0], {}, Stranger(),
               len, T.astype(complex), ["1", "2", "3"], np.ones(3, dtype=object), T.astype("M8[s]"),
               np.ones((3, 2)), [1e308, -1e308, 0], True)  # fmt: skip
NOT_BOUNDS = ("a", NAN, [NAN, 0.0], 1j, [[0.0, 1.0]], {}, Stranger(), len, None, [0.0, None],
              np.zeros(2, dtype=object), [[0.0], [0.0, 1.0]])  # fmt: skip
NOT_SIZES = (3, "abc", [], [1.5, 1.5], [1, 1], [4], [0, 3], [-1, 4], [[1, 2]], {}, Stranger(),
             [None, 3], ["1", "2"], [1j, 2], len, [3.0], [True, True, True])  # fmt: skip
NOT_FUNCTIONS = (None, 3, "f", [], {}, 1j, Stranger(), 2.5)
NOT_STARTS = (3, "ab", [], (1,), (X, X, X), (np.zeros(2),), (np.zeros(3), np.zeros(3)),
              (np.zeros(2), np.zeros(2)), (np.zeros(2), np.full(3, NAN)),
              (np.full(2, INF), np.zeros(3)), ("a", "b"), (None, None),
              (np.zeros(2) * 1j, np.zeros(3)), {}, {"x": 1, "y": 2}, Stranger(), len, True,
              (np.zeros(2), [[1.0], [1.0, 2.0]]), (["0", "0"], np.zeros(3)))  # fmt: skip


def custom(**changes: Any) -> losses.Custom:
    parts = {
        "value": lambda z, t: 0.5 * (z - t) ** 2,
        "conjugate": lambda y, t: 0.5 * y * y + t * y,
        "prox": lambda v, sigma, t: (v - sigma * t) / (1 + sigma),
        "gamma": 1.0,
    }
    return losses.Custom(**(parts | changes))


@dataclass(frozen=True)
class Bad:
    """Values that one parameter of one call must refuse, naming itself or an equivalent."""

    call: Callable[..., Any]
    parameter: str
    values: tuple[Any, ...]
    named: str = ""

    def __str__(self) -> str:
        return f"{getattr(self.call, '__name__', self.call)}({self.parameter})"


def method_of(**changes: Any) -> Any:
    return solve(method=Method(**({"name": "adaspdc"} | changes)))


BAD = (
    Bad(erm, "X", NOT_MATRICES),
    Bad(erm, "y", NOT_TARGETS),
    Bad(erm, "loss", (*NOT_STRINGS, "squared", losses.Squared, L2)),
    Bad(erm, "regularizer", (*NOT_STRINGS, "l2", 0.1, regularizers.L2, losses.Squared())),
    Bad(erm, "sample_weight", NOT_WEIGHTS),
    Bad(solve, "problem", (None, 3, "erm", X, (X, T), [], {}, ERM, Stranger(), losses.Squared())),
    Bad(solve, "method", (*NOT_STRINGS, "SPDHG", "sgd", "", "spdhg ", "auto ")),
    Bad(solve, "batch_size", (*NOT_WHOLE, 0, -1, 4, 10**20)),
    Bad(solve, "tol", (*NOT_NUMBERS, -1, -1e-300, -INF, NAN, INF)),
    Bad(solve, "max_passes", (*(v for v in NOT_NUMBERS if v is not None), -1, -INF, NAN)),
    Bad(solve, "max_seconds", (*NOT_NUMBERS[1:], -1, -INF, NAN)),
    Bad(solve, "check_every", (*NOT_NUMBERS[1:], 0, -1, -INF, NAN)),
    Bad(solve, "n_threads", (*NOT_WHOLE, 0, -1, -(10**20))),
    Bad(solve, "random_state", (-1, 1.5, NAN, "seed", b"1", 1j, [-1], [1.5], {}, Stranger(), len)),
    Bad(solve, "callback", NOT_FUNCTIONS[1:]),
    Bad(solve, "verbose", ("yes", 1j, [], {}, Stranger(), len, NAN, 1.5, "1", None)),
    Bad(solve, "warm_start", NOT_STARTS),
    Bad(Method, "name", (*NOT_STRINGS, "sgd", ""), "method"),
    Bad(functools.partial(Method, "sag"), "step", (*NOT_REAL[1:], True, *NOT_POSITIVE)),
    Bad(method_of, "sampling", (3, "random", b"iid", [], {}, Stranger(), len, True, 1j,
                                sampling.Iid, sampling.Replay([[0, 7]]), sampling.Replay([[3]]),
                                sampling.Replay([[0, 1]]), sampling.Iid(50), sampling.Iid(3, 2))),
    Bad(functools.partial(Method, "adaspdc"), "watch", ("no", 3, None, [], Stranger(), 1j)),
    Bad(saddle, "blocks", (None, 3, "abc", [], [[]], [X, X[:, :1]], [X, None], [X, "a"], X, X[0],
                           {}, Stranger(), [X[:0], X], [X.astype(complex)] * 2,
                           [X.astype(object)] * 2, [X[None], X], [np.full((2, 2), NAN), X],
                           [X, np.full((2, 2), INF)], [[["a", "b"]], X], len, [X, Stranger()],
                           [sparse.csr_array(X.astype(complex)), X])),
    Bad(saddle, "conjugates", (None, 3, "abc", [], [losses.Squared().at()], {}, Stranger(), len, L2,
                               [losses.Squared().at()] * 3, [losses.Squared().at(), None],
                               [losses.Squared().at(), L2], losses.Squared().at([1.0, 2.0]),
                               [losses.Squared] * 2, losses.Squared)),
    Bad(saddle, "regularizer", (None, 3, "l2", regularizers.L2, losses.Squared(), 0.1, Stranger())),
    Bad(lambda sizes: saddle(blocks=X, sizes=sizes), "sizes", NOT_SIZES),
    Bad(lambda block_size: erm().as_saddle_point(block_size), "block_size", (*NOT_WHOLE, 0, -1, 4)),
    Bad(regularizers.L2, "lam", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(regularizers.NonNegative, "lam", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(functools.partial(regularizers.ElasticNet, 0.1), "l1",
        (*NOT_NUMBERS, -1, -1e-300, NAN, INF)),
    Bad(lambda low: solve(problem=erm(regularizer=regularizers.Box(0.1, low, 9.0))), "low",
        (*NOT_BOUNDS, 10.0, INF, [0.0, 10.0], [0.0], [0.0] * 3)),
    Bad(lambda high: solve(problem=erm(regularizer=regularizers.Box(0.1, -9.0, high))), "high",
        (*NOT_BOUNDS, -10.0, -INF, [0.0, -10.0], [0.0], [0.0] * 3)),
    Bad(lambda groups: solve(problem=erm(regularizer=regularizers.GroupL2(0.1, 1.0, groups))),
        "groups",
        (None, 3, "ab", [], [0.0, 1.0], [[0, 1]], [0], [0, 1, 2], ["a", "b"], {}, Stranger(),
         [0, None], [1j, 2], len, [[0], [0, 1]])),
    Bad(lambda group_weight: regularizers.GroupL2(0.1, group_weight, [0, 1]), "group_weight",
        (None, "a", [1.0], [1.0] * 3, [[1.0, 1.0]], -1.0, [1.0, -1.0], NAN, INF, [1.0, NAN], 1j, {},
         Stranger(), len, [1.0, None])),
    Bad(losses.SmoothHinge, "gamma", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.SmoothCrammerSinger, "gamma", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.Huber, "delta", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.SmoothPinball, "quantile", (*NOT_NUMBERS, *NOT_POSITIVE, 1, 1.0, 1.5)),
    Bad(losses.SmoothPinball, "gamma", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.SmoothEpsilonInsensitive, "epsilon", (*NOT_NUMBERS, *NOT_POSITIVE[2:])),
    Bad(losses.SmoothEpsilonInsensitive, "gamma", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.SquaredEpsilonInsensitive, "epsilon", (*NOT_NUMBERS, *NOT_POSITIVE[2:])),
    Bad(functools.partial(losses.Squared().at, 1.0), "weight", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(losses.Squared().at, "targets",
        (None, "a", NAN, INF, [], [NAN], [[1.0, 2.0]], 1j, {}, Stranger(), len, [1.0, None])),
    Bad(losses.Logistic().at, "targets", (0.0, 2.0, [1.0, 0.0], [1.0, NAN], "yes", 0.5)),
    Bad(losses.Multinomial().at, "targets", (-1, 0.5, [0, 1], NAN, "a", [])),
    Bad(lambda value: solve(problem=erm(loss=custom(value=value))), "value", NOT_FUNCTIONS),
    Bad(lambda conjugate: solve(problem=erm(loss=custom(conjugate=conjugate))), "conjugate",
        NOT_FUNCTIONS),
    Bad(lambda prox: solve(problem=erm(loss=custom(prox=prox))), "prox", NOT_FUNCTIONS),
    Bad(custom, "gamma", (*NOT_NUMBERS, *NOT_POSITIVE)),
    Bad(custom, "kind", ("multiclass", 3, "", [], {}, Stranger())),
    Bad(sampling.Replay, "batches",
        (None, 3, "ab", [], [0, 1], [[0.5]], [[0, 0]], [[-1]], [[]], {}, Stranger(), [[0], [0, 1]],
         [["a"]])),
)  # fmt: skip


def complaint(bad: Bad, value: Any) -> str:
    """What is wrong with how a bad value is refused; empty if nothing is."""
    shown = repr(value).replace("\n", "")[:60]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bad.call(**{bad.parameter: value})
    except (TypeError, ValueError) as error:
        origin = traceback.extract_tb(error.__traceback__)[-1]
        path = Path(origin.filename)
        ours = path.is_relative_to(PACKAGE) and str(origin.line).startswith("raise")
        if not ours:
            where = f"{type(error).__name__} from {path.name}:{origin.lineno}"
            return f"{shown}: {where}: {str(error)[:90]}"
        if (bad.named or bad.parameter) not in str(error):
            return f"{shown}: does not name {bad.parameter}: {str(error)[:120]}"
        return ""
    except Exception as error:
        return f"{shown}: {type(error).__name__}: {str(error)[:120]}"
    return f"{shown}: accepted in silence"


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_malformed_arguments_are_refused_by_name(bad: Bad) -> None:
    complaints = [text for value in bad.values if (text := complaint(bad, value))]
    assert not complaints, "\n".join(["", *complaints])


def test_there_are_five_hundred_malformed_arguments() -> None:
    assert sum(len(bad.values) for bad in BAD) >= 500
