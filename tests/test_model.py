"""Models on disk: the same predictions, or a refusal."""

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adaspdc import ERM, _envelope, losses, regularizers, solve
from adaspdc.model import Model, ModelFileError, load
from stopwatch import PEAK

RNG = np.random.default_rng(0)
X = sparse.random_array((60, 8), density=0.5, rng=RNG, format="csr")
SCORE = X @ RNG.standard_normal(8)
CASES: dict[str, tuple[Any, Any, Any]] = {
    "two classes": (np.where(SCORE > 0, 2.0, 1.0), losses.Logistic(), regularizers.L2(0.01)),
    "text": (np.where(SCORE > 0, "ja", "nein"), losses.SmoothHinge(0.5), regularizers.L2(0.01)),
    "one class": (np.ones(60), losses.Logistic(), regularizers.L2(0.01)),
    "several classes": (
        np.digitize(SCORE, [-0.3, 0.3]) + 3,
        losses.Multinomial(),
        regularizers.ElasticNet(0.01, 0.001),
    ),
    "regression": (SCORE, losses.SmoothPinball(0.9, 0.1), regularizers.Box(0.01, -1.0, np.inf)),
    "groups": (
        SCORE,
        losses.Huber(0.5),
        regularizers.GroupL2(0.01, 0.1, [0, 0, 1, 1, 2, 2, 3, 3]),
    ),
}


def fitted(case: str, **training: Any) -> Model:
    y, loss, penalty = CASES[case]
    problem = ERM(X, y, loss, penalty)
    return Model.of(problem, solve(problem, tol=1e-8), **training)


@pytest.mark.parametrize("case", CASES)
def test_loads_back_to_the_same_predictions_bit_for_bit(tmp_path: Path, case: str) -> None:
    model = fitted(case, features=["a", "b"])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert (again.loss, again.labels) == (model.loss, model.labels)
    assert again.certificate == model.certificate
    assert again.training == model.training
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()


def test_predictions_are_the_labels_of_the_data() -> None:
    assert set(fitted("text").predict(X)) == {"ja", "nein"}
    assert set(fitted("several classes").predict(X)) <= {3, 4, 5}
    assert set(fitted("one class").predict(X)) == {1.0}
    y = CASES["two classes"][0]
    assert np.mean(fitted("two classes").predict(X) == y) > 0.9


def test_probabilities() -> None:
    for case in ("two classes", "several classes"):
        shares = fitted(case).predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        best = np.array(fitted(case).labels)[shares.argmax(axis=1)]
        np.testing.assert_array_equal(best, fitted(case).predict(X))
    margin = fitted("two classes").decision_function(X)
    np.testing.assert_allclose(
        fitted("two classes").predict_proba(X)[:, 1], 1 / (1 + np.exp(-margin))
    )
    with pytest.raises(ValueError, match="no probabilities"):
        fitted("text").predict_proba(X)


def test_wrong_number_of_features() -> None:
    with pytest.raises(ValueError, match="X has 3 features, the model was fitted to 8"):
        fitted("regression").predict(np.ones((2, 3)))


def test_losses_without_a_name_cannot_be_saved(tmp_path: Path) -> None:
    model = fitted("regression")
    broken = Model(**{**vars(model), "loss": losses.MultiOutputSquared()})
    with pytest.raises(ValueError, match="no name in the catalogue"):
        broken.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- files that are refused ---


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    fitted("two classes").save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def refused(folder: Path, content: bytes, reason: str | None = None) -> None:
    (folder / "file").write_bytes(content)
    with pytest.raises(ModelFileError, match=reason):
        load(folder / "file")


def sealed(meta: Any, arrays: Any, data: bytes = b"") -> bytes:
    """A file with the right checksum around whatever it says."""
    header = json.dumps({"meta": meta, "arrays": arrays}).encode()
    body = b"\x93ADASPDCmodel 1\n" + len(header).to_bytes(8, "little") + header
    body += b"\0" * (-len(body) % 64) + data
    return body + hashlib.sha256(body).digest()


def test_foreign_files(tmp_path: Path) -> None:
    refused(tmp_path, b"", "not a model file of adaspdc")
    refused(tmp_path, b"solver_type L2R_LR\nnr_class 2\n", "not a model file of adaspdc")
    refused(tmp_path, pickle.dumps([1, 2]), "not a model file of adaspdc")
    _envelope.write(tmp_path / "other", "checkpoint", {}, {})
    with pytest.raises(ModelFileError, match="a 'checkp' file of adaspdc, not a model"):
        load(tmp_path / "other")
    with pytest.raises(ModelFileError, match="no such file"):
        load(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="folder"):
        load(tmp_path)


def test_later_version(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path, content.replace(b"model 1", b"model 2", 1), "version '2'")


def test_every_changed_byte_is_noticed(tmp_path: Path, content: bytes) -> None:
    rng = np.random.default_rng(0)
    for at in [*range(32), *rng.integers(0, len(content), 200).tolist()]:
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        refused(tmp_path, bytes(changed))
    for size in rng.integers(0, len(content), 50).tolist():
        refused(tmp_path, content[:size])
    refused(tmp_path, content + b"\0", "checksum")


@pytest.mark.parametrize(
    ("meta", "arrays", "data", "reason"),
    [
        ({}, [], b"", "'loss'"),
        (3, [], b"", None),
        ({}, [{"name": "a", "dtype": "|O", "shape": [1]}], b"\0" * 64, "impossible array"),
        ({}, [{"name": "a", "dtype": "<f8", "shape": [-1]}], b"\0" * 64, "impossible array"),
        ({}, [{"name": "a", "dtype": "<f8", "shape": [1, 1, 1]}], b"\0" * 64, "impossible array"),
        ({}, [{"name": "a", "dtype": "<f8", "shape": [2**62, 2]}], b"\0" * 64, "longer than"),
        ({}, [], b"\0" * 64, "do not fill"),
        ({}, [3], b"", None),
    ],
)
def test_malicious_headers(
    tmp_path: Path, meta: Any, arrays: Any, data: bytes, reason: str | None
) -> None:
    refused(tmp_path, sealed(meta, arrays, data), reason)


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    header = b'{"meta": ' + b"[" * 100_000 + b"]" * 100_000 + b', "arrays": []}'
    body = b"\x93ADASPDCmodel 1\n" + len(header).to_bytes(8, "little") + header
    body += b"\0" * (-len(body) % 64)
    refused(tmp_path, body + hashlib.sha256(body).digest())


@pytest.mark.parametrize(
    "change",
    [
        {"loss": {"name": "os.system"}},
        {"loss": {"name": "huber", "delta": -1.0}},
        {"loss": {"name": "squared"}},
        {"penalty": {"name": "l2", "lam": 0.0}},
        {"labels": None},
        {"labels": [1.0, 2.0, 3.0]},
        {"labels": [1.0, "two"]},
        {"labels": [[1.0], [2.0]]},
        {"certificate": {}},
        {"training": {}},
        {"training": {"rows": 60, "adaspdc": "0.1.0", "label": 3}},
    ],
)
def test_inconsistent_content(tmp_path: Path, content: bytes, change: dict[str, Any]) -> None:
    meta, arrays = _envelope.read(tmp_path / "model", "model")
    _envelope.write(tmp_path / "changed", "model", {**meta, **change}, arrays)
    with pytest.raises(ModelFileError, match="not a usable model"):
        load(tmp_path / "changed")


@pytest.mark.parametrize("array", ["coef", "intercept"])
def test_arrays_that_do_not_fit(tmp_path: Path, content: bytes, array: str) -> None:
    meta, arrays = _envelope.read(tmp_path / "model", "model")
    for wrong in (np.full_like(arrays[array], np.nan), np.ones((2, 2)), np.ones(0)):
        _envelope.write(tmp_path / "changed", "model", meta, {**arrays, array: wrong})
        with pytest.raises(ModelFileError, match="not a usable model"):
            load(tmp_path / "changed")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak of a process")
def test_loading_imports_nothing_and_needs_little_memory(
    tmp_path: Path, run_isolated: Callable[..., str]
) -> None:
    model = fitted("regression")
    big = Model(**{**vars(model), "dual": np.zeros(4_000_000)})
    big.save(tmp_path / "model")
    size = (tmp_path / "model").stat().st_size
    code = f"""
import sys
import adaspdc.model
{PEAK}
before, loaded = peak(), set(sys.modules)
model = adaspdc.model.load({str(tmp_path / "model")!r})
after = peak()
print((after - before) / {size}, *sorted(set(sys.modules) - loaded))
"""
    ratio, *imported = run_isolated(code).split()
    assert float(ratio) <= 2.0
    assert imported == []


def test_module_example() -> None:
    import doctest

    from adaspdc import model

    assert doctest.testmod(model).failed == 0
