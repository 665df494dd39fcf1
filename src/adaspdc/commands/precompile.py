"""``adaspdc precompile``: compile ahead of the first fit."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import click

from ._progress import counting_bar
from ._run import ExitCode, explained, report


@click.command(short_help="Compile now, so that the first fit starts at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")
@explained
def precompile(as_json: bool) -> ExitCode:
    """Compile what fits of every kind need, and keep it on disk.

    Takes one to three minutes, once per version of adaspdc. The folder is ~/.cache/adaspdc, or
    where ADASPDC_CACHE_DIR points.
    """
    from .._kernels._jit import CACHE_DIR

    if CACHE_DIR is None:
        raise OSError("no cache folder can be written; let ADASPDC_CACHE_DIR name one that can")
    begun = perf_counter()
    count = _solve_small_problems()
    _read_a_small_file()
    seconds = perf_counter() - begun
    lines = [f"compiled for {count} kinds of problems in {seconds:.1f} s, kept in {CACHE_DIR}"]
    values = {"seconds": seconds, "kinds": count, "folder": str(CACHE_DIR)}
    report("precompile", values, lines, as_json)
    return ExitCode.CERTIFIED


def _solve_small_problems() -> int:
    """One solve for each combination of types for which kernels differ."""
    import numpy as np
    from scipy import sparse

    from .. import losses, regularizers
    from ..problem import ERM
    from ..result import ConvergenceWarning
    from ..solver import solve

    rng = np.random.default_rng(0)
    dense = rng.standard_normal((40, 5))
    score = dense[:, 0] + 0.1 * rng.standard_normal(40)
    classes = np.digitize(score, [-0.5, 0.5])
    chosen: list[Any] = [
        (losses.Logistic(), np.sign(score), regularizers.L2(1e-2)),
        (losses.Logistic(), np.sign(score), regularizers.ElasticNet(1e-2, 1e-3)),
        (losses.Multinomial(), classes, regularizers.L2(1e-2)),
        (losses.Multinomial(), classes, regularizers.ElasticNet(1e-2, 1e-3)),
        (losses.Huber(), score, regularizers.GroupL2(1e-2, 1e-3, [0, 0, 1, 1, 1])),
    ]
    problems = [
        (X, *case, intercept)
        for X in (dense, sparse.csr_array(dense), dense.astype(np.float32))
        for case in chosen
        for intercept in ((False, True) if type(case[2]) is regularizers.L2 else (False,))
    ]
    with counting_bar("compiling", len(problems)) as done, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X, loss, y, penalty, intercept in problems:
            solve(ERM(X, y, loss, penalty, intercept=intercept), max_passes=50)
            done()
    return len(problems)


def _read_a_small_file() -> None:
    import tempfile
    from pathlib import Path

    from .. import readers

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.svm"
        path.write_text("1 1:2\n")
        readers.read(path)
