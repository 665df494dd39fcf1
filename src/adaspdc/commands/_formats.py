"""Matrices and labels into data files, as `adaspdc.readers` reads them, to the last bit."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..readers import Data

_ROWS = 1024
"""Rows of a sparse matrix that are made dense at a time."""
_MOST_CELLS = 500_000_000
"""Of a table; a sparse matrix can have far more columns than a table can hold."""
_PACKED: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda stream: gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0),
    ".bz2": partial(bz2.open, mode="wb"),
    ".xz": partial(lzma.open, mode="wb"),
}


def write(stream: IO[bytes], target: str, file_format: str, data: Data, label: str) -> None:
    """Write the data; ``target`` tells by its ending how to compress."""
    pack = _PACKED.get(os.path.splitext(target.lower())[1])
    writers = {"libsvm": _libsvm, "csv": _csv, "parquet": _parquet, "npz": _npz}
    with ExitStack() as stack:
        out = stream if pack is None else stack.enter_context(pack(stream))
        writers[file_format](out, data, label)


def check(file_format: str, data: Data, label: str) -> None:
    """Refuse what the format cannot hold before anything is written."""
    n, d = data.X.shape
    if file_format == "libsvm":
        if data.y is None:
            raise ValueError(f"{data.source} has no labels, and a line of libsvm begins with one")
        if data.y.dtype.kind == "U":
            raise ValueError("the labels are text, and libsvm holds numbers; write .csv or .npz")
    if file_format in ("csv", "parquet"):
        if n * (d + 1) > _MOST_CELLS:
            raise ValueError(
                f"a table of {n:,} rows and {d:,} columns would have {n * d:,} cells; write .npz, "
                "or libsvm text, which leave the zeros out"
            )
        if data.y is not None and label in names(data):
            raise ValueError(f"a feature is called {label!r} too; name the labels with --label")


def names(data: Data) -> list[str]:
    """The columns of a table: as they were called, or x1, x2, ..."""
    if data.features is not None:
        return list(data.features)
    return [f"x{j}" for j in range(1, data.X.shape[1] + 1)]


def shown(number: float) -> str:
    """The shortest text that is read back as the same number."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _libsvm(out: IO[bytes], data: Data, _: str) -> None:
    from scipy import sparse

    rows = data.X if hasattr(data.X, "indptr") else sparse.csr_array(data.X)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    ends, places, values = rows.indptr, rows.indices, rows.data
    for i, y in enumerate(data.y.tolist()):
        begin, end = ends[i], ends[i + 1]
        entries = zip(places[begin:end].tolist(), values[begin:end].tolist(), strict=True)
        pairs = "".join(f" {j + 1}:{shown(float(v))}" for j, v in entries if v != 0)
        out.write(f"{shown(float(y))}{pairs}\n".encode())


def _blocks(data: Data) -> Iterator[tuple[Any, Any]]:
    """(features, labels) of some rows at a time, dense."""
    for a in range(0, data.X.shape[0], _ROWS):
        block = data.X[a : a + _ROWS]
        y = None if data.y is None else data.y[a : a + _ROWS]
        yield (block.toarray() if hasattr(block, "toarray") else block), y


def _csv(out: IO[bytes], data: Data, label: str) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names(data), *([] if data.y is None else [label])])
    for block, y in _blocks(data):
        lines = [[shown(float(v)) for v in row] for row in block.tolist()]
        if y is not None:
            for line, value in zip(lines, y.tolist(), strict=True):
                line.append(value if isinstance(value, str) else shown(float(value)))
        writer.writerows(lines)
    text.detach()


def _parquet(out: IO[bytes], data: Data, label: str) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("writing Parquet needs pyarrow: pip install 'adaspdc[tables]'") from error
    with ExitStack() as stack:
        writer = None
        for block, y in _blocks(data):
            columns = dict(zip(names(data), np.ascontiguousarray(block.T), strict=True))
            table = pa.table({**columns, **({} if y is None else {label: y.tolist()})})
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(out, table.schema))
            writer.write_table(table)


def _npz(out: IO[bytes], data: Data, _: str) -> None:
    labels = {} if data.y is None else {"y": data.y}
    if not hasattr(data.X, "indptr"):
        np.savez_compressed(out, X=data.X, **labels)
        return
    rows = data.X
    np.savez_compressed(
        out,
        format=np.array(b"csr"),
        shape=np.array(rows.shape),
        data=rows.data,
        indices=rows.indices,
        indptr=rows.indptr,
        **labels,
    )
