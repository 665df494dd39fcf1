"""``adaspdc convert`` and ``adaspdc doctor``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from adaspdc import cli
from adaspdc.readers import read

ENDINGS = ("svm", "svm.gz", "svm.bz2", "svm.xz", "csv", "csv.gz", "parquet", "npz")


def invoke(*arguments: Any) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, [str(a) for a in arguments], prog_name="adaspdc")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def awkward() -> np.ndarray:
    """Numbers that lose something when they are rounded, and the ends of their range."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 4)) * 10.0 ** rng.integers(-300, 300, (2500, 4))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[0] = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -1.0]
    X[1] = [1e15, 1e16, 123456789.0, -2.5e-8]
    return X


def write_npz(path: Path, X: Any, y: Any) -> Path:
    parts = {"X": X}
    if sparse.issparse(X):
        names = ("data", "indices", "indptr")
        parts = {"format": np.array(b"csr"), "shape": np.array(X.shape)}
        parts |= {name: getattr(X, name) for name in names}
    np.savez(path, y=y, **parts)
    return path


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_every_format_keeps_every_bit(tmp_path: Path, ending: str, storage: Any) -> None:
    X, y = awkward(), np.random.default_rng(1).standard_normal(2500)
    source = write_npz(tmp_path / "source.npz", storage(X), y)
    there, back = tmp_path / f"there.{ending}", tmp_path / "back.npz"
    assert invoke("convert", source, there)[0] == 0
    assert invoke("convert", there, back)[0] == 0
    found = read(back)
    np.testing.assert_array_equal(dense(found.X), X)
    np.testing.assert_array_equal(found.y, y)


def test_names_and_text_labels_of_tables(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text('"a,b",kind,c\n1,red,2.5\n3,"dark ""blue""",4\n')
    assert invoke("convert", table, tmp_path / "t.parquet", "--label", "kind")[0] == 0
    assert invoke("convert", tmp_path / "t.parquet", tmp_path / "u.csv", "--label", "kind")[0] == 0
    found = read(tmp_path / "u.csv", label="kind")
    assert found.features == ("a,b", "c")
    assert found.y.tolist() == ["red", 'dark "blue"']
    status, _, error = invoke("convert", table, tmp_path / "t.svm", "--label", "kind")
    assert status == 1
    assert "the labels are text" in error
    assert not (tmp_path / "t.svm").exists()
    assert (
        "names of the 2 columns"
        in invoke("convert", table, tmp_path / "t.npz", "--label", "kind")[2]
    )


def test_tables_without_labels(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert invoke("convert", tmp_path / "t.csv", tmp_path / "t.npz")[0] == 0
    assert read(tmp_path / "t.npz", require_label=False).y is None
    status, _, error = invoke("convert", tmp_path / "t.csv", tmp_path / "t.svm")
    assert (status, "no labels" in error) == (1, True)
    (tmp_path / "u.csv").write_text("label,b\n1,2\n3,4\n")
    status, _, error = invoke("convert", tmp_path / "u.csv", tmp_path / "v.csv", "--label", "b")
    assert status == 0
    (tmp_path / "w.svm").write_text("1 1:2 2:0\n")
    assert "last feature" in invoke("convert", tmp_path / "w.svm", tmp_path / "x.svm")[2]


def test_what_cannot_be_done_is_refused_before_writing(tmp_path: Path) -> None:
    wide, out = tmp_path / "wide.svm", tmp_path / "wide.csv"
    wide.write_text("1 900000000:1\n-1 1:1\n")
    status, _, error = invoke("convert", wide, out)
    assert (status, "write .npz" in error, out.exists()) == (1, True, False)
    assert invoke("convert", wide, wide)[0] == 2
    assert invoke("convert", wide, "-")[0] == 2
    assert invoke("convert", wide, tmp_path / "none" / "x.npz")[0] == 1
    bad = tmp_path / "bad.svm"
    bad.write_text("1 2:1 1:1\n")
    assert "line 1" in invoke("convert", bad, tmp_path / "y.npz")[2]
    assert not (tmp_path / "y.npz").exists()


def test_json_and_formats_by_option(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1 1:2\n0 2:1\n")
    status, text, _ = invoke("convert", tmp_path / "a", tmp_path / "b", "--to", "npz", "--json")
    told = json.loads(text)
    assert (status, told["format"], told["rows"], told["features"]) == (0, "npz", 2, 2)
    assert read(tmp_path / "b", "npz").X.shape == (2, 2)


# --- doctor ---


def test_doctor_finds_nothing_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))
    status, text, _ = invoke("doctor")
    assert status == 0, text
    assert "everything works" in text
    assert "FAIL" not in text
    told = json.loads(invoke("doctor", "--json")[1])
    assert {finding["name"] for finding in told["findings"]} >= {"compiler", "fit", "versions"}


def test_doctor_names_what_fails_and_the_remedy(
    run_isolated: Callable[..., str], tmp_path: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    code = (
        "from click.testing import CliRunner\n"
        "from adaspdc import cli\n"
        "result = CliRunner().invoke(cli.main, ['doctor'])\n"
        "print(result.exit_code, result.stdout)"
    )
    env = {"ADASPDC_CACHE_DIR": str(occupied), "ADASPDC_DATA": str(occupied)}
    text = run_isolated(code, env)
    assert text.startswith("1 ")
    assert "let ADASPDC_CACHE_DIR name one" in text
    assert "is no folder" in text
    assert "something does not work" in text


def test_misspelt_names_are_answered_with_the_nearest() -> None:
    for arguments, nearest in (
        (("convrt", "a", "b"), "convert"),
        (("fit", "x", "--alhpa", "1"), "--alpha"),
        (("fit", "x", "--loss", "logisitc"), "logistic"),
        (("fit", "x", "--penalty", "elastic-net"), "elasticnet"),
        (("convert", "x", "y", "--to", "parqet"), "parquet"),
    ):
        status, _, error = invoke(*arguments)
        assert status == 2
        assert f"'{nearest}'" in error
