"""``adaspdc predict``: a model and a data file in, predictions as CSV out."""

from __future__ import annotations

import csv
import io
import sys
from functools import partial
from typing import Any

import click

from . import _options
from ._run import ExitCode, check_outputs, explained, writing

_EXAMPLES = """\b
Example:
  adaspdc predict model test.svm -o predictions.csv
"""


@click.command(short_help="Predict labels with a model.", epilog=_EXAMPLES)
@_options.MODEL
@_options.FILE
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(),
    metavar="CSV",
    help="Where the predictions go; by default standard output.",
)
@click.option("--proba", is_flag=True, help="Add a column with the probability of each class.")
@click.option("--scores", is_flag=True, help="Add the values of the linear function.")
@_options.data
@click.option("-q", "--quiet", is_flag=True, help="No progress bar, no notes.")
@explained
def predict(model_file: str, file: str, target: str | None, **options: Any) -> ExitCode:
    """Predict the labels of the rows of FILE with MODEL, as CSV with one line per row.

    Labels in FILE are not looked at; a table may leave the column out.
    """
    from ..model import load
    from ._problem import DataOptions, for_model

    target = None if target == "-" else target
    check_outputs(target, inputs=(model_file, file))
    model = load(model_file)
    data = DataOptions.of(options, model.training.get("label")).read(file, require_label=False)
    X = for_model(data, model, options["quiet"])
    columns = _columns(model, X, options["proba"], options["scores"])
    if target is None:
        _write(sys.stdout, columns)
        return ExitCode.CERTIFIED

    writing(target, partial(_write_file, target, columns))
    return ExitCode.CERTIFIED


def _write_file(target: str, columns: dict[str, list[str]]) -> None:
    from .._files import written_whole

    with written_whole(target) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        _write(text, columns)
        text.detach()


def _columns(model: Any, X: Any, proba: bool, scores: bool) -> dict[str, list[str]]:
    columns = {"prediction": [shown(value) for value in model.predict(X).tolist()]}
    if scores:
        margins = model.decision_function(X)
        if margins.ndim == 1:
            columns["score"] = [repr(value) for value in margins.tolist()]
        else:
            for k, label in enumerate(model.labels):
                columns[f"score_{shown(label)}"] = [repr(v) for v in margins[:, k].tolist()]
    if proba:
        shares = model.predict_proba(X)
        for k, label in enumerate(model.labels):
            columns[f"probability_{shown(label)}"] = [repr(v) for v in shares[:, k].tolist()]
    return columns


def shown(label: Any) -> str:
    """A label as it stood in the file: 1 and not 1.0; other numbers in full."""
    if isinstance(label, float) and label.is_integer() and abs(label) < 1e15:
        return str(int(label))
    return str(label)


def _write(stream: Any, columns: dict[str, list[str]]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    stream.flush()
