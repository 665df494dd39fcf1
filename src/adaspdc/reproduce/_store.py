"""Finished runs on disk, found again by everything that their numbers depend on."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .._cache import cache_folder
from .._version import __version__
from ..result import Status
from ._jobs import Job

_NO_MATTER = ("reproduce/", "cli", "commands", "datasets/", "readers/", "_report")
"""Sources that no number of a run depends on."""


@cache
def code_version() -> str:
    """The version of the package and a sum of the sources that a run depends on."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        name = source.relative_to(package).as_posix()
        if not name.startswith(_NO_MATTER) or name.endswith(("_jobs.py", "_materials.py")):
            digest.update(name.encode())
            digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


class Store:
    """A folder with one JSON file per run; by default one in the user's cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else cache_folder() / "runs"

    def path(self, job: Job) -> Path:
        """Where the record of a job is."""
        identity = {"code": code_version(), "job": job.identity()}
        text = json.dumps(identity, sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def read(self, job: Job) -> dict[str, Any] | None:
        """The record of a finished run, or None."""
        try:
            record = json.loads(self.path(job).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def write(self, job: Job, record: dict[str, Any]) -> None:
        """Keep a finished run; one that was interrupted is not finished."""
        if record["status"] == Status.STOPPED:
            return
        path = self.path(job)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(record), encoding="utf-8")
            os.replace(part, path)
        except OSError:  # a full disk costs the next run time, and this one nothing
            with suppress(OSError):
                part.unlink()
