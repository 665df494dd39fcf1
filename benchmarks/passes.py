"""One stochastic pass, and setting up, against one ``X @ x`` of SciPy or NumPy on one thread."""

from functools import cache
from typing import Any

import numpy as np
from datasets import Dataset, dense, text_like, w8a
from parts import Report, Verdict
from timing import NEVER, fastest, race, slope, solve, solving

from adaspdc import ERM, losses, regularizers

METHODS = ("spdhg", "adaspdc")
LOSSES = (losses.Logistic(), losses.SmoothHinge(), losses.Squared())
SPARSE_TARGET, DENSE_TARGET = 6.0, 4.0
SETUP_TARGET = 3.0
SHORT = 1.0

Cell = dict[str, Any]


@cache
def measure(quick: bool) -> list[Cell]:
    """All cells, measured once: both tables are made of them."""
    cells = []
    for make, target in (
        (w8a, SPARSE_TARGET),
        (text_like, SPARSE_TARGET),
        (dense, DENSE_TARGET),
    ):
        data = make(quick)
        for loss in LOSSES:
            cells += [{**cell, "target": target} for cell in _cells(data, loss, quick)]
    return cells


def _cells(data: Dataset, loss: Any, quick: bool) -> list[Cell]:
    rounds, passes = (2, 5.0) if quick else (9, 20.0)
    problem = _problem(data, loss)
    x = np.random.default_rng(0).standard_normal(data.X.shape[1])
    candidates: dict[Any, Any] = {
        "product": fastest(lambda: data.X @ x, 10),
        "construct": fastest(lambda: _problem(data, loss), 3),
    }
    for method in METHODS:
        candidates[method, "short"] = solving(problem, method, SHORT)
        candidates[method, "long"] = solving(problem, method, SHORT + passes)
        candidates[method, "checked"] = solving(problem, method, SHORT + passes, check_every=1.0)
        candidates[method, "setup"] = _setting_up(problem, method)
    seconds = race(candidates, rounds)
    return [_cell(data, loss, method, seconds, passes) for method in METHODS]


def _problem(data: Dataset, loss: Any) -> Any:
    return ERM(data.X, data.y, loss, regularizers.L2(1e-5))


def _setting_up(problem: Any, method: str) -> Any:
    return lambda: solve(problem, method, SHORT, check_every=NEVER).setup_seconds


def _cell(data: Dataset, loss: Any, method: str, seconds: Any, passes: float) -> Cell:
    product = min(seconds["product"])
    one, typical = slope(seconds[method, "short"], seconds[method, "long"], passes)
    check, _ = slope(seconds[method, "long"], seconds[method, "checked"], passes)
    construct, setup = min(seconds["construct"]), min(seconds[method, "setup"])
    return {
        "data": data.name,
        "shape": "{:,} x {:,}".format(*data.X.shape),
        "loss": loss.name,
        "method": method,
        "product_ms": 1e3 * product,
        "pass_ms": 1e3 * one,
        "per_entry_ns": 1e9 * one / data.entries,
        "ratio": one / product,
        "median_ratio": typical / float(np.median(seconds["product"])),
        "check_passes": check / one,
        "construct_ms": 1e3 * construct,
        "setup_ms": 1e3 * setup,
        "setup_passes": (construct + setup) / one,
    }


def report(cells: list[Cell]) -> Report:
    """A pass in products, with the targets of the documentation."""
    columns = {
        "data": ("data", "<12"),
        "shape": ("shape", "<15"),
        "loss": ("loss", "<13"),
        "method": ("method", "<8"),
        "product_ms": ("X@x ms", ">7.3f"),
        "pass_ms": ("pass ms", ">8.3f"),
        "per_entry_ns": ("ns/entry", ">8.2f"),
        "ratio": ("pass/X@x", ">8.2f"),
        "median_ratio": ("median", ">7.2f"),
        "target": ("target", ">6.0f"),
        "check_passes": ("check/pass", ">10.2f"),
    }
    verdicts = [
        Verdict("one pass", _case(cell), cell["ratio"], cell["target"], "X @ x") for cell in cells
    ]
    notes = [
        "pass: slope between solves of 1 and more passes; best of all rounds, and their median",
        "check/pass: what one evaluation of the certificate adds, in passes",
    ]
    title = "One stochastic pass (batch size 1) against one X @ x, one thread"
    return Report("passes", title, columns, cells, verdicts, notes)


def setup_report(cells: list[Cell]) -> Report:
    """Building the problem and everything before the first check, in passes."""
    columns = {
        "data": ("data", "<12"),
        "shape": ("shape", "<15"),
        "loss": ("loss", "<13"),
        "method": ("method", "<8"),
        "construct_ms": ("ERM() ms", ">8.3f"),
        "setup_ms": ("setup ms", ">8.3f"),
        "pass_ms": ("pass ms", ">8.3f"),
        "setup_passes": ("in passes", ">9.2f"),
    }
    verdicts = [
        Verdict("setup", _case(cell), cell["setup_passes"], SETUP_TARGET, "passes")
        for cell in cells
    ]
    title = "Setting up: ERM(X, y, ...) and result.setup_seconds"
    return Report("setup", title, columns, cells, verdicts)


def _case(cell: Cell) -> str:
    return f"{cell['data']}, {cell['loss']}, {cell['method']}"
