"""How kernels are compiled and where the compiled code is kept.

numba's own cache knows the file a function stands in, not the files of the functions it calls, so
an edited helper would silently go on running its old machine code inside a cached caller. The cache
folder therefore carries a hash of every kernel source: any edit starts a fresh folder.
"""

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from .._cache import cache_folder

REASSOCIATE = {"reassoc", "contract"}
"""Lets a sum be vectorised. Unlike full fastmath it keeps inf and nan meaningful."""


def _source_hash() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for source in [*sorted(package.glob("*.py")), package.parent / "_codes.py"]:
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    shared = os.environ.get("NUMBA_CACHE_DIR")
    if shared and not os.environ.get("ADASPDC_CACHE_DIR"):
        return Path(shared)
    return cache_folder()


def _writable_cache() -> Path | None:
    """The folder for this version of the kernels, or None where nothing can be written."""
    try:
        folder = _cache_root() / f"kernels-{_source_hash()}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return None


CACHE_DIR = _writable_cache()


def jit(function: Callable[..., Any] | None = None, *, fastmath: Any = False) -> Any:
    """A kernel that Python calls: no GIL, IEEE division, kept on disk."""

    def decorate(target: Callable[..., Any]) -> Any:
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        if CACHE_DIR is None:
            return numba.njit(**options)(target)
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(CACHE_DIR)  # read when the dispatcher sets its cache up
        try:
            return numba.njit(cache=True, **options)(target)
        finally:
            numba.config.CACHE_DIR = previous

    return decorate if function is None else decorate(function)


def helper(
    function: Callable[..., Any] | None = None, *, fastmath: Any = False, inline: bool = False
) -> Any:
    """A function that kernels call: its code is stored with theirs, so it needs no file of its own.

    ``inline`` leaves the compiler no choice. An array is passed as seven numbers, so a call with
    some arrays costs as much as the work on a short row.
    """

    def decorate(target: Callable[..., Any]) -> Any:
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        return numba.njit(forceinline=inline, **options)(target)

    return decorate if function is None else decorate(function)


@functools.cache
def uncached(kernel: Any) -> Any:
    """The same kernel compiled for this process only.

    For kernels that take a user's function: the disk key would hold its memory address, so every
    session would add a file that none can ever find again.
    """
    return helper(kernel.py_func)
