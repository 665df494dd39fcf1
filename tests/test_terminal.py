"""The command as a person drives it, in a real terminal."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adaspdc.model import load

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")

COMMAND = ["-c", "from adaspdc.cli import main; main(prog_name='adaspdc')"]
HARD = ["--method", "spdhg", "--alpha", "1e-9", "--tol", "1e-14", "--max-passes", "1e6"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data on which a fit with ``HARD`` goes on until somebody stops it."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((3000, 60)) * np.logspace(0, -2, 60)).round(4)
    y = np.sign(X @ rng.standard_normal(60) + rng.standard_normal(3000)).astype(int)
    path = tmp_path_factory.mktemp("terminal") / "data.svm"
    with path.open("w") as file:
        for label, row in zip(y.tolist(), X.tolist(), strict=True):
            file.write(f"{label} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1)) + "\n")
    subprocess.run(  # compiles, so that no test waits for it
        [sys.executable, *COMMAND, "fit", str(path), "-o", os.devnull, *HARD[:2]], check=True
    )
    return path


def spawn(*arguments: object, columns: int = 100) -> "pexpect.spawn":
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "CI")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return pexpect.spawn(
        sys.executable,
        [*COMMAND, *map(str, arguments)],
        env={**environment, "TERM": "xterm-256color"},
        dimensions=(30, columns),
        encoding="utf-8",
        timeout=60,
    )


def ended(child: "pexpect.spawn") -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


def test_a_session(data: Path, tmp_path: Path) -> None:
    """Fit, look, predict, evaluate, verify: what a person types, one after the other."""
    model = tmp_path / "model"
    child = spawn("fit", data, "--alpha", "1e-3", "-o", model)
    child.expect("certified: gap")
    child.expect(f"model written to {re.escape(str(model))}")
    assert ended(child) == 0
    for arguments, expected in (
        (["predict", model, data], "prediction"),
        (["evaluate", model, data], "accuracy"),
        (["verify", model, data], "verified"),
    ):
        child = spawn(*arguments)
        child.expect(expected)
        assert ended(child) == 0


def test_progress_shows_gap_and_time_left(data: Path, tmp_path: Path) -> None:
    child = spawn("fit", data, *HARD, "--max-time", "1", "-o", tmp_path / "m")
    child.expect(r"pass \d+, gap \d\.\de-\d+ of \d\.\de-\d+, .* left")
    child.expect("NOT within the tolerance")
    assert ended(child) == 3


def test_ctrl_c_during_a_fit_keeps_the_best_model(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    child = spawn("fit", data, *HARD, "-o", model)
    child.expect(r"pass \d+, gap")
    child.sendintr()
    child.expect(r"NOT within the tolerance \(stopped\)", timeout=10)
    child.expect("model written to")
    assert ended(child) == 130
    assert 0 < load(model).certificate["gap"] < 1
    child = spawn("verify", model, data)
    child.expect("verified")
    assert ended(child) == 0


def test_ctrl_c_during_a_fit_keeps_the_checkpoint(data: Path, tmp_path: Path) -> None:
    arguments = ["fit", data, *HARD, "-o", tmp_path / "m", "--checkpoint", tmp_path / "c"]
    child = spawn(*arguments, "--checkpoint-every", "0.2")
    child.expect(r"pass \d+, gap")
    child.sendintr()
    assert ended(child) == 130
    before = load(tmp_path / "m").certificate
    child = spawn(*arguments, "--max-time", "0.5")
    child.expect("note: going on from")
    assert ended(child) == 3
    after = load(tmp_path / "m").certificate
    assert after["gap"] <= before["gap"]
    assert after["passes"] > before["passes"]


def test_ctrl_c_while_waiting_for_standard_input(tmp_path: Path) -> None:
    child = spawn("fit", "-", "-o", tmp_path / "m")
    child.expect("reading standard input")
    child.sendintr()
    child.expect("Interrupted")
    assert ended(child) == 130
    assert os.listdir(tmp_path) == []


def test_data_typed_at_the_terminal(tmp_path: Path) -> None:
    child = spawn("fit", "-", "-o", tmp_path / "m", "-q")
    for line in ("1 1:1.5", "-1 1:-0.5", "1 1:1", "-1 1:-2"):
        child.sendline(line)
    child.sendeof()
    child.expect("4 rows, 1 features")
    child.expect("certified")
    assert ended(child) == 0


@pytest.mark.parametrize("columns", [60, 120])
def test_nothing_is_left_of_the_bar(data: Path, tmp_path: Path, columns: int) -> None:
    """On a terminal of any width, what remains on the screen is the result."""
    child = spawn("fit", data, *HARD, "--max-time", "1", "-o", tmp_path / "m", columns=columns)
    child.expect(pexpect.EOF)
    child.close()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", child.before).replace("\r\n", "\n")
    last = [line.split("\r")[-1] for line in plain.split("\n")]
    assert sum("model written to" in line for line in last) == 1


def test_quiet_and_pipes_are_silent(
    data: Path, tmp_path: Path, run_isolated: Callable[..., str]
) -> None:
    child = spawn("fit", data, *HARD, "--max-time", "0.5", "-o", tmp_path / "m", "-q")
    child.expect(pexpect.EOF)
    assert "\x1b[" not in child.before
    assert "left" not in child.before
    command = [sys.executable, *COMMAND, "fit", str(data), *HARD, "--max-time", "0.5"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "m")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (3, "")


def test_completion_is_offered() -> None:
    environment = {**os.environ, "_ADASPDC_COMPLETE": "bash_complete", "COMP_WORDS": "adaspdc ",
                   "COMP_CWORD": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, *COMMAND], env=environment, capture_output=True, text=True, timeout=60
    )
    offered = [line.split(",")[1] for line in done.stdout.splitlines()]
    assert {"fit", "predict", "evaluate", "verify", "data"} <= set(offered)
    environment.update(COMP_WORDS="adaspdc fit --loss smooth", COMP_CWORD="3")
    done = subprocess.run(
        [sys.executable, *COMMAND], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "plain,smooth_hinge" in done.stdout.splitlines()
