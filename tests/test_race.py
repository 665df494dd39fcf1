"""The race on a tiny problem, with peers that are right, wrong, slow, crashing and absent."""

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

from race import cells, data, page, verdict  # noqa: E402
from race.objective import LOSSES, Problem  # noqa: E402
from race.peers import OURS, find, names  # noqa: E402
from race.records import Records  # noqa: E402
from race.reference import find_optimum  # noqa: E402
from race.runner import Limits, Race  # noqa: E402
from race.session import Ended, Session  # noqa: E402

CELL = cells.Cell("tiny-dense", "logistic", 1e-3)
LIMITS = Limits(fit=10.0, least=2.0, repeats=1, optimum=5.0)  # room for other processes
FAKES = ("Good", "Wrong", "Unfinished", "Slow", "Crashing", "Raising", "Refusing", "Absent")


def fake(name):
    return f"race_fakes:{name}"


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """All fakes in one cell, as a run of the command would do it; the slow part, done once."""
    work = tmp_path_factory.mktemp("race")
    records, lines = Records(work / "race.jsonl"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), str(BENCHMARKS)]))
        patch.syspath_prepend(str(Path(__file__).parent))
        Race(records, work, LIMITS, lines.append).run([CELL], [fake(name) for name in FAKES], 1)
    return work, records, lines


def outcome(records, name):
    [record] = records.of("outcome", peer=fake(name))
    return record["status"], record["words"]


def test_every_kind_of_failure_is_told_apart(raced):
    _, records, lines = raced

    assert outcome(records, "Good") == ("reached", "")
    assert outcome(records, "Wrong")[0] == "not reached"
    assert outcome(records, "Unfinished")[0] == "wrong"
    assert outcome(records, "Slow")[0] == "timeout"
    assert outcome(records, "Crashing")[0] == "crashed"
    assert "signal" in outcome(records, "Crashing")[1]
    assert outcome(records, "Raising") == ("error", "FloatingPointError: gave up")
    assert outcome(records, "Refusing") == ("refused", "takes no such thing")
    assert outcome(records, "Absent") == ("not installed", "a-package-that-nobody-has")
    assert len(lines) == 1 + len(FAKES), "a line for the optimum and one per peer"


def test_a_peer_keeps_the_fits_it_made_before_it_was_killed(raced):
    _, records, _ = raced

    assert len(records.of("fit", peer=fake("Slow"))) == 1
    assert len(records.of("fit", peer=fake("Good"))) == 2


def test_a_process_that_was_killed_does_not_answer(raced, monkeypatch):
    folders = [str(Path(__file__).parent), str(BENCHMARKS)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.syspath_prepend(folders[0])
    job = {"peer": fake("Slow"), "data": CELL.data, "loss": CELL.loss, "threads": 1}
    request = {"lam": CELL.lam, "settings": {"tol": 1e-12}}
    with Session({**job, "work": str(raced[0])}, 60.0) as session:
        assert session.hello["status"] == "ready"
        for _ in range(2):  # the second time there is no one left to ask
            with pytest.raises(Ended) as ended:
                session.ask(request, 0.2)
            assert ended.value.status == "timeout"


def test_no_process_is_left_behind(raced):
    psutil = pytest.importorskip("psutil")

    left = [child.cmdline() for child in psutil.Process().children(recursive=True)]
    assert not [command for command in left if "race.worker" in command]


def test_a_finished_race_is_not_run_again(raced):
    work, _, _ = raced
    before = (work / "race.jsonl").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.setattr("race.runner.Session", None)  # opening one would fail
        Race(Records(work / "race.jsonl"), work, LIMITS, print).run(
            [CELL], [fake(name) for name in FAKES], 1
        )

    assert (work / "race.jsonl").read_text() == before


def test_records_survive_a_line_cut_short(tmp_path):
    path = tmp_path / "race.jsonl"
    Records(path).add("fit", peer="a")
    with path.open("a") as file:
        file.write('{"kind": "fit", "pe')

    again = Records(path)
    assert [record["peer"] for record in again.of("fit")] == ["a"]
    again.add("fit", peer="b")
    assert [record["peer"] for record in Records(path).of("fit")] == ["a", "b"]


def test_optimum_agrees_with_the_fit_of_a_right_peer(raced):
    _, records, _ = raced
    standings = verdict.Standings(records, CELL.name, 1)
    best = records.of("fit", peer=fake("Good"))[-1]

    assert standings.suboptimality(best) <= 1e-12
    assert standings.unknown <= 1e-10
    assert standings.bound <= standings.optimum + 1e-15


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("name", ["tiny-sparse", "tiny-dense"])
def test_harness_certifies_its_own_optimum(loss, name, tmp_path):
    X, b = data.load(name, tmp_path)
    problem = Problem(name, X, b, LOSSES[loss], 1e-4)
    found = find_optimum(problem, 20.0)

    assert found.value - found.bound <= 1e-11 * problem.value_at_zero()


@pytest.mark.parametrize("loss", list(LOSSES.values()), ids=lambda loss: loss.name)
def test_losses_obey_fenchel_and_finite_differences(loss):
    rng = np.random.default_rng(0)
    z, b = 3 * rng.standard_normal(200), np.where(rng.random(200) < 0.5, -1.0, 1.0)
    y = loss.slope(z, b)

    assert np.allclose(loss.value(z, b) + loss.conjugate(y, b), z * y, atol=1e-12)
    h = 1e-6
    numerical = (loss.value(z + h, b) - loss.value(z - h, b)) / (2 * h)
    assert np.allclose(y, numerical, atol=1e-6)


def test_squared_hinge_and_hinge_bounds_refuse_points_outside_the_domain():
    one = np.ones(1)

    assert LOSSES["smooth-hinge"].conjugate(one, one)[0] == np.inf
    assert LOSSES["squared-hinge"].conjugate(one, one)[0] == np.inf
    assert LOSSES["logistic"].conjugate(-2 * one, one)[0] == np.inf


# --- the verdict, from records written by hand ---


def written(tmp_path, ours, theirs, claimed=0.5):
    """One cell with optimum 0.5 and P(0) = 1; (seconds, value) of every fit."""
    records = Records(tmp_path / "race.jsonl")
    header = dict.fromkeys(
        ("date", "commit", "adaspdc", "cpu", "cores", "load", "python", "numpy", "scipy", "numba"),
        "x",
    )
    records.add("run", header=header, note="a busy machine", cells=1)
    found = {"value": 0.5, "bound": 0.5, "zero": 1.0, "n": 5, "d": 2, "nnz": 10}
    records.add("optimum", cell=CELL.name, **found)
    for peer, fits in ((OURS, ours), ("liblinear-s0-tron", theirs)):
        about = {"cell": CELL.name, "peer": peer, "threads": 1}
        records.add("hello", **about, version="1.0", convert=0.02)
        for tol, (seconds, value) in enumerate(fits):
            dual = claimed if peer == OURS else None
            told = {"claimed": dual, "bound": 0.4, "passes": 3.0, "words": "3 passes"}
            times = {"seconds": [seconds, 2 * seconds], "cpu": [7.0], "settings": {"tol": tol}}
            records.add("fit", **about, value=value, **told, **times)
        records.add("outcome", **about, status="reached", words="")
    return records


def results(records):
    return {v.target.name: v for v in verdict.judge(records, [CELL], 1)}


def test_ratio_is_the_fastest_fit_of_each_that_is_accurate_enough(tmp_path):
    ours = [(1.0, 0.5 * (1 + 1e-4)), (2.0, 0.5 * (1 + 1e-7)), (4.0, 0.5)]
    theirs = [(0.5, 0.5 * (1 + 1e-4)), (6.0, 0.5 * (1 + 1e-7))]
    judged = results(written(tmp_path, ours, theirs))

    assert (judged["sub 1e-3"].result, judged["sub 1e-3"].ratio) == ("lost", 0.5)
    assert (judged["sub 1e-6"].result, judged["sub 1e-6"].ratio) == ("won", 3.0)
    assert (judged["sub 1e-9"].result, judged["sub 1e-9"].ratio) == ("alone", None)
    both = [judged["sub 1e-3"], judged["sub 1e-6"], judged["sub 1e-9"]]
    assert math.isclose(verdict.mean_ratio(both), math.sqrt(0.5 * 3.0))


def test_our_gap_counts_only_as_certified_and_theirs_as_distance(tmp_path):
    judged = results(written(tmp_path, [(1.0, 0.5)], [(3.0, 0.5)], claimed=0.49))

    assert judged["gap 1e-3"].result == "lost", "0.5 - 0.49 is more than 1e-3"
    assert judged["gap 1e-3"].ratio is None
    assert judged["sub 1e-9"].ratio == 3.0


def test_a_value_below_the_optimum_moves_the_optimum(tmp_path):
    judged = results(written(tmp_path, [(1.0, 0.5)], [(3.0, 0.45)]))

    assert judged["sub 1e-3"].result == "lost"


def test_rematch_times_join_the_others(tmp_path):
    records = written(tmp_path, [(1.0, 0.5)], [(3.0, 0.5)])
    about = {"cell": CELL.name, "peer": OURS, "threads": 1, "settings": {"tol": 0}}
    records.add("rematch", **about, seconds=[0.5, 9.0])

    assert results(records)["sub 1e-9"].ratio == 6.0


def test_on_two_threads_a_peer_may_still_use_one(tmp_path):
    records = written(tmp_path, [(1.0, 0.5)], [(3.0, 0.5)])
    about = {"cell": CELL.name, "peer": OURS, "threads": 2, "settings": {"tol": 0}}
    told = {"claimed": 0.5, "bound": 0.4, "passes": 3.0, "words": "", "cpu": [1.0]}
    records.add("fit", **about, **told, value=0.5, seconds=[0.75])
    two = {v.target.name: v for v in verdict.judge(records, [CELL], 2)}

    assert two["sub 1e-9"].ratio == 4.0
    assert results(records)["sub 1e-9"].ratio == 3.0, "our two threads are not taken for one"


def test_processor_seconds_count_where_asked_for(tmp_path):
    records = written(tmp_path, [(1.0, 0.5)], [(3.0, 0.5)])
    records.clock = "cpu"

    assert results(records)["sub 1e-9"].ratio == 1.0


def test_page_says_what_was_lost_and_by_how_much(tmp_path):
    pytest.importorskip("matplotlib")
    records = written(tmp_path, [(2.0, 0.5)], [(0.5, 0.5 * (1 + 1e-4))])
    page.write(tmp_path / "page.md", records, [CELL])
    text = (tmp_path / "page.md").read_text()

    assert "commit x" in text
    assert "a busy machine" in text
    assert "4.00x slower" in text
    assert "3 passes" in text, "what our run says of itself"
    assert "liblinear-official 1.0" in text
    assert (tmp_path / "page" / "logistic-time.png").stat().st_size > 1_000


# --- peers and cells ---


def test_every_peer_is_named_once_and_takes_some_loss():
    for name in names():
        peer = find(name)
        assert peer.name == name
        assert set(peer.losses) <= set(LOSSES)
        assert peer.losses
        ladder = peer(1).settings(peer.losses[0])
        assert len(ladder) == len({str(step) for step in ladder}) > 0


def test_modes_nest_and_patterns_select():
    core, full = cells.select("core"), cells.select("full")

    assert set(core) < set(full)
    assert {cell.lam for cell in full} == set(cells.LAMBDAS)
    assert [c.name for c in cells.select("core", ["w8a:log*:1e-6"])] == ["w8a:logistic:1e-6"]
    assert not any(cell.data.startswith("tiny") for cell in full)


def test_missing_file_of_a_real_set_is_told_with_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("ADASPDC_DATA", str(tmp_path))

    with pytest.raises(data.NoData, match="ADASPDC_DATA"):
        data.load("w8a", tmp_path)
