"""Data files as people have them, right and wrong."""

import bz2
import gzip
import io
import lzma
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from adaspdc import readers
from adaspdc.readers import DataFileError, read
from stopwatch import PEAK, fastest

TEXT = "+1 1:0.5 3:2 # a remark\n\n# only a remark\n-1 qid:7 2:1e-3\r\n2.5\t1:-.5 \n0\n"


def written(folder: Path, content: str | bytes, name: str = "data.svm") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- libsvm text ---


def test_libsvm_text_is_read_as_meant(tmp_path: Path) -> None:
    data = read(written(tmp_path, TEXT))
    assert data.y.tolist() == [1.0, -1.0, 2.5, 0.0]
    assert data.X.toarray().tolist() == [[0.5, 0, 2], [0, 1e-3, 0], [-0.5, 0, 0], [0, 0, 0]]
    assert data.X.indices.dtype == np.int32


def test_last_line_needs_no_end(tmp_path: Path) -> None:
    assert read(written(tmp_path, "1 1:2\n2 1:3")).y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_archives_are_known_by_their_content(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    data = read(written(tmp_path, pack(TEXT.encode()), "any-name"))
    assert data.y.size == 4


def test_indices_may_count_from_zero(tmp_path: Path) -> None:
    data = read(written(tmp_path, "1 0:5 2:7\n"), zero_based=True)
    assert data.X.toarray().tolist() == [[5.0, 0.0, 7.0]]


def test_standard_input(tmp_path: Path) -> None:
    code = "from adaspdc import readers; print(readers.read('-').X.shape)"
    done = subprocess.run([sys.executable, "-c", code], input=gzip.compress(TEXT.encode()),
                          capture_output=True, check=True)  # fmt: skip
    assert done.stdout.strip() == b"(4, 3)"


def numerals(count: int) -> list[str]:
    """Decimal numbers of every length and size, as programs write them."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64)
    numbers = [struct.unpack("d", struct.pack("Q", int(b)))[0] for b in bits]
    texts = [repr(x) for x in numbers if np.isfinite(x)]
    texts += [f"{x:.17g}" for x in rng.standard_normal(count)]
    texts += [f"{x:.25f}" for x in rng.random(count // 10)]
    digits, exponents = rng.integers(0, 10**9, (count, 2)), rng.integers(-340, 300, count)
    texts += [f"{a}.{b}e{e}" for (a, b), e in zip(digits, exponents, strict=True)]
    texts += ["9007199254740993", "2.4703282292062327e-324", "5e-324", "1e23", "-0", "+.5", "1.e3"]
    texts += ["2.2250738585072011e-308", "1.7976931348623157e308", "18446744073709551616"]
    return [*texts, "1" + "0" * 300, "0." + "0" * 400 + "1"]


def test_numbers_are_rounded_as_python_does_it(tmp_path: Path) -> None:
    texts = [text for text in numerals(5000) if np.isfinite(float(text))]
    data = read(written(tmp_path, "\n".join(f"{text} 1:{text}" for text in texts)))
    expected = np.array([float(text) for text in texts])
    np.testing.assert_array_equal(data.y.view(np.uint64), expected.view(np.uint64))
    np.testing.assert_array_equal(data.X.data.view(np.uint64), expected.view(np.uint64))


def test_lines_longer_than_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc.readers import _streams

    monkeypatch.setattr(_streams.Stream.chunks, "__defaults__", (None, 7))
    lines = [f"{i} " + " ".join(f"{j}:{i + j}" for j in range(1, 30)) for i in range(20)]
    data = read(written(tmp_path, "\n".join(lines)))
    expected = np.add.outer(np.arange(20), np.arange(1, 30))
    np.testing.assert_array_equal(data.X.toarray(), expected)


def test_many_numbers_python_must_parse(tmp_path: Path) -> None:
    long = "0." + "3" * 30
    line = " ".join(
        f"{j}:{long}" for j in range(1, 6000)
    )  # more than the kernel sets aside at first
    data = read(written(tmp_path, f"1 {line}\n{long} 1:1\n"))
    assert set(data.X.data.tolist()) == {1 / 3, 1.0}
    assert data.y.tolist() == [1.0, 1 / 3]


WRONG = [
    ("1 1:2\n1 2:3 1:4\n", 2, 7, "ascend"),
    ("1 1:2 1:3\n", 1, 7, "ascend"),
    ("1 0:2\n", 1, 3, "begin at 1"),
    ("abc 1:2\n", 1, 1, "label 'abc' is not a finite number"),
    ("\n1 1:1\n\n\nx\n", 5, 1, "label 'x'"),
    ("nan 1:2\n", 1, 1, "not a finite number"),
    ("1 1:inf\n", 1, 5, "not a finite number"),
    ("1 1:1e999\n", 1, 5, "not a finite number"),
    ("1 1:1_0\n", 1, 5, "not a finite number"),
    ("1 1\n", 1, 3, "expected index:value, got '1'"),
    ("1 1:\n", 1, 5, "not a number"),
    ("1 1:2:3\n", 1, 5, "not a number"),
    ("1 a:2\n", 1, 3, "whole number first"),
    ("1 -1:2\n", 1, 3, "whole number first"),
    ("1 1.5:2\n", 1, 3, "whole number first"),
    ("1 99999999999:1\n", 1, 3, "beyond 2147483646"),
    ("1,2 1:1\n", 1, 2, "several labels"),
    ("1:2 3:4\n", 1, 1, "begins with its label"),
    (b"\x89PNG\r\n\x1a\n\0\0", 3, 1, "binary file"),
    ("1 1:\u00e9\n", 1, 5, "not a finite number"),
]


@pytest.mark.parametrize(("content", "line", "column", "reason"), WRONG)
def test_wrong_lines_are_named(
    tmp_path: Path, content: str | bytes, line: int, column: int, reason: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataFileError, match=reason) as caught:
        read(path)
    error = caught.value
    assert (error.file, error.line, error.column) == (str(path), line, column)
    assert str(error).startswith(f"{path}, line {line}, column {column}: ")


def test_line_numbers_count_earlier_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc.readers import _streams

    monkeypatch.setattr(_streams.Stream.chunks, "__defaults__", (None, 16))
    for wrong in ("1 2:3 1:1", "no 1:1"):
        with pytest.raises(DataFileError) as caught:
            read(written(tmp_path, "1 1:2\n" * 50 + wrong + "\n"))
        assert caught.value.line == 51


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_empty_files(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataFileError, match="no data"):
        read(written(tmp_path, content))


def test_folder_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="folder"):
        read(tmp_path)
    with pytest.raises(DataFileError, match="no such file"):
        read(tmp_path / "absent")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    path.chmod(0)
    with pytest.raises(DataFileError, match="permission"):
        read(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_and_damaged_archives(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    content = pack(b"".join(b"%d 1:%d\n" % (i, i * i) for i in range(20_000)))
    with pytest.raises(DataFileError, match="cut short"):
        read(written(tmp_path, content[: len(content) // 2]))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    with pytest.raises(DataFileError):
        read(written(tmp_path, bytes(damaged)))


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = written(tmp_path, TEXT)
    read(path, progress=lambda done, size: seen.append((done, size)))
    assert seen[-1] == (len(TEXT), len(TEXT))


def test_same_as_scikit_learn(data_path: Callable[[str], Path]) -> None:
    from sklearn.datasets import load_svmlight_file

    content = lzma.decompress(data_path("w8a.xz").read_bytes())
    theirs, labels = load_svmlight_file(io.BytesIO(content))
    ours = read(data_path("w8a.xz"))
    assert abs(ours.X - theirs).max() == 0
    np.testing.assert_array_equal(ours.y, labels)


def test_at_least_half_as_fast_as_scikit_learn(
    tmp_path: Path, data_path: Callable[[str], Path]
) -> None:
    from sklearn.datasets import load_svmlight_file

    path = written(tmp_path, lzma.decompress(data_path("ijcnn1.t.xz").read_bytes()))
    read(path)  # compiles

    def seconds(load: Callable[[str], object]) -> float:
        start = time.process_time()
        load(str(path))
        return time.process_time() - start

    theirs = min(seconds(load_svmlight_file) for _ in range(2))
    assert fastest(lambda: seconds(read), 2 * theirs) < 2 * theirs


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak of a process")
def test_memory_stays_below_three_times_the_data(
    tmp_path: Path, run_isolated: Callable[..., str]
) -> None:
    rng = np.random.default_rng(0)
    row = " ".join(f"{j}:{v:.6f}" for j, v in enumerate(rng.random(50), start=1))
    path = written(tmp_path, f"1 {row}\n" * 40_000)  # 2 million entries, 24 MB in memory
    code = f"""
from adaspdc import readers
{PEAK}
open({str(tmp_path / "tiny")!r}, "w").write("1 1:2\\n")
readers.read({str(tmp_path / "tiny")!r})
before = peak()
X = readers.read({str(path)!r}).X
after = peak()
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
print((after - before) / size)
"""
    assert float(run_isolated(code)) < 3.0


# --- tables ---

TABLE = "a,b,label\n1,2,x\n3,4e0,y\n5,-6,x\n"


def test_csv(tmp_path: Path) -> None:
    data = read(written(tmp_path, TABLE, "t.csv"))
    assert data.X.tolist() == [[1, 2], [3, 4], [5, -6]]
    assert data.y.tolist() == ["x", "y", "x"]
    assert data.features == ("a", "b")


def test_csv_packed_and_with_a_named_label(tmp_path: Path) -> None:
    data = read(written(tmp_path, gzip.compress(TABLE.replace(",x", ",1").replace(",y", ",2")
                                                .encode()), "t.csv.gz"), label="b")  # fmt: skip
    assert data.y.tolist() == [2.0, 4.0, -6.0]
    assert data.features == ("a", "label")


def test_csv_of_several_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc.readers import _tables

    monkeypatch.setattr(_tables, "_ENTRIES", 21)
    lines = [f"{i},{i * i},{'n/o' if i == 120 else i % 2}" for i in range(150)]
    data = read(written(tmp_path, "\n".join(["u,v,y", *lines]), "t.csv"))
    assert data.X[:, 1].tolist() == [i * i for i in range(150)]
    assert data.y[120] == "n/o"
    assert data.y[121] == "1"


def test_table_without_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n", "t.csv")
    assert read(path, require_label=False).y is None
    with pytest.raises(DataFileError, match=r"--label \(columns: a, b\)"):
        read(path)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("a,label\n1,2\n\nfoo,3\n", 4, "column 'a': 'foo' is not a finite number"),
        ("a,label\n1,2\ninf,3\n", 3, "'inf' is not a finite number"),
        ("a,label\n1,2\n,3\n", 3, "missing"),
        ("a,label\n1,2\n1\n", 3, "label 'label' is missing"),
        ("a,label\n1,2\n1,2,3\n", 3, "3 fields where the header has 2"),
        ("a,label\n1,2,3\n", 2, "more fields than the header"),
        ("a,y,label\n1,2,3\n", 1, "several columns could be the label"),
        ("label\n1\n", 1, "no column besides the label"),
        ('a,"b\nc",label\n1,2,3\n1,2,3\nx,2,3\n', 5, "'x' is not a finite number"),
    ],
)
def test_wrong_tables_are_named(tmp_path: Path, content: str, line: int, reason: str) -> None:
    path = written(tmp_path, content, "t.csv")
    with pytest.raises(DataFileError) as caught:
        read(path)
    assert reason in str(caught.value)
    assert (caught.value.file, caught.value.line) == (str(path), line)


@pytest.mark.parametrize("content", ["", "a,label\n", b"\0\xff\xfe\0"])
def test_csv_without_content(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(DataFileError):
        read(written(tmp_path, content, "t.csv"))


def test_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"u": [1.0, 2.0, 3.5], "v": [1, 2, 3], "t": [1, 0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", label="t")
    assert data.X.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.5, 3.0]]
    assert data.y.tolist() == [1, 0, 1]
    frame.assign(u=[1.0, None, 2.0]).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="row 2, column 'u': the value is missing"):
        read(tmp_path / "t.parquet", label="t")
    with pytest.raises(DataFileError, match="not a readable Parquet file"):
        read(written(tmp_path, "hello", "x.parquet"))


@pytest.mark.parametrize(("missing", "name"), [("pandas", "t.csv"), ("pyarrow", "t.parquet")])
def test_absent_extras_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"adaspdc\[tables\]"):
        read(written(tmp_path, TABLE, name))


# --- npz ---


def test_npz(tmp_path: Path) -> None:
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    sparse.save_npz(tmp_path / "matrix.npz", X)
    np.savez(tmp_path / "data.npz", y=["a", "b"], **np.load(tmp_path / "matrix.npz"))
    data = read(tmp_path / "data.npz")
    assert data.X.toarray().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert data.y.tolist() == ["a", "b"]
    with pytest.raises(DataFileError, match="no labels y"):
        read(tmp_path / "matrix.npz")
    assert read(tmp_path / "matrix.npz", require_label=False).y is None
    np.savez(tmp_path / "dense.npz", X=np.eye(2), y=[1, 2])
    assert read(tmp_path / "dense.npz").X.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"X": np.array([[object()]], dtype=object)}, "not a readable"),
        ({"z": np.eye(2)}, "no array called 'format'"),
        ({"X": np.eye(2), "y": np.ones(3)}, "one label per row"),
        ({"X": np.array([[np.nan]]), "y": np.ones(1)}, "not a finite number"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0)}, "rows and columns are needed"),
        (
            {"format": "csr", "shape": (1, 2), "data": [1.0], "indices": [9], "indptr": [0, 1]},
            "not a readable",
        ),
    ],
)
def test_wrong_npz(tmp_path: Path, arrays: dict[str, object], reason: str) -> None:
    np.savez(tmp_path / "x.npz", allow_pickle=True, **arrays)
    with pytest.raises(DataFileError, match=reason):
        read(tmp_path / "x.npz")


def test_npz_that_is_none(tmp_path: Path) -> None:
    for content in ("hello", b"PK\3\4 but not really", b""):
        with pytest.raises(DataFileError, match="npz"):
            read(written(tmp_path, content, "x.npz"))


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="libsvm, csv, parquet, npz"):
        read(tmp_path, "xls")


def test_error_survives_pickling() -> None:
    import pickle

    error = DataFileError("f", "why", 3, 4)
    assert str(pickle.loads(pickle.dumps(error))) == "f, line 3, column 4: why"


def test_module_example() -> None:
    import doctest

    assert doctest.testmod(readers).failed == 0
