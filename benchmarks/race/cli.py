"""The command: run what is not yet measured, print the verdict, write the page."""

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from .cells import Cell, select
from .peers import names
from .records import Records
from .runner import Limits, Race
from .verdict import judge

ROOT = Path(__file__).resolve().parents[2]
QUICK_PEERS = [
    "adaspdc",
    "liblinear-s0-tron",
    "sklearn-lbfgs",
    "sklearn-ridge-cholesky",
    "snapml-primal",
    "glum-irls",
]


def main(arguments: list[str] | None = None) -> None:
    """Race, and report."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peers' processes end, too
    work: Path = options.work
    records = Records(work / ("quick.jsonl" if options.quick else "race.jsonl"))
    records.clock = "cpu" if options.cpu else "seconds"
    if options.fresh:
        records.clear()
    records.drop(options.redo)
    cells = select(_mode(options), options.cells)
    if not cells:
        sys.exit(f"No cell matches {' '.join(options.cells)}; try for example 'w8a:*:1e-6'.")
    if not options.report:
        try:
            _run(options, records, cells)
        except KeyboardInterrupt:
            sys.exit(f"\nStopped. The same command goes on; what was measured is in {work}.")
    _report(options, records)


def _run(options: argparse.Namespace, records: Records, cells: list[Cell]) -> None:
    from machine import describe  # type: ignore[import-not-found]

    from .terminal import print_header

    header = describe(options.quick)
    records.add("run", header=header, note=options.note, cells=len(cells))
    print_header(header)
    race = Race(records, options.work, _limits(options), lambda line: print(line, flush=True))
    for threads in options.threads:
        print(f"\n{threads} thread{'s' if threads > 1 else ''}", flush=True)
        race.run(cells, options.peers, threads)


def _report(options: argparse.Namespace, records: Records) -> None:
    from . import page, terminal

    every = [cell for cell in select("", ["*"]) if records.of("optimum", cell=cell.name)]
    for threads in (1, 2):
        verdicts = judge(records, every, threads)
        if verdicts:
            terminal.print_verdicts(verdicts, threads)
    if not records.of("fit"):
        print("\nnothing measured, so no page is written")
    elif options.page is not None:
        page.write(options.page, records, every)
        print(f"\nwritten: {options.page}")


def _mode(options: argparse.Namespace) -> str:
    return "quick" if options.quick else "full" if options.full else "core"


def _limits(options: argparse.Namespace) -> Limits:
    if options.quick:
        return Limits(fit=2.0, least=0.5, repeats=1, optimum=10.0)
    return Limits(fit=options.cap)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add: Any = parser.add_argument
    add("--quick", action="store_true", help="tiny data, few peers: does it run; seconds")
    add("--full", action="store_true", help="every data set and lambda; hours")
    add("--cells", nargs="+", default=[], metavar="PATTERN", help="some, such as 'w8a:*:1e-6'")
    add("--peers", nargs="+", default=None, metavar="NAME", help="some, adaspdc among them")
    add("--threads", nargs="+", type=int, choices=(1, 2), default=None, help="default: 1 2")
    add("--cap", type=float, default=60.0, metavar="S", help="seconds a fit may take (60)")
    add("--work", type=Path, default=ROOT / ".race", metavar="DIR", help="measurements (.race)")
    add("--page", type=Path, default=None, metavar="FILE", help="default: docs/performance.md")
    add("--report", action="store_true", help="measure nothing, only print and write the page")
    add("--fresh", action="store_true", help="forget all measurements first")
    add("--redo", nargs="+", default=[], metavar="NAME", help="forget those of some peers first")
    add("--cpu", action="store_true", help="count processor seconds: for machines in use")
    add("--note", default="", help="a sentence for the page, such as 'busy machine'")
    options = parser.parse_args(arguments)
    if options.peers is None:
        options.peers = QUICK_PEERS if options.quick else names()
    if options.threads is None:
        options.threads = [1] if options.quick else [1, 2]
    if options.page is None and not options.quick:
        options.page = ROOT / "docs" / "performance.md"
    unknown = [name for name in options.peers if name not in names()]
    if unknown:
        parser.error(f"unknown peer {', '.join(unknown)}; the peers are {', '.join(names())}")
    options.work = options.work.resolve()
    return options
