"""Importing the package, and the first solve of a process, each in fresh processes."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from parts import Report, Verdict

IMPORT_TARGET, FIRST_TARGET = 0.3, 1.0

IMPORT = """
import json, sys, time
begun = time.perf_counter()
import adaspdc
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "numba": "numba" in sys.modules}))
"""
NUMPY = """
import json, time
begun = time.perf_counter()
import numpy
print(json.dumps({"seconds": time.perf_counter() - begun}))
"""
# The second solve of the same process shows what of the first was work, and what was loading.
FIRST = """
import json, sys, time, warnings
import adaspdc, numpy
from adaspdc import losses, regularizers
from scipy import sparse
warnings.simplefilter("ignore")
kind, method = sys.argv[1:]
X = numpy.random.default_rng(0).standard_normal((200, 10))
y = numpy.where(X[:, 0] > 0, 1.0, -1.0)
X = sparse.csr_array(X) if kind == "CSR" else X
def run():
    begun = time.perf_counter()
    problem = adaspdc.ERM(X, y, losses.Logistic(), regularizers.L2(1e-3))
    result = adaspdc.solve(problem, method, tol=0.0, max_passes=2)
    return time.perf_counter() - begun, result.compile_seconds
(first, compiling), (second, _) = run(), run()
print(json.dumps({"loading": first - second, "compile_seconds": compiling}))
"""


def report(quick: bool) -> Report:
    """Import times, then the first solve with a warm cache, then with none."""
    rounds = 1 if quick else 7
    bare = [_fresh(NUMPY)["seconds"] for _ in range(rounds)]
    imports = [_fresh(IMPORT) for _ in range(rounds)]
    rows = [
        {"case": "import numpy, to compare", "seconds": min(bare)},
        {
            "case": "import adaspdc",
            "seconds": min(one["seconds"] for one in imports),
            "target": IMPORT_TARGET,
        },
    ]
    numba = float(any(one["numba"] for one in imports))
    rows += _first_solves(quick, rounds)
    if not quick:
        rows.append(_cold())
    verdicts = [
        Verdict("start", row["case"], row["seconds"], row["target"], "s")
        for row in rows
        if row.get("target")
    ]
    verdicts.append(Verdict("start", "numba imported by import adaspdc", numba, 0.0, "times"))
    columns = {
        "case": ("case", "<42"),
        "seconds": ("seconds", ">8.3f"),
        "compile_seconds": ("compile_seconds", ">15.3f"),
        "target": ("target", ">6.1f"),
    }
    notes = [
        "first solve: ERM() and solve() of a process less the same again: imports numba, loads"
    ]
    return Report("startup", "Starting", columns, rows, verdicts, notes)


def _first_solves(quick: bool, rounds: int) -> list[dict[str, Any]]:
    cases = [("CSR", "spdhg"), ("CSR", "adaspdc"), ("dense", "spdhg"), ("dense", "pdhg")]
    cases = cases[:1] if quick else cases
    for case in cases:
        _fresh(FIRST, case)  # fills the cache
    seen: dict[tuple[str, str], list[Any]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            seen[case].append(_fresh(FIRST, case))
    return [
        {
            "case": f"first solve, warm cache, {kind}, {method}",
            "seconds": min(one["loading"] for one in seen[kind, method]),
            "compile_seconds": min(one["compile_seconds"] for one in seen[kind, method]),
            "target": FIRST_TARGET,
        }
        for kind, method in cases
    ]


def _cold() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        once = _fresh(FIRST, ("CSR", "spdhg"), {"ADASPDC_CACHE_DIR": folder})
    return {
        "case": "first solve ever (compiles), CSR, spdhg",
        "seconds": once["loading"],
        "compile_seconds": once["compile_seconds"],
    }


def _fresh(code: str, arguments: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"a fresh process failed:\n{done.stderr}")
    return json.loads(done.stdout)
