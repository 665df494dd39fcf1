"""The sub-commands on files: what they print, write and return."""

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from adaspdc import cli
from adaspdc.model import load
from stopwatch import fastest, seconds_of_children

COMMAND = [sys.executable, "-c", "from adaspdc.cli import main; main(prog_name='adaspdc')"]


def invoke(*arguments: Any) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, [str(a) for a in arguments], prog_name="adaspdc")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data of every kind, and models fitted to them."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)).round(4)
    score = X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.5 * rng.standard_normal(200)
    targets = {
        "two": np.where(score > 0, 2, 1),
        "three": np.digitize(score, [-1.0, 1.0]),
        "number": score.round(3),
    }
    for name, y in targets.items():
        lines = [
            f"{label} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, start=1))
            for label, row in zip(y.tolist(), X.tolist(), strict=True)
        ]
        (folder / f"{name}.svm").write_text("\n".join(lines) + "\n")
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.assign(colour=np.where(score > 0, "red", "blue")).to_csv(folder / "t.csv", index=False)
    assert invoke("fit", folder / "two.svm", "--alpha", "1e-3", "-o", folder / "two")[0] == 0
    return folder


def test_the_commands_of_the_readme_work_as_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    status, printed, errors = invoke(
        "fit", "two.svm", "--loss", "logistic", "--alpha", "1e-6", "-o", "model"
    )
    assert (status, errors) == (0, "")
    assert "certified: gap" in printed
    assert invoke("predict", "model", "two.svm", "-o", "predictions.csv")[0] == 0
    predicted = (folder / "predictions.csv").read_text().split()
    assert predicted[0] == "prediction"
    assert set(predicted[1:]) == {"1", "2"}
    status, printed, _ = invoke("evaluate", "model", "two.svm")
    assert status == 0
    assert {"accuracy", "AUC", "log_loss"} <= set(printed.split())
    described = json.loads(invoke("info", "model", "--json")[1])
    assert described["labels"] == [1.0, 2.0]
    assert described["penalty"] == {"lam": 1e-6, "name": "l2"}
    assert invoke("verify", "model", "two.svm")[0] == 0


def test_json_tells_everything(folder: Path, tmp_path: Path) -> None:
    status, printed, _ = invoke("fit", folder / "two.svm", "-o", tmp_path / "m", "--json")
    told = json.loads(printed)
    assert (status, told["schema"], told["command"], told["exit_code"]) == (0, 1, "fit", 0)
    assert told["gap"] <= told["tol"]
    assert told["lam"] == 1 / 200
    scores = json.loads(invoke("evaluate", tmp_path / "m", folder / "two.svm", "--json")[1])
    assert 0.8 < scores["accuracy"] <= 1.0
    assert 0.8 < scores["AUC"] <= 1.0


def test_scores_agree_with_scikit_learn(folder: Path) -> None:
    from sklearn import metrics

    from adaspdc.readers import read

    data, model = read(folder / "two.svm"), load(folder / "two")
    told = json.loads(invoke("evaluate", folder / "two", folder / "two.svm", "--json")[1])
    margins = model.decision_function(data.X)
    assert told["AUC"] == pytest.approx(metrics.roc_auc_score(data.y, margins), abs=1e-12)
    loss = metrics.log_loss(data.y, model.predict_proba(data.X))
    assert told["log_loss"] == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "loss", "expected"),
    [
        ("two", "smooth_hinge", {"accuracy", "AUC"}),
        ("two", "squared-hinge", {"accuracy"}),
        ("three", "multinomial", {"accuracy", "log_loss"}),
        ("three", "smooth_crammer_singer", {"accuracy"}),
        ("number", "squared", {"R2", "MAE"}),
        ("number", "huber", {"R2"}),
        ("number", "smooth_pinball", {"mean_loss"}),
        ("number", "smooth_epsilon_insensitive", {"RMSE"}),
        ("number", "squared-epsilon-insensitive", {"R2", "mean_loss"}),
    ],
)
def test_every_loss(folder: Path, tmp_path: Path, name: str, loss: str, expected: set[str]) -> None:
    data, model = folder / f"{name}.svm", tmp_path / "model"
    assert invoke("fit", data, "--loss", loss, "-o", model)[0] == 0
    assert invoke("verify", model, data)[0] == 0
    assert expected <= set(json.loads(invoke("evaluate", model, data, "--json")[1]))
    assert len(invoke("predict", model, data)[1].splitlines()) == 201


@pytest.mark.parametrize(
    ("options", "penalty"),
    [
        (["--l1-ratio", "0.5"], {"name": "elasticnet", "lam": 0.005, "l1": 0.005}),
        (["--penalty", "nonnegative"], {"name": "nonnegative", "lam": 0.01}),
        (["--low", "-0.5"], {"name": "box", "lam": 0.01, "low": -0.5, "high": np.inf}),
        (["--l1-ratio", "0"], {"name": "l2", "lam": 0.01}),
    ],
)
def test_every_penalty(
    folder: Path, tmp_path: Path, options: list[str], penalty: dict[str, Any]
) -> None:
    data, model = folder / "two.svm", tmp_path / "model"
    assert invoke("fit", data, "--alpha", "0.01", *options, "-o", model)[0] == 0
    assert json.loads(invoke("info", model, "--json")[1])["penalty"] == {
        key: None if value == np.inf else value for key, value in penalty.items()
    }
    assert invoke("verify", model, data)[0] == 0


def test_groups_from_a_file(folder: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.write_text("0\n0\n1\n1\n1\n")
    options = ["--penalty", "group-l2", "--groups", groups, "-o", tmp_path / "model"]
    assert invoke("fit", folder / "two.svm", *options)[0] == 0
    assert invoke("verify", tmp_path / "model", folder / "two.svm")[0] == 0
    groups.write_text("0\nx\n")
    status, _, errors = invoke("fit", folder / "two.svm", *options)
    assert status == 1
    assert f"{groups}, line 2: 'x' is not a whole number" in errors


def test_more_than_two_classes(folder: Path, tmp_path: Path) -> None:
    status, _, errors = invoke("fit", folder / "three.svm", "-o", tmp_path / "m")
    assert status == 0
    assert "3 classes: the logistic loss becomes the multinomial one" in errors
    assert load(tmp_path / "m").labels == (0.0, 1.0, 2.0)
    status, _, errors = invoke(
        "fit", folder / "three.svm", "--loss", "smooth_hinge", "-o", tmp_path / "x"
    )
    assert status == 1
    assert "choose --loss multinomial" in errors
    assert not (tmp_path / "x").exists()


def test_numbers_are_no_classes(folder: Path, tmp_path: Path) -> None:
    status, _, errors = invoke("fit", folder / "number.svm", "-o", tmp_path / "m")
    assert status == 1
    assert "for regression choose e.g. --loss squared" in errors


def test_tables_with_text_labels(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert invoke("fit", folder / "t.csv", "--label", "colour", "-o", model)[0] == 0
    assert invoke("verify", model, folder / "t.csv")[0] == 0
    shuffled = pd.read_csv(folder / "t.csv")[["e", "d", "c", "b", "a"]]
    shuffled.to_csv(tmp_path / "unlabelled.csv", index=False)
    printed = invoke("predict", model, tmp_path / "unlabelled.csv", "--proba", "--scores")[1]
    rows = list(csv.DictReader(printed.splitlines()))
    assert list(rows[0]) == ["prediction", "score", "probability_blue", "probability_red"]
    for row in rows:
        assert (row["prediction"] == "red") == (float(row["score"]) > 0)
        assert float(row["probability_blue"]) + float(row["probability_red"]) == pytest.approx(1)
    told = json.loads(invoke("evaluate", model, folder / "t.csv", "--json")[1])
    agree = np.mean([row["prediction"] for row in rows] == pd.read_csv(folder / "t.csv")["colour"])
    assert told["accuracy"] == agree
    shuffled.drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    status, _, errors = invoke("predict", model, tmp_path / "less.csv")
    assert status == 1
    assert "lacks 1 of the columns that the model was fitted to: c" in errors


def test_features_beyond_the_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "more.svm").write_text("1 1:1 9:5\n2 2:1\n")
    status, printed, errors = invoke("predict", folder / "two", tmp_path / "more.svm", "--scores")
    assert status == 0
    assert "4 features beyond the 5" in errors
    model = load(folder / "two")
    scores = [float(line.split(",")[1]) for line in printed.splitlines()[1:]]
    assert scores == [model.coef[0] + model.intercept[0], model.coef[1] + model.intercept[0]]


def test_gap_above_the_tolerance_writes_the_model(folder: Path, tmp_path: Path) -> None:
    options = ["--tol", "1e-15", "--alpha", "1e-7", "--max-passes", "1", "--method", "spdhg"]
    status, printed, _ = invoke("fit", folder / "two.svm", *options, "-o", tmp_path / "m")
    assert status == 3
    assert "NOT within the tolerance (max_passes)" in printed
    assert invoke("verify", tmp_path / "m", folder / "two.svm")[0] == 0


def test_max_time(folder: Path, tmp_path: Path) -> None:
    options = ["--tol", "0", "--max-passes", "1e9", "--max-time", "0.2", "--json"]
    options += ["--method", "spdhg"]

    def seconds() -> float:
        status, printed, _ = invoke("fit", folder / "two.svm", *options, "-o", tmp_path / "m")
        assert status in (0, 3)  # a gap of exactly zero can be certified
        return float(json.loads(printed)["seconds"])

    assert fastest(seconds, 1.0) < 1.0


def test_a_wrong_certificate_is_told(folder: Path, tmp_path: Path) -> None:
    text = (folder / "two.svm").read_text().splitlines()
    (tmp_path / "other.svm").write_text("\n".join([text[0].replace(":", ":9", 1), *text[1:]]))
    status, printed, _ = invoke("verify", folder / "two", tmp_path / "other.svm")
    assert status == 4
    assert "NOT VERIFIED" in printed
    assert not json.loads(invoke("verify", folder / "two", tmp_path / "other.svm", "--json")[1])[
        "verified"
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["fit"], 2, "Missing argument 'FILE'"),
        (["fit", "two.svm", "--loss", "log"], 2, "'log' is not one of 'logistic'"),
        (["fit", "two.svm", "--alpha", "0"], 2, "not a positive number"),
        (["fit", "two.svm", "--alpha", "nan"], 2, "not a positive number"),
        (["fit", "two.svm", "--alpha", "much"], 2, "'much' is not a number"),
        (["fit", "two.svm", "--l1-ratio", "1"], 2, "must be below 1"),
        (["fit", "two.svm", "--l1-ratio", "0.1", "--penalty", "box"], 2, "belongs to"),
        (["fit", "two.svm", "--penalty", "group_l2"], 2, "needs --groups"),
        (["fit", "two.svm", "--delta", "2"], 1, "logistic has no parameter 'delta'"),
        (["fit", "two.svm", "--method", "magic"], 1, "magic"),
        (["fit", "two.svm", "-o", "no/folder/m"], 1, "no folder"),
        (["fit", "two.svm", "-o", "."], 1, "folder"),
        (["fit", "absent.svm"], 1, "absent.svm: there is no such file"),
        (["fit", "."], 1, "folder"),
        (["fit", "two"], 1, "this is a binary file, not libsvm text"),
        (["predict", "two.svm", "two.svm"], 1, "not a model file"),
        (["predict", "two"], 2, "Missing argument 'FILE'"),
        (["evaluate", "two", "t.csv"], 1, "--label"),
        (["evaluate", "two", "t.csv", "--label", "colour"], 1, "labels are text"),
        (["info", "absent"], 1, "no such file"),
        (["verify", "two", "three.svm"], 1, "label 0.0 is unknown"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (["fti"], 2, "No such command 'fti'. Did you mean 'fit'?"),
    ],
)
def test_mistakes_are_explained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, complaint: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(os.listdir(folder))
    found, printed, errors = invoke(*arguments)
    assert (found, printed) == (status, "")
    assert complaint in errors
    assert sorted(os.listdir(folder)) == before


def test_files_that_are_read_are_not_written_over(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.svm"
    data.write_bytes((folder / "two.svm").read_bytes())
    for arguments in (
        ["fit", data, "-o", data],
        ["fit", data, "-o", tmp_path / "m", "--plot", data],
        ["predict", folder / "two", data, "-o", data],
        ["cv", data, "-o", data],
        ["path", data, "-o", data],
    ):
        status, _, errors = invoke(*arguments)
        assert status == 2
        assert "would be written over" in errors or "must end in" in errors
    assert data.read_bytes() == (folder / "two.svm").read_bytes()


def test_minus_is_standard_output_for_tables_only(folder: Path) -> None:
    assert invoke("predict", folder / "two", folder / "two.svm", "-o", "-")[1].startswith("pred")
    status, _, errors = invoke("fit", folder / "two.svm", "-o", "-")
    assert status == 2
    assert "name a file" in errors


def test_a_mistyped_index_does_not_take_all_memory(tmp_path: Path) -> None:
    (tmp_path / "typo.svm").write_text("1 1:1\n2 2147483600:1\n")
    status, _, errors = invoke("fit", tmp_path / "typo.svm", "-o", tmp_path / "m")
    assert status == 1
    assert "Is an index mistyped?" in errors


def test_default_name_of_the_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("fit", folder / "two.svm")[0] == 0
    assert os.listdir(tmp_path) == ["two.svm.model"]


# --- as processes ---


def test_standard_input_and_nothing_but_results_in_a_pipe(folder: Path, tmp_path: Path) -> None:
    packed = gzip.compress((folder / "two.svm").read_bytes())
    done = subprocess.run(
        [*COMMAND, "fit", "-", "-o", str(tmp_path / "m")],
        input=packed,
        capture_output=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"certified" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs the times of child processes")
def test_help_needs_less_than_300_ms_of_the_processor() -> None:
    assert run("--help").returncode == 0
    assert fastest(lambda: seconds_of_children(lambda: run("--help")), 0.3) < 0.3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk(folder: Path) -> None:
    done = run("fit", folder / "two.svm", "-o", "/dev/full")
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: cannot write /dev/full: No space left on device"
    for arguments in (["info", folder / "two"], ["predict", folder / "two", folder / "two.svm"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*COMMAND, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


def test_reader_of_the_output_that_leaves_early(folder: Path) -> None:
    command = " ".join(
        [f"'{part}'" if " " in part else part for part in map(str, COMMAND[:2])]
        + [f'"{COMMAND[2]}"', "predict", str(folder / "two"), str(folder / "two.svm")]
    )
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1"], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("prediction\n", "")


def test_results_are_the_same_for_every_format(folder: Path, tmp_path: Path) -> None:
    from scipy import sparse

    from adaspdc.readers import read

    data = read(folder / "two.svm")
    sparse.save_npz(tmp_path / "x.npz", data.X)
    np.savez(tmp_path / "d.npz", y=data.y, **np.load(tmp_path / "x.npz"))
    for file in (folder / "two.svm", tmp_path / "d.npz"):
        assert invoke("fit", file, "-o", tmp_path / f"{file.name}.m", "--alpha", "0.1")[0] == 0
    models = [load(tmp_path / name) for name in ("two.svm.m", "d.npz.m")]
    assert models[0].coef.tobytes() == models[1].coef.tobytes()


# --- path, cv, data, precompile, pictures ---


def test_path(folder: Path, tmp_path: Path) -> None:
    arguments = ["path", folder / "two.svm", "--l1-ratio", "0.9", "--n-alphas", "6"]
    status, printed, _ = invoke(*arguments, "--coefficients", "--plot", tmp_path / "p.png")
    assert status == 0
    rows = list(csv.DictReader(printed.splitlines()))
    assert [row["status"] for row in rows] == ["converged"] * 6
    assert int(rows[0]["nonzero"]) == 0
    assert int(rows[-1]["nonzero"]) > 2
    alphas = [float(row["alpha"]) for row in rows]
    assert alphas == sorted(alphas, reverse=True)
    for row in rows:
        coefs = [float(row[f"coef_{j}"]) for j in range(1, 6)]
        assert sum(c != 0 for c in coefs) == int(row["nonzero"])
        assert float(row["gap"]) >= 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(invoke(*arguments, "--json", "-o", tmp_path / "t.csv")[1])["path"]
    written = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["alpha"] for row in told] == [float(row["alpha"]) for row in written] == alphas


def test_path_agrees_with_single_fits(folder: Path, tmp_path: Path) -> None:
    data = folder / "three.svm"
    arguments = ["--alphas", "0.01, 0.5", "--tol", "1e-10", "--json", "-q"]
    rows = json.loads(invoke("path", data, *arguments)[1])["path"]
    assert [row["alpha"] for row in rows] == [0.5, 0.01]
    for row in rows:
        fit = ["fit", data, "--alpha", str(row["alpha"]), "--tol", "1e-10", "--json", "-q"]
        alone = json.loads(invoke(*fit, "-o", tmp_path / "m")[1])
        assert row["objective"] == pytest.approx(alone["primal"], abs=1e-8)


def test_path_above_the_tolerance(folder: Path) -> None:
    options = ["--method", "spdhg", "--max-passes", "1", "--tol", "1e-14", "--alphas", "1e-6"]
    assert invoke("path", folder / "two.svm", *options)[0] == 3


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--alphas", "1,x"], "'x' is not a number"),
        (["--alphas", "1,-1"], "not a positive number"),
        (["--alpha-min", "1e9"], "above the largest"),
    ],
)
def test_wrong_grids(folder: Path, options: list[str], complaint: str) -> None:
    status, _, errors = invoke("path", folder / "two.svm", *options)
    assert status == 2
    assert complaint in errors


def test_cross_validation(folder: Path, tmp_path: Path) -> None:
    arguments = ["cv", folder / "two.svm", "--folds", "4", "--n-alphas", "5", "--seed", "3"]
    told = json.loads(invoke(*arguments, "--json", "-o", tmp_path / "m")[1])
    losses = [row["mean_loss"] for row in told["path"]]
    assert told["best"] == told["path"][int(np.argmin(losses))]
    assert 0.8 < told["best"]["accuracy"] <= 1.0
    assert load(tmp_path / "m").penalty.lam == told["best"]["alpha"]
    again = json.loads(invoke(*arguments, "--json")[1])
    assert again["path"] == told["path"]
    status, printed, _ = invoke(*arguments)
    assert status == 0
    assert sum(line.startswith("* ") for line in printed.splitlines()) == 2


def test_cross_validation_holds_rows_out(folder: Path) -> None:
    """Worked out by hand for one lambda: fit on the others, the mean loss on the fold."""
    from adaspdc import ERM, losses, regularizers, solve
    from adaspdc.commands.cv import _folds
    from adaspdc.readers import read

    options = ["--alphas", "0.1", "--loss", "squared", "--folds", "3", "--tol", "1e-12", "--json"]
    told = json.loads(invoke("cv", folder / "number.svm", *options)[1])
    data, found, seen = read(folder / "number.svm"), [], []
    X = data.X.toarray()
    for train, held in _folds(data.y, losses.Squared(), 3, 0):
        assert not set(train) & set(held)
        seen += held.tolist()
        problem = ERM(X[train], data.y[train], losses.Squared(), regularizers.L2(0.1), None, True)
        result = solve(problem, tol=1e-12)
        error = X[held] @ result.x + result.intercept - data.y[held]
        found.append(np.mean(error**2) / 2)
    assert sorted(seen) == list(range(200))
    assert told["best"]["mean_loss"] == pytest.approx(np.mean(found), rel=1e-6)


def test_cross_validation_needs_every_class_in_every_fold(tmp_path: Path) -> None:
    (tmp_path / "few.svm").write_text("1 1:1\n" * 10 + "2 1:2\n" * 3)
    status, _, errors = invoke("cv", tmp_path / "few.svm")
    assert status == 1
    assert "label 2.0 has 3 rows, fewer than --folds 5" in errors


def test_picture_of_a_fit(folder: Path, tmp_path: Path) -> None:
    data, model = folder / "two.svm", tmp_path / "m"
    for name in ("p.png", "p.svg", "p.pdf"):
        assert invoke("fit", data, "-o", model, "--plot", tmp_path / name)[0] == 0
        assert (tmp_path / name).stat().st_size > 5000
    status, _, errors = invoke("fit", data, "-o", model, "--plot", tmp_path / "p.txt")
    assert status == 2
    assert "must end in .png, .svg or .pdf" in errors


def test_picture_without_matplotlib(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = ["fit", folder / "two.svm", "-o", tmp_path / "m", "--plot", tmp_path / "p.png"]
    status, _, errors = invoke(*arguments)
    assert status == 1
    assert "pip install 'adaspdc[plot]'" in errors
    assert os.listdir(tmp_path) == []


def test_data_sets_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaspdc.datasets import DATASETS

    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))
    monkeypatch.setenv("ADASPDC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "w8a").write_text("")
    rows = json.loads(invoke("data", "list", "--json")[1])["datasets"]
    assert {row["name"]: row["path"] for row in rows} == {
        name: str(tmp_path / "w8a") if name == "w8a" else None for name in DATASETS
    }
    printed = invoke("data", "list")[1]
    assert "adaspdc data fetch rcv1" in printed
    assert invoke("data", "fetch", "w8a")[1] == f"{tmp_path / 'w8a'}\n"
    status, _, errors = invoke("data", "fetch", "nonsense")
    assert status == 1
    assert "data set 'nonsense' is unknown; the sets are: w8a" in errors


def test_data_sets_are_fetched_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a server on this machine, under the name of a data set."""
    import hashlib
    from dataclasses import replace
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    from adaspdc.datasets import DATASETS

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *values: object) -> None:
            pass

    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "w8a").write_text("1 1:1\n")
    digest = hashlib.sha256(b"1 1:1\n").hexdigest()
    monkeypatch.delenv("ADASPDC_DATA", raising=False)
    monkeypatch.setenv("ADASPDC_CACHE_DIR", str(tmp_path / "cache"))
    handler = partial(Quiet, directory=str(tmp_path / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/w8a"
        entry = replace(DATASETS["w8a"], urls=(url,), checksums=(digest,))
        monkeypatch.setitem(DATASETS, "w8a", entry)
        told = json.loads(invoke("data", "fetch", "w8a", "--json")[1])
        monkeypatch.setitem(DATASETS, "w8a", replace(entry, checksums=("0" * 64,)))
        status, _, errors = invoke("data", "fetch", "w8a")
        server.shutdown()
    assert Path(told["path"]).read_text() == "1 1:1\n"
    assert told["sha256"] == digest
    assert status == 1
    assert f"with SHA-256 {digest}, not 000" in errors


def test_files_are_described(folder: Path) -> None:
    told = json.loads(invoke("data", "describe", folder / "three.svm", "--json")[1])
    assert (told["rows"], told["columns"], told["distinct_labels"]) == (200, 5, 3)
    assert sum(told["labels"].values()) == 200
    printed = invoke("data", "describe", folder / "number.svm")[1]
    assert "different ones from" in printed
    printed = invoke("data", "describe", folder / "t.csv", "--label", "colour")[1]
    assert "blue" in printed


def test_help_of_every_command_is_there_and_fits() -> None:
    for name in cli._COMMANDS:
        status, printed, _ = invoke(name, "--help")
        assert status == 0
        assert max(map(len, printed.splitlines())) <= 80, name


def test_precompile() -> None:
    """Into the usual folder, where what other tests have compiled is found again."""
    status, printed, _ = invoke("precompile", "--json")
    told = json.loads(printed)
    assert (status, told["kinds"]) == (0, 21)
    assert len(list(Path(told["folder"]).rglob("*.nbc"))) > 20


def test_precompile_without_a_cache_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "ADASPDC_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(
        [*COMMAND, "precompile"], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 1
    assert "let ADASPDC_CACHE_DIR name one that can" in done.stderr
