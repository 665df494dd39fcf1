"""What the paper does not say: where Algorithm 1 diverges, and what a better balance gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._balance import Balanced, balanced_run
from ._context import Context
from ._curves import optimum
from ._dynamics import distances, iteration_maps, lyapunov, mean_square_radius
from ._jobs import Task, certified
from ._lines import LINE
from ._materials import paper_material, ridge_material
from ._pictures import new_figure, save
from ._report import Claim, Figure, Grid, Report, scientific, short, times

_ROWS, _TARGETS, _LAM = np.array([1.0, 0.1]), np.array([1.0, -1.0]), 1e-4
_ITERATIONS = 400
_MARKS = (50, 100, 200, 400)
_WEIGHTS, _SIZES = (1e-2, 1e-4, 1e-6), (2, 4, 8)


def beyond(context: Context) -> Report:
    """Draw the counterexample, the region of stability and the effect of the balance."""
    report = Report("beyond", "What the paper does not say", context.settings.to_dict())
    report.intro = (
        "Theorem 1 promises AdaSPDC a linear rate. It fails on ridge regression with two rows, 1 "
        "and 0.1, in one dimension: the steps follow the row that was drawn, a small row allows a "
        "long primal step, and the next large row needs it to have been short."
    )
    _counterexample(context, report)
    _stability(context, report)
    _balance(context, report)
    return report


# --- the counterexample ---------------------------------------------------------------------------


def _counterexample(context: Context, report: Report) -> None:
    seeds = context.settings.seeds
    best = (_ROWS @ _TARGETS / 2.0) / (_ROWS @ _ROWS / 2.0 + _LAM)
    start = np.concatenate([[-best, -best], -(_ROWS * best - _TARGETS)])
    maps = {rule: iteration_maps(_ROWS, _LAM, rule) for rule in ("adaspdc", "spdc")}
    found = {rule: distances(maps[rule], start, _ITERATIONS, seeds) for rule in maps}
    radius = {rule: mean_square_radius(maps[rule]) for rule in maps}
    exponent = lyapunov(maps["adaspdc"])
    report.claims.append(
        Claim(
            "Theorem 1: AdaSPDC converges linearly, with a sharper rate than SPDC",
            f"two rows, λ = {short(_LAM)}: per iteration the expected square of the distance is "
            f"multiplied by {radius['adaspdc']:.3f} (SPDC: {radius['spdc']:.3f}), and almost every "
            f"run grows like exp({exponent:+.3f} t) (holds if the first number is below 1)",
            radius["adaspdc"] < 1.0,
        )
    )
    head = ("iterations", *(f"{t}" for t in _MARKS))
    rows = [
        (f"{LINE[rule].label}, median", *(scientific(float(np.median(d[:, t]))) for t in _MARKS))
        for rule, d in found.items()
    ]
    report.tables.append(Grid(f"|x − x*| on the two rows, {seeds} seeds", head, tuple(rows)))
    name = "beyond-counterexample"
    _draw_distances(context.out / f"{name}.png", found)
    settings = {"rows": _ROWS.tolist(), "targets": _TARGETS.tolist(), "lam": _LAM, "seeds": seeds}
    report.figures.append(
        _figure(
            context,
            name,
            "The counterexample: ridge regression with the rows 1 and 0.1",
            "Median of the seeds, bands from the 10th to the 90th percentile.",
            _quantile_lines(found),
            settings,
        )
    )


def _quantile_lines(found: dict[str, np.ndarray]) -> list[str]:
    lines = ["method,iteration,median,low,high"]
    for rule, values in found.items():
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), axis=0)
        lines += [
            f"{rule},{t},{middle[t]:.6g},{low[t]:.6g},{high[t]:.6g}" for t in range(middle.size)
        ]
    return lines


def _draw_distances(path: Path, found: dict[str, np.ndarray]) -> None:
    picture = new_figure(7.6, 4.0)
    axes = picture.subplots()
    for rule, values in found.items():
        look = LINE[rule]
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), axis=0)
        axes.semilogy(
            middle,
            label=look.label,
            color=look.colour,
            linestyle=look.dashes,
            marker=look.marker,
            markevery=50,
        )
        axes.fill_between(np.arange(middle.size), low, high, color=look.colour, alpha=0.15)
    axes.set_xlabel("iterations")
    axes.set_ylabel("|x − x*|")
    axes.set_xlim(0, _ITERATIONS)
    axes.set_title(f"Two rows, 1 and 0.1; λ = {short(_LAM)}", fontsize=11)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    picture.legend(loc="outside right upper", frameon=False, handlelength=3.2)
    save(picture, path)


# --- the region of stability ----------------------------------------------------------------------


def _stability(context: Context, report: Report) -> None:
    points = context.settings.map_points
    ratios, lams = np.logspace(0.0, 3.0, points), np.logspace(-8.0, 0.0, points)
    radii = np.array([[_radius(ratio, lam) for ratio in ratios] for lam in lams])
    border = [_border(lam, 2) for lam in lams]
    rows = tuple((short(lam), *(_shown(_border(lam, n)) for n in _SIZES)) for lam in _WEIGHTS)
    title = "The smallest ratio of the two norms at which the mean square grows"
    head = ("λ", *(f"n = {n}" for n in _SIZES))
    report.tables.append(Grid(f"{title}; half of the n rows have either norm", head, rows))
    name = "beyond-stability"
    _draw_map(context.out / f"{name}.png", ratios, lams, radii, border)
    lines = ["norm_ratio,lam,radius"]
    lines += [
        f"{ratio:.6g},{lam:.6g},{radii[i, j]:.8g}"
        for i, lam in enumerate(lams)
        for j, ratio in enumerate(ratios)
    ]
    report.figures.append(
        _figure(
            context,
            name,
            "Where Algorithm 1 is stable on two rows",
            "The factor per iteration of the expected square of the distance to the solution. The "
            "black line is where it is 1. The larger row has norm 1.",
            lines,
            {"rows": "1 and 1/ratio, one dimension", "points": points},
        )
    )


def _radius(ratio: float, lam: float, n: int = 2) -> float:
    rows = np.concatenate([np.ones(n // 2), np.full(n // 2, 1.0 / ratio)])
    return mean_square_radius(iteration_maps(rows, lam))


def _border(lam: float, n: int) -> float:
    """The ratio at which the radius first exceeds 1, to two in a thousand; infinity if never."""
    ratios = np.logspace(0.0, 3.0, 16)
    above = [k for k, ratio in enumerate(ratios) if _radius(ratio, lam, n) > 1.0]
    if not above:
        return float("inf")
    low, high = float(ratios[max(above[0] - 1, 0)]), float(ratios[above[0]])
    while high / low > 1.002:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if _radius(middle, lam, n) > 1.0 else (middle, high)
    return high


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}" if np.isfinite(ratio) else "none up to 1000"


def _draw_map(
    path: Path, ratios: np.ndarray, lams: np.ndarray, radii: np.ndarray, border: list[float]
) -> None:
    picture = new_figure(7.6, 4.4)
    axes = picture.subplots()
    colours = ["#DCE9F4", "#FBE3CF", "#F7C59A", "#EE9C5A", "#D55E00", "#8A3C00"]
    levels = [0.0, 1.0, 1.1, 2.0, 10.0, 100.0, 1e9]
    shown = axes.contourf(ratios, lams, radii, levels=levels, colors=colours)
    axes.plot(border, lams, color="black", linewidth=1.6, label="border of stability")
    axes.plot([10.0], [_LAM], "kx", markersize=9)
    axes.annotate("the counterexample", (10.0, _LAM), (12.0, 1.5 * _LAM), fontsize=9)
    axes.text(1.3, 1e-6, "stable", fontsize=11)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ratios[0], ratios[-1])
    axes.set_ylim(lams[0], lams[-1])
    axes.set_xlabel("ratio of the norms of the two rows")
    axes.set_ylabel("λ")
    axes.set_title("Algorithm 1 on two rows: growth of E|x − x*|² per iteration", fontsize=11)
    bar = picture.colorbar(shown, ax=axes, label="factor per iteration", spacing="uniform")
    bar.set_ticks(levels, labels=["0", "1", "1.1", "2", "10", "100", "more"])
    save(picture, path)


# --- the balance ----------------------------------------------------------------------------------


def _balance(context: Context, report: Report) -> None:
    settings = context.settings
    w8a = paper_material("w8a", settings)
    tasks = [
        Task(w8a, "logistic", 1e-6),
        Task(w8a, "hinge", 1e-6),
        Task(ridge_material(settings), "squared", 1e-5),
    ]
    passes = int(settings.passes)
    known = {task: certified(task, settings.optimum_passes) for task in tasks}
    records = context.run(known.values(), "beyond")
    curves: dict[Task, dict[bool, np.ndarray]] = {}
    omegas: dict[Task, float] = {}
    for task in tasks:
        runs = {tuned: balanced_run(task, passes, tuned, seed=0) for tuned in (False, True)}
        lowest = [_as_record(run) for run in runs.values()]
        best = optimum(records[known[task]], lowest)
        curves[task] = {
            tuned: np.maximum(run.objective - best.value, best.floor) for tuned, run in runs.items()
        }
        omegas[task] = float(runs[True].omega[-1])
    report.tables.append(_balance_table(curves, omegas, passes))
    name = "beyond-balance"
    _draw_balance(context.out / f"{name}.png", curves)
    report.figures.append(
        _figure(
            context,
            name,
            "Algorithm 1 with the paper's balance of primal and dual steps, and with a tuned one",
            "After every pass σ is multiplied and τ divided by ω, which moves a fifth of the way "
            "(in logarithms) to the ratio of dual and primal travel. Otherwise the same steps, the "
            "same order of rows; one run each.",
            _balance_lines(curves),
            {"settings": settings.to_dict(), "passes": passes, "seed": 0},
        )
    )


def _balance_lines(curves: dict[Task, dict[bool, np.ndarray]]) -> list[str]:
    lines = ["data,loss,lam,balance,pass,suboptimality"]
    lines += [
        f'"{t.material.title}",{t.loss},{short(t.lam)},{"tuned" if k else "fixed"},{i},{value:.8g}'
        for t, group in curves.items()
        for k, values in group.items()
        for i, value in enumerate(values)
    ]
    return lines


def _as_record(run: Balanced) -> dict[str, Any]:
    finite = run.objective[np.isfinite(run.objective)]
    return {"primal": float(finite.min()), "dual": -np.inf}


def _balance_table(
    curves: dict[Task, dict[bool, np.ndarray]], omegas: dict[Task, float], passes: int
) -> Grid:
    rows = []
    for task, group in curves.items():
        fixed, tuned = float(group[False][-1]), float(group[True][-1])
        rows.append(
            (
                f"{task.material.title}, {task.loss}, λ = {short(task.lam)}",
                scientific(fixed),
                scientific(tuned),
                times(fixed / tuned),
                f"{omegas[task]:.3g}",
            )
        )
    head = ("problem", "fixed", "tuned", "times closer", "ω at the end")
    return Grid(f"The effect of the balance after {passes} passes", head, tuple(rows))


def _draw_balance(path: Path, curves: dict[Task, dict[bool, np.ndarray]]) -> None:
    look = LINE["adaspdc"]
    picture = new_figure(3.3 * len(curves) + 2.2, 3.6)
    axes = picture.subplots(1, len(curves), squeeze=False)[0]
    for place, (task, group) in zip(axes, curves.items(), strict=True):
        for tuned, values in group.items():
            label = "AdaSPDC, balance tuned" if tuned else "AdaSPDC"
            place.semilogy(
                np.where(np.isfinite(values), values, np.nan),
                label=label,
                color=look.colour,
                linestyle="--" if tuned else look.dashes,
                marker=look.marker,
                fillstyle="none" if tuned else "full",
                markevery=0.14,
                markersize=5,
            )
        place.set_title(f"{task.material.title}\n{task.loss}, λ = {short(task.lam)}", fontsize=8)
        place.set_xlabel("effective passes")
        place.tick_params(labelsize=8)
        place.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes[0].set_ylabel("J(x) − J(x*)")
    handles, labels = axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    save(picture, path)


def _figure(
    context: Context,
    name: str,
    title: str,
    caption: str,
    lines: list[str],
    settings: dict[str, Any],
) -> Figure:
    (context.out / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    context.write_json(f"{name}.settings.json", settings)
    return Figure(f"{name}.png", title, caption, (f"{name}.csv", f"{name}.settings.json"))
