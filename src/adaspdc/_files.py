"""Files written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` only once everything is written and on disk.

    It is filled under another name in the same folder and then renamed, so that whatever happens
    (a full disk, Ctrl-C, kill -9) ``path`` holds either its old content or all of the new one.
    Devices and pipes, which cannot be replaced, are written directly.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if _is_special(target):
        with target.open("wb") as stream:
            yield stream
        return
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError now where ``written_whole`` would fail after the work is done."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder, not a file", str(path))
    if _is_special(target):
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(2, f"there is no folder '{target.parent}'", str(path))
    with tempfile.TemporaryFile(dir=target.parent):
        pass


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _mode(target: Path) -> int:
    """The permissions of the file replaced, or those that a new file would have."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
