"""Finding a copy on this machine, or fetching one: whole, checked, or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._cache import cache_folder
from ._read import Table, read
from ._registry import Dataset, DatasetError, find

_PACKED = ("", ".xz", ".bz2", ".gz")
_TIMEOUT = 30.0
"""Seconds without a byte after which a server counts as silent."""


def sha256(path: Path) -> str:
    """The SHA-256 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def locate(dataset: str | Dataset) -> Path | None:
    """The copy that ``ADASPDC_DATA`` or the cache holds, or None."""
    wanted = find(dataset)
    folder = os.environ.get("ADASPDC_DATA")
    if folder:
        for path in _candidates(wanted, Path(folder)):
            if path.is_file():
                return path
    path = _cached(wanted)
    return path if path.is_file() and _known(wanted, path) else None


def fetch(dataset: str | Dataset, *, progress: Any = False, timeout: float = _TIMEOUT) -> Path:
    """The path of a copy, fetched from its public home where there is none on this machine.

    Parameters
    ----------
    dataset : str or Dataset
    progress : bool or object
        Passed to pooch: True shows a bar of tqdm, an object with ``total``, ``update``, ``reset``
        and ``close`` is told of every piece.
    timeout : float
        Seconds a server may be silent.

    Returns
    -------
    Path

    Raises
    ------
    DatasetError
        If no address delivers the file whole and unchanged.
    """
    wanted = find(dataset)
    path = locate(wanted)
    if path is not None:
        return path
    target = _cached(wanted)
    _make_folder(wanted, target.parent)
    failures = []
    for url in wanted.urls:
        try:
            _download(wanted, url, target, progress, timeout)
        except DatasetError as error:
            failures.append(str(error))
        else:
            return target
    raise DatasetError(f"{_cannot(wanted)}: {'; '.join(failures)}. {_by_hand(wanted)}")


def load(
    dataset: str | Dataset,
    rows: int | None = None,
    *,
    progress: Any = False,
    timeout: float = _TIMEOUT,
) -> Table:
    """Find or fetch a data set and read it, or its first ``rows`` rows."""
    wanted = find(dataset)
    return read(wanted, fetch(wanted, progress=progress, timeout=timeout), rows)


def _candidates(dataset: Dataset, folder: Path) -> Iterator[Path]:
    """What a copy may be called; for a packed download its unpacked names, too."""
    for name in dataset.files:
        for ending in _PACKED:
            yield folder / f"{name}{ending}"


def _cached(dataset: Dataset) -> Path:
    return cache_folder() / "data" / dataset.files[0]


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _known(dataset: Dataset, path: Path) -> bool:
    """Whether a cached file still has the sum that it was accepted with."""
    record = _record(path)
    accepted = dataset.checksums or (
        (record.read_text(encoding="ascii").strip(),) if record.is_file() else ()
    )
    return sha256(path) in accepted


def _download(dataset: Dataset, url: str, target: Path, progress: Any, timeout: float) -> None:
    """Fetch into a name of its own; the target appears only once the file is known to be right."""
    pooch = _pooch(dataset)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        pooch.retrieve(
            url,
            known_hash=None,  # any of several sums will do: checked below
            fname=part.name,
            path=part.parent,
            downloader=pooch.HTTPDownloader(progressbar=progress, timeout=timeout),
        )
        _accept(dataset, url, part)
        os.replace(part, target)
    except (OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{url} failed ({type(error).__name__}: {_cause(error)})") from None
    finally:
        part.unlink(missing_ok=True)


def _cause(error: BaseException) -> object:
    """What went wrong at the bottom of a chain of errors that wrap each other."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    return getattr(error, "reason", error)


def _accept(dataset: Dataset, url: str, part: Path) -> None:
    found = sha256(part)
    if not dataset.checksums:
        try:
            read(dataset, part, name=dataset.files[0])
        except DatasetError as error:
            raise DatasetError(f"{url} delivered something else ({error})") from None
        _record(part.with_name(dataset.files[0])).write_text(f"{found}\n", encoding="ascii")
    elif found not in dataset.checksums:
        raise DatasetError(
            f"{url} delivered {part.stat().st_size:,} bytes with SHA-256 {found}, "
            f"not {' or '.join(dataset.checksums)}"
        )


def _pooch(dataset: Dataset) -> Any:
    try:
        import pooch
    except ImportError:
        raise DatasetError(
            f"{_cannot(dataset)} without the package pooch: pip install 'adaspdc[data]'. "
            f"{_by_hand(dataset)}"
        ) from None
    pooch.get_logger().setLevel("WARNING")
    return pooch


def _make_folder(dataset: Dataset, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(
            f"{_cannot(dataset)}: no folder {folder} can be made ({error.strerror}); "
            "let ADASPDC_CACHE_DIR name one that can"
        ) from None


def _cannot(dataset: Dataset) -> str:
    return f"the data set {dataset.name} cannot be fetched"


def _by_hand(dataset: Dataset) -> str:
    return (
        f"Or get {dataset.files[0]} yourself (see {dataset.home}) and let ADASPDC_DATA name the "
        "folder it is in"
    )
