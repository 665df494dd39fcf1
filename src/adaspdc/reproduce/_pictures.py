"""Figures: logarithmic axes, the legend outside, one look per method everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._compare import Panel
from ._curves import Curve
from ._lines import LINE
from ._report import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 130
_GRID = {"color": "#DDDDDD", "linewidth": 0.6}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(picture: Figure, path: Path) -> None:
    """Write a PNG; nothing in it depends on the day."""
    picture.savefig(path, dpi=_DPI, metadata={"Software": None})


def panels_figure(path: Path, title: str, panels: Sequence[Panel], columns: int) -> None:
    """Suboptimality against passes, one pair of axes per problem."""
    rows = -(-len(panels) // columns)
    picture = new_figure(3.4 * columns + 2.2, 3.0 * rows + 0.5)
    axes = picture.subplots(rows, columns, squeeze=False)
    for place, panel in zip(axes.flat, panels, strict=False):
        draw_panel(place, panel)
    for place in list(axes.flat)[len(panels) :]:
        place.set_visible(False)
    for row in axes:
        row[0].set_ylabel("J(x) − J(x*)")
    for place in axes[-1]:
        place.set_xlabel("effective passes")
    picture.suptitle(title, fontsize=12)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside right upper", frameon=False, handlelength=3.6, fontsize=9
    )
    save(picture, path)


def draw_panel(axes: Any, panel: Panel) -> None:
    """The curves of one problem, and the level below which nothing can be told apart."""
    for key, curve in panel.curves.items():
        draw_curve(axes, key, curve)
    floor = panel.optimum.floor
    axes.axhline(floor, color="#999999", linewidth=0.8, label="certified gap of x*")
    axes.set_yscale("log")
    highest = max(float(curve.mean.max()) for curve in panel.curves.values())
    lowest = min(float(curve.low.min()) for curve in panel.curves.values())
    top = min(highest, 100.0 * float(panel.adaspdc.mean[0]))  # what diverges leaves the picture
    axes.set_ylim(max(floor, lowest) / 5.0, 3.0 * top)
    axes.set_xlim(0.0, float(panel.adaspdc.passes[-1]))
    axes.set_title(f"λ = {short(panel.task.lam)}", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.grid(True, which="major", **_GRID)


def draw_curve(axes: Any, key: str, curve: Curve) -> None:
    """Mean and spread of one method."""
    look = LINE[key]
    mean = np.where(np.isfinite(curve.mean), curve.mean, np.nan)
    axes.plot(
        curve.passes,
        mean,
        label=look.label,
        color=look.colour,
        linestyle=look.dashes,
        marker=look.marker,
        markevery=0.14,
        markersize=5,
        linewidth=1.5,
    )
    if curve.runs > 1:
        high = np.minimum(curve.high, 1e300)
        axes.fill_between(curve.passes, curve.low, high, color=look.colour, alpha=0.15, linewidth=0)
