"""Measure what the documentation promises about speed and memory: ``make ratios``.

Times are compared with one another inside one run, never with numbers from another machine.
See README.md beside this file.
"""

import argparse
import json
import os
import sys
from pathlib import Path

# Before NumPy is imported: its BLAS reads these once, when it is loaded.
PINNED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
for variable in PINNED:
    os.environ[variable] = "1"

PARTS = ("passes", "setup", "memory", "startup", "threads")


def main(arguments: list[str] | None = None) -> None:
    """Run the parts asked for and print a table for each, then all verdicts."""
    options = _parse(arguments)
    import tables
    from machine import describe
    from parts import Report, run_part

    header = describe(options.quick)
    tables.print_header(header)
    reports: list[Report] = []
    for name in options.only:
        report = run_part(name, options.quick)
        reports.append(report)
        tables.print_report(report)
    verdicts = [verdict for report in reports for verdict in report.verdicts]
    tables.print_verdicts(verdicts, options.quick)
    if options.out is not None:
        content = {
            "header": header,
            "parts": {report.name: report.rows for report in reports},
            "verdicts": [verdict.to_dict() for verdict in verdicts],
        }
        options.out.write_text(json.dumps(content, indent=1) + "\n")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small data, two rounds: does it run, not how fast"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        metavar="PART",
        help=f"some parts only: {', '.join(PARTS)}",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
