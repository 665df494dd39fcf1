"""Checkpoints: killed at any instant, a fit goes on and ends at the same bits."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from adaspdc import ERM, _envelope, cli, losses, regularizers
from adaspdc.commands._checkpoint import Checkpoint, run_in_legs
from adaspdc.model import load
from stopwatch import fastest, wall_seconds

COMMAND = [sys.executable, "-c", "from adaspdc.cli import main; main(prog_name='adaspdc')"]
SETTINGS = {"tol": 1e-10, "max_passes": 500.0, "max_seconds": None, "random_state": 0,
            "n_threads": 1, "method": "spdhg"}  # fmt: skip


def problem(seed: int = 0, lam: float = 1e-5) -> ERM:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 40)) * np.logspace(0, -2, 40)
    y = np.sign(X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(300))
    return ERM(X, y, losses.Logistic(), regularizers.L2(lam))


def legs(path: Path, every: float = 0.0, **settings: object) -> object:
    chosen = {**SETTINGS, **settings}
    checkpoint = Checkpoint.of(str(path), every, problem(), chosen)
    return run_in_legs(problem(), chosen, checkpoint, "", quiet=True)


def test_going_on_gives_the_same_bits(tmp_path: Path) -> None:
    whole = legs(tmp_path / "whole")
    assert whole.converged
    for passes in (5, 15, 35):
        path = tmp_path / f"cut-{passes}"
        part = legs(path, max_passes=float(passes))
        assert part.passes == pytest.approx(passes)
        rest = legs(path)
        assert rest.x.tobytes() == whole.x.tobytes()
        assert rest.y.tobytes() == whole.y.tobytes()
        assert rest.history["gap"].tolist() == whole.history["gap"].tolist()
        assert rest.passes == whole.passes


def test_the_gap_never_rises_and_work_adds_up(tmp_path: Path) -> None:
    result = legs(tmp_path / "c")
    assert np.all(np.diff(result.history["gap"]) <= 0)
    assert np.all(np.diff(result.history["passes"]) >= 0)
    assert np.all(np.diff(result.history["seconds"]) >= 0)
    assert result.history["passes"][-1] == result.passes


def test_limits_hold_for_all_legs_together(tmp_path: Path) -> None:
    result = legs(tmp_path / "a", tol=0.0, max_passes=12.0)
    assert (result.status, result.passes) == ("max_passes", pytest.approx(12.0))

    def limited() -> None:
        (tmp_path / "b").unlink(missing_ok=True)
        result = legs(tmp_path / "b", tol=0.0, max_passes=1e9, max_seconds=0.3)
        assert result.status in ("max_seconds", "converged")

    assert fastest(lambda: wall_seconds(limited), 1.5) < 1.5


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    legs(tmp_path / "c", max_passes=5.0)
    for other in (problem(seed=1), problem(lam=1e-4)):
        checkpoint = Checkpoint.of(str(tmp_path / "c"), 0.0, other, SETTINGS)
        with pytest.raises(ValueError, match="other data or other settings"):
            run_in_legs(other, SETTINGS, checkpoint, "", quiet=True)
    with pytest.raises(ValueError, match="other data or other settings"):
        legs(tmp_path / "c", random_state=1)


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    legs(tmp_path / "c", max_passes=5.0)
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content[:-1])
    with pytest.raises(_envelope.EnvelopeError, match="checksum"):
        legs(tmp_path / "c")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((4000, 60)) * np.logspace(0, -2, 60)).round(5)
    y = np.sign(X @ rng.standard_normal(60) + 0.1 * rng.standard_normal(4000)).astype(int)
    lines = [
        f"{label} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, start=1))
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def fit(data: Path, checkpoint: Path, model: Path) -> list[str]:
    """A fit that takes some seconds in many legs."""
    return [*COMMAND, "fit", str(data), "--method", "spdhg", "--alpha", "1e-9", "--tol", "1e-14",
            "--max-passes", "1275", "--checkpoint", str(checkpoint), "--checkpoint-every", "0",
            "-o", str(model)]  # fmt: skip


def killed_after_the_next_checkpoint(
    command: list[str], checkpoint: Path, rng: np.random.Generator
) -> bool:
    """Start a fit and kill it a random moment after it has written; False if it came to its end."""
    before = checkpoint.stat().st_ino if checkpoint.exists() else None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        if checkpoint.exists() and checkpoint.stat().st_ino != before:
            time.sleep(float(rng.uniform(0.0, 0.3)))
            break
        time.sleep(0.002)
    ended = process.poll() is not None
    process.kill()
    process.wait()
    return not ended


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_and_resumed(data: Path, tmp_path: Path) -> None:
    """kill -9 at any instant: the checkpoint loads, and the end is the same bit for bit."""
    whole = subprocess.run(fit(data, tmp_path / "w", tmp_path / "whole"), capture_output=True)
    assert whole.returncode in (0, 3), whole.stderr
    rng = np.random.default_rng(0)
    checkpoint, model = tmp_path / "c", tmp_path / "model"
    kills, resumed, begun = 0, 0, 0
    while resumed < 3:
        killed = killed_after_the_next_checkpoint(fit(data, checkpoint, model), checkpoint, rng)
        _envelope.read(checkpoint, "checkpoint")  # whole, or this raises
        kills, resumed = kills + killed, resumed + killed
        if not killed:  # this process got no time while the fit came to its end: begin anew
            checkpoint.unlink()
            resumed, begun = 0, begun + 1
            assert begun < 10
    done = subprocess.run(fit(data, checkpoint, model), capture_output=True)
    assert done.returncode == whole.returncode, done.stderr
    first, second = load(tmp_path / "whole"), load(model)
    assert first.coef.tobytes() == second.coef.tobytes()
    assert first.dual.tobytes() == second.dual.tobytes()
    left = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert len(left) <= kills


def test_a_certified_fit_removes_its_checkpoint(data: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(data), "-o", str(tmp_path / "m"), "--checkpoint", str(tmp_path / "c")]
    assert CliRunner().invoke(cli.main, arguments).exit_code == 0
    assert not (tmp_path / "c").exists()
    assert load(tmp_path / "m").has_intercept
    unfinished = [*arguments, "--method", "spdhg", "--max-passes", "2", "--tol", "1e-12"]
    assert CliRunner().invoke(cli.main, unfinished).exit_code == 3
    assert (tmp_path / "c").exists()
    again = CliRunner().invoke(cli.main, [*unfinished[:-4], "--tol", "1e-3"])
    assert again.exit_code == 0
    assert "going on from" in again.stderr
