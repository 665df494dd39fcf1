"""``adaspdc path``: one model for each of several values of lambda."""

from __future__ import annotations

import csv
import io
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from . import _grid, _options
from ._run import (
    ExitCode,
    check_outputs,
    explained,
    report,
    require_matplotlib,
    save_figure,
    write_text,
    writing,
)

if TYPE_CHECKING:
    from ..result import Result

_COLUMNS = ("alpha", "objective", "bound", "gap", "passes", "seconds", "nonzero", "norm", "status")


_EXAMPLES = """\b
Example:
  adaspdc path train.svm --l1-ratio 0.9 -o path.csv --plot path.png
"""


@click.command(short_help="Fit along a path of lambdas.", epilog=_EXAMPLES)
@_options.FILE
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(),
    metavar="CSV",
    help="Where the table goes; by default standard output.",
)
@click.option("--coefficients", is_flag=True, help="Add a column for each coefficient.")
@_grid.options(20)
@_options.loss
@_options.penalty
@_options.intercept
@_options.solver
@click.option(
    "--plot",
    type=click.Path(),
    callback=_options.picture,
    metavar="PNG",
    help="Draw the coefficients against lambda.",
)
@_options.data
@_options.output
@explained
def path(file: str, target: str | None, **options: Any) -> ExitCode:
    """Fit FILE for several values of lambda, the largest first, each with its certificate.

    Prints a CSV table: lambda, objective, lower bound, gap, work, and how many coefficients are not
    zero.
    """
    from ._problem import DataOptions
    from ._solve import solver_settings

    target = None if target == "-" else target
    check_outputs(target, options["plot"], inputs=(file,))
    if options["plot"]:
        require_matplotlib()
    data = DataOptions.of(options).read(file)
    grid = _grid.Grid.of(data.X, data.y, options)
    found = [(alpha, result) for alpha, _, result in grid.solved(solver_settings(options))]
    rows = [_row(alpha, result, options["coefficients"]) for alpha, result in found]
    if target is not None:
        writing(target, partial(write_text, target, _table(rows)))
    if options["plot"]:
        save_figure(options["plot"], _picture(found, data.features))
    if options["as_json"]:
        report("path", {"path": rows}, [], True)
    elif target is None:
        sys.stdout.write(_table(rows))
        sys.stdout.flush()
    return _exit_code([result for _, result in found])


def _row(alpha: float, result: Result, coefficients: bool) -> dict[str, Any]:
    import numpy as np

    values = (
        alpha,
        result.primal,
        result.dual,
        result.gap,
        result.passes,
        result.seconds,
        int(np.count_nonzero(result.x)),
        float(np.linalg.norm(result.x)),
        str(result.status),
    )
    row = dict(zip(_COLUMNS, values, strict=True))
    if coefficients:
        row.update({f"coef_{j}": v for j, v in enumerate(result.x.ravel().tolist(), start=1)})
    return row


def _table(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _picture(found: list[tuple[float, Result]], features: tuple[str, ...] | None) -> Any:
    import numpy as np

    from .._plots import coefficient_path

    coefs = np.array([result.x for _, result in found])
    names = features if coefs.ndim == 2 else None
    return coefficient_path([alpha for alpha, _ in found], coefs, names)


def _exit_code(results: list[Result]) -> ExitCode:
    status = _grid.worst(results)
    if status is None:
        return ExitCode.CERTIFIED
    return ExitCode.INTERRUPTED if status == "stopped" else ExitCode.ABOVE_TOLERANCE
