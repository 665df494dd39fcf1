"""``adaspdc reproduce``: options, output, exit codes. Loads nothing heavy before there is work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._settings import DEFAULT, FULL, PARTS, QUICK

if TYPE_CHECKING:
    from ._report import Report

_INTERRUPTED = 130
"""What shells report for a command ended by Ctrl-C."""


@click.command
@click.argument("part", type=click.Choice((*PARTS, "all")))
@click.option("--quick", is_flag=True, help="A minute or two: small samples, no downloads.")
@click.option("--full", is_flag=True, help="The url data at full size too: gigabytes, many hours.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    default="reproduction",
    show_default=True,
    help="Folder for figures, numbers and the page.",
)
@click.option("--runs", type=click.IntRange(min=1), help="Runs per method.  [default: 10]")
@click.option("--rows", type=click.IntRange(min=100), help="Take so many rows of each set only.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=None,
    help="Runs at a time, one a core.  [default: all cores]",
)
def reproduce(
    part: str,
    quick: bool,
    full: bool,
    out: Path,
    runs: int | None,
    rows: int | None,
    processes: int | None,
) -> int:
    """Redo an experiment of the AdaSPDC paper, or all of them.

    Writes figures, their numbers (CSV), the exact settings (JSON), and a page (index.html and
    index.md) that puts each statement of the paper beside what was measured. Data are looked for in
    the folder ADASPDC_DATA, then in the cache, then fetched; what cannot be had is replaced by a
    generated stand-in and named so. Finished runs are kept: after Ctrl-C the same command goes on
    from there.
    """
    if quick and full:
        raise click.UsageError("--quick and --full exclude each other.")
    if find_spec("matplotlib") is None:
        raise click.ClickException("the figures need matplotlib: pip install 'adaspdc[reproduce]'")
    from concurrent.futures import BrokenExecutor

    from ._run import reproduce as work

    settings = (QUICK if quick else FULL if full else DEFAULT).limited(runs, rows)
    parts = PARTS if part == "all" else (part,)
    try:
        page = work(parts, settings, out, processes, told=_tell)
    except KeyboardInterrupt:
        click.echo("Interrupted; finished runs are kept, the same command goes on.", err=True)
        return _INTERRUPTED
    except BrokenExecutor:
        raise click.ClickException(
            "a process died, perhaps for want of memory; what was finished is kept: try again with "
            "--processes 1"
        ) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror or error}") from None
    click.echo(f"Page: {page}")
    return 0


def _tell(report: Report) -> None:
    click.echo(report.title)
    for claim in report.claims:
        click.echo(f"  {claim.verdict:>13}: {claim.statement}")
        click.echo(f"{'':>17}{claim.measured}")
