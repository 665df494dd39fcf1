"""What the numbers were measured on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import adaspdc

ROOT = Path(__file__).parent.parent


def describe(quick: bool) -> dict[str, Any]:
    """The machine, the versions and the commit."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "mode": "quick" if quick else "full",
        "cpu": _cpu(),
        "cores": _cores(),
        "load": _load(),
        "python": platform.python_version(),
        "adaspdc": adaspdc.__version__,
        **{name: _version(name) for name in ("numpy", "scipy", "numba")},
        "blas": _blas(),
        "commit": _commit(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load() -> float | None:
    """Other work on the cores just before the run."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    import numpy as np
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return ", ".join(
        f"{pool['internal_api']} {pool['version']} ({pool['num_threads']} thread)" for pool in pools
    )


def _commit() -> str:
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return "none"
    return head + (" with changes" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
