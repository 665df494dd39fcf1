r"""The file format of models and checkpoints: a JSON header and arrays, sealed with a checksum.

====================  ==============================================================================
bytes                 content
====================  ==============================================================================
16                    magic: ``\x93ADASPDC`` + kind (6 letters) + format version + newline
8                     length of the header, little-endian
header                UTF-8 JSON: ``{"meta": {...}, "arrays": [{name, dtype, shape}, ...]}``
padding               zero bytes up to a multiple of 64
arrays                each little-endian, C order, padded with zero bytes to a multiple of 64
32                    SHA-256 of everything before
====================  ==============================================================================

Nothing in it is code, nothing is compressed, and no byte is without meaning: a file in which
anything was changed is refused before its content is looked at.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import written_whole

Array = NDArray[Any]

_MAGIC = b"\x93ADASPDC"
_VERSION = b"1"
_ALIGN = 64
_DIGEST = 32
_HEAD = 24
_DTYPES = ("<f8", "<f4", "<i8")
_LONGEST_HEADER = 100_000_000


class EnvelopeError(ValueError):
    """A file that is not what it should be; the message has the file and the reason."""


def write(
    path: str | os.PathLike[str], kind: str, meta: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """Write a file whole or not at all; the same content gives the same bytes."""
    stored = {name: _storable(array) for name, array in arrays.items()}
    table = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in stored.items()
    ]
    header = json.dumps({"meta": meta, "arrays": table}, allow_nan=False).encode()
    digest = hashlib.sha256()
    with written_whole(path) as stream:
        parts: list[Any] = [_head(kind) + len(header).to_bytes(8, "little") + header]
        for part in [*parts, *(np.ascontiguousarray(array).data for array in stored.values())]:
            size = memoryview(part).nbytes
            for piece in (part, b"\0" * (-size % _ALIGN)):
                digest.update(piece)
                stream.write(piece)
        stream.write(digest.digest())


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """(meta, arrays) of a file that `write` has written; `EnvelopeError` for any other."""
    name = os.fspath(path)
    try:
        if Path(path).is_dir():
            raise EnvelopeError(f"{name}: this is a folder, not a {kind} file")
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise EnvelopeError(f"{name}: there is no such file") from None
    except PermissionError:
        raise EnvelopeError(f"{name}: no permission to read it") from None
    except OSError as error:
        raise EnvelopeError(f"{name}: {error.strerror or error}") from None
    try:
        return _parsed(content, kind)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnvelopeError(f"{name}: {error}") from None


def _head(kind: str) -> bytes:
    return _MAGIC + kind[:6].encode().ljust(6) + _VERSION + b"\n"


def _storable(array: Array) -> Array:
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    if little.dtype.str not in _DTYPES:
        raise ValueError(f"cannot store an array of {array.dtype}")
    return little


def _parsed(content: bytes, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    if not content.startswith(_MAGIC):
        raise ValueError(f"this is not a {kind} file of adaspdc")
    if content[8:14] != _head(kind)[8:14]:
        written = content[8:14].decode("ascii", "replace").strip()
        raise ValueError(f"this is a {written!r} file of adaspdc, not a {kind}")
    if content[: len(_head(kind))] != _head(kind):
        version = content[14:15].decode("ascii", "replace")
        raise ValueError(f"{kind} format version {version!r}; this adaspdc reads version 1")
    seal = len(content) - _DIGEST
    body = memoryview(content)[: max(seal, 0)]
    if seal < _HEAD or hashlib.sha256(body).digest() != content[seal:]:
        raise ValueError("its checksum is wrong: the file is damaged or cut short")
    length = int.from_bytes(content[16:_HEAD], "little")
    if length > min(_LONGEST_HEADER, seal - _HEAD):
        raise ValueError("its header is longer than the file")
    header = json.loads(bytes(body[_HEAD : _HEAD + length]))
    arrays, at = {}, _aligned(_HEAD + length)
    for entry in header["arrays"]:
        array, at = _array(content, entry, at, seal)
        arrays[str(entry["name"])] = array
    if at != seal:
        raise ValueError("its arrays do not fill it")
    return dict(header["meta"]), arrays


def _array(content: bytes, entry: dict[str, Any], at: int, seal: int) -> tuple[Array, int]:
    dtype, shape = entry["dtype"], entry["shape"]
    whole = all(type(size) is int and size >= 0 for size in shape)
    if dtype not in _DTYPES or len(shape) > 2 or not whole:
        raise ValueError("its header describes an impossible array")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if _aligned(at + size) > seal:
        raise ValueError("its arrays are longer than the file")
    array = np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape)
    return array, _aligned(at + size)


def _aligned(at: int) -> int:
    return at + -at % _ALIGN
