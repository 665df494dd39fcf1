"""The default engine on small versions of real data sets, at every lambda, as they come.

Gaps are relative to the objective at zero. Not timed.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adaspdc import ERM, losses, regularizers, solve

DATA = Path(os.environ.get("ADASPDC_DATA", "/nowhere"))
SETS = {
    "w8a": "w8a.xz",
    "covtype": "covtype.libsvm.binary.scale.xz",
    "covtype raw": "covtype.libsvm.binary.xz",
    "protein raw": "protein_bio_train.xz",
    "ijcnn1": "ijcnn1.xz",
    "mnist": "mnist.xz",
    "news20": "news20.xz",
    "usps": "usps.xz",
    "farm-ads": "farm-ads-vect.xz",
    "phishing": "phishing.xz",
    "casp": "uci_casp.xz",
}
LOSSES = [losses.Logistic(), losses.SmoothHinge(), losses.SquaredHinge(), losses.Squared()]
LAMBDAS = [1e-1, 1e-3, 1e-5, 1e-7, 1e-8]
ROWS = 1000


@cache
def small(name: str) -> tuple[Any, Any]:
    """Some rows with a column of ones, and labels -1 and 1."""
    from adaspdc.readers import read

    path = DATA / SETS[name]
    if not path.exists():
        pytest.skip(f"{path.name} is not in ADASPDC_DATA")
    table = read(path)
    X, y = sparse.csr_array(table.X), np.asarray(table.y, dtype=float)
    keep = np.random.default_rng(0).choice(len(y), min(ROWS, len(y)), replace=False)
    X, y = X[keep], np.where(y[keep] > np.median(y), 1.0, -1.0)
    if np.unique(y).size == 1:
        y = np.where(np.asarray(table.y)[keep] == np.max(table.y), 1.0, -1.0)
    return sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr"), y


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_every_lambda_is_certified(name: str, loss: losses.Loss) -> None:
    X, y = small(name)
    for lam in LAMBDAS:
        result = solve(ERM(X, y, loss, regularizers.L2(lam)), tol=1e-9, max_seconds=60)
        assert result.converged, f"lam={lam}: {result.message}"
