"""``adaspdc evaluate``: how well a model predicts the labels of a file."""

from __future__ import annotations

from typing import Any

import click

from . import _options
from ._run import ExitCode, explained, report


@click.command(short_help="Measure a model on labelled data.")
@_options.MODEL
@_options.FILE
@_options.data
@_options.output
@explained
def evaluate(model_file: str, file: str, **options: Any) -> ExitCode:
    """Measure MODEL on the labelled rows of FILE.

    Classification: accuracy, area under the ROC curve (two classes) and log loss (logistic and
    multinomial models). Regression: R2, mean absolute and root mean squared error. Both: the mean
    loss of the model.
    """
    from ..model import load
    from ._metrics import scores
    from ._problem import DataOptions, for_model

    model = load(model_file)
    data = DataOptions.of(options, model.training.get("label")).read(file)
    found = scores(model, for_model(data, model, options["quiet"]), data.y)
    lines = [f"{name:<14} {value:.6g}" for name, value in found.items()]
    rows = int(data.X.shape[0])
    report("evaluate", {"rows": rows, **found}, [*lines, f"on {rows:,} rows"], options["as_json"])
    return ExitCode.CERTIFIED
