"""What ``import adaspdc`` costs, and what it must leave alone."""

from collections.abc import Callable
from pathlib import Path

from stopwatch import fastest, seconds_of_children

HEAVY = ("numba", "sklearn", "pandas", "matplotlib", "scipy.stats")
IMPORT_SECONDS = 0.3


def test_import_leaves_heavy_packages_alone(run_isolated: Callable[..., str]) -> None:
    loaded = run_isolated("import sys, adaspdc; print(*sys.modules)").split()
    assert "adaspdc" in loaded
    assert not set(HEAVY) & set(loaded)


def test_import_is_fast(run_isolated: Callable[..., str]) -> None:
    def seconds(code: str) -> float:
        return seconds_of_children(lambda: run_isolated(code))

    run_isolated("import adaspdc")  # writes the byte code
    interpreter = min(seconds("pass") for _ in range(3))
    limit = interpreter + IMPORT_SECONDS
    assert fastest(lambda: seconds("import adaspdc"), limit) < limit


def test_no_cache_directory_is_no_error(run_isolated: Callable[..., str], tmp_path: Path) -> None:
    occupied = tmp_path / "a-file-where-the-folder-should-be"
    occupied.touch()
    code = """
from adaspdc._kernels._jit import CACHE_DIR, jit

@jit
def increment(value):
    return value + 1

print(CACHE_DIR, increment(1))
"""
    assert run_isolated(code, {"ADASPDC_CACHE_DIR": str(occupied)}).split() == ["None", "2"]
    assert occupied.is_file()
