"""Data sets: found where they are said to be found, fetched whole or not at all."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from adaspdc import datasets
from adaspdc.datasets import DATASETS, Dataset, DatasetError, fetch, load, locate, sha256

ROWS, COLUMNS = 40, 7
USERS_FOLDER = os.environ.get("ADASPDC_DATA", "")


def matrix() -> tuple[sparse.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sparse.random(ROWS, COLUMNS, 0.4, format="csr", random_state=rng)
    return X, np.where(np.arange(ROWS) % 3 == 0, 2.0, 1.0)


def svmlight() -> bytes:
    text = io.BytesIO()
    dump_svmlight_file(*matrix(), text, zero_based=False)
    return text.getvalue()


CONTENT = svmlight()
PACKED = bz2.compress(CONTENT)


class Server(ThreadingHTTPServer):
    """Serves one file well, and in all the ways in which servers fail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.closing = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        behaviour, body = self.path.split("/")[1], PACKED
        if behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "silent":
            self.server.closing.wait(10.0)
            return
        if behaviour == "plain":
            body = CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour == "corrupt":
            body = body[:100] + bytes([body[100] ^ 1]) + body[101:]
        elif behaviour == "stalls":
            self.wfile.write(body[:50])
            self.wfile.flush()
            self.server.closing.wait(10.0)
            return
        self.wfile.write(body[: len(body) // 2] if behaviour == "truncated" else body)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.closing.set()
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data but those of the test; what is fetched goes to the folder returned."""
    monkeypatch.setenv("ADASPDC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ADASPDC_DATA", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    return tmp_path / "cache" / "data"


def dataset(server: Server, *behaviours: str, known: bool = True) -> Dataset:
    return Dataset(
        name="tiny",
        title="Tiny",
        home="https://example.org/tiny",
        urls=tuple(f"http://127.0.0.1:{server.server_port}/{name}/t.bz2" for name in behaviours),
        checksums=(hashlib.sha256(PACKED).hexdigest(),) if known else (),
        files=("tiny.bz2", "tiny"),
        rows=ROWS,
        columns=COLUMNS,
        entries=int(matrix()[0].nnz),
        positive=2.0,
    )


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


# --- fetching ---


def test_a_set_is_fetched_once_and_read(server: Server, cache: Path) -> None:
    wanted = dataset(server, "good")
    table = load(wanted)
    np.testing.assert_allclose(table.X.toarray(), matrix()[0].toarray())
    np.testing.assert_array_equal(table.y, np.where(matrix()[1] == 2.0, 1.0, -1.0))
    assert table.path == cache / "tiny.bz2"
    assert fetch(wanted) == locate(wanted) == table.path
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("truncated", "IncompleteRead"),
        ("corrupt", "SHA-256"),
        ("missing", "404"),
        ("silent", "timed out"),
        ("stalls", "timed out"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["checksum", "shape"])
def test_what_arrives_damaged_is_refused(
    server: Server, cache: Path, behaviour: str, complaint: str, known: bool
) -> None:
    wanted = dataset(server, behaviour, known=known)
    with pytest.raises(DatasetError) as caught:
        fetch(wanted, timeout=0.3 if complaint == "timed out" else 60.0)
    message = str(caught.value)
    assert complaint in message or (not known and "no readable copy" in message)
    assert f"/{behaviour}/t.bz2" in message
    assert "ADASPDC_DATA" in message
    assert leftovers(cache) == []
    assert locate(wanted) is None


def test_the_next_address_is_tried(server: Server) -> None:
    wanted = dataset(server, "missing", "corrupt", "good")
    assert sha256(fetch(wanted)) == wanted.checksums[0]
    assert len(server.asked) == 3


def test_nobody_listening_is_explained() -> None:
    closed = Server()
    wanted = dataset(closed, "good")
    closed.server_close()
    with pytest.raises(DatasetError, match=r"ConnectionError.*Or get tiny.bz2 yourself") as caught:
        fetch(wanted)
    assert len(str(caught.value)) < 400


def test_without_a_published_sum_the_first_copy_counts(server: Server, cache: Path) -> None:
    wanted = dataset(server, "good", known=False)
    path = fetch(wanted)
    assert leftovers(cache) == ["tiny.bz2", "tiny.bz2.sha256"]
    assert fetch(wanted) == path
    assert len(server.asked) == 1
    path.write_bytes(PACKED + b"rot")  # the disk went bad: fetched anew
    assert locate(wanted) is None
    assert fetch(wanted).read_bytes() == PACKED
    assert len(server.asked) == 2


def test_without_a_published_sum_the_shape_must_fit(server: Server, cache: Path) -> None:
    wanted = replace(dataset(server, "good", known=False), entries=3)
    with pytest.raises(DatasetError, match="the set has 40 x 7 with 3 entries"):
        fetch(wanted)
    assert leftovers(cache) == []


def test_no_pooch_is_explained(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match=r"pip install 'adaspdc\[data\]'"):
        fetch(dataset(server, "good"))


def test_a_cache_that_cannot_be_made_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    (tmp_path / "occupied").touch()
    monkeypatch.setenv("ADASPDC_CACHE_DIR", str(tmp_path / "occupied"))
    with pytest.raises(DatasetError, match="ADASPDC_CACHE_DIR"):
        fetch(dataset(server, "good"))


# --- finding ---


@pytest.mark.parametrize(
    ("name", "content"),
    [("tiny", CONTENT), ("tiny.bz2", PACKED), ("tiny.gz", gzip.compress(CONTENT))],
)
def test_the_users_folder_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))
    table = load(dataset(server, "good"))
    assert table.path == tmp_path / name
    assert table.X.shape == (ROWS, COLUMNS)
    assert server.asked == []


def test_a_sample_is_the_first_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    (tmp_path / "tiny").write_bytes(CONTENT)
    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))
    table = load(dataset(server, "good"), rows=5)
    np.testing.assert_allclose(table.X.toarray(), matrix()[0].toarray()[:5])
    assert table.density == pytest.approx(table.X.nnz / (5 * COLUMNS))


def test_a_wrong_file_is_not_taken_for_the_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    (tmp_path / "tiny").write_bytes(CONTENT.splitlines(keepends=True)[0])
    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="no copy of tiny: it holds 1 x 7"):
        load(dataset(server, "good"))
    (tmp_path / "tiny").write_bytes(b"<html>404</html>")
    with pytest.raises(DatasetError, match="no readable copy of tiny"):
        load(dataset(server, "good"))


def test_unknown_names_are_explained() -> None:
    with pytest.raises(ValueError, match="the sets are: w8a, rcv1"):
        load("w9a")


# --- reading tables of numbers ---


def test_a_table_inside_an_archive(tmp_path: Path) -> None:
    text = b"1 0 0.5 0 7\n2 1 0 0 8.5\n"
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("inside.dat")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    wanted = replace(
        DATASETS["quantum"], rows=2, columns=3, member="inside.dat", files=("t.tar.gz",)
    )
    table = datasets.read(wanted, tmp_path / "t.tar.gz")
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 0, 7], [0, 0, 8.5]])
    np.testing.assert_array_equal(table.y, [-1, 1])
    (tmp_path / "inside.dat").write_bytes(text)
    assert datasets.read(wanted, tmp_path / "inside.dat").X.nnz == table.X.nnz == 3
    with pytest.raises(DatasetError, match="no readable copy"):
        datasets.read(replace(wanted, member="other.dat"), tmp_path / "t.tar.gz")


def test_the_uci_table_becomes_libsvms_scaled_one(tmp_path: Path) -> None:
    (tmp_path / "covtype.data").write_text("10,5,0,2\n20,5,1,1\n15,5,0,2\n", encoding="ascii")
    wanted = replace(DATASETS["covtype"], rows=3, columns=3, entries=None, label=3)
    table = datasets.read(wanted, tmp_path / "covtype.data")
    np.testing.assert_allclose(table.X.toarray(), [[0, 0, 0], [1, 0, 1], [0.5, 0, 0]])
    np.testing.assert_array_equal(table.y, [1, -1, 1])


# --- the registry ---


@pytest.mark.parametrize("name", DATASETS)
def test_addresses_are_public_and_checksums_well_formed(name: str) -> None:
    wanted = DATASETS[name]
    assert wanted.urls
    assert wanted.files
    assert all(url.startswith("https://") for url in (*wanted.urls, wanted.home))
    assert all(len(bytes.fromhex(text)) == 32 for text in wanted.checksums)


def test_w8a_is_what_the_registry_says(
    monkeypatch: pytest.MonkeyPatch, data_path: Callable[[str], Path]
) -> None:
    monkeypatch.setenv("ADASPDC_DATA", USERS_FOLDER)
    path = data_path("w8a.xz")
    table = load("w8a")
    assert table.path == path
    assert (table.y == 1.0).sum() == 1_479
    with lzma.open(path) as plain:
        assert hashlib.sha256(plain.read()).hexdigest() in DATASETS["w8a"].checksums
