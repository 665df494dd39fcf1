"""The lines of the figures: which methods are compared, and how each is drawn everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """A method in the figures: colour, dashes and marker each tell it from the others.

    ``method`` None is the default of ``solve``. ``paper`` says whether the paper compares it.
    """

    key: str
    label: str
    method: str | None
    colour: str
    dashes: Any
    marker: str
    paper: bool = True
    sampling: str | None = None
    random: bool = True


# Okabe and Ito's colours for colour-blind readers.
LINES = (
    Line("adaspdc", "AdaSPDC", "adaspdc", "#D55E00", "-", "o"),
    Line("spdc", "SPDC", "spdc", "#0072B2", "--", "s"),
    Line("spdc-nonuniform", "SPDC, non-uniform", "spdc-nonuniform", "#56B4E9", "-.", "D"),
    Line("sdca", "SDCA", "sdca", "#009E73", ":", "v", sampling="iid"),
    Line("sag", "SAG, best step", "sag", "#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "P"),
    Line("pdhg", "PDHG", "pdhg", "#777777", (0, (1, 1)), "*", paper=False, random=False),
    Line("spdhg", "SPDHG", "spdhg", "#E69F00", (0, (3, 1)), "X", paper=False),
    Line("auto", "auto, the default here", None, "#000000", "-", "^", paper=False),
)
"""The paper's methods; PDHG, SPDHG and what ``solve`` does unless told otherwise for reference."""

LINE = {line.key: line for line in LINES}

RIVALS = tuple(line.key for line in LINES if line.paper and line.key != "adaspdc")
"""What the paper compares AdaSPDC with."""
