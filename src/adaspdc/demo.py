"""The paper's ridge problem, solved by every method: a table and a picture.

matplotlib and rich come with ``pip install 'adaspdc[demo]'`` and are imported where they are used.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .losses import Squared
from .methods import Method
from .problem import ERM
from .regularizers import L2
from .result import ConvergenceWarning, Result, Status
from .solver import Progress, solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Array = NDArray[np.float64]

TOLERANCE = 1e-9
"""Relative gap at which a method may stop before its passes are used up."""

METHODS = tuple(
    # Without the watch, so that each line shows one method and not the rule that rescues it.
    Method(name, step=1.0 if name == "sag" else None, watch=False)
    for name in ("adaspdc", "spdc", "spdc-nonuniform", "spdhg", "sdca", "sag", "saga", "pdhg")
)
"""What the demo compares. SAG takes the longest step of the range that the paper tried, 1/L."""

# Colour (Okabe and Ito's set for colour-blind readers), line and marker: any one of them tells the
# methods apart.
_LOOKS: dict[str, tuple[str, Any, str]] = {
    "adaspdc": ("#D55E00", "-", "o"),
    "spdc": ("#0072B2", "--", "s"),
    "spdc-nonuniform": ("#56B4E9", "-.", "D"),
    "spdhg": ("#000000", "-", "^"),
    "sdca": ("#009E73", ":", "v"),
    "sag": ("#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "P"),
    "saga": ("#E69F00", (0, (3, 1)), "X"),
    "pdhg": ("#777777", (0, (1, 1)), "*"),
}


def paper_ridge(
    random_state: int | np.random.Generator | None = 0, n: int = 1000, d: int = 1000
) -> tuple[Array, Array]:
    """Draw the data of the paper's ridge experiment.

    Rows ``a ~ N(0, Sigma)`` with ``Sigma = diag(1, 1/4, 1/9, ...)``; targets ``b = sum_j a_j + e``
    with noise ``e ~ N(0, 1)``.

    Parameters
    ----------
    random_state : int, Generator or None
        Seed of the draw.
    n, d : int
        Rows and columns.

    Returns
    -------
    X : ndarray of shape (n, d)
    b : ndarray of shape (n,)

    Examples
    --------
    >>> X, b = paper_ridge(0, n=3, d=2)
    >>> X.shape, b.shape
    ((3, 2), (3,))
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    return X, X.sum(axis=1) + rng.standard_normal(n)


def ridge_optimum(X: Array, b: Array, lam: float) -> float:
    """The least value of ``1/(2n) |X x - b|^2 + lam/2 |x|^2``, from the normal equations."""
    n, d = X.shape
    x = np.linalg.solve(X.T @ X / n + lam * np.eye(d), X.T @ b / n)
    residual = X @ x - b
    return float(residual @ residual / (2 * n) + lam / 2 * (x @ x))


@dataclass(frozen=True)
class Run:
    """What one method achieved: its result, and how far above the optimum that is."""

    method: str
    result: Result
    optimum: float

    @property
    def suboptimality(self) -> float:
        """Objective of the point returned, less the optimum."""
        return max(0.0, self.result.primal - self.optimum)

    def curve(self) -> tuple[Array, Array]:
        """Passes, and the suboptimality of the iterate after them (NaN where none can be drawn)."""
        above = self.result.history["objective"] - self.optimum
        drawable = np.isfinite(above) & (above > 0.0)
        return self.result.history["passes"], np.where(drawable, above, np.nan)


def missing_packages() -> list[str]:
    """Which packages of the extra ``demo`` are not installed."""
    return [name for name in ("matplotlib", "rich") if find_spec(name) is None]


def run_demo(out: Path, n: int = 1000, d: int = 1000, lam: float = 1e-5, passes: int = 200) -> bool:
    """Compare all methods, print the table, write the picture; False if Ctrl-C cut it short."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"Ridge regression of the paper's Figure 1: {n} rows, {d} columns, lambda {_short(lam)}. "
        f"Every method may make {passes} passes over the data; it stops early once its certified "
        f"gap is below {_short(TOLERANCE)} of the objective at zero.\n"
    )
    X, b = paper_ridge(0, n, d)
    problem, optimum = ERM(X, b, Squared(), L2(lam)), ridge_optimum(X, b, lam)
    runs = solve_with_all(problem, optimum, passes)
    console.print(table(runs, console.width))
    console.print(_notes(runs))
    figure(runs, f"Ridge regression, n = {n}, d = {d}, λ = {_short(lam)}").savefig(out, dpi=150)
    console.print(f"Picture: {out}", soft_wrap=True, markup=False)
    return len(runs) == len(METHODS) and runs[-1].result.status is not Status.STOPPED


def solve_with_all(problem: ERM, optimum: float, passes: int) -> list[Run]:
    """Every method on the same problem with the same passes, up to a Ctrl-C."""
    runs: list[Run] = []
    with _Bar(len(METHODS) * passes) as bar:
        for k, method in enumerate(METHODS):
            bar.begin(method.name)
            result = _solve(problem, method, passes, bar.watch(k * passes))
            runs.append(Run(method.name, result, optimum))
            if result.status is Status.STOPPED:
                break
    return runs


def _solve(
    problem: ERM, method: Method, passes: int, callback: Callable[[Progress], None]
) -> Result:
    with warnings.catch_warnings():
        # Running out of passes is the point of the comparison; the table says who did.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, method, tol=TOLERANCE, max_passes=passes, callback=callback)


class _Bar:
    """A progress bar on stderr, nothing at all where that is not a terminal."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description:<26}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("", total=total)
        self._method = ""

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, method: str) -> None:
        """Say which method is at work, and why nothing moves at first."""
        self._method = method
        self._progress.update(self._task, description=f"{method}: compiling")

    def watch(self, before: int) -> Callable[[Progress], None]:
        """A callback for ``solve`` that moves the bar on from ``before`` passes."""

        def show(state: Progress) -> None:
            done = before + state.passes
            self._progress.update(self._task, completed=done, description=self._method)

        return show


def table(runs: list[Run], width: int = 80) -> Table:
    """The certified results, narrow enough for a terminal of 60 columns."""
    from rich import box
    from rich.table import Table

    spacing = 1 if width >= 72 else 0
    result = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, spacing))
    result.add_column("method")
    result.add_column("status")
    for head in ("passes", "above\noptimum", "certified\ngap", "seconds"):
        result.add_column(head, justify="right")
    for run in runs:
        outcome = run.result
        result.add_row(
            run.method,
            str(outcome.status),
            f"{outcome.passes:g}",
            f"{run.suboptimality:.1e}",
            f"{outcome.gap:.1e}",
            f"{outcome.seconds:.2f}",
            style="bold" if outcome.converged else None,
        )
    return result


def _short(number: float) -> str:
    """1e-05 as 1e-5."""
    return f"{number:g}".replace("e-0", "e-").replace("e+0", "e+")


def _notes(runs: list[Run]) -> str:
    compiling = sum(run.result.compile_seconds for run in runs)
    return (
        "\nThe gap bounds 'above optimum' without knowing the optimum, which is known here only "
        "because ridge regression has a closed form. Compiling, or loading compiled code from the "
        f"cache, took {compiling:.1f} s on top of the seconds above.\n"
    )


def figure(runs: list[Run], title: str) -> Figure:
    """Suboptimality against passes, legend beside the curves in the order in which they end."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = picture.add_subplot()
    for run in sorted(runs, key=lambda run: -run.suboptimality):
        colour, line, marker = _LOOKS[run.method]
        axes.semilogy(
            *run.curve(),
            label=run.method,
            color=colour,
            linestyle=line,
            marker=marker,
            markevery=0.1,
            markersize=6,
            linewidth=1.6,
        )
    axes.set_title(title)
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("objective of the iterate − optimum")
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    picture.legend(loc="outside right center", frameon=False, handlelength=4.0)
    return picture
