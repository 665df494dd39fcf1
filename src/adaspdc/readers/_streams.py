"""Bytes of a file or of standard input, decompressed on the way."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ._errors import DataFileError

STANDARD_INPUT = "-"
_CHUNK = 1 << 20

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the size of the file (0 where it is not known)."""

_OPENERS: dict[bytes, tuple[str, Callable[..., Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
}
"""How compressed files begin. The name of a file is not asked: it may be anything."""

_REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "this is a folder, not a file",
    PermissionError: "no permission to read it",
}


def display_name(path: str | os.PathLike[str]) -> str:
    """How messages call the file."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Stream]:
    """The file as a `Stream`; whatever the system or a decompressor objects to, in one error."""
    name = display_name(path)
    try:
        with _raw(path) as raw:
            yield Stream(raw, name)
    except OSError as error:
        raise _explained(error, name) from None


def _raw(path: str | os.PathLike[str]) -> IO[bytes]:
    if os.fspath(path) == STANDARD_INPUT:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    if Path(path).is_dir():
        raise IsADirectoryError
    return open(path, "rb")  # the caller closes it


def _explained(error: OSError, name: str) -> DataFileError:
    reason = _REASONS.get(type(error)) or error.strerror or str(error)
    return DataFileError(name, reason)


class Stream:
    """Decompressed content, with the progress through the file as it lies on disk."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        self.name = name
        buffered = io.BufferedReader(raw, 1 << 16) if isinstance(raw, io.RawIOBase) else raw
        self._raw = raw
        head = buffered.peek(8)[:8]  # type: ignore[attr-defined]
        self.compression, content = "", buffered
        for magic, (kind, opener) in _OPENERS.items():
            if head.startswith(magic):
                self.compression, content = kind, opener(buffered, "rb")
        self._content: IO[bytes] = content
        self._read = content.read
        if not self.compression and raw.isatty():  # one Ctrl-D is enough
            self._read = content.read1  # type: ignore[attr-defined]
        self._size = _size(raw)

    def read(self, size: int = -1) -> bytes:
        """As a file's; a damaged archive is a `DataFileError`."""
        try:
            return self._read(size)
        except EOFError:
            raise DataFileError(
                self.name, f"the {self.compression} archive is cut short; fetch or copy it again"
            ) from None
        except (lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise DataFileError(
                self.name, f"the {self.compression} archive is damaged: {error}"
            ) from None
        except OSError as error:
            if self.compression and error.errno is None:
                raise DataFileError(
                    self.name, f"the {self.compression} archive is damaged: {error}"
                ) from None
            raise

    def chunks(self, progress: Progress | None = None, size: int = _CHUNK) -> Iterator[bytes]:
        """The content in pieces; decompressors give less than they are asked for."""
        while piece := self.read(size):
            if progress is not None:
                progress(self._position(), self._size)
            yield piece

    def _position(self) -> int:
        try:
            return self._raw.tell()
        except OSError:
            return 0


def _size(raw: IO[bytes]) -> int:
    try:
        return os.fstat(raw.fileno()).st_size
    except OSError:
        return 0
