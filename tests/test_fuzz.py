"""Files nobody meant to write: the readers and the model loader answer or refuse, never crash.

Each fuzzer runs for a share of a minute; what hypothesis finds, it shows in its smallest form.
"""

import csv
import io
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from adaspdc import ERM, losses, regularizers, solve
from adaspdc.model import Model, ModelFileError, load
from adaspdc.readers import DataFileError, read

pytestmark = pytest.mark.slow
SECONDS = 12.0


def for_some_time(check: Callable[..., None], *strategies: Any) -> None:
    """Run a check on ever new examples until the time is up."""
    end, seed, examples = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:

        def timed(arguments: Any) -> None:
            nonlocal examples
            if time.monotonic() < end:
                check(*arguments)
                examples += 1

        run = hypothesis.given(st.tuples(*strategies))(timed)
        run = hypothesis.seed(seed)(run)
        hypothesis.settings(
            max_examples=200,
            deadline=None,
            database=None,
            derandomize=False,
            suppress_health_check=list(hypothesis.HealthCheck),
        )(run)()
        seed += 1
    assert examples > 100


def attempt(path: Path) -> tuple[Any, str]:
    """What was read, or the words of the refusal; everything else is a crash."""
    try:
        return read(path), ""
    except DataFileError as error:
        return None, str(error)


# --- libsvm text ---

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.text("0123456789+-.eEnaif_x:# ", max_size=8),
)
pairs = st.tuples(st.integers(0, 30).map(str) | numbers, numbers).map(":".join)
lines = st.tuples(numbers, st.lists(pairs, max_size=6)).map(lambda p: " ".join([p[0], *p[1]]))
texts = st.lists(lines, max_size=8).map(lambda rows: "\n".join(rows).encode())
damaged = st.tuples(
    texts, st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3)), max_size=3)
).map(lambda given: spoiled(*given))


def spoiled(content: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    for at, piece in changes:
        content = content[:at] + piece + content[at + 1 :]
    return content


def plain_number(token: str) -> float:
    if "_" in token or not token.isascii():
        raise ValueError(token)
    value = float(token)
    if not math.isfinite(value):
        raise ValueError(token)
    return value


def plain_parser(content: bytes) -> tuple[list[float], list[dict[int, float]]]:
    """What libsvm text means, written down as simply as possible; ValueError where nothing."""
    labels, rows = [], []
    if b"\0" in content:
        raise ValueError("binary")
    for line in content.split(b"\n"):
        tokens = line.decode("latin-1").split("#")[0]
        fields = [t for t in "".join(" " if c in "\t\r\v\f" else c for c in tokens).split(" ") if t]
        if not fields:
            continue
        labels.append(plain_number(fields[0]))
        row: dict[int, float] = {}
        for field in fields[1:]:
            if field.startswith("qid:") and field.count(":") == 1:
                continue
            index, colon, value = field.partition(":")
            if not (colon and index.isascii() and index.isdigit()) or int(index) > 2**31 - 2:
                raise ValueError(field)
            if int(index) <= max(row, default=0):
                raise ValueError(field)
            row[int(index)] = plain_number(value)
        rows.append(row)
    if not labels:
        raise ValueError("empty")
    return labels, rows


def test_libsvm_text_is_read_as_a_plain_parser_would(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            labels, rows = plain_parser(content)
        except ValueError:
            with pytest.raises(DataFileError) as caught:
                read(path)
            reason = caught.value.reason  # text may look like an archive, or hold nothing
            unplaced = "no data" in reason or "archive" in reason
            assert (caught.value.line is None) == unplaced
            return
        data = read(path)
        np.testing.assert_array_equal(data.y, labels)
        for i, row in enumerate(rows):
            span = slice(data.X.indptr[i], data.X.indptr[i + 1])
            assert dict(zip((data.X.indices[span] + 1).tolist(), data.X.data[span].tolist(),
                            strict=True)) == row  # fmt: skip

    for_some_time(check, damaged)


def test_arbitrary_bytes_never_crash_a_reader(tmp_path: Path) -> None:
    """Any bytes under any name, and archives with a few bytes changed."""
    import bz2
    import gzip
    import lzma

    sparse_file = io.BytesIO()
    np.savez(sparse_file, X=np.eye(3), y=np.arange(3.0))
    table = io.BytesIO()
    import pandas as pd

    pd.DataFrame({"a": [1.0, 2.0], "label": [0, 1]}).to_parquet(table)
    text = b"".join(b"%d 1:%d\n" % (i, i) for i in range(200))
    seeds = [pack(text) for pack in (gzip.compress, bz2.compress, lzma.compress)]
    seeds += [sparse_file.getvalue(), table.getvalue(), text, b"a,label\n1,2\n3,4\n"]
    names = ["x.svm", "x.csv", "x.parquet", "x.npz"]

    def check(seed: int, name: str, changes: list[tuple[int, bytes]], cut: int) -> None:
        content = spoiled(seeds[seed], changes)
        path = tmp_path / name
        path.write_bytes(content[: max(0, len(content) - cut)])
        data, refusal = attempt(path)
        if data is None:
            assert refusal.startswith(str(path))
            return
        assert data.X.shape[0] == len(data.y)
        values = data.X.data if hasattr(data.X, "indptr") else data.X
        assert np.isfinite(values).all()

    changes = st.lists(st.tuples(st.integers(0, 1500), st.binary(max_size=4)), max_size=4)
    cuts = st.sampled_from([0, 0, 0, 1, 7, 100])
    for_some_time(check, st.integers(0, len(seeds) - 1), st.sampled_from(names), changes, cuts)


# --- CSV ---

cells = st.one_of(numbers, st.text('ab,"\n 1', max_size=4), st.just(""))
tables = st.lists(st.lists(cells, min_size=1, max_size=4), max_size=6)


def test_csv_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"

    def check(rows: list[list[str]]) -> None:
        text = io.StringIO()
        csv.writer(text).writerows([["a", "b", "label"], *rows])
        path.write_text(text.getvalue())
        data, refusal = attempt(path)
        if data is None:
            assert refusal.startswith(str(path))
            return
        kept = [row for row in rows if any(cell.strip() for cell in row) or len(row) > 1]
        assert data.X.shape == (len(kept), 2)
        for found, row in zip(data.X, kept, strict=True):
            assert [plain_number(cell.strip()) for cell in row[:2]] == found.tolist()

    for_some_time(check, tables)


# --- models ---


def test_changed_models_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    problem = ERM(X, np.sign(X[:, 0]), losses.Logistic(), regularizers.L2(0.1))
    Model.of(problem, solve(problem)).save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    path = tmp_path / "changed"

    def check(changes: list[tuple[int, bytes]], cut: int, more: bytes) -> None:
        changed = spoiled(content, changes)[: len(content) - cut] + more
        if changed == content:
            return
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)

    changes = st.lists(
        st.tuples(st.integers(0, len(content)), st.binary(max_size=4)), min_size=1, max_size=3
    )
    for_some_time(check, changes, st.integers(0, 3), st.binary(max_size=3))


def test_models_with_a_forged_checksum_are_refused_or_usable(tmp_path: Path) -> None:
    """Whoever writes the checksum anew can change the content, but not crash the program."""
    import hashlib

    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    problem = ERM(X, np.sign(X[:, 0]), losses.Logistic(), regularizers.L2(0.1))
    Model.of(problem, solve(problem)).save(tmp_path / "model")
    body = (tmp_path / "model").read_bytes()[:-32]
    path = tmp_path / "changed"

    def check(changes: list[tuple[int, bytes]]) -> None:
        changed = spoiled(body, changes)
        path.write_bytes(changed + hashlib.sha256(changed).digest())
        try:
            model = load(path)
        except ModelFileError:
            return
        if model.n_features == X.shape[1]:
            assert len(model.predict(X)) == 30

    places = st.integers(0, 1400)
    pieces = st.binary(max_size=4) | st.sampled_from([b"0", b"9", b'"', b"[", b"]", b"-", b"1e9"])
    for_some_time(check, st.lists(st.tuples(places, pieces), min_size=1, max_size=3))
