"""The verdict page, as Markdown and as HTML, made of the reports in a folder."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ._report import Claim, Grid, Report
from ._settings import PARTS

_TITLE = "The AdaSPDC paper, reproduced"
_INTRO = (
    "Zhanxing Zhu and Amos Storkey, Adaptive Stochastic Primal-Dual Coordinate Descent for "
    "Separable Saddle Point Problems, ECML PKDD 2015: what its empirical section says, beside what "
    "was measured here. Each statement has its verdict, the numbers behind it, and the rule by "
    "which they were judged."
)
_QUICK = (
    "This is a quick run: small samples, few runs and few passes. Its verdicts show that "
    "everything works; they say little about the paper."
)
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: #f3f3f3; } figure { margin: 1.5rem 0; } img { max-width: 100%; }
figcaption { color: #444; font-size: .95rem; }
.verdict { white-space: nowrap; font-weight: bold; }
.yes { background: #e2f2e4; } .no { background: #fbe3dc; }
.warning { border-left: .3rem solid #d55e00; padding: .3rem .8rem; background: #fdf1e7; }
"""


def read_reports(folder: Path) -> list[Report]:
    """The reports that a folder holds, in the order of the paper."""
    found = [Report.read(folder / f"{part}.json") for part in PARTS]
    return [report for report in found if report is not None]


def write_pages(folder: Path) -> Path:
    """Write ``index.md`` and ``index.html`` for the reports in a folder; the HTML's path."""
    reports = read_reports(folder)
    (folder / "index.md").write_text(markdown(reports), encoding="utf-8")
    page = folder / "index.html"
    page.write_text(html(reports), encoding="utf-8")
    return page


def _is_quick(reports: list[Report]) -> bool:
    return any(report.settings.get("name") == "quick" for report in reports)


def _summary(reports: list[Report]) -> str:
    claims = [claim for report in reports for claim in report.claims]
    return f"{sum(claim.holds for claim in claims)} of {len(claims)} statements hold."


# --- Markdown -------------------------------------------------------------------------------------


def markdown(reports: list[Report]) -> str:
    """The page as Markdown."""
    lines = [f"# {_TITLE}", "", _INTRO, "", _summary(reports), ""]
    if _is_quick(reports):
        lines += [f"> {_QUICK}", ""]
    for report in reports:
        lines += _markdown_part(report)
    return "\n".join(lines)


def _markdown_part(report: Report) -> list[str]:
    lines = [f"## {report.title}", "", report.intro, ""]
    if report.claims:
        lines += ["| the paper | measured | verdict |", "|---|---|---|"]
        lines += [_row((claim.statement, claim.measured, _bold(claim))) for claim in report.claims]
        lines.append("")
    for grid in report.tables:
        lines += [f"**{grid.title}**", "", _row(grid.head), _row(["---"] * len(grid.head))]
        lines += [*map(_row, grid.rows), ""]
    for figure in report.figures:
        files = ", ".join(f"[{name}]({name})" for name in figure.beside)
        shown = f"{figure.title}. {figure.caption} Numbers and settings: {files}"
        lines += [f"![{figure.title}]({figure.file})", "", shown, ""]
    return lines + [line for note in report.notes for line in (f"- {note}",)] + [""]


def _bold(claim: Claim) -> str:
    return f"**{claim.verdict}**"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- HTML -----------------------------------------------------------------------------------------


def html(reports: list[Report]) -> str:
    """The page as HTML; pictures are files beside it."""
    body = [f"<h1>{escape(_TITLE)}</h1>", f"<p>{escape(_INTRO)}</p>"]
    body.append(f"<p>{escape(_summary(reports))}</p>")
    if _is_quick(reports):
        body.append(f'<p class="warning">{escape(_QUICK)}</p>')
    for report in reports:
        body += _html_part(report)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_TITLE)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _html_part(report: Report) -> list[str]:
    lines = [f'<h2 id="{report.part}">{escape(report.title)}</h2>']
    lines.append(f"<p>{escape(report.intro)}</p>")
    if report.claims:
        lines.append("<table><tr><th>the paper</th><th>measured</th><th>verdict</th></tr>")
        lines += [_html_claim(claim) for claim in report.claims]
        lines.append("</table>")
    lines += [_html_grid(grid) for grid in report.tables]
    for figure in report.figures:
        links = ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in figure.beside)
        title, caption = escape(figure.title), escape(figure.caption)
        lines.append(
            f'<figure><img src="{escape(figure.file)}" alt="{title}">\n<figcaption>{title}. '
            f"{caption} Numbers and settings: {links}</figcaption></figure>"
        )
    if report.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
        lines.append(f"<ul>{items}</ul>")
    return lines


def _html_claim(claim: Claim) -> str:
    kind = "yes" if claim.holds else "no"
    return (
        f"<tr><td>{escape(claim.statement)}</td><td>{escape(claim.measured)}</td>"
        f'<td class="verdict {kind}">{claim.verdict}</td></tr>'
    )


def _html_grid(grid: Grid) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in grid.head)
    rows = (
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows
    )
    return (
        f"<h3>{escape(grid.title)}</h3>\n<table><tr>{head}</tr>\n" + "\n".join(rows) + "\n</table>"
    )
