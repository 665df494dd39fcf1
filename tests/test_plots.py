"""Pictures hold what they should, and say what is missing."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaspdc
from adaspdc import losses, regularizers
from adaspdc._plots import coefficient_path, convergence

RNG = np.random.default_rng(0)
X = RNG.standard_normal((100, 14))
Y = np.sign(X @ RNG.standard_normal(14) + RNG.standard_normal(100))


def solved(**options: Any) -> adaspdc.Result:
    problem = adaspdc.ERM(X, Y, losses.Logistic(), regularizers.L2(1e-3))
    return adaspdc.solve(problem, method="spdhg", **options)


def test_convergence_draws_the_history(tmp_path: Path) -> None:
    result = solved(tol=1e-8)
    figure = result.plot()
    gap_passes, gap_seconds, objective_passes, objective_seconds = figure.axes
    for axes, column in ((gap_passes, "passes"), (gap_seconds, "seconds")):
        line = axes.get_lines()[0]
        np.testing.assert_array_equal(line.get_xdata(), result.history[column])
        np.testing.assert_array_equal(line.get_ydata(), result.history["gap"])
        assert axes.get_yscale() == "log"
    for axes in (objective_passes, objective_seconds):
        primal, dual = axes.get_lines()
        np.testing.assert_array_equal(primal.get_ydata(), result.history["primal"])
        np.testing.assert_array_equal(dual.get_ydata(), result.history["dual"])
    assert objective_passes.get_xlabel() == "passes over the data"
    assert objective_seconds.get_xlabel() == "seconds"
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("gap", [[0.0], [np.inf, 0.0], [np.inf, np.nan], [1e100, 1e-100]])
def test_strange_histories_can_be_drawn(tmp_path: Path, gap: list[float]) -> None:
    count = len(gap)
    columns = {
        "passes": list(range(count)),
        "seconds": [0.0] * count,
        "primal": [1.0] * count,
        "dual": [1.0 - g for g in gap],
        "gap": gap,
    }
    for tol in (0.0, 1e-6):
        convergence(columns, tol, "title").savefig(tmp_path / "picture.png")  # type: ignore[arg-type]


def test_path_names_the_largest_and_tells_lines_apart(tmp_path: Path) -> None:
    lambdas = np.logspace(0, -3, 9)
    coefs = RNG.standard_normal((9, 25)) * np.arange(25)
    names = [f"feature {j}" for j in range(25)]
    figure = coefficient_path(lambdas, coefs, names)
    axes = figure.axes[0]
    named = [line for line in axes.get_lines() if line.get_label() in names]
    largest = np.argsort(-np.abs(coefs).max(axis=0))[:10]
    assert {line.get_label() for line in named} == {names[j] for j in largest}
    assert len({line.get_marker() for line in named}) == 10  # even in black and white
    assert len({line.get_color() for line in named}) >= 7
    assert axes.xaxis_inverted()
    figure.savefig(tmp_path / "picture.png")


def test_path_of_several_outputs(tmp_path: Path) -> None:
    figure = coefficient_path([1.0, 0.1], RNG.standard_normal((2, 3, 2)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] != []
    figure.savefig(tmp_path / "picture.png")


def test_absent_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solved()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'adaspdc\[plot\]'"):
        result.plot()
