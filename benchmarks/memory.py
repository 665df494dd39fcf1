"""Peak memory beyond the data, counted in vectors, and whether the data was copied.

Each row is a process of its own. A tall matrix shows the vectors of n, a wide one those of d.
NumPy's arrays are seen by tracemalloc; what kernels allocate themselves shows only in the resident
set, so the larger of the two is held against the target (the resident set on Linux only).
"""

import gc
import json
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from parts import Report, Verdict
from scipy import sparse

METHODS = ("adaspdc", "spdc", "spdc-nonuniform", "spdhg", "sdca", "sag", "saga", "pdhg")
VECTORS = 6.0
LAYOUTS = ("C float64", "C float32", "memory map", "CSR int32", "CSR int64", "CSR float32")
STATUS = Path("/proc/self/status")


def report(quick: bool) -> Report:
    """Every method on a tall and a wide matrix, then every layout that needs no copy."""
    rows = []
    for shape in ("tall", "wide"):
        cases = [(method, 1) for method in METHODS]
        if not quick:
            cases += [("adaspdc", 64), ("spdhg", 64)]
        for method, batch in cases[:: 3 if quick else 1]:
            task = {"shape": shape, "method": method, "batch": batch, "quick": quick}
            rows.append(_in_a_process(task))
    layouts = [_in_a_process({"layout": name, "quick": quick}) for name in LAYOUTS]
    notes = [f"alive at the peak, {_case(r)}: {r['alive']}" for r in rows if r["share"] > 1.0]
    notes += [
        "vectors: of the longer dimension; target: 6 n + 6 d numbers of 8 bytes, result included",
        "ERM() on " + ", ".join(f"{r['layout']}: +{r['copied']:.1%} of the data" for r in layouts),
    ]
    verdicts = [
        Verdict("peak memory", _case(row), row["share"], 1.0, "of 6n + 6d") for row in rows
    ] + [Verdict("no copy", r["layout"], r["copied"], 0.5, "of the data") for r in layouts]
    columns = {
        "shape": ("matrix", "<24"),
        "method": ("method", "<15"),
        "batch": ("batch", ">5d"),
        "traced_vectors": ("traced", ">7.2f"),
        "resident_vectors": ("resident", ">8.2f"),
        "share": ("of target", ">9.2f"),
        "kept_vectors": ("after", ">7.2f"),
    }
    title = "Peak memory of ERM() and solve() beyond the data, in vectors"
    return Report("memory", title, columns, rows, verdicts, notes)


def _case(row: dict[str, Any]) -> str:
    return f"{row['kind']}, {row['method']}, batch {row['batch']}"


def _in_a_process(task: dict[str, Any]) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(task)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"measuring {task} failed:\n{done.stderr}")
    return json.loads(done.stdout)


# --- in the process -------------------------------------------------------------------------------


def _tall(n: int) -> Any:
    return np.random.default_rng(0).standard_normal((n, 8))


def _wide(d: int) -> Any:
    n, each = max(d // 200, 10), 50
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(d // each, size=(n, each)) + np.arange(each) * (d // each))
    start = np.arange(0, n * each + 1, each, dtype=np.int32)
    values = rng.standard_normal(n * each)
    return sparse.csr_matrix((values, columns.ravel().astype(np.int32), start), shape=(n, d))


def _measure_solve(task: dict[str, Any]) -> dict[str, Any]:
    make, size = (
        (_tall if task["shape"] == "tall" else _wide),
        100_000 if task["quick"] else 600_000,
    )
    _solve(make(20_000), task)  # compiles or loads the kernels, imports what is imported late
    X = make(size)
    y = np.where(np.arange(X.shape[0]) % 2 == 0, 1.0, -1.0)
    traced, kept = _traced_peak(lambda: _solve((X, y), task))
    resident = _resident_peak(lambda: _solve((X, y), task))
    target = VECTORS * 8 * sum(X.shape)
    vector = 8 * max(X.shape)
    return {
        "kind": task["shape"],
        "shape": "{} {:,} x {:,}".format(task["shape"], *X.shape),
        "method": task["method"],
        "batch": task["batch"],
        "traced_vectors": traced / vector,
        "resident_vectors": None if resident is None else resident / vector,
        "share": max(traced, resident or 0) / target,
        "kept_vectors": kept / vector,
        "alive": _alive_at_peak(lambda: _solve((X, y), task), vector),
    }


def _solve(data: Any, task: dict[str, Any]) -> Any:
    from timing import solve

    from adaspdc import ERM, losses, regularizers

    if not isinstance(data, tuple):
        data = data, np.where(np.arange(data.shape[0]) % 2 == 0, 1.0, -1.0)
    X, y = data
    problem = ERM(X, y, losses.SmoothHinge(), regularizers.L2(1e-3))
    return solve(problem, task["method"], 3, batch_size=task["batch"], check_every=1.0)


def _traced_peak(call: Any) -> tuple[int, int]:
    gc.collect()
    tracemalloc.start()
    result = call()
    peak = tracemalloc.get_traced_memory()[1]
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del result
    return peak, kept


def _resident_peak(call: Any) -> int | None:
    """Growth of the resident set at its highest, by Linux's resettable high-water mark."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        call()
        return max(0, _status("VmHWM") - before)
    except (OSError, KeyError):
        return None


def _status(field: str) -> int:
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return 1024 * int(lines[field].split()[0])


def _alive_at_peak(call: Any, vector: int) -> str:
    """Where the arrays came from that were alive when a sampler saw the most memory in use."""
    highest, best, done = 0, None, threading.Event()

    def sample() -> None:
        nonlocal highest, best
        while not done.wait(0.0005):
            now = tracemalloc.get_traced_memory()[0]
            if now > highest + vector // 4:
                highest, best = now, tracemalloc.take_snapshot()

    tracemalloc.start()
    sampler = threading.Thread(target=sample)
    sampler.start()
    call()
    done.set()
    sampler.join()
    tracemalloc.stop()
    if best is None:
        return "not seen"
    sites = [s for s in best.statistics("lineno") if s.size > vector // 8]
    return ", ".join(
        f"{Path(s.traceback[0].filename).name}:{s.traceback[0].lineno} {s.size / vector:.2f}"
        for s in sites[:14]
    )


def _measure_copy(task: dict[str, Any]) -> dict[str, Any]:
    """Memory that ERM() needs on data that fits as it is: labels take little, a copy as much."""
    from adaspdc import ERM, losses, regularizers

    data, size = _laid_out(task["layout"], 2_000 if task["quick"] else 50_000)
    y = np.zeros(data.shape[0])

    def build() -> Any:
        return ERM(data, y, losses.Squared(), regularizers.L2(1e-3))

    build()
    copied, _ = _traced_peak(build)
    return {"layout": task["layout"], "copied": copied / size}


def _laid_out(layout: str, n: int) -> tuple[Any, int]:
    X = np.random.default_rng(0).standard_normal((n, 40))
    if layout == "memory map":
        import tempfile

        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            np.save(file, X)
            file.flush()
            return np.load(file.name, mmap_mode="r"), X.nbytes
    if layout.endswith("float32"):
        X = X.astype(np.float32)
    if not layout.startswith("CSR"):
        return X, X.nbytes
    csr = sparse.csr_array(X)
    index = np.int64 if layout.endswith("int64") else np.int32
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    return csr, csr.data.nbytes + csr.indices.nbytes


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(_measure_copy(asked) if "layout" in asked else _measure_solve(asked)))
