"""Fixed-width tables."""

from typing import Any

from parts import Report, Verdict

WIDTH = 110


def print_header(header: dict[str, Any]) -> None:
    """Machine and versions, one line each."""
    print("=" * WIDTH)
    print("adaspdc benchmark: ratios within this run; threads pinned to 1 unless a table says more")
    for name, value in header.items():
        print(f"  {name:<8} {value}")
    if header["mode"] == "quick":
        print("  QUICK: tiny data and two rounds; the ratios below mean nothing")
    print("=" * WIDTH, flush=True)


def print_report(report: Report) -> None:
    """One part: title, rows, notes."""
    print(f"\n{report.name}: {report.title}")
    print("-" * WIDTH)
    cells = report.columns.items()
    print("  ".join(_heading(title, layout) for _, (title, layout) in cells).rstrip())
    for row in report.rows:
        print("  ".join(_cell(row.get(key), layout) for key, (_, layout) in cells).rstrip())
    for note in report.notes:
        print(f"  {note}")
    print(end="", flush=True)


def print_verdicts(verdicts: list[Verdict], quick: bool) -> None:
    """Every promise with what was measured."""
    if not verdicts:
        return
    print(f"\nverdicts{' (quick: not to be believed)' if quick else ''}")
    print("-" * WIDTH)
    print(f"{'promise':<12}  {'case':<44}  {'measured':>9}  {'target':>7}  {'unit':<12}  verdict")
    for one in verdicts:
        print(
            f"{one.promise:<12}  {one.case:<44}  {one.measured:>9.2f}  {one.target:>7.2f}  "
            f"{one.unit:<12}  {one}"
        )
    print("-" * WIDTH)
    print(f"{sum(one.met for one in verdicts)} of {len(verdicts)} promises met")


def _width(layout: str) -> int:
    return int(layout[1:].split(".")[0].rstrip("d"))


def _heading(title: str, layout: str) -> str:
    return f"{title:{layout[0]}{_width(layout)}}"


def _cell(value: Any, layout: str) -> str:
    if value is None:
        return f"{'-':{layout[0]}{_width(layout)}}"
    return format(value, layout)
