"""Fixtures and settings shared by the whole suite."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis
import pytest

# The same examples in every run, and no deadline: the first example pays for compilation.
hypothesis.settings.register_profile("adaspdc", derandomize=True, deadline=None)
hypothesis.settings.load_profile("adaspdc")


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
