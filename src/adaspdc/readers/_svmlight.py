"""libsvm/svmlight text into labels and a CSR matrix, a megabyte at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import DataFileError
from ._growing import Growing
from ._streams import Progress, Stream

Array = NDArray[Any]

_DEFERRED = 4096
_LONGEST_LINE = 1 << 30


def read_svmlight(stream: Stream, zero_based: bool, progress: Progress | None) -> tuple[Any, Array]:
    """(CSR array, labels) of the whole stream.

    Besides what is returned, one piece of text and its numbers are in memory.
    """
    parser = _Parser(stream.name, base=0 if zero_based else 1)
    for chunk in stream.chunks(progress):
        parser.feed(chunk)
    parser.finish()
    return parser.matrix(), parser.labels()


class _Parser:
    """Collects the rows of successive pieces of text."""

    def __init__(self, name: str, base: int) -> None:
        from .._kernels import svmlight

        self._kernel = svmlight
        self._name, self._base = name, base
        self._rest = b""
        self._lines = 0
        self._n_features = 0
        self._deferred = np.empty((_DEFERRED, 3), dtype=np.int64)
        self._parsed = {
            "labels": Growing(np.float64),
            "lengths": Growing(np.int32),
            "indices": Growing(np.int32),
            "values": Growing(np.float64),
        }

    def feed(self, chunk: bytes) -> None:
        """Parse what is there up to the last line end; keep the rest for later."""
        text = self._rest + chunk if self._rest else chunk
        if b"\0" in chunk:
            at = text.index(b"\0")
            self._lines += text.count(b"\n", 0, at)
            raise self._error("this is a binary file, not libsvm text", text, at)
        if b"\n" not in chunk:  # a line longer than the piece
            if len(text) > _LONGEST_LINE:
                raise self._error("the line is longer than 1 GB", text, 0)
            self._rest = text
            return
        self._rest = text[self._parse(text, final=False) :]

    def finish(self) -> None:
        """Parse the last line, with or without its end."""
        if self._rest:
            self._parse(self._rest, final=True)
        if not self._parsed["labels"].size:
            raise DataFileError(self._name, "there is no data in it")

    def _parse(self, text: bytes, final: bool) -> int:
        """How many bytes of the text were used."""
        kernel, done = self._kernel, 0
        whole = np.frombuffer(text, dtype=np.uint8)
        while True:
            size = len(text) - done
            rows: dict[str, Array] = {
                "labels": np.empty(size // 2 + 1),
                "lengths": np.empty(size // 2 + 1, dtype=np.int32),
                "indices": np.empty(size // 4 + 1, dtype=np.int32),
                "values": np.empty(size // 4 + 1),
            }
            code, at, n, pairs, n_deferred, lines, highest = kernel.parse(
                whole[done:], size, final, self._base, *rows.values(), self._deferred,
                kernel.POWERS, kernel.TENS,
            )  # fmt: skip
            self._settle(text, done, rows, n_deferred)
            for name, array in rows.items():
                self._parsed[name].append(array[: n if name in ("labels", "lengths") else pairs])
            self._n_features = max(self._n_features, highest + 1)
            self._lines += lines
            if code not in (kernel.OK, kernel.MORE, kernel.FULL):
                raise self._error(self._reason(code, text, done + at), text, done + at)
            if code == kernel.FULL and at == 0:
                self._deferred = np.empty((2 * len(self._deferred), 3), dtype=np.int64)
            done += int(at)
            if code != kernel.FULL:
                return done

    def _settle(self, text: bytes, done: int, rows: dict[str, Array], count: int) -> None:
        """Parse with Python what the kernel left out: very long numbers, and what is none."""
        for slot, begin, end in self._deferred[:count].tolist():
            token = text[done + begin : done + end]
            try:
                number = float(token.replace(b"_", b"?"))
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                what = "label" if slot < 0 else "value"
                self._lines += text.count(b"\n", done, done + begin)
                raise self._error(
                    f"the {what} {_shown(token)} is not a finite number", text, done + begin
                )
            rows["labels" if slot < 0 else "values"][~slot if slot < 0 else slot] = number

    def _reason(self, code: int, text: bytes, at: int) -> str:
        kernel, token = self._kernel, _shown(_token(text, at))
        reasons: dict[int, str] = {
            kernel.BAD_LABEL: f"a line begins with its label, a number; got {token}",
            kernel.NO_COLON: f"expected index:value, got {token}",
            kernel.BAD_INDEX: f"expected index:value with a whole number first, got {token}",
            kernel.ZERO_INDEX: f"index 0 in {token}, but indices begin at 1 (say --zero-based, or "
            "zero_based=True, for a file that counts from 0)",
            kernel.NOT_ASCENDING: f"indices must ascend within a line; {token} comes too late",
            kernel.BAD_VALUE: f"expected index:value, but the value is not a number: {token}",
            kernel.HUGE_INDEX: f"the index in {token} is beyond 2147483646",
            kernel.SEVERAL_LABELS: "several labels in one line; one is expected",
        }
        return reasons[code]

    def _error(self, reason: str, text: bytes, at: int) -> DataFileError:
        start = text.rfind(b"\n", 0, at) + 1
        return DataFileError(self._name, reason, self._lines + 1, at - start + 1)

    def labels(self) -> Array:
        """All labels, in the order of the lines."""
        return self._parsed["labels"].finished()

    def matrix(self) -> Any:
        """All pairs as a CSR array."""
        from scipy import sparse

        lengths = self._parsed["lengths"].finished()
        nnz = int(lengths.sum(dtype=np.int64))
        index = np.int32 if nnz <= np.iinfo(np.int32).max else np.int64
        indptr = np.zeros(lengths.size + 1, dtype=index)
        np.cumsum(lengths, out=indptr[1:])
        indices = self._parsed["indices"].finished().astype(index, copy=False)
        values = self._parsed["values"].finished()
        return sparse.csr_array(
            (values, indices, indptr), shape=(lengths.size, max(1, self._n_features))
        )


def _token(text: bytes, at: int) -> bytes:
    begin = max(text.rfind(b" ", 0, at), text.rfind(b"\t", 0, at), text.rfind(b"\n", 0, at)) + 1
    end = at
    while end < len(text) and end < begin + 60 and text[end] not in b" \t\r\n":
        end += 1
    return text[begin:end]


def _shown(token: bytes) -> str:
    """A piece of the file, safe to print and never long."""
    text = token[:40].decode("ascii", "backslashreplace")
    return repr(text + ("..." if len(token) > 40 else ""))
