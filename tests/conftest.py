"""Fixtures and settings shared by the whole suite."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import hypothesis
import pytest

try:
    import fcntl
except ImportError:  # Windows: tests marked alone may have company there
    fcntl = None  # type: ignore[assignment]

# The same examples in every run, and no deadline: the first example pays for compilation.
hypothesis.settings.register_profile("adaspdc", derandomize=True, deadline=None)
hypothesis.settings.load_profile("adaspdc")

# --- several workers ------------------------------------------------------------------------------
#
# `make test` runs the suite in worker processes. A test marked alone waits until the tests of the
# other workers are over, and theirs wait for it.


_LOCKS = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each worker where the locks are."""
    config = node.config
    if _LOCKS not in config.stash:
        config.stash[_LOCKS] = tempfile.mkdtemp(prefix="adaspdc-tests-")
        config.add_cleanup(lambda: shutil.rmtree(config.stash[_LOCKS], ignore_errors=True))
    node.workerinput["locks"] = config.stash[_LOCKS]


def _lock(config: pytest.Config, name: str, shared: bool = False) -> AbstractContextManager[None]:
    """A lock among the workers; nothing where there are none."""
    folder = getattr(config, "workerinput", {}).get("locks")
    return nullcontext() if folder is None or fcntl is None else _locked(folder, name, shared)


@contextmanager
def _locked(folder: str, name: str, shared: bool) -> Iterator[None]:
    with open(os.path.join(folder, name), "w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hold a share of the room, or all of it. The door keeps others out while one waits for all."""
    alone = item.get_closest_marker("alone") is not None
    with ExitStack() as held:
        with _lock(item.config, "door"):
            held.enter_context(_lock(item.config, "room", shared=not alone))
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Let one worker at a time touch numba's cache.

    numba takes a file name that is free in its index, enters it there and then writes the file: of
    two processes that do so at once, one may find the other's code under its own entry.
    """
    if not hasattr(config, "workerinput"):
        return
    from numba.core.caching import IndexDataCacheFile

    for name, shared in (("load", True), ("save", False)):
        original = getattr(IndexDataCacheFile, name)

        @functools.wraps(original)
        def in_turn(*args: Any, original: Any = original, shared: bool = shared) -> Any:
            with _lock(config, "cache", shared):
                return original(*args)

        setattr(IndexDataCacheFile, name, in_turn)


# --- fixtures -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Return the path of a real data set by file name, or skip the test where it is absent."""

    def find(name: str) -> Path:
        folder = os.environ.get("ADASPDC_DATA")
        if not folder:
            pytest.skip(f"needs the data set {name}: ADASPDC_DATA names no folder")
        path = Path(folder) / name
        if not path.is_file():
            pytest.skip(f"needs the data set {name}: not in ADASPDC_DATA={folder}")
        return path

    return find


@pytest.fixture(scope="session")
def run_isolated() -> Callable[..., str]:
    """Run a snippet in a fresh interpreter and return what it prints; fail if it fails.

    ``env`` is laid over the present environment; a value of None removes the variable.
    """

    def run(code: str, env: Mapping[str, str | None] | None = None, timeout: float = 120.0) -> str:
        merged = {**os.environ, **(env or {})}
        completed = subprocess.run(
            [sys.executable, "-c", code],
            env={name: value for name, value in merged.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if completed.returncode != 0:
            pytest.fail(
                f"the interpreter ended with status {completed.returncode}\n"
                f"{completed.stdout}{completed.stderr}"
            )
        return completed.stdout

    return run
