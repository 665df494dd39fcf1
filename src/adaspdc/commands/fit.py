"""``adaspdc fit``: a data file in, a certified model out."""

from __future__ import annotations

import os
from typing import Any

import click

from . import _options
from ._run import (
    ExitCode,
    check_outputs,
    explained,
    note,
    report,
    require_matplotlib,
    save_figure,
    writing,
)

_EXAMPLES = """\b
Examples:
  adaspdc fit train.svm --loss logistic --alpha 1e-6 -o model
  adaspdc fit houses.csv --label price --loss huber
  xzcat train.xz | adaspdc fit - --loss smooth_hinge -o model
"""


@click.command(short_help="Fit a model to a data file.", epilog=_EXAMPLES)
@_options.FILE
@click.option(
    "-o",
    "--output",
    "model_file",
    type=click.Path(),
    metavar="MODEL",
    help="Where the model goes; by default the name of the data file with .model.",
)
@_options.alpha
@_options.loss
@_options.penalty
@_options.intercept
@_options.solver
@click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="FILE",
    help="Keep the state here while fitting; the same command goes on from it after a crash.",
)
@click.option(
    "--checkpoint-every",
    type=_options.Positive(zero=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The most work that a crash may cost.",
)
@click.option(
    "--plot",
    type=click.Path(),
    callback=_options.picture,
    metavar="PNG",
    help="Draw gap and objective against passes and seconds.",
)
@_options.data
@_options.output
@explained
def fit(file: str, model_file: str | None, **options: Any) -> ExitCode:
    """Fit a linear model to FILE and write it with its certificate.

    FILE is libsvm text, CSV, Parquet or .npz, compressed or not; "-" reads standard input. Two
    classes may be called anything, the larger label counts as +1; with more than two the logistic
    loss becomes the multinomial one.

    Exit status: 0 the gap is certified within --tol, 3 it is not (the model is written all the
    same), 130 interrupted (the best model so far is written), 1 error, 2 usage.
    """
    from ._problem import DataOptions, build, model_of
    from ._solve import certificate_lines, exit_code

    target = model_file or default_name(file)
    check_outputs(target, options["checkpoint"], options["plot"], inputs=(file,))
    if options["plot"]:
        require_matplotlib()
    quiet = options["quiet"]
    data = DataOptions.of(options).read(file)
    problem = build(data, options, quiet)
    result, checkpoint = _solved(problem, options)
    model = model_of(problem, result, data, options)
    writing(target, lambda: model.save(target))
    if checkpoint is not None and result.converged:
        checkpoint.remove()
    if options["plot"]:
        save_figure(options["plot"], result.plot())
    code = exit_code(result)
    values = {"exit_code": int(code), "model": target, **_summary(problem), **_numbers(result)}
    lines = [*_describe(problem), *certificate_lines(result), f"model written to {target}"]
    report("fit", values, lines, options["as_json"])
    return code


def default_name(file: str) -> str:
    """As liblinear does it: the name of the data, in the present folder, and ``.model``."""
    return ("stdin" if file == "-" else os.path.basename(file)) + ".model"


def _solved(problem: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The result, and the checkpoint where there is one."""
    from ._solve import run, solver_settings

    settings, quiet, path = solver_settings(options), options["quiet"], options["checkpoint"]
    if path is None:
        return run(problem, settings, "fitting", quiet), None
    from ._checkpoint import Checkpoint, run_in_legs

    checkpoint = Checkpoint.of(path, options["checkpoint_every"], problem, settings)
    if os.path.exists(path) and not quiet:
        note(f"going on from {path}")
    return run_in_legs(problem, settings, checkpoint, "fitting", quiet), checkpoint


def _summary(problem: Any) -> dict[str, Any]:
    from .._catalogue import describe

    rows = problem.rows
    labels = None if problem.labels is None else problem.labels.tolist()
    return {
        "rows": rows.n,
        "features": rows.d,
        "entries": rows.nnz,
        "labels": labels,
        "loss": describe(problem.loss)["name"],
        "penalty": describe(problem.regularizer)["name"],
        "lam": problem.regularizer.lam,
        "intercept": problem.intercept,
    }


def _numbers(result: Any) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "history"}


def _describe(problem: Any) -> list[str]:
    facts = _summary(problem)
    classes = "" if facts["labels"] is None else f", {len(facts['labels'])} classes"
    return [
        f"{facts['rows']:,} rows, {facts['features']:,} features, {facts['entries']:,} entries"
        f"{classes}",
        f"{facts['loss']} loss, {facts['penalty']} penalty, lambda {facts['lam']:g}, "
        f"{'an' if facts['intercept'] else 'no'} intercept",
    ]
