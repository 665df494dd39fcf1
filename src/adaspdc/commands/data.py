"""``adaspdc data``: the public data sets of the paper, and what is in a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import _options
from ._run import ExitCode, explained, report

if TYPE_CHECKING:
    from ..readers import Data


@click.group(short_help="List, fetch and describe data sets.")
def data() -> None:
    """Public data sets, and what is in a data file."""


@data.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")
@explained
def list_(as_json: bool) -> ExitCode:
    """List the public data sets that can be fetched, and which are on this machine."""
    from ..datasets import DATASETS, locate

    rows = []
    for name, dataset in DATASETS.items():
        path = locate(name)
        rows.append(
            {
                "name": name,
                "title": dataset.title,
                "rows": dataset.rows,
                "columns": dataset.columns,
                "home": dataset.home,
                "path": None if path is None else str(path),
            }
        )
    lines = [f"{'name':<10} {'rows':>10} {'columns':>10}  where"]
    for row in rows:
        where = row["path"] or f"not here: adaspdc data fetch {row['name']}"
        lines.append(f"{row['name']:<10} {row['rows']:>10,} {row['columns']:>10,}  {where}")
    report("data list", {"datasets": rows}, lines, as_json)
    return ExitCode.CERTIFIED


@data.command()
@click.argument("name")
@_options.output
@explained
def fetch(name: str, as_json: bool, quiet: bool) -> ExitCode:
    """Fetch the data set NAME, check it, and print where it is.

    Nothing is fetched where a copy is in the folder ADASPDC_DATA or in the cache already. Needs
    pooch: pip install 'adaspdc[data]'.
    """
    from .. import datasets
    from ._progress import DownloadBar

    with DownloadBar(name, quiet) as bar:
        path = datasets.fetch(name, progress=bar)
    digest = datasets.sha256(path)
    report("data fetch", {"path": str(path), "sha256": digest}, [str(path)], as_json)
    return ExitCode.CERTIFIED


@data.command()
@_options.FILE
@_options.data
@_options.output
@explained
def describe(file: str, **options: Any) -> ExitCode:
    """Tell what is in FILE: size, sparsity, labels, and how long its rows are."""
    from ._problem import DataOptions

    found = DataOptions.of(options).read(file, require_label=False)
    facts = _facts(found)
    report("data describe", {"file": found.source, **facts}, _lines(facts), options["as_json"])
    return ExitCode.CERTIFIED


def _facts(found: Data) -> dict[str, Any]:
    import numpy as np

    X = found.X
    sparse = hasattr(X, "indptr")
    squares = np.asarray((X * X).sum(axis=1)).ravel()
    n, d = X.shape
    facts: dict[str, Any] = {
        "rows": n,
        "columns": d,
        "entries": int(np.count_nonzero(X.data if sparse else X)),
        "empty_rows": int(np.count_nonzero(squares == 0)),
        "row_norms": [float(np.sqrt(v)) for v in (squares.min(), squares.mean(), squares.max())],
        "names": None if found.features is None else list(found.features),
    }
    facts["density"] = facts["entries"] / (n * d)
    if found.y is not None:
        labels, counts = np.unique(found.y, return_counts=True)
        facts["distinct_labels"] = labels.size
        if labels.size <= 50:
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            facts["labels"] = {str(label): count for label, count in pairs}
        else:
            facts["label_range"] = [labels[0].item(), labels[-1].item()]
    return facts


def _lines(facts: dict[str, Any]) -> list[str]:
    low, middle, high = facts["row_norms"]
    lines = [
        f"{facts['rows']:,} rows, {facts['columns']:,} columns, {facts['entries']:,} entries that "
        f"are not zero ({facts['density']:.3%})",
        f"norms of the rows: {low:.4g} to {high:.4g}, root mean square {middle:.4g}; "
        f"{facts['empty_rows']:,} empty",
    ]
    if "labels" in facts:
        shown = ", ".join(f"{label} ({count:,})" for label, count in facts["labels"].items())
        lines.append(f"labels: {shown}")
    elif "label_range" in facts:
        low, high = facts["label_range"]
        lines.append(f"labels: {facts['distinct_labels']:,} different ones from {low} to {high}")
    else:
        lines.append("labels: none")
    return lines
