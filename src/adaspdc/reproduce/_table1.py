"""Table 1: the data sets, measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..datasets import DATASETS
from ._context import Context
from ._materials import Material, matrix, paper_material
from ._report import Claim, Grid, Report


@dataclass(frozen=True)
class Row:
    """A row of the paper's table, and the set that it names."""

    name: str
    samples: int
    features: int
    density: float
    means: str
    slip: str = ""


ROWS = (
    Row("w8a", 49_749, 300, 3.9, "w8a"),
    Row(
        "covertype",
        20_242,
        47_236,
        0.16,
        "covtype",
        "the numbers are those of rcv1.binary (training part)",
    ),
    Row("url", 2_396_130, 3_231_961, 0.0018, "url", "the density of LIBSVM's url is twice that"),
    Row("quantum", 50_000, 78, 43.44, "quantum"),
    Row("protein", 145_751, 74, 99.21, "protein"),
)


@dataclass(frozen=True)
class Measured:
    """What was counted in a file, or in its stand-in."""

    material: Material
    rows: int
    columns: int
    entries: int

    @property
    def percent(self) -> float:
        """Density in per cent."""
        return 100.0 * self.entries / (self.rows * self.columns)

    def cells(self) -> tuple[str, ...]:
        """For the table on the page."""
        return f"{self.rows:,}", f"{self.columns:,}", f"{self.entries:,}", percent(self.percent)


def table1(context: Context) -> Report:
    """Measure the data sets and put the paper's numbers beside them."""
    settings = replace(context.settings, rows=context.settings.table_rows)
    names = ("w8a", "covtype", "rcv1", "url", "quantum", "protein")
    found = {name: _measure(paper_material(name, settings)) for name in names}
    report = Report("table1", "The data sets (Table 1)", context.settings.to_dict())
    report.intro = (
        "Counted in the files found, without the bias column. A row about a set that could not be "
        "had shows its generated stand-in and is not judged."
    )
    report.tables = [_grid(found)]
    report.claims = [
        _claim(row, found[row.means]) for row in ROWS if not found[row.means].material.stand_in
    ]
    report.claims.append(_sparsity(found["w8a"]))
    for measured in found.values():
        if measured.material.stand_in:
            title, why = measured.material.title, measured.material.why
            report.notes.append(f"{title}. {why}.")
    context.write_json("table1.settings.json", _exact(found))
    return report


def percent(value: float) -> str:
    """Two significant digits or more."""
    return f"{value:.2f} %" if value >= 1.0 else f"{value:.2g} %"


def _measure(material: Material) -> Measured:
    X, _ = matrix(replace(material, scaled=False))
    rows, columns = X.shape
    return Measured(material, rows, columns, int(X.nnz))


def _grid(found: dict[str, Measured]) -> Grid:
    rows = []
    for row in ROWS:
        paper = (f"{row.samples:,}", f"{row.features:,}", f"{row.density:g} %")
        rows.append((row.name, *paper, *_shown(found[row.means]), row.slip))
        if row.name == "covertype":
            remark = "what the row above describes"
            rows.append(("(not named)", "", "", "", *_shown(found["rcv1"]), remark))
    head = (
        "paper's name",
        "samples",
        "features",
        "“sparsity”",
        "measured: set",
        "samples",
        "features",
        "entries",
        "density",
        "remark",
    )
    return Grid("Table 1 as printed, and as measured", head, tuple(rows))


def _shown(measured: Measured) -> tuple[str, ...]:
    return (measured.material.title, *measured.cells())


def _claim(row: Row, measured: Measured) -> Claim:
    """Shapes must agree exactly, density to half a unit of the last digit printed."""
    digits = len(f"{row.density:g}".partition(".")[2])
    dense = round(measured.percent, digits) == row.density
    whole = DATASETS[row.means]
    same = (whole.rows, measured.columns) == (row.samples, row.features)
    entries, density = f"{measured.entries:,}", percent(measured.percent)
    return Claim(
        f"{row.name}: {row.samples:,} samples, {row.features:,} features, {row.density:g} %",
        f"{measured.material.title}: {measured.rows:,} samples, {measured.columns:,} features, "
        f"{entries} entries, {density}" + (f"; {row.slip}" if not (dense and same) else ""),
        dense and same,
    )


def _sparsity(measured: Measured) -> Claim:
    zero = 100.0 - measured.percent
    return Claim(
        "The last column is the sparsity",
        f"it is the density: of {measured.material.title} {percent(measured.percent)} is not zero, "
        f"{percent(zero)} is",
        False,
    )


def _exact(found: dict[str, Measured]) -> dict[str, object]:
    return {
        name: {
            "title": measured.material.title,
            **measured.material.identity(),
            "entries": measured.entries,
        }
        for name, measured in found.items()
    }
