"""The demo: the paper's data, a certified table, a picture anyone can read."""

import io
import warnings
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from rich.console import Console

import adaspdc
from adaspdc import demo
from adaspdc.demo import METHODS, Run, paper_ridge, ridge_optimum
from adaspdc.losses import Squared
from adaspdc.methods import METHODS as CATALOGUE
from adaspdc.problem import ERM
from adaspdc.regularizers import L2
from adaspdc.result import ConvergenceWarning, Status

LAM = 1e-3
PASSES = 20


@pytest.fixture(scope="module")
def problem() -> tuple[ERM, float]:
    X, b = paper_ridge(0, 60, 40)
    return ERM(X, b, Squared(), L2(LAM)), ridge_optimum(X, b, LAM)


@pytest.fixture(scope="module")
def runs(problem: tuple[ERM, float]) -> list[Run]:
    return demo.solve_with_all(*problem, PASSES)


# --- the data ---


def test_data_are_those_of_the_paper() -> None:
    X, b = paper_ridge(3, 20_000, 5)
    np.testing.assert_allclose(X.std(axis=0) * np.arange(1, 6), 1.0, rtol=0.03)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=0.03)
    noise = b - X @ np.ones(5)
    assert noise.std() == pytest.approx(1.0, rel=0.03)
    assert abs(np.corrcoef(noise, X[:, 0])[0, 1]) < 0.03


def test_data_follow_the_seed() -> None:
    first, again, other = (paper_ridge(seed, 10, 4) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    assert paper_ridge(np.random.default_rng(0), 10, 4)[0].tolist() == first[0].tolist()


def test_optimum_is_least_squares_of_the_stacked_system() -> None:
    X, b = paper_ridge(1, 30, 50)
    stacked = np.vstack([X / np.sqrt(30), np.sqrt(LAM) * np.eye(50)])
    right = np.append(b / np.sqrt(30), np.zeros(50))
    residual = right - stacked @ np.linalg.lstsq(stacked, right, rcond=None)[0]
    assert ridge_optimum(X, b, LAM) == pytest.approx(residual @ residual / 2, rel=1e-10)


# --- the comparison ---


def test_every_method_takes_part(runs: list[Run]) -> None:
    assert {run.method for run in runs} == set(CATALOGUE)


def test_every_run_is_certified_and_uses_its_passes(runs: list[Run]) -> None:
    for run in runs:
        assert 0.0 <= run.suboptimality <= run.result.gap * (1 + 1e-9) + 1e-15, run.method
        assert run.result.events == ()
        if run.result.status is Status.MAX_PASSES:
            assert run.result.passes == pytest.approx(PASSES, abs=1e-9)
        else:
            assert run.result.status is Status.CONVERGED
            assert run.result.gap <= run.result.tol


def test_only_the_expected_warning_is_silenced(problem: tuple[ERM, float]) -> None:
    before = list(warnings.filters)
    demo.solve_with_all(*problem, 1)  # warnings are errors here, and nothing converges in one pass
    assert list(warnings.filters) == before
    with pytest.warns(ConvergenceWarning):
        adaspdc.solve(problem[0], tol=1e-12, max_passes=1)


def test_curves_end_where_the_table_says(runs: list[Run]) -> None:
    for run in runs:
        passes, above = run.curve()
        assert passes[0] == 0.0
        assert passes[-1] == run.result.passes
        assert np.nanmin(above) == pytest.approx(run.suboptimality, rel=1e-3, abs=1e-15)


# --- the table ---


@pytest.mark.parametrize("width", [60, 72, 80, 120])
def test_table_fits_the_terminal(runs: list[Run], width: int) -> None:
    screen = io.StringIO()
    Console(file=screen, width=width).print(demo.table(runs, width))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in screen.getvalue()
    assert len(lines) == 3 + len(METHODS)  # a head of two lines, a rule, one line a method
    for run, line in zip(runs, lines[3:], strict=True):
        name, status, passes, above, gap, _ = line.split()
        assert (name, status) == (run.method, str(run.result.status))
        assert float(passes) == run.result.passes
        assert float(above) == pytest.approx(run.suboptimality, rel=0.06, abs=1e-300)
        assert float(gap) == pytest.approx(run.result.gap, rel=0.06, abs=1e-300)


# --- the picture ---


def test_methods_differ_in_colour_marker_and_line(runs: list[Run]) -> None:
    lines = demo.figure(runs, "title").axes[0].get_lines()
    assert len(lines) == len(METHODS)
    assert len({line.get_color() for line in lines}) == len(lines)
    assert len({line.get_marker() for line in lines}) == len(lines)
    # Two may share a line style only with quite different markers: solid for the two main ones.
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == len(lines)


def test_picture_has_labels_log_scale_and_legend_outside(runs: list[Run]) -> None:
    picture = demo.figure(runs, "title")
    axes = picture.axes[0]
    picture.savefig(io.BytesIO())  # lays it out
    assert axes.get_yscale() == "log"
    assert "passes" in axes.get_xlabel()
    assert "optimum" in axes.get_ylabel()
    assert axes.get_legend() is None
    legend = picture.legends[0]
    assert legend.get_window_extent().x0 > axes.get_window_extent().x1
    assert {text.get_text() for text in legend.get_texts()} == {run.method for run in runs}


def test_run_demo_prints_the_table_and_writes_a_png(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "picture.png"
    assert demo.run_demo(out, n=30, d=20, lam=LAM, passes=5)
    printed = capsys.readouterr()
    assert all(method.name in printed.out for method in METHODS)
    assert str(out) in printed.out.replace("\n", "")
    assert printed.err == ""  # no progress bar where stderr is not a terminal
    height, width, _ = matplotlib.image.imread(out).shape
    assert min(height, width) > 500


def test_interrupt_ends_the_demo_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = demo._solve

    def stop_in_the_second(problem: ERM, method: Any, passes: int, callback: Any) -> Any:
        stop = (lambda state: True) if method.name == METHODS[1].name else callback
        return real(problem, method, passes, stop)

    monkeypatch.setattr(demo, "_solve", stop_in_the_second)
    out = tmp_path / "picture.png"
    assert not demo.run_demo(out, n=30, d=20, lam=LAM, passes=5)
    printed = capsys.readouterr().out
    assert METHODS[1].name in printed
    assert "stopped" in printed
    assert METHODS[-1].name not in printed
    assert out.is_file()
