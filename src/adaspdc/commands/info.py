"""``adaspdc info``: what is in a model file."""

from __future__ import annotations

from typing import Any

import click

from . import _options
from ._run import ExitCode, explained, report


@click.command(short_help="Show what is in a model file.")
@_options.MODEL
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")
@explained
def info(model_file: str, as_json: bool) -> ExitCode:
    """Show what MODEL was fitted to, with which settings, and how good it is certified to be."""
    import numpy as np

    from .._catalogue import describe
    from ..model import load

    model = load(model_file)
    values = {
        "model": model_file,
        "loss": describe(model.loss),
        "penalty": {"lam": model.penalty.lam, **describe(model.penalty)},
        "labels": None if model.labels is None else list(model.labels),
        "features": model.n_features,
        "nonzero": int(np.count_nonzero(model.coef)),
        "norm": float(np.linalg.norm(model.coef)),
        "intercept": model.intercept.tolist(),
        "certificate": model.certificate,
        "training": model.training,
    }
    report("info", values, _lines(values), as_json)
    return ExitCode.CERTIFIED


def _lines(values: dict[str, Any]) -> list[str]:
    certificate, training = values["certificate"], values["training"]
    labels = values["labels"]
    shown = "numbers" if labels is None else ", ".join(map(str, labels[:8]))
    more = f", ... ({len(labels)} classes)" if labels is not None and len(labels) > 8 else ""
    return [
        f"loss          {_spec(values['loss'])}",
        f"penalty       {_spec(values['penalty'])}",
        f"labels        {shown}{more}",
        f"features      {values['features']:,}, of which {values['nonzero']:,} coefficients are "
        "not zero",
        f"fitted to     {training['rows']:,} rows, by adaspdc {training['adaspdc']}",
        f"certificate   optimum between {certificate['dual']:.9g} and {certificate['primal']:.9g}",
        f"gap           {certificate['gap']:.2e}, asked for {certificate['tol']:.2e}: "
        f"{certificate['status']}",
    ]


def _spec(spec: dict[str, Any]) -> str:
    plain = {key: value for key, value in spec.items() if key != "name"}
    shown = ", ".join(
        f"{key} {value:g}" if isinstance(value, int | float) else f"{key} of length {len(value)}"
        for key, value in plain.items()
    )
    return f"{spec['name']} ({shown})" if shown else str(spec["name"])
