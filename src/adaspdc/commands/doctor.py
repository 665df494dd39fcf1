"""``adaspdc doctor``: whether everything that fits need is there and works."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import click

from ._run import ExitCode, explained, report

_NEEDED = ("numpy", "scipy", "numba")
_OPTIONAL = {
    "scikit-learn": "sklearn",
    "pandas": "tables",
    "pyarrow": "tables",
    "matplotlib": "plot",
    "rich": "cli",
    "pooch": "data",
}
"""Packages and the extra that brings each."""


@dataclass(frozen=True)
class _Finding:
    """One line of the report; ``ok`` is None for what is merely told."""

    name: str
    ok: bool | None
    text: str


@click.command(short_help="Check that this installation works.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")
@explained
def doctor(as_json: bool) -> ExitCode:
    """Check versions, cache folder, compiler, processors, data folder, and a small certified fit.

    Exit status 1 if something does not work, with the remedy; optional packages may be absent.
    """
    found = [_versions(), _optional(), _tried("cache folder", _cache)]
    found += [_tried("compiler", _compiler), _processors(), _data_folder(), _tried("fit", _fit)]
    failed = any(finding.ok is False for finding in found)
    code = ExitCode.ERROR if failed else ExitCode.CERTIFIED
    marks = {True: "ok  ", False: "FAIL", None: "    "}
    lines = [f"{marks[f.ok]}  {f.name:<13} {f.text}" for f in found]
    lines.append("something does not work" if failed else "everything works")
    values = {"exit_code": int(code), "findings": [asdict(finding) for finding in found]}
    report("doctor", values, lines, as_json)
    return code


def _tried(name: str, check: Callable[[], str]) -> _Finding:
    """What the check tells; whatever it raises is the finding."""
    try:
        return _Finding(name, True, check())
    except Exception as error:  # a broken installation can fail in any way
        return _Finding(name, False, f"{type(error).__name__}: {error}")


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _versions() -> _Finding:
    import platform

    from .._version import __version__

    versions = {package: _version(package) for package in _NEEDED}
    shown = [f"{package} {number or 'ABSENT'}" for package, number in versions.items()]
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    text = ", ".join([f"adaspdc {__version__}", python, *shown])
    return _Finding("versions", None not in versions.values(), text)


def _optional() -> _Finding:
    texts = []
    for package, extra in _OPTIONAL.items():
        number = _version(package)
        texts.append(f"{package} {number}" if number else f"no {package} (adaspdc[{extra}])")
    return _Finding("optional", None, ", ".join(texts))


def _cache() -> str:
    from .._kernels._jit import CACHE_DIR

    if CACHE_DIR is None:
        raise OSError(
            "no folder can be written: every run compiles; let ADASPDC_CACHE_DIR name one"
        )
    return f"{CACHE_DIR} can be written"


def _compiler() -> str:
    from .._kernels._jit import helper

    begun = perf_counter()
    answer = helper(_twice)(21.0)
    if answer != 42.0:
        raise ArithmeticError(f"compiled code says that twice 21 is {answer}")
    return f"numba compiled a function in {perf_counter() - begun:.1f} s"


def _twice(number: float) -> float:
    return 2.0 * number


def _processors() -> _Finding:
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return _Finding(
        "processors", None, f"{usable} of {total} may be used: --threads up to {usable}"
    )


def _data_folder() -> _Finding:
    folder = os.environ.get("ADASPDC_DATA")
    if not folder:
        return _Finding("data folder", None, "ADASPDC_DATA is not set: data sets are fetched")
    if not os.path.isdir(folder):
        text = f"ADASPDC_DATA={folder} is no folder: correct it, or unset it"
        return _Finding("data folder", False, text)
    return _Finding("data folder", True, f"ADASPDC_DATA={folder}, {len(os.listdir(folder))} files")


def _fit() -> str:
    import numpy as np

    from .. import losses, regularizers
    from ..problem import ERM
    from ..solver import solve

    begun, rng = perf_counter(), np.random.default_rng(0)
    X: Any = rng.standard_normal((60, 4))
    problem = ERM(X, np.sign(X[:, 0]), losses.Logistic(), regularizers.L2(1e-2))
    result = solve(problem, tol=1e-8)
    if not result.converged:
        raise ArithmeticError(result.message)
    return f"certified to a gap of {result.gap:.0e} in {perf_counter() - begun:.1f} s"
