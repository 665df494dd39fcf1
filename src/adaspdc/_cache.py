"""The folder in which the package keeps what can be had again: code, data, runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where caches go; the folder need not exist. RuntimeError where there is no home directory."""
    chosen = os.environ.get("ADASPDC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adaspdc"
