"""``adaspdc reproduce``: the numbers, the verdicts, the page, and what happens in between."""

import csv
import json
import re
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from click.testing import CliRunner

from adaspdc import ERM, ConvergenceWarning, Method, cli, losses, regularizers, solve
from adaspdc.datasets import DATASETS
from adaspdc.reproduce import _pool
from adaspdc.reproduce._balance import balanced_run
from adaspdc.reproduce._compare import compare
from adaspdc.reproduce._curves import Curve, Optimum, check_grid, curve, optimum
from adaspdc.reproduce._dynamics import iteration_maps, lyapunov, mean_square_radius
from adaspdc.reproduce._jobs import Job, Task, certified, perform
from adaspdc.reproduce._lines import LINE, LINES
from adaspdc.reproduce._materials import design, matrix, paper_material, ridge_material
from adaspdc.reproduce._page import html, markdown, read_reports
from adaspdc.reproduce._pool import run_jobs
from adaspdc.reproduce._report import Claim, Report, scientific, short, times
from adaspdc.reproduce._run import reproduce
from adaspdc.reproduce._settings import DEFAULT, FULL, PARTS, QUICK
from adaspdc.reproduce._store import Store
from adaspdc.sampling import Replay

TINY = replace(
    QUICK,
    name="quick",
    ridge_size=40,
    ridge_passes=12,
    passes=4,
    optimum_passes=40,
    rows=100,
    url_rows=30,
    seeds=3,
    map_points=5,
    table_rows=500,
    batches=(1, 2),
    batch_passes=10,
)
RIDGE = Task(ridge_material(TINY), "squared", 1e-3)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs are kept in a folder of the test; there are no data sets on this machine."""
    for module in ("_store", "_materials"):
        monkeypatch.setattr(f"adaspdc.reproduce.{module}.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("adaspdc.reproduce._materials.locate", lambda name: None)
    return tmp_path / "cache" / "runs"


def record(values: list[float], **others: Any) -> dict[str, Any]:
    """What a run with these objectives after 0, 1, 2 ... passes would leave."""
    return {
        "status": "max_passes",
        "primal": min(values),
        "dual": 0.0,
        "tolerance": 1e-14 * values[0],
        "objective": values,
        "passes": [float(k) for k in range(len(values))],
        "run_passes": float(len(values) - 1),
        **others,
    }


# --- numbers ---

GOLDEN = {  # suboptimality after 12 passes: n = d = 40, lambda 1e-3, mean of two seeds
    "adaspdc": 0.0402498977,
    "spdc": 0.2258528998,
    "spdc-nonuniform": 0.1282593808,
    "sdca": 0.2629476283,
    "sag": 0.165859511,
    "pdhg": 0.1994448021,
}


def test_golden_numbers_of_a_small_ridge_problem() -> None:
    panel = compare([RIDGE], TINY, 12.0, lambda jobs: run_jobs(jobs, Store(), 1, ""))[RIDGE]
    X, b = matrix(RIDGE.material)
    x = np.linalg.solve(X.T @ X / 40 + 1e-3 * np.eye(40), X.T @ b / 40)
    exact = np.mean((X @ x - b) ** 2) / 2 + 1e-3 / 2 * x @ x
    assert panel.optimum.value == pytest.approx(exact, rel=1e-11)
    assert panel.optimum.relative < 1e-10
    assert panel.optimum.scale == pytest.approx(np.mean(b**2) / 2)
    found = {key: line.last for key, line in panel.curves.items() if key in GOLDEN}
    assert found == pytest.approx(GOLDEN, rel=1e-6)
    for line in panel.curves.values():
        assert (line.low <= line.mean * (1 + 1e-12)).all()
        assert (line.mean <= line.high * (1 + 1e-12)).all()
    assert panel.curves["sag"].step == min(panel.scan, key=lambda step: panel.scan[step])


def test_a_curve_is_the_mean_and_the_extremes_of_its_runs() -> None:
    best = Optimum(value=1.0, gap=1e-12, scale=1.0, passes=9.0)
    line = curve("sdca", [record([2.0, 1.5, 1.1]), record([2.0, 1.1, 1.3])], best, 2.0)
    np.testing.assert_allclose(line.mean, [1.0, 0.3, 0.2])
    np.testing.assert_allclose(line.low, [1.0, 0.1, 0.1])
    np.testing.assert_allclose(line.high, [1.0, 0.5, 0.3])
    assert (line.runs, line.last) == (2, pytest.approx(0.2))


def test_a_run_that_converged_stays_where_it_ended() -> None:
    best = Optimum(value=1.0, gap=1e-3, scale=1.0, passes=9.0)
    ended = record([2.0, 1.01], status="converged", primal=1.0)
    np.testing.assert_allclose(curve("sdca", [ended], best, 3.0).mean, [1.0, 0.01, 1e-3, 1e-3])


def test_before_its_first_check_a_run_comes_from_zero() -> None:
    best = Optimum(value=1.0, gap=1e-3, scale=2.0, passes=9.0)
    late = record([1.01], passes=[2.0], run_passes=2.0)
    np.testing.assert_allclose(curve("auto", [late], best, 2.0).mean, [1.0, 0.1, 0.01])


def test_a_run_that_diverged_is_infinitely_far_off() -> None:
    best = Optimum(value=0.0, gap=1e-12, scale=1.0, passes=9.0)
    line = curve("adaspdc", [record([1.0, float("inf"), float("nan")])], best, 2.0)
    assert line.mean[0] == pytest.approx(1.0)
    assert (line.mean[1:] > 1e299).all()


def test_passes_to_a_level_lie_between_checks() -> None:
    passes, mean = np.array([0.0, 2.0, 4.0]), np.array([1.0, 1e-2, 1e-4])
    line = Curve("spdc", None, passes, mean, mean, mean, 1)
    assert line.passes_to(1e-3) == pytest.approx(3.0)
    assert line.passes_to(2.0) == 0.0
    assert line.passes_to(1e-5) == float("inf")
    assert line.at(1.0) == pytest.approx(0.1)


def test_the_optimum_is_bracketed_by_the_best_of_all_runs() -> None:
    others = [record([4.0, 1.75]), record([float("nan")]), record([4.0], dual=1.625)]
    best = optimum(record([4.0, 2.0], dual=1.5), others)
    found = (best.value, best.gap, best.scale, best.relative)
    assert found == pytest.approx((1.75, 0.125, 4.0, 0.03125))


def test_the_grid_is_that_of_the_solver() -> None:
    done = perform(Job(RIDGE, "spdc", 40.0))
    np.testing.assert_allclose(done["passes"], check_grid(40.0))


@pytest.mark.parametrize(
    ("number", "text"), [(1e-5, "1e-5"), (0.001, "1e-3"), (2.5e7, "2.5e7"), (1.0, "1e0")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


def test_ratios_read_well() -> None:
    assert [times(x) for x in (1.52, 180.4, 12345.0, 4e-5)] == ["1.5", "180", "1.2e4", "4.0e-5"]
    assert times(np.inf) == "inf"
    assert [scientific(x) for x in (1.23e-5, 0.0, np.inf)] == ["1.2e-5", "0", "inf"]


# --- data ---


@pytest.mark.parametrize("name", ["rcv1", "url", "quantum"])
def test_a_stand_in_says_so_and_has_the_shape_and_density(name: str) -> None:
    material = paper_material(name, replace(TINY, rows=3000, url_rows=3000))
    assert material.stand_in
    assert material.title.startswith(f"STAND-IN for {name}")
    assert "not on this machine" in material.why
    X, y = matrix(replace(material, scaled=False))
    assert X.shape == (3000, material.columns)
    assert X.nnz / (3000 * material.columns) == pytest.approx(material.density, rel=1e-3)
    assert set(y) == {-1.0, 1.0}
    again, _ = matrix(replace(material, scaled=False))
    assert (again != X).nnz == 0


def test_a_file_is_no_stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "w8a"
    path.write_text("+1 3:1 7:1\n-1 \n-1 300:1\n", encoding="ascii")
    small = replace(DATASETS["w8a"], rows=3, entries=None)
    monkeypatch.setitem(DATASETS, "w8a", small)
    monkeypatch.setattr("adaspdc.reproduce._materials.locate", lambda name: path)
    material = paper_material("w8a", replace(TINY, rows=3))
    assert not material.stand_in
    assert material.title == "w8a"
    X, y = design(material)
    expected = [[1, 1, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1]]  # last: the bias
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, [1.0, -1.0, -1.0])
    sample = paper_material("w8a", replace(TINY, rows=2))
    assert sample.title == "w8a, random 2 of 3 rows"
    for _ in range(2):  # from the file, then from the cache
        design.cache_clear()
        assert design(sample)[0].shape[0] == design(sample)[1].size == 2


def test_columns_are_scaled_where_the_settings_say_so() -> None:
    X, _ = matrix(paper_material("quantum", replace(TINY, rows=500)))
    np.testing.assert_allclose(np.asarray(X.multiply(X).mean(axis=0)).ravel(), 1.0)


def test_downloads_only_when_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []
    path = tmp_path / "file"
    path.touch()

    def fetch(name: str) -> Path:
        asked.append(name)
        return path

    monkeypatch.setattr("adaspdc.reproduce._materials.fetch", fetch)
    for settings in (QUICK, DEFAULT):
        for name in ("rcv1", "url"):
            paper_material(name, settings)
    assert asked == ["rcv1"]


# --- runs are kept ---


def jobs(count: int) -> list[Job]:
    return [Job(RIDGE, "spdc", 2.0, seed) for seed in range(count)]


def test_an_interrupted_series_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def stopping(job: Job) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.seed)
        return perform(job)

    monkeypatch.setattr(_pool, "perform", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs(5), Store(), 1, "")
    done.clear()
    monkeypatch.setattr(_pool, "perform", lambda job: done.append(job.seed) or perform(job))
    records = run_jobs(jobs(5), Store(), 1, "")
    assert done == [2, 3, 4]
    assert {job.seed: records[job] for job in jobs(5)} == {
        job.seed: json.loads(json.dumps(perform(job)))
        | {"seconds": records[job]["seconds"]}
        | {"run_seconds": records[job]["run_seconds"]}
        for job in jobs(5)
    }


def test_an_unfinished_run_is_not_kept(cache: Path) -> None:
    store, job = Store(), jobs(1)[0]
    store.write(job, record([1.0], status="stopped"))
    assert store.read(job) is None
    store.write(job, record([1.0]))
    assert store.read(job) == record([1.0])


def test_what_is_kept_depends_on_every_setting() -> None:
    job, store = jobs(1)[0], Store()
    others = [
        replace(job, seed=1),
        replace(job, passes=3.0),
        replace(job, method="sag", step=0.5),
        replace(job, task=replace(RIDGE, lam=1e-4)),
        replace(job, task=replace(RIDGE, loss="hinge")),
        replace(job, task=replace(RIDGE, material=replace(RIDGE.material, rows=41))),
        replace(job, task=replace(RIDGE, material=replace(RIDGE.material, checksum="0"))),
    ]
    assert len({store.path(other) for other in [job, *others]}) == 8
    moved = replace(job, task=replace(RIDGE, material=replace(RIDGE.material, path="/elsewhere")))
    assert store.path(moved) == store.path(job)


def test_a_damaged_record_is_made_again(cache: Path) -> None:
    store, job = Store(), jobs(1)[0]
    store.write(job, record([1.0]))
    store.path(job).write_text("{", encoding="utf-8")
    assert store.read(job) is None


def test_a_store_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.touch()
    store = Store(occupied)
    store.write(jobs(1)[0], record([1.0]))
    assert store.read(jobs(1)[0]) is None


def test_processes_do_not_change_the_numbers(tmp_path: Path) -> None:
    alone = run_jobs(jobs(3), Store(tmp_path / "a"), 1, "")
    together = run_jobs(jobs(3), Store(tmp_path / "b"), 2, "")
    for job in jobs(3):
        assert together[job]["objective"] == alone[job]["objective"]


# --- looks and pages ---


def test_every_method_looks_the_same_everywhere_and_like_no_other() -> None:
    for feature in ("colour", "marker", "label", "dashes"):
        looks = {str(getattr(line, feature)) for line in LINES}
        assert len(looks) == len(LINES) or feature == "dashes", feature
    assert LINE["adaspdc"].method == "adaspdc"


def test_pages_escape_what_they_quote() -> None:
    claim = Claim("a < b | c", "1 & 2", False)
    report = Report("ridge", "R <1>", {"name": "quick"}, claims=[claim])
    assert "| a < b \\| c | 1 & 2 | **does not hold** |" in markdown([report])
    page = html([report])
    assert "a &lt; b | c" in page
    assert '<td class="verdict no">does not hold</td>' in page
    assert "quick run" in page
    assert "quick run" not in html([replace(report, settings={"name": "default"})])


# --- where Algorithm 1 is stable ---


def test_the_counterexample_is_that_of_the_mathematics_page() -> None:
    rows = np.array([1.0, 0.1])
    maps = {rule: iteration_maps(rows, 1e-4, rule) for rule in ("adaspdc", "spdc")}
    assert mean_square_radius(maps["adaspdc"]) == pytest.approx(1.264, abs=5e-4)
    assert mean_square_radius(maps["spdc"]) == pytest.approx(0.993, abs=5e-4)
    assert lyapunov(maps["adaspdc"]) == pytest.approx(0.087, abs=3e-3)
    assert lyapunov(maps["spdc"], 2000) < 0.0


def test_the_maps_are_what_the_solver_does() -> None:
    rows, targets = np.array([1.0, 0.1]), np.array([1.0, -1.0])
    best = (rows @ targets / 2) / (rows @ rows / 2 + 1e-4)
    seen: list[float] = []
    problem = ERM(rows[:, None], targets, losses.Squared(), regularizers.L2(1e-4))
    order = Replay([[0], [1], [1], [0], [1], [0], [0], [1]], n=2)
    with pytest.warns(ConvergenceWarning):
        solve(
            problem,
            Method("adaspdc", sampling=order, watch=False),
            max_passes=4,
            check_every=0.5,
            callback=lambda progress: seen.append(float(progress.x[0])),
        )
    state = np.concatenate([[-best, -best], -(rows * best - targets)])
    expected = [state[0]]
    maps = iteration_maps(rows, 1e-4)
    for i in (0, 1, 1, 0, 1, 0, 0, 1):
        state = maps[i] @ state
        expected.append(state[0])
    np.testing.assert_allclose(np.array(seen) - best, expected[: len(seen)], rtol=1e-9)
    assert len(seen) >= 8


def test_a_fixed_balance_is_the_method_itself() -> None:
    run = balanced_run(RIDGE, 8, tuned=False, seed=0)
    assert (run.omega == 1.0).all()
    alone = perform(Job(RIDGE, "adaspdc", 8.0))
    assert run.objective[0] == pytest.approx(alone["objective"][0])
    assert run.objective[-1] < 0.5 * run.objective[0]
    tuned = balanced_run(RIDGE, 8, tuned=True, seed=0)
    assert tuned.objective[:2] == pytest.approx(run.objective[:2])
    assert (tuned.omega[2:] != 1.0).all()


def test_an_optimum_that_is_missed_is_pursued() -> None:
    hasty = replace(certified(RIDGE, 3.0), method="spdc")
    done = perform(hasty)
    assert done["events"][0].startswith("continued by SPDHG from a gap of")
    assert done["run_passes"] == pytest.approx(6.0, abs=0.2)
    assert done["gap"] < perform(replace(hasty, persist=False))["gap"]


# --- the command ---


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, ["reproduce", *arguments], prog_name="adaspdc")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_help_loads_nothing_heavy(run_isolated: Callable[..., str]) -> None:
    code = """
import sys
from adaspdc.cli import main
main(["reproduce", "--help"], standalone_mode=False)
print("LOADED", *sys.modules)
"""
    loaded = run_isolated(code).split("LOADED")[1].split()
    assert not {"numba", "matplotlib", "rich", "sklearn", "pooch", "csv"} & set(loaded)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tables"], "'tables' is not one of"),
        ([], "Missing argument"),
        (["ridge", "--quick", "--full"], "exclude each other"),
        (["ridge", "--processes", "0"], "0 is not in the range"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], complaint: str) -> None:
    status, text = invoke(*arguments)
    assert status == 2
    assert complaint in text


def test_missing_matplotlib_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaspdc.reproduce._command.find_spec", lambda name: None)
    assert invoke("ridge") == (
        1,
        "Error: the figures need matplotlib: pip install 'adaspdc[reproduce]'\n",
    )


def test_ctrl_c_says_that_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(job: Job) -> dict[str, Any]:
        return record([1.0], status="stopped")

    monkeypatch.setattr(_pool, "perform", interrupted)
    status, text = invoke("ridge", "--quick", "--out", str(tmp_path / "out"), "--processes", "1")
    assert status == 130
    assert "the same command goes on" in text


def test_a_process_that_died_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def killed(job: Job) -> dict[str, Any]:
        raise BrokenProcessPool

    monkeypatch.setattr(_pool, "perform", killed)
    status, text = invoke("ridge", "--quick", "--out", str(tmp_path / "out"), "--processes", "1")
    assert status == 1
    assert "--processes 1" in text


def test_fewer_runs_and_rows_can_be_asked_for() -> None:
    less = DEFAULT.limited(3, 500)
    assert (less.runs, less.rows, less.url_rows) == (3, 500, 500)
    assert DEFAULT.limited(None, None) == DEFAULT
    assert FULL.limited(None, None).url_rows is None


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "occupied").touch()
    status, text = invoke("ridge", "--quick", "--out", str(tmp_path / "occupied" / "out"))
    assert status == 1
    assert "occupied" in text
    assert "Traceback" not in text


# --- everything, tiny ---


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all parts in the smallest size."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaspdc.reproduce._materials.locate", lambda name: None)
        store = Store(tmp_path_factory.mktemp("runs"))
        page = reproduce(PARTS, TINY, folder, processes=1, store=store)
    assert page == folder / "index.html"
    return folder


def test_every_part_is_on_both_pages(produced: Path) -> None:
    reports = read_reports(produced)
    pages = [(produced / name).read_text(encoding="utf-8") for name in ("index.md", "index.html")]
    for report in reports:
        for page in pages:
            assert report.title in page
            assert page.count("does not hold") + page.count("holds") > 0
    assert (pages[0].count("STAND-IN") > 0) == (pages[1].count("STAND-IN") > 0)


def test_no_statement_takes_a_stand_in_for_the_real_set(produced: Path) -> None:
    for report in read_reports(produced):
        for claim in report.claims:
            if report.part in ("hinge", "logistic"):
                for name in re.findall(
                    r"(?:a stand-in for )?(?:w8a|rcv1|url|quantum)", claim.measured
                ):
                    assert name.startswith("a stand-in for "), claim


def test_every_statement_has_a_verdict_with_a_number(produced: Path) -> None:
    for report in read_reports(produced):
        for claim in report.claims:
            assert claim.verdict in ("holds", "does not hold")
            assert re.search(r"\d", claim.measured), claim


def test_every_file_named_on_the_page_exists(produced: Path) -> None:
    page = (produced / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert named
    for name in named:
        assert (produced / name).is_file(), name
        if name.endswith(".png"):
            height, width, _ = matplotlib.image.imread(produced / name).shape
            assert min(height, width) > 200
        if name.endswith(".json"):
            json.loads((produced / name).read_text(encoding="utf-8"))


def test_numbers_beside_a_figure_are_those_of_the_figure(produced: Path) -> None:
    with (produced / "ridge-figure.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["lam"] for row in rows} == {"1e-3", "1e-4", "1e-5", "1e-6"}
    assert {row["method"] for row in rows} == set(LINE)
    last = [row for row in rows if (row["lam"], row["method"]) == ("1e-3", "adaspdc")][-1]
    assert float(last["passes"]) == TINY.ridge_passes
    assert float(last["mean"]) == pytest.approx(GOLDEN["adaspdc"], rel=1e-6)
