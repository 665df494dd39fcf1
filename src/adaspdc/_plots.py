"""Pictures: how a run converged, and coefficients along a path.

matplotlib comes with ``pip install 'adaspdc[plot]'`` and is imported where it is used. Every line
differs from the others in colour (Okabe and Ito's set for colour-blind readers), in its dashes and
in its marker, so that any one of the three is enough.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLACK, _BLUE, _ORANGE, _GREY = "#000000", "#0072B2", "#D55E00", "#777777"
_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
_NAMED = len(_MARKERS)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that belongs to no window; ImportError with a remedy without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'adaspdc[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def convergence(columns: dict[str, list[float]], tol: float, title: str) -> Figure:
    """Gap, and objective and bound, against passes and seconds; ``columns`` is a history."""
    figure = new_figure(9.0, 6.0)
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for column, (name, label) in enumerate(
        (("passes", "passes over the data"), ("seconds", "seconds"))
    ):
        x = np.asarray(columns[name])
        _gap(axes[0, column], x, columns, tol)
        _objective(axes[1, column], x, columns)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylabel("duality gap")
    axes[1, 0].set_ylabel("objective")
    axes[0, 0].legend(frameon=False)
    axes[1, 0].legend(frameon=False)
    figure.suptitle(title)
    return figure


def _gap(axes: Axes, x: np.ndarray, columns: dict[str, list[float]], tol: float) -> None:
    gap = np.asarray(columns["gap"])
    drawable = np.where(np.isfinite(gap) & (gap > 0), gap, np.nan)
    axes.plot(x, drawable, label="certified gap", **_look(_BLACK, "-", "o", x))
    if tol > 0:
        axes.axhline(tol, color=_ORANGE, linestyle="--", linewidth=1.4, label="tolerance")
    if np.isfinite(drawable).any() or tol > 0:
        axes.set_yscale("log")
    _grid(axes)


def _objective(axes: Axes, x: np.ndarray, columns: dict[str, list[float]]) -> None:
    primal, dual = _finite(columns["primal"]), _finite(columns["dual"])
    axes.fill_between(x, dual, primal, color="#DDDDDD", linewidth=0)
    axes.plot(x, primal, label="objective P (best)", **_look(_BLACK, "-", "o", x))
    axes.plot(x, dual, label="lower bound D (best)", **_look(_BLUE, "--", "s", x))
    _focus(axes, primal, dual)
    _grid(axes)


def _focus(axes: Axes, primal: np.ndarray, dual: np.ndarray) -> None:
    """Show what happens near the end, even where the first bound was absurdly low."""
    known = np.concatenate([primal[np.isfinite(primal)], dual[np.isfinite(dual)]])
    if not known.size:
        return
    end, high = dual[np.isfinite(dual)][-1:], np.nanmax(primal) if primal.size else known.max()
    low = (
        max(known.min(), float(end[0]) - 2.0 * (high - float(end[0]))) if end.size else known.min()
    )
    margin = 0.06 * (high - low) or 1e-6 * max(1.0, abs(high))
    axes.set_ylim(low - margin, high + margin)


def coefficient_path(
    lambdas: Sequence[float], coefs: np.ndarray, names: Sequence[str] | None = None
) -> Figure:
    """Coefficients against lambda; ``coefs`` has a row per lambda. The largest ten have a name."""
    figure = new_figure(8.0, 5.0)
    axes = figure.add_subplot()
    values = np.asarray(coefs).reshape(len(lambdas), -1)
    largest = np.argsort(-np.abs(values).max(axis=0), kind="stable")
    for j in largest[_NAMED:]:
        axes.plot(lambdas, values[:, j], color="#BBBBBB", linewidth=0.6, zorder=1)
    looks = zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKERS), strict=False)
    for j, (colour, dashes, marker) in zip(largest[:_NAMED], looks, strict=False):
        label = str(j + 1) if names is None else names[j]
        axes.plot(
            lambdas,
            values[:, j],
            label=label,
            zorder=2,
            **_look(colour, dashes, marker, np.asarray(lambdas)),
        )
    axes.axhline(0.0, color=_GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set_xlabel("λ (weaker penalty to the right)")
    axes.set_ylabel("coefficient")
    _grid(axes)
    title = "feature" if names is None else None
    figure.legend(loc="outside right center", frameon=False, handlelength=4.0, title=title)
    return figure


def _finite(values: list[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def _look(colour: str, dashes: Any, marker: str, x: np.ndarray) -> dict[str, Any]:
    return {
        "color": colour,
        "linestyle": dashes,
        "marker": marker,
        "markersize": 4.5,
        "markevery": max(1, len(x) // 15),
        "linewidth": 1.5,
    }


def _grid(axes: Axes) -> None:
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
