"""The benchmark runs and reports every promise; what it measures is not judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "benchmarks" / "run.py"


def _run(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "ADASPDC_DATA"}
    done = subprocess.run(
        [sys.executable, str(RUN), "--quick", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_quick_run_prints_and_writes_every_part(tmp_path):
    out = tmp_path / "results.json"
    printed = _run("--out", str(out))
    results = json.loads(out.read_text())

    assert set(results["parts"]) == {"passes", "setup", "memory", "startup", "threads"}
    assert all(results["parts"].values())
    assert {"cpu", "cores", "commit", "numpy", "numba"} <= set(results["header"])
    assert "w8a stand-in" in printed, "generated data must be labelled as such"
    promises = {verdict["promise"] for verdict in results["verdicts"]}
    assert promises == {"one pass", "setup", "peak memory", "no copy", "start"}
    assert f"of {len(results['verdicts'])} promises met" in printed


def test_one_part_alone_and_results_of_threads_agree(tmp_path):
    out = tmp_path / "results.json"
    _run("--only", "threads", "--out", str(out))
    results = json.loads(out.read_text())

    assert list(results["parts"]) == ["threads"]
    assert all(row["same"] == "yes" for row in results["parts"]["threads"])
