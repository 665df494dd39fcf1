"""What a solve hands back: result, history, status, warning, log."""

import copy
import dataclasses
import json
import pickle
import re
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaspdc
from adaspdc import (
    ERM,
    ConvergenceWarning,
    History,
    Result,
    SaddlePoint,
    Status,
    losses,
    regularizers,
)
from test_certificate import METHODS, run

COLUMNS = ["passes", "seconds", "objective", "primal", "dual", "gap"]


@pytest.fixture(scope="module")
def problem() -> ERM:
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(30, 4)), rng.normal(size=30)
    return ERM(X, t, losses.Squared(), regularizers.L2(0.05))


# ------------------------------------------------------------------------- history


def test_history_has_one_entry_per_check(problem: ERM) -> None:
    seen: list[tuple[float, ...]] = []

    def look(now: adaspdc.Progress) -> None:
        seen.append((now.passes, now.seconds, now.objective, now.primal, now.dual, now.gap))

    result = run(problem, "spdc", tol=1e-14, max_passes=40, callback=look)
    history = result.history
    assert list(history.columns()) == COLUMNS
    assert {len(column) for column in history.columns().values()} == {len(history)}
    rows = list(zip(*(history[name] for name in COLUMNS), strict=True))
    assert [row[:1] + row[2:] for row in rows[: len(seen)]] == [row[:1] + row[2:] for row in seen]
    assert history["passes"][0] == 0.0
    assert history["passes"][-1] == result.passes
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["primal"] == pytest.approx(np.minimum.accumulate(history["primal"]))
    assert (history["primal"] <= history["objective"]).all()


def test_history_thins_out_and_can_be_told_when(problem: ERM) -> None:
    usual = run(problem, "spdc", tol=1e-14, max_passes=40).history["passes"]
    assert list(usual[:5]) == [0, 1, 2, 3, 4]
    assert np.diff(usual).max() == 5
    often = run(problem, "spdc", tol=1e-14, max_passes=4, check_every=0.5).history["passes"]
    assert often == pytest.approx(np.arange(0, 4.1, 0.5))
    seldom = run(problem, "spdc", tol=1e-14, max_passes=40, check_every=30).history["passes"]
    assert list(seldom) == pytest.approx([0, 30, 40])


def test_history_as_a_frame(problem: ERM) -> None:
    history = run(problem, tol=1e-10).history
    frame = history.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(history)
    assert (frame.dtypes == np.float64).all()
    for name in COLUMNS:
        assert (frame[name].to_numpy() == history[name]).all()


def test_history_without_pandas(problem: ERM, monkeypatch: pytest.MonkeyPatch) -> None:
    history = run(problem).history
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        history.to_frame()


def test_an_unknown_column_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="no column 'loss'; it has passes, seconds, objective"):
        History()["loss"]


# ------------------------------------------------------------------------- result


def test_a_result_describes_itself(problem: ERM) -> None:
    result = run(problem, tol=1e-8)
    assert result.x.shape == (4,)
    assert result.y.shape == (30,)
    assert result.x.dtype == result.y.dtype == np.float64
    assert result.method == "spdhg"
    assert result.converged
    assert repr(result).startswith("Result(status='converged', gap=")
    for number in (result.seconds, result.setup_seconds, result.compile_seconds):
        assert 0.0 <= number < 60.0
    assert result.setup_seconds <= result.seconds
    match = re.match(r"converged: gap (\S+), asked for (\S+) \(tol=1e-08\)$", result.message)
    assert match is not None
    assert float(match[1]) == pytest.approx(result.gap, rel=1e-3)
    assert float(match[2]) == pytest.approx(result.tol, rel=1e-3)


def test_compiling_is_counted_apart(problem: ERM) -> None:
    """A custom loss is compiled anew in every process: seconds go to compile_seconds."""

    def value(z: float, t: float) -> float:
        return 0.5 * (z - t) ** 2

    def conjugate(y: float, t: float) -> float:
        return 0.5 * y * y + t * y

    def prox(v: float, sigma: float, t: float) -> float:
        return (v - sigma * t) / (1.0 + sigma)

    def derivative(z: float, t: float) -> float:
        return z - t

    own = losses.Custom(value, conjugate, prox, 1.0, derivative)
    custom = ERM(problem.rows, problem.target, own, problem.regularizer)
    builtin = run(problem, tol=1e-10)
    with pytest.MonkeyPatch.context() as patch:  # the time of other processes is not the solver's
        patch.setattr("adaspdc._clock.perf_counter", time.thread_time)
        patch.setattr("adaspdc._kernels.clock.perf_counter", time.thread_time)
        result = run(custom, tol=1e-10)
    assert result.compile_seconds > 10 * result.seconds
    assert result.x == pytest.approx(builtin.x, abs=1e-12)
    assert result.passes == builtin.passes


@pytest.mark.parametrize("method", METHODS)
def test_shapes_with_several_outputs(method: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 5))
    several = ERM(X, rng.normal(size=(12, 3)), losses.MultiOutputSquared(), regularizers.L2(0.1))
    result = run(several, method, max_passes=20)
    assert (result.x.shape, result.y.shape) == ((5, 3), (12, 3))
    classes = ERM(
        X, np.resize(["a", "b", "c", "d"], 12), losses.Multinomial(), regularizers.L2(0.1)
    )
    result = run(classes, method, max_passes=20)
    assert (result.x.shape, result.y.shape) == ((5, 4), (12, 4))
    assert list(classes.labels) == ["a", "b", "c", "d"]


def test_the_dual_of_blocks_can_be_cut_apart() -> None:
    rng = np.random.default_rng(2)
    blocks = [rng.normal(size=(q, 3)) for q in (2, 1, 4)]
    problem = SaddlePoint(blocks, losses.Huber(0.5).at(0.3), regularizers.L2(0.1))
    result = run(problem, tol=1e-12, max_passes=2000)
    parts = problem.split(result.y)
    assert [part.size for part in parts] == [2, 1, 4]
    for block, part in zip(blocks, parts, strict=True):
        assert part == pytest.approx(losses.Huber(0.5).derivative(block @ result.x, 0.3), abs=1e-5)


@pytest.mark.parametrize("loss", [losses.Huber(0.3), losses.SmoothPinball(0.37, 0.1)])
def test_rounding_does_not_push_the_dual_of_weighted_blocks_out_of_its_domain(
    loss: losses.Loss,
) -> None:
    """A bound times its weight, divided by it again, may exceed the bound."""
    rng = np.random.default_rng(0)
    for weight in 10.0 ** rng.uniform(-3, 3, size=30):
        conjugates = [loss.at(9 * rng.normal(size=3), weight=weight) for _ in range(3)]
        problem = SaddlePoint(
            rng.normal(size=(9, 2)), conjugates, regularizers.L2(0.1), sizes=[3, 3, 3]
        )
        result = run(problem, "spdhg", tol=1e-6, max_passes=20)
        parts = problem.split(result.y)
        values = [c.value(y) for c, y in zip(conjugates, parts, strict=True)]
        assert np.isfinite(values).all()
        again = run(problem, "spdhg", max_passes=0, warm_start=(result.x, parts))
        assert again.gap <= result.gap * (1.0 + 1e-9) + 1e-12 * abs(result.primal)


def test_the_dual_at_the_optimum_is_the_derivative(problem: ERM) -> None:
    result = run(problem, tol=1e-13, max_passes=2000)
    margins = problem.rows.kernel.values @ result.x
    assert result.y == pytest.approx(margins - problem.target, abs=1e-5)


def test_a_result_cannot_be_reassigned(problem: ERM) -> None:
    result = run(problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.gap = 0.0  # type: ignore[misc]


def test_a_result_survives_pickle_copy_and_json(problem: ERM) -> None:
    result = run(problem)
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert isinstance(again, Result)
        assert (again.x == result.x).all()
        assert again.status is result.status
    stored = json.loads(json.dumps(result.to_dict()))
    assert stored["status"] == "converged"
    assert stored["gap"] == result.gap
    assert list(stored["history"]) == COLUMNS


# ------------------------------------------------------------------------- status and warning


def test_results_can_be_compared_and_kept_in_sets(problem: ERM) -> None:
    """By identity: comparing fields asked arrays for one truth value."""
    one, two = run(problem), run(problem)
    assert one != two
    assert one in [two, one]
    assert len({one, two, one}) == 2


def test_status_is_a_string() -> None:
    names = ["converged", "max_passes", "max_seconds", "stopped", "numerical_trouble"]
    assert [str(status) for status in Status] == names
    for status, name in zip(Status, names, strict=True):
        assert status == name
        assert isinstance(status, str)
        assert json.dumps(status) == f'"{name}"'


def solve_with_warning(problem: Any, **settings: Any) -> tuple[Result, warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = adaspdc.solve(problem, **settings)
    (entry,) = caught
    assert entry.category is ConvergenceWarning
    assert issubclass(ConvergenceWarning, UserWarning)
    assert str(entry.message) == result.message
    assert entry.filename == __file__  # it points at the caller's line
    return result, entry


def numbers_of(result: Result, tol: str) -> str:
    return f"gap {result.gap:.3e}, asked for {result.tol:.3e} (tol={tol})"


def test_warning_at_the_limit_of_passes(problem: ERM) -> None:
    result, _ = solve_with_warning(problem, tol=1e-9, max_passes=2)
    assert result.status is Status.MAX_PASSES
    assert result.passes == 2
    assert result.message == (
        f"max_passes=2 reached: {numbers_of(result, '1e-09')}; "
        "raise max_passes, loosen tol, or pass this result as warm_start to go on"
    )


def test_warning_at_the_limit_of_time(problem: ERM) -> None:
    result, _ = solve_with_warning(problem, tol=1e-9, max_seconds=0)
    assert result.status is Status.MAX_SECONDS
    assert result.message.startswith("max_seconds=0 reached after 0 passes: ")
    assert numbers_of(result, "1e-09") in result.message
    assert "allow more time" in result.message


def test_warning_after_a_callback_stopped_the_run(problem: ERM) -> None:
    result, _ = solve_with_warning(
        problem, method="spdhg", tol=1e-12, callback=lambda now: now.passes >= 3
    )
    assert result.status is Status.STOPPED
    assert result.message.startswith("stopped by the callback after 3 passes: ")
    assert "warm_start" in result.message


def test_warning_of_numerical_trouble(problem: ERM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the safe rule produces no numbers, the best point so far comes back."""
    from adaspdc._stochastic import Stochastic

    original, done = Stochastic.advance, [0.0]

    def poisoned(self: Any, passes: float, pause: Any) -> float:
        taken = original(self, passes, pause)
        done[0] += taken
        if done[0] >= 4:
            self._iteration.y[:] = np.nan
        return taken

    monkeypatch.setattr(Stochastic, "advance", poisoned)
    result, _ = solve_with_warning(problem, method="spdhg", tol=1e-12)
    assert result.status is Status.NUMERICAL_TROUBLE
    assert result.message.startswith("numerical trouble after ")
    assert "rescale the data or raise lam" in result.message
    assert len(result.events) == 2
    assert np.isfinite([*result.x, *result.y, result.primal, result.dual, result.gap]).all()


def test_the_warning_can_be_made_an_error(problem: ERM) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="raise max_passes"):
            adaspdc.solve(problem, tol=1e-12, max_passes=1)


def test_no_warning_without_a_cause(problem: ERM) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert adaspdc.solve(problem, tol=1e-3).converged


# ------------------------------------------------------------------------- log


def test_silence_by_default(problem: ERM, capfd: pytest.CaptureFixture[str]) -> None:
    run(problem)
    run(problem, max_passes=1, tol=1e-12)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_the_log(problem: ERM, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(problem, "adaspdc", batch_size=2, n_threads=2, tol=1e-5, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    rules = [k for k, line in enumerate(lines) if set(line) == {"-"}]
    assert len({len(lines[k]) for k in rules}) == 1
    banner, sizes, table, footer = (
        lines[a + 1 : b]
        for a, b in ((rules[0], rules[1]), (rules[1], rules[2]), (rules[3], rules[4]),
                     (rules[4], rules[5]))
    )  # fmt: skip
    assert banner[0].strip() == f"adaspdc {adaspdc.__version__}"
    assert sizes[0] == (
        "problem:  ERM, 30 blocks (0 idle), 30 dual and 4 primal variables, 120 entries"
    )
    assert sizes[1].strip() == "g = L2(lam=0.05)"
    assert sizes[2] == "settings: method adaspdc, batch_size 2, threads 2"
    assert sizes[3].strip() == f"stops at gap {result.tol:.3e}"
    head = lines[rules[2] + 1].split()
    assert head == ["passes", "primal", "dual", "gap", "objective", "time"]
    assert len(table) == len(result.history)
    assert len({len(row) for row in table}) == 1  # fixed width
    for row, passes, gap in zip(
        table, result.history["passes"], result.history["gap"], strict=True
    ):
        cells = row.split()
        assert float(cells[0]) == pytest.approx(passes, abs=0.005)
        assert float(cells[3]) == pytest.approx(gap, rel=1e-3)
        assert cells[5].endswith("s")
    assert footer[0] == f"status:   converged: {result.message}"
    assert f"gap {result.gap:.3e}" in footer[1]
    assert footer[2].startswith(f"work:     {result.passes:g} passes in ")
    assert "compiling" in footer[2]


def test_a_dual_of_zero_has_no_sign(problem: ERM) -> None:
    assert not np.signbit(run(problem, max_passes=0).dual)


def test_rows_of_the_log_stay_aligned_with_awkward_numbers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X = np.array([[1e120], [-3e-5]])
    g = regularizers.L2(1e-3)
    run(
        ERM(X, [-1.0, 1.0], losses.Squared(), g),
        "sdca",
        max_passes=20_000,
        check_every=3,
        verbose=1,
    )
    lines = capsys.readouterr().out.splitlines()
    rules = [k for k, line in enumerate(lines) if set(line) == {"-"}]
    rows = [line for line in lines[rules[3] + 1 : rules[4]] if not line.startswith("*")]
    assert len({len(row) for row in rows}) == 1
    assert all(len(row.split()) == 6 for row in rows)
