"""How the default grows with n and d, and a problem of url's full size: ``python scale.py``.

Not a part of ``make ratios``: the last row holds 3 GB of data and takes minutes. Times are
processor seconds of ``solve`` on one thread, building ``ERM`` included.
"""

import argparse
import os
import resource
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

import adaspdc  # noqa: E402
from adaspdc import losses, regularizers  # noqa: E402

CHUNK = 20_000


def text(n: int, d: int, per_row: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Float32 rows of ones with one entry in each of ``per_row`` groups of columns, and labels.

    Group k holds the columns from ``d (k / per_row)^3`` on: the first are in nearly every row, the
    last in hardly any. Labels come from a hidden linear model with noise.
    """
    rng = np.random.default_rng(seed)
    edges = np.unique((d * (np.arange(per_row + 1) / per_row) ** 3).astype(np.int64))
    low, width = edges[:-1], np.diff(edges)
    indices = np.empty((n, low.size), dtype=np.int32)
    truth, score = rng.standard_normal(d).astype(np.float32), np.empty(n)
    for start in range(0, n, CHUNK):
        own = indices[start : start + CHUNK]
        own[:] = low + (rng.random(own.shape, dtype=np.float32) * width).astype(np.int64)
        np.minimum(own, edges[1:] - 1, out=own)
        score[start : start + CHUNK] = truth[own].sum(axis=1)
    score += 0.3 * score.std() * rng.standard_normal(n)
    indptr = np.arange(0, (n + 1) * low.size, low.size, dtype=np.int32)
    data = np.full(indices.size, low.size**-0.5, dtype=np.float32)
    X = sparse.csr_matrix((data, indices.ravel(), indptr), shape=(n, d), copy=False)
    return X, np.where(score > np.median(score), 1.0, -1.0)


def solve(X: sparse.csr_matrix, b: np.ndarray, tol: float) -> adaspdc.Result:
    """The default, at the lambda of the paper in the middle."""
    problem = adaspdc.ERM(X, b, losses.Logistic(), regularizers.L2(1e-6))
    return adaspdc.solve(problem, tol=tol)


def measure(name: str, X: sparse.csr_matrix, b: np.ndarray, tol: float, turns: int) -> float:
    """Print a row; returns the seconds."""
    seconds = np.inf
    for _ in range(turns):
        begun = time.process_time()
        result = solve(X, b, tol)
        seconds = min(seconds, time.process_time() - begun)
    x = np.ones(X.shape[1], dtype=X.dtype)
    X @ x
    begun = time.process_time()
    X @ x
    product = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:34s} {seconds:8.2f} s  {result.passes:6.1f} passes  {result.status.value:10s} "
        f"{seconds / (product * result.passes):5.1f} products a pass  peak {peak:5.1f} GB",
        flush=True,
    )
    return seconds


def main() -> None:
    """All rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-url", action="store_true", help="leave out the largest problem")
    options = parser.parse_args()
    solve(*text(2000, 7000, 20), 1e-3)  # compiles
    times = []
    for n in (100_000, 200_000):
        times.append(measure(f"n = {n:,}, d = 20,000", *text(n, 20_000, 50), 1e-6, 3))
    print(f"twice the rows: {times[1] / times[0]:.2f} times the time\n")
    times = []
    for d in (10_000, 3_000_000):
        times.append(measure(f"n = 100,000, d = {d:,}", *text(100_000, d, 50), 1e-6, 3))
    print(f"300 times the columns: {times[1] / times[0]:.2f} times the time\n")
    if not options.no_url:
        measure("url: 2,396,130 x 3,231,961, 115", *text(2_396_130, 3_231_961, 115), 1e-3, 1)


if __name__ == "__main__":
    main()
