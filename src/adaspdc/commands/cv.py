"""``adaspdc cv``: choose lambda by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import _grid, _options
from ._run import ExitCode, check_outputs, explained, note, report, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..result import Result


_EXAMPLES = """\b
Example:
  adaspdc cv train.svm --loss logistic --folds 5 -o model
"""


@click.command(short_help="Choose lambda by cross-validation.", epilog=_EXAMPLES)
@_options.FILE
@click.option(
    "-o",
    "--output",
    "model_file",
    type=click.Path(),
    metavar="MODEL",
    help="Fit all rows with the best lambda and write the model here.",
)
@click.option(
    "--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds."
)
@_grid.options(10)
@_options.loss
@_options.penalty
@_options.intercept
@_options.solver
@_options.data
@_options.output
@explained
def cv(file: str, model_file: str | None, folds: int, **options: Any) -> ExitCode:
    """Find the lambda with the least mean loss on held-out rows of FILE.

    Rows are dealt into folds at random (--seed), classes evenly; every fit is certified.
    """
    import numpy as np

    from ._problem import DataOptions
    from ._solve import solver_settings

    check_outputs(model_file, inputs=(file,))
    data = DataOptions.of(options).read(file)
    grid = _grid.Grid.of(data.X, data.y, options)
    settings = solver_settings(options)
    results: list[Result] = []
    table: list[list[dict[str, float]]] = []
    for number, (train, held) in enumerate(_folds(data.y, grid.loss, folds, options["seed"])):
        title = f"fold {number + 1} of {folds}, lambda"
        table.append(_scores(grid, settings, train, held, title, results))
        if len(table[-1]) < len(grid.alphas):
            note("interrupted before every fold was done; nothing is written")
            return ExitCode.INTERRUPTED
    losses = np.array([[scores["mean_loss"] for scores in fold] for fold in table])
    rows = _summary(grid.alphas, losses, table)
    best = int(losses.mean(axis=0).argmin())
    code = ExitCode.CERTIFIED if _grid.worst(results) is None else ExitCode.ABOVE_TOLERANCE
    if model_file is not None:
        code = _fit_best(grid, settings, grid.alphas[best], data, model_file)
    values = {"exit_code": int(code), "best": rows[best], "folds": folds, "path": rows}
    report(
        "cv", {**values, "model": model_file}, _lines(rows, best, model_file), options["as_json"]
    )
    return code


def _folds(y: Any, loss: Any, folds: int, seed: int) -> Iterator[tuple[Any, Any]]:
    """(rows to fit, rows held out) for each fold."""
    import numpy as np

    if len(y) < folds:
        raise ValueError(f"--folds {folds} needs at least that many rows; there are {len(y)}")
    rng = np.random.default_rng(seed)
    fold = np.empty(len(y), dtype=np.intp)
    groups = [np.arange(len(y))]
    if loss.kind != "regression":
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < folds:
            rare = labels[counts.argmin()]
            raise ValueError(
                f"label {rare} has {counts.min()} rows, fewer than --folds {folds}: some fold "
                "would be without it"
            )
        groups = [np.flatnonzero(y == label) for label in labels]
    for rows in groups:
        fold[rng.permutation(rows)] = np.arange(len(rows)) % folds
    for k in range(folds):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _scores(
    grid: _grid.Grid,
    settings: dict[str, Any],
    train: Any,
    held: Any,
    title: str,
    results: list[Result],
) -> list[dict[str, float]]:
    """Scores of every lambda on the rows held out; fewer if it was interrupted."""
    from ..model import Model
    from ..result import Status
    from ._metrics import scores

    found = []
    for _, problem, result in grid.solved(settings, train, title):
        if result.status is Status.STOPPED:
            break
        results.append(result)
        model = Model.of(problem, result, intercept=problem.intercept)
        found.append(scores(model, grid.X[held], grid.y[held]))
    return found


def _summary(alphas: list[float], losses: Any, table: list[list[dict[str, float]]]) -> list[Any]:
    import numpy as np

    rows = []
    for k, alpha in enumerate(alphas):
        row = {
            "alpha": alpha,
            "mean_loss": float(losses[:, k].mean()),
            "standard_error": float(losses[:, k].std(ddof=1) / np.sqrt(len(losses))),
        }
        for name in table[0][k]:
            if name != "mean_loss":
                row[name] = float(np.mean([fold[k][name] for fold in table]))
        rows.append(row)
    return rows


def _fit_best(grid: _grid.Grid, settings: Any, alpha: float, data: Any, target: str) -> ExitCode:
    from ._problem import model_of
    from ._solve import exit_code, run

    problem = grid.problem(alpha)
    result = run(problem, settings, "fitting all rows", grid.chosen["quiet"])
    model = model_of(problem, result, data, grid.chosen)
    writing(target, lambda: model.save(target))
    return exit_code(result)


def _lines(rows: list[dict[str, float]], best: int, model_file: str | None) -> list[str]:
    names = list(rows[0])
    lines = ["  " + " ".join(f"{name:>15}" for name in names)]
    for k, row in enumerate(rows):
        mark = "*" if k == best else " "
        lines.append(f"{mark} " + " ".join(f"{row[name]:>15.6g}" for name in names))
    lines.append(f"* least mean loss on held-out rows: lambda {rows[best]['alpha']:.6g}")
    return [*lines, f"model written to {model_file}"] if model_file is not None else lines
