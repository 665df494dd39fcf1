"""Pictures for the page: who is how far after which time and how many passes, and all ratios."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .cells import TARGETS, Cell
from .peers import OURS, names
from .records import Records
from .verdict import Standings, Verdict

_SHOWN = 6
"""Peers a panel shows: those with the best times."""
_FLOOR = 1e-12
_OURS = "#c1272d"
_LINES = ("-", "--", ":", "-.")


def draw(
    folder: Path, records: Records, cells: Sequence[Cell], verdicts: Sequence[Verdict]
) -> list[tuple[str, Path]]:
    """One picture of ratios, and one of time and one of passes per loss; (words, file) of each."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    files = [_ratios(folder / "ratios.png", verdicts)] if verdicts else []
    for loss in dict.fromkeys(cell.loss for cell in cells):
        panels = _one_lambda([cell for cell in cells if cell.loss == loss])
        for axis in ("time", "passes"):
            file = folder / f"{loss}-{axis}.png"
            if _curves(file, records, panels, axis):
                files.append((f"{loss}: suboptimality and {axis}", file))
    return files


def _one_lambda(cells: Sequence[Cell]) -> list[Cell]:
    """The middle lambda of every data set."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.data, []).append(cell)
    return [
        sorted(same, key=lambda cell: cell.lam)[(len(same) - 1) // 2] for same in found.values()
    ]


def _curves(file: Path, records: Records, cells: Sequence[Cell], axis: str) -> bool:
    import matplotlib.pyplot as plt

    columns = min(3, len(cells))
    rows = -(-len(cells) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.6 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    drawn = [
        _panel(panel, records, cell, axis) for panel, cell in zip(axes.flat, cells, strict=False)
    ]
    for panel in axes.flat[len(cells) :]:
        panel.set_axis_off()
    words = "seconds" if axis == "time" else "passes (ours); iterations or evaluations (peers)"
    figure.supxlabel(words)
    figure.supylabel("(P(x) - P*) / P*")
    if any(drawn):
        figure.savefig(file, dpi=80)
    plt.close(figure)
    return any(drawn)


def _panel(panel: Any, records: Records, cell: Cell, axis: str) -> bool:
    standings = Standings(records, cell.name, 1)
    drawn = 0
    for peer in [OURS, *_best(standings)]:
        fits = [fit for fit in standings.fits if fit["peer"] == peer]
        if axis == "passes":
            fits = [fit for fit in fits if fit["passes"]]
        if not fits:
            continue
        x = [standings.seconds(fit) if axis == "time" else fit["passes"] for fit in fits]
        y = [max(standings.suboptimality(fit), _FLOOR) for fit in fits]
        order = np.argsort(x, kind="stable")
        panel.plot(np.array(x)[order], np.minimum.accumulate(np.array(y)[order]), **_style(peer))
        drawn += 1
    for target in TARGETS[:3]:
        panel.axhline(target.level, color="0.85", lw=0.8, zorder=0)
    panel.set(xscale="log", yscale="log", title=cell.name, ylim=(_FLOOR / 3, None))
    panel.title.set_fontsize(9)
    _ticks(panel.xaxis)
    if drawn:
        panel.legend(fontsize=6.5, frameon=False)
    return drawn > 0


def _ticks(axis: Any) -> None:
    """1, 2 and 5 of every decade, or less, in plain numbers: for short logarithmic axes, too."""
    from matplotlib import ticker

    low, high = np.log10(axis.get_view_interval())
    subs = (1.0, 2.0, 5.0) if high - low < 2.0 else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=8))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _style(peer: str) -> dict[str, Any]:
    """The same line for a peer in every panel."""
    if peer == OURS:
        return {"color": _OURS, "lw": 2.4, "zorder": 5, "marker": "o", "label": peer}
    place = names().index(peer) if peer in names() else 0
    colour = f"C{place % 10}" if place % 10 != 3 else "k"  # C3 is red, as ours
    return {"color": colour, "ls": _LINES[place // 10 % 4], "lw": 1.1, "marker": ".", "label": peer}


def _best(standings: Standings) -> list[str]:
    """The peers that are among the fastest at some accuracy, the last accuracy first."""
    found: list[str] = []
    rankings = [standings.ranking(target, but=(OURS,)) for target in reversed(TARGETS[:3])]
    for place in range(_SHOWN):
        found += [ranking[place][0] for ranking in rankings if place < len(ranking)]
    return list(dict.fromkeys(found))[:_SHOWN]


def _ratios(file: Path, verdicts: Sequence[Verdict]) -> tuple[str, Path]:
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(8, 4), layout="constrained")
    for target in TARGETS:
        ratios = sorted(v.ratio for v in verdicts if v.target == target and v.ratio is not None)
        share = (np.arange(len(ratios)) + 0.5) / max(len(ratios), 1)
        panel.plot(ratios, share, marker=".", label=target.name)
    panel.axvline(1.0, color="0.3", lw=1)
    panel.set(
        xscale="log",
        xlabel="time of the fastest peer / ours (right of the line we are faster)",
        ylabel="share of the cells",
    )
    _ticks(panel.xaxis)
    panel.legend(frameon=False)
    figure.savefig(file, dpi=80)
    plt.close(figure)
    return "Ratios of all cells, one thread", file
