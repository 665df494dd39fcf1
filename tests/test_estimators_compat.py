"""Estimators among the rest of the ecosystem: pipelines, searches, frames, threads, processes."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adaspdc
from adaspdc import estimators, losses, regularizers
from adaspdc.estimators import _solve

X, Y = make_classification(121, 6, random_state=0)  # odd: one median
R = X @ np.arange(1.0, 7.0) + np.random.default_rng(0).standard_normal(121)
CLASSIFIERS = ("AdaSPDCClassifier", "LinearSVC", "LogisticRegression", "LogisticRegressionCV")


def make(name: str, **options: Any) -> Any:
    small = {"Cs": 3, "cv": 3} if name.endswith("CV") else {}
    return getattr(adaspdc, name)(**{**small, **options})


def target(name: str) -> np.ndarray:
    return Y if name in CLASSIFIERS else R


@pytest.mark.parametrize("name", estimators.__all__)
def test_pickle_clone_and_repeat(name: str) -> None:
    model = make(name).fit(X, target(name))
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, target(name))):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        np.testing.assert_array_equal(copy.coef_, model.coef_)


@pytest.mark.parametrize("name", estimators.__all__)
def test_frames_and_sparse_matrices_give_the_same_model(name: str) -> None:
    columns = [f"feature {k}" for k in range(X.shape[1])]
    model = make(name).fit(X, target(name))
    for data in (
        pd.DataFrame(X, columns=columns),
        pl.DataFrame(X, schema=columns),
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        sparse.csr_matrix((X.ravel(), np.tile(np.arange(6), 121), np.arange(122) * 6)),
        np.asfortranarray(X),
    ):
        other = make(name).fit(data, target(name))
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-9)
        theirs = LinearRegression().fit(data, R)  # old releases see no names in polars frames
        assert hasattr(other, "feature_names_in_") == hasattr(theirs, "feature_names_in_")
        if isinstance(data, pd.DataFrame):
            assert other.feature_names_in_.tolist() == columns
        np.testing.assert_allclose(other.predict(data), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_single_precision_is_not_copied(monkeypatch: Any, index: Any) -> None:
    seen: list[Any] = []
    real = _solve.solve_quietly
    monkeypatch.setattr(
        _solve, "solve_quietly", lambda p, *a, **k: seen.append(p) or real(p, *a, **k)
    )
    monkeypatch.setattr(_solve, "is_small", lambda task: False)
    dense = X.astype(np.float32)
    rows = sparse.csr_array(dense)
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    for data, buffer in ((dense, dense), (rows, rows.data)):
        adaspdc.LogisticRegression().fit(data, Y)
        kernel = seen[-1].rows.kernel
        held = kernel.values if data is dense else kernel.data
        assert held.dtype == np.float32
        assert np.shares_memory(held, buffer)


def test_pipeline_search_and_calibration() -> None:
    pipeline = make_pipeline(StandardScaler(), adaspdc.LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.8
    calibrated = CalibratedClassifierCV(adaspdc.LinearSVC(), cv=3).fit(X, Y)
    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert cross_val_score(adaspdc.Ridge(), X, R, cv=3).mean() > 0.9
    grid = {"loss": ["logistic", losses.SmoothHinge(0.5)], "alpha": [1e-3, 1e-1]}
    assert GridSearchCV(adaspdc.AdaSPDCClassifier(), grid, cv=3).fit(X, Y).best_score_ > 0.8


def test_set_output_and_selection() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    selector = SelectFromModel(adaspdc.LogisticRegression(C=0.05, l1_ratio=1.0), threshold=1e-9)
    scaled = make_pipeline(StandardScaler(), selector).set_output(transform="pandas")
    chosen = scaled.fit_transform(frame, Y)
    assert isinstance(chosen, pd.DataFrame)
    assert 0 < chosen.shape[1] < 6


def test_weights_are_routed() -> None:
    weight = np.where(Y == 1, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = adaspdc.LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, inner).fit(X, Y, sample_weight=weight)
        cv = adaspdc.LogisticRegressionCV(Cs=2, cv=3).set_fit_request(sample_weight=True)
        chosen = make_pipeline(scaler, cv).fit(X, Y, sample_weight=weight)
    plain = adaspdc.LogisticRegression().fit(StandardScaler().fit_transform(X), Y, weight)
    np.testing.assert_allclose(pipeline[-1].coef_, plain.coef_, rtol=1e-9)
    direct = adaspdc.LogisticRegressionCV(Cs=2, cv=3)
    direct.fit(StandardScaler().fit_transform(X), Y, weight)
    np.testing.assert_allclose(chosen[-1].coef_, direct.coef_, rtol=1e-9)


def test_sparsify_and_back() -> None:
    model = adaspdc.LogisticRegression(C=0.05, l1_ratio=1.0).fit(*load_iris(return_X_y=True))
    iris = load_iris().data
    before, coef = model.predict_proba(iris), model.coef_.copy()
    assert sparse.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.predict_proba(iris), before, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(iris)), before, rtol=1e-12)
    np.testing.assert_array_equal(model.densify().coef_, coef)
    ridge = adaspdc.Ridge().fit(X, R)
    expected = ridge.predict(X)
    np.testing.assert_allclose(ridge.sparsify().predict(X), expected, rtol=1e-12)
    assert ridge.densify().coef_.shape == (6,)


def fitted(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 8))
    y = (A[:, 0] + rng.standard_normal(60) > 0).astype(int)
    svm = adaspdc.LinearSVC(loss="hinge").fit(A, y).coef_
    wide = adaspdc.LogisticRegression().fit(rng.standard_normal((60, 400)), y).coef_
    return np.concatenate([svm.ravel(), wide.ravel()])


def check_backend(backend: str, workers: int, fits: int, problems: int) -> None:
    """So many fits at once, each of one of a few problems, against those problems one by one."""
    serial = [fitted(seed) for seed in range(problems)]
    pool = Parallel(n_jobs=workers, backend=backend)
    for k, found in enumerate(pool(delayed(fitted)(k % problems) for k in range(fits))):
        np.testing.assert_array_equal(serial[k % problems], found)


def test_threads_agree_with_serial() -> None:
    check_backend("threading", 8, 16, 16)


def test_processes_agree_with_serial() -> None:
    check_backend("loky", 2, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_many_concurrent_fits(backend: str) -> None:
    check_backend(backend, *((8, 800, 100) if backend == "threading" else (2, 100, 100)))


CHILD = """
import multiprocessing as mp, numpy as np, adaspdc

def work(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 400))
    return adaspdc.LogisticRegression().fit(X, X[:, 0] > 0).n_iter_

if __name__ == "__main__":
    {before}
    with mp.get_context("{method}").Pool(2) as pool:
        print(len(pool.map_async(work, range({fits})).get(timeout=100)))
"""


@pytest.mark.parametrize(
    ("method", "fits"),
    [
        ("fork", 8),
        pytest.param("fork", 100, marks=pytest.mark.slow),
        pytest.param("spawn", 100, marks=pytest.mark.slow),
    ],
)
def test_no_deadlock_after_fork(
    run_isolated: Callable[..., str], tmp_path: Any, method: str, fits: int
) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(method=method, fits=fits, before="work(0)"))
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    if method == "spawn":
        code = (
            "import subprocess, sys\n"
            f"print(subprocess.check_output([sys.executable, {str(script)!r}], text=True))"
        )
    assert int(run_isolated(code)) == fits


def test_fits_where_nothing_can_be_kept(run_isolated: Callable[..., str], tmp_path: Any) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    code = (
        "import adaspdc, numpy as np\n"
        "X = np.random.default_rng(0).standard_normal((40, 3))\n"
        "print(adaspdc.LogisticRegression().fit(X, X[:, 0] > 0).result_.status)"
    )
    env = {"ADASPDC_CACHE_DIR": str(occupied), "HOME": str(occupied)}
    assert run_isolated(code, env).split() == ["converged"]
    assert occupied.read_bytes() == b""


def test_message_without_scikit_learn(run_isolated: Callable[..., str]) -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import adaspdc\n"
        "try: adaspdc.Ridge\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install 'adaspdc[sklearn]'" in run_isolated(code)


def test_own_regularizers_and_losses() -> None:
    groups = regularizers.GroupL2(1e-2, 0.05, np.array([0, 0, 0, 1, 1, 1]))
    model = adaspdc.AdaSPDCClassifier("squared_hinge", groups, fit_intercept=False).fit(X, Y)
    assert model.dual_gap_ <= model.result_.tol
    box = adaspdc.AdaSPDCRegressor(
        losses.Huber(2.0), regularizers.Box(1e-3, -1.0, 1.0), fit_intercept=False
    )
    assert np.abs(box.fit(X, R).coef_).max() <= 1.0


INTERRUPTED = """
import os, signal, threading, time, warnings
import numpy as np, adaspdc

rng = np.random.default_rng(0)
X = rng.standard_normal((60_000, 60))
y = X @ rng.standard_normal(60) + rng.standard_t(2, 60_000)
model = adaspdc.QuantileRegressor(alpha=0.0, tol=0.0)

def interrupt():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)  # the fit has not begun
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    model.fit(X, y)
print(model.result_.status, model.dual_gap_ < 1e9, adaspdc.Ridge().fit(X, y).result_.status)
"""


def test_interrupt_keeps_the_best_model(run_isolated: Callable[..., str]) -> None:
    assert run_isolated(INTERRUPTED).split() == ["stopped", "True", "converged"]
