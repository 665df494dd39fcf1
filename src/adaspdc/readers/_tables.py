"""CSV and Parquet through pandas and pyarrow, which are optional; every column a number."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import DataFileError
from ._growing import Growing
from ._streams import STANDARD_INPUT, Progress, Stream, opened

Array = NDArray[Any]
Path = str | os.PathLike[str]

_USUAL = ("label", "target", "class", "y")
_ENTRIES = 2_000_000
"""Entries of a table that are in memory as pandas has them."""
_MISSING = "reading {} needs {}: pip install 'adaspdc[tables]'"


@dataclass(frozen=True)
class Wanted:
    """Which column is the label, and whether there must be one."""

    label: str | None
    required: bool

    def column(self, columns: list[str], name: str) -> str | None:
        """The label column among ``columns``."""
        shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
        if self.label is not None:
            if self.label in columns:
                return self.label
            if not self.required:
                return None
            raise DataFileError(name, f"no column {self.label!r}; its columns are {shown}", 1)
        usual = [column for column in columns if column.lower() in _USUAL]
        if len(usual) == 1:
            return usual[0]
        if not self.required and not usual:
            return None
        found = "several columns could be the label" if usual else "no column is called label"
        raise DataFileError(name, f"{found}; name it with --label (columns: {shown})", 1)


def read_csv(stream: Stream, path: Path, wanted: Wanted, progress: Progress | None) -> Any:
    """(X, y, names of the features); a header line is needed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(_MISSING.format("CSV", "pandas")) from error
    collected = _Collected(stream.name, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # it would drop fields
            frames = pd.read_csv(
                _Readable(stream, progress),
                iterator=True,
                encoding="utf-8",
                **_exact(pd),
                index_col=False,
                low_memory=False,
            )
            with frames:
                for frame in _pieces(frames):
                    collected.add(frame, wanted)
    except pd.errors.EmptyDataError:
        raise DataFileError(stream.name, "there is no data in it") from None
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 text ({error.reason}); is it a binary file?"
        raise DataFileError(stream.name, reason) from None
    except pd.errors.ParserWarning:
        raise DataFileError(stream.name, "rows have more fields than the header", 2) from None
    except pd.errors.ParserError as error:
        raise _tokenizing(stream.name, str(error)) from None
    return collected.result()


def _pieces(frames: Any) -> Iterator[Any]:
    """Some rows to learn the width, then as many at a time as are no burden."""
    rows = 100
    while True:
        try:
            frame = frames.get_chunk(rows)
        except StopIteration:
            return
        yield frame
        rows = max(1, _ENTRIES // max(1, frame.shape[1]))


def _exact(pd: Any) -> dict[str, Any]:
    """What makes pandas round numbers correctly: nothing any more from version 3."""
    return {} if int(pd.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}


def read_parquet(stream: Stream, path: Path, wanted: Wanted, progress: Progress | None) -> Any:
    """(X, y, names of the features)."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(_MISSING.format("Parquet", "pyarrow")) from error
    content: Any = io.BytesIO(stream.read()) if _must_hold(stream, path) else os.fspath(path)
    collected = _Collected(stream.name, None)
    try:
        with pq.ParquetFile(content) as file:
            rows = max(1, _ENTRIES // max(1, len(file.schema_arrow.names)))
            for batch in file.iter_batches(batch_size=rows):
                collected.add(_frame(batch), wanted)
                if progress is not None and file.metadata.num_rows:
                    progress(collected.rows, file.metadata.num_rows)
    except (DataFileError, ImportError):
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataFileError(stream.name, f"not a readable Parquet file: {reason}") from None
    return collected.result()


def _frame(batch: Any) -> Any:
    """The columns, without what pandas notes about its own index."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(_MISSING.format("Parquet", "pandas")) from error
    plain = batch.replace_schema_metadata(None)
    names = [name for name in plain.schema.names if not re.fullmatch(r"__index_level_\d+__", name)]
    return pd.DataFrame({name: plain.column(name).to_pandas() for name in names})


def _must_hold(stream: Stream, path: Path) -> bool:
    """Parquet is read from its end: what cannot be turned back must be held in memory."""
    return os.fspath(path) == STANDARD_INPUT or bool(stream.compression)


class _Collected:
    """The frames of one file as arrays."""

    def __init__(self, name: str, path: Path | None) -> None:
        self._name, self._path = name, path
        self._rows: Growing | None = None
        self._labels: list[Array] = []
        self._label: str | None = None
        self._features: list[Any] = []
        self.rows = 0

    def add(self, frame: Any, wanted: Wanted) -> None:
        """The next rows, checked."""
        if self._rows is None:
            self._label = wanted.column([str(column) for column in frame.columns], self._name)
            self._features = [c for c in frame.columns if str(c) != self._label]
            if not self._features:
                raise DataFileError(self._name, "there is no column besides the label", 1)
            self._rows = Growing(np.float64, len(self._features))
        part = np.empty((len(frame), len(self._features)))
        for k, column in enumerate(self._features):
            part[:, k] = self._numbers(frame[column], str(column))
        if self._label is not None:
            self._labels.append(self._checked_label(frame[self._label]))
        self._rows.append(part)
        self.rows += len(frame)

    def _numbers(self, column: Any, title: str) -> Array:
        if column.dtype.kind in "fiub" and isinstance(column.dtype, np.dtype):
            numbers: Array = column.to_numpy(dtype=np.float64)
        else:
            numbers = np.array([_number(entry) for entry in column])
        bad = np.flatnonzero(~np.isfinite(numbers))
        if bad.size:
            entry = column.iloc[int(bad[0])]
            raise self._error(int(bad[0]), f"column {title!r}: {_complaint(entry)}")
        return numbers

    def _checked_label(self, column: Any) -> Array:
        missing = np.flatnonzero(column.isna().to_numpy())
        if missing.size:
            raise self._error(int(missing[0]), f"the label {self._label!r} is missing")
        if column.dtype.kind in "fiub" and isinstance(column.dtype, np.dtype):
            labels: Array = column.to_numpy()
            infinite = np.flatnonzero(~np.isfinite(labels.astype(np.float64)))
            if infinite.size:
                raise self._error(int(infinite[0]), "the label is not a finite number")
            return labels
        return np.array([str(entry) for entry in column])

    def _error(self, row: int, reason: str) -> DataFileError:
        index = self.rows + row
        line = None if self._path is None else _line_of(self._path, index)
        if line is None:
            reason = f"row {index + 1}, {reason}"
        return DataFileError(self._name, reason, line)

    def result(self) -> tuple[Array, Array | None, tuple[str, ...]]:
        """All rows, their labels, the names of the columns."""
        if self._rows is None or not self.rows:
            raise DataFileError(self._name, "there are no rows in it")
        y = _one_type(self._labels) if self._labels else None
        return self._rows.finished(), y, tuple(map(str, self._features))


def _one_type(pieces: list[Array]) -> Array:
    """Labels that are text in one piece and numbers in another are text in all."""
    if len({piece.dtype.kind == "U" for piece in pieces}) > 1:
        pieces = [np.array([str(label) for label in piece.tolist()]) for piece in pieces]
    return np.concatenate(pieces)


def _number(entry: Any) -> float:
    if isinstance(entry, str) and "_" in entry:  # Python's float takes 1_000
        return np.nan
    try:
        return float(entry)
    except (TypeError, ValueError):
        return np.nan


def _complaint(entry: Any) -> str:
    if entry is None or entry != entry or type(entry).__name__ == "NAType":
        return "the value is missing; fill it in or drop the row"
    return f"{str(entry)[:40]!r} is not a finite number; encode text as numbers or drop the column"


def _tokenizing(name: str, message: str) -> DataFileError:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if found:
        expected, line, seen = map(int, found.groups())
        return DataFileError(name, f"{seen} fields where the header has {expected}", line)
    return DataFileError(name, message.split("C error: ")[-1].strip())


def _line_of(path: Path, row: int) -> int | None:
    """The line on which a row of a CSV file begins; None where it cannot be read again."""
    if os.fspath(path) == STANDARD_INPUT:
        return None

    def lines() -> Iterator[str]:
        with opened(path) as stream:
            plain = io.BufferedReader(_Readable(stream, None))
            yield from io.TextIOWrapper(plain, encoding="utf-8", newline="")

    try:
        reader, seen, begin = csv.reader(lines()), -2, 1
        for fields in reader:
            seen += 1 if any(field.strip() for field in fields[:1]) or len(fields) > 1 else 0
            if seen == row:
                return begin
            begin = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError):
        return None
    return None


class _Readable(io.RawIOBase):
    """A `Stream` as a file object that reports its progress."""

    def __init__(self, stream: Stream, progress: Progress | None) -> None:
        self._chunks = stream.chunks(progress, size=1 << 18)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._rest or next(self._chunks, b"")
        size = min(len(piece), len(buffer))
        buffer[:size] = piece[:size]
        self._rest = piece[size:]
        return size
