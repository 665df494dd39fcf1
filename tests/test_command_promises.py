"""Promises about files and interruptions, with their figures. Slow."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from adaspdc import ERM, cli, losses, regularizers, solve
from adaspdc.model import Model, ModelFileError, load
from adaspdc.readers import DataFileError, read

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-c", "from adaspdc.cli import main; main(prog_name='adaspdc')"]


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes of the kinds that disks, editors and people make."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(changed))) if changed else 0
        kind = rng.integers(6)
        if kind == 0 and changed:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[at:at] = rng.bytes(int(rng.integers(1, 5)))
        elif kind == 2:
            del changed[at : at + int(rng.integers(1, 20))]
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            end = at + int(rng.integers(1, 40))
            changed[at:at] = changed[at:end]
        else:
            changed[at : at + 1] = rng.choice([b" ", b":", b"-", b",", b"\n", b"#", b"e", b"9"])
    return bytes(changed)


def test_of_10000_mutated_models_none_is_accepted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    problem = ERM(X, np.sign(X[:, 0]), losses.Logistic(), regularizers.L2(0.1))
    Model.of(problem, solve(problem)).save(tmp_path / "model")
    content, path = (tmp_path / "model").read_bytes(), tmp_path / "mutated"
    for _ in range(10_000):
        changed = mutated(content, rng)
        if changed == content:
            continue
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)


@pytest.mark.parametrize(("name", "count"), [("x.svm", 8000), ("x.csv", 2000)])
def test_of_10000_mutated_data_files_none_crashes_and_refusals_name_the_place(
    tmp_path: Path, name: str, count: int
) -> None:
    rng = np.random.default_rng(0)
    if name == "x.svm":
        lines = [f"{i % 2} 1:{i}.5 3:-{i}e-3 7:1" for i in range(30)]
    else:
        lines = ["a,b,label", *(f"{i}.5,-{i}e-3,{i % 2}" for i in range(30))]
    content, path = ("\n".join(lines) + "\n").encode(), tmp_path / name
    refusals = []
    for _ in range(count):
        path.write_bytes(mutated(content, rng))
        try:
            read(path)
        except DataFileError as error:
            refusals.append(error)
    assert len(refusals) > count // 10
    of_the_whole_file = ("no data", "no rows", "not UTF-8", "binary", "EOF inside string")
    for error in refusals:
        placed = error.line is not None and (error.column is not None or name == "x.csv")
        assert placed or any(words in error.reason for words in of_the_whole_file), str(error)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_at_200_random_instants(tmp_path: Path, run_isolated: Callable[..., str]) -> None:
    """Every checkpoint that is left loads; going on from it ends at the same bits."""
    code = f"""
import os, random, signal, sys, time
import numpy as np
from pathlib import Path
from adaspdc import ERM, _envelope, losses, regularizers
from adaspdc.commands._checkpoint import Checkpoint, run_in_legs

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 30)) * np.logspace(0, -2, 30)
y = np.sign(X @ rng.standard_normal(30) + 0.1 * rng.standard_normal(400))
problem = ERM(X, y, losses.Logistic(), regularizers.L2(1e-7))
settings = dict(tol=0.0, max_passes=1275.0, max_seconds=None, random_state=0, n_threads=1,
                method="spdhg")
folder = Path({str(tmp_path)!r})

def fit(path):
    checkpoint = Checkpoint.of(str(path), 0.0, problem, settings)
    return run_in_legs(problem, settings, checkpoint, "", True)

fit(folder / "compile")
seconds = 60.0
for attempt in "123":  # the least is what it takes when other processes keep still
    begun = time.perf_counter()
    whole = fit(folder / attempt)
    seconds = min(seconds, time.perf_counter() - begun)
path, chance, kills, ends, left = folder / "c", random.Random(0), 0, 0, 0
while kills < 200:
    child = os.fork()
    if child == 0:
        fit(path)
        os._exit(0)
    time.sleep(chance.uniform(0.0, 0.5 * seconds))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    kills += os.WIFSIGNALED(status)
    if path.exists():
        _envelope.read(path, "checkpoint")
        left += 1
    if not os.WIFSIGNALED(status):
        result = fit(path)
        assert result.x.tobytes() == whole.x.tobytes()
        assert result.y.tobytes() == whole.y.tobytes()
        path.unlink()
        ends += 1
if path.exists():
    result = fit(path)
    assert result.x.tobytes() == whole.x.tobytes() and result.y.tobytes() == whole.y.tobytes()
    ends += 1
print(kills, ends, left)
"""
    kills, ends, left = map(int, run_isolated(code, timeout=300.0).split())
    assert kills == 200
    assert ends >= 1
    assert left >= 50


def data_file(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).round(3)
    lines = [
        f"{int(row[0] > 0)} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1)) for row in X
    ]
    (folder / "data.svm").write_text("\n".join(lines) + "\n")
    return folder / "data.svm"


def test_without_a_home_or_a_cache_folder(tmp_path: Path) -> None:
    data = data_file(tmp_path)
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    environment["HOME"] = "/dev/null/nowhere"
    done = subprocess.run(
        [*COMMAND, "fit", str(data), "-o", str(tmp_path / "m")],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "m").certificate["status"] == "converged"


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
@pytest.mark.parametrize("limit", [100, 5000])
def test_a_disk_that_fills_up_leaves_no_partial_file(tmp_path: Path, limit: int) -> None:
    """A limit on the size of files stands in for a full disk: the write fails half-way."""
    data, model = data_file(tmp_path), tmp_path / "out" / "model"
    model.parent.mkdir()
    for arguments in (
        ["fit", str(data), "-o", str(model)],
        ["fit", str(data), "-o", str(tmp_path / "m"), "--plot", str(model.with_suffix(".png"))],
        ["fit", str(data), "-o", str(tmp_path / "m"), "--checkpoint", str(model),
         "--checkpoint-every", "0"],
    ):  # fmt: skip
        limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        command = [sys.executable, "-c", limited + COMMAND[2], *arguments]
        environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        if done.returncode == 0:  # it was small enough
            for name in os.listdir(model.parent):
                (model.parent / name).unlink()
            continue
        assert done.returncode == 1, done.stderr
        assert "cannot write" in done.stderr or "File too large" in done.stderr
        assert "Traceback" not in done.stderr
    assert os.listdir(model.parent) == []


def test_time_stamps_as_a_feature_are_solved_or_flagged(tmp_path: Path) -> None:
    """Features far from zero: a certificate that holds, or a status that says otherwise."""
    rng = np.random.default_rng(0)
    stamps = 1.7e12 + 1e6 * rng.standard_normal(200)
    x = rng.standard_normal(200)
    path = tmp_path / "stamps.csv"
    rows = [
        f"{s!r},{v!r},{2.0 * v + 1.0!r}" for s, v in zip(stamps.tolist(), x.tolist(), strict=True)
    ]
    path.write_text("\n".join(["time,x,y", *rows]) + "\n")
    for loss in ("squared", "huber"):
        for flag in ("--intercept", "--no-intercept"):
            arguments = ["fit", str(path), "--loss", loss, flag, "--max-time", "3"]
            result = CliRunner().invoke(cli.main, [*arguments, "-o", str(tmp_path / "m")])
            assert result.exit_code in (0, 3), result.output
            checked = CliRunner().invoke(cli.main, ["verify", str(tmp_path / "m"), str(path)])
            assert (result.exit_code, checked.exit_code) != (0, 4), checked.output
