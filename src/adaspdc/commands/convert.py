"""``adaspdc convert``: a data file in another format."""

from __future__ import annotations

from typing import Any

import click

from . import _options
from ._run import ExitCode, check_outputs, explained, note, report, writing

_EXAMPLES = """\b
Examples:
  adaspdc convert train.svm train.npz
  adaspdc convert houses.csv houses.svm.xz --label price
"""


@click.command(short_help="Write a data file in another format.", epilog=_EXAMPLES)
@_options.FILE
@click.argument("target", metavar="OUT", type=click.Path())
@click.option(
    "--to",
    type=_options.Name(_options.FORMATS),
    help="Format to write; by default told from the name of OUT, as --format is from FILE's.",
)
@_options.data
@_options.output
@explained
def convert(file: str, target: str, to: str | None, **options: Any) -> ExitCode:
    """Read FILE and write the same numbers to OUT, exactly.

    Both may be libsvm text, CSV, Parquet or .npz, compressed where the name of OUT ends in .gz,
    .bz2 or .xz. In tables the labels are the last column, called as --label says, or "label".
    """
    from .. import readers
    from .._files import written_whole
    from . import _formats
    from ._problem import DataOptions

    chosen = to or readers.format_of(target)
    label = options["label"] or "label"
    check_outputs(target, inputs=(file,))
    data = DataOptions.of(options).read(file, require_label=False)
    _formats.check(chosen, data, label)
    if not options["quiet"]:
        _tell_losses(chosen, data)

    def write() -> None:
        with written_whole(target) as stream:
            _formats.write(stream, target, chosen, data, label)

    writing(target, write)
    n, d = data.X.shape
    values = {"file": data.source, "output": target, "format": chosen, "rows": n, "features": d}
    lines = [f"{n:,} rows, {d:,} features written to {target} ({chosen})"]
    report("convert", values, lines, options["as_json"])
    return ExitCode.CERTIFIED


def _tell_losses(chosen: str, data: Any) -> None:
    """What the format has no place for."""
    if data.features is not None and chosen in ("libsvm", "npz"):
        note(f"{chosen} has no place for the names of the {len(data.features)} columns")
    last = data.X[:, [data.X.shape[1] - 1]]
    if chosen == "libsvm" and abs(last).max() == 0:
        note("libsvm has no place for the last feature, which is zero in every row")
