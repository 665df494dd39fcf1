"""The site builds without a warning, and what its pages say runs."""

import doctest
import os
import re
import subprocess
import sys
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import adaspdc
from adaspdc import cli, losses, model, readers, regularizers, verification

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def blocks(page: Path, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """What stands behind ``$`` on a page."""
    lines = "".join(blocks(page, "console")).splitlines()
    return [line.removeprefix("$ adaspdc ").split() for line in lines if line.startswith("$ ")]


def with_language(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", with_language("python"), ids=str)
def test_python_on_the_pages_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks(page, "python"), start=1):
        exec(compile(block, f"{page}, Python block {number}", "exec"), defined)
    for arguments in commands(page):
        result = CliRunner().invoke(cli.main, arguments, prog_name="adaspdc")
        assert result.exit_code == 0, (arguments, result.output)


def test_the_tutorial_uses_the_command() -> None:
    used = {arguments[0] for arguments in commands(Path("tutorial.md"))}
    assert used == {"fit", "info", "predict", "evaluate", "verify", "cv", "path"}


@pytest.mark.parametrize("page", with_language("pycon"), ids=str)
def test_examples_of_the_reference_are_true(page: Path) -> None:
    text = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, str(page), str(page), 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 0


def public_names() -> list[str]:
    modules = {
        "adaspdc": adaspdc,
        "adaspdc.losses": losses,
        "adaspdc.regularizers": regularizers,
        "adaspdc.readers": readers,
        "adaspdc.model": model,
        "adaspdc.verification": verification,
    }
    return [
        f"{module}.{name}"
        for module, content in modules.items()
        for name in content.__all__
        if name not in adaspdc.estimators.__all__
        and (isinstance(getattr(content, name), type) or isfunction(getattr(content, name)))
    ]


@pytest.mark.parametrize("name", public_names())
def test_every_public_object_has_an_entry_with_an_example(name: str) -> None:
    text = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    entry = re.search(rf"^\.\. auto\w+:: {re.escape(name)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert entry is not None
    assert ">>>" in entry[1]


@pytest.mark.parametrize("name", adaspdc.estimators.__all__)
def test_every_estimator_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(adaspdc, name).__doc__ or "")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((DOCS / page).parent / target).resolve().is_file(), target


def test_commands_named_on_the_pages_have_these_options() -> None:
    """Every option that stands on a page after ``adaspdc COMMAND`` is one of that command."""
    pages = [DOCS / page for page in PAGES] + [ROOT / "README.md"]
    for page in pages:
        for line in page.read_text(encoding="utf-8").splitlines():
            found = re.match(r"(?:\$ )?adaspdc ([a-z]+) (.*)", line)
            if found and found[1] in cli._COMMANDS:
                shown = CliRunner().invoke(cli.main, [found[1], "--help"]).output
                for option in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", found[2]):
                    assert re.search(rf"(?<!\S){option}\b", shown), (page.name, line)


def test_liblinear_table_has_the_right_lambdas(tmp_path: Path) -> None:
    """liblinear's objectives at C, and ours at the lambda of the table, have one minimiser."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(120))
    C = 0.3
    exact = {"C": C, "fit_intercept": False, "tol": 1e-9, "max_iter": 10**6, "random_state": 0}
    squared = LinearSVC(**exact).fit(X, y).coef_[0]
    problem = adaspdc.ERM(X, y, losses.SquaredHinge(), regularizers.L2(1 / (2 * C * 120)))
    np.testing.assert_allclose(adaspdc.solve(problem, tol=1e-12).x, squared, atol=1e-5)
    hinge = LinearSVC(loss="hinge", **exact).fit(X, y)
    problem = adaspdc.ERM(X, y, losses.SmoothHinge(1e-4), regularizers.L2(1 / (C * 120)))
    np.testing.assert_allclose(adaspdc.solve(problem).x, hinge.coef_[0], atol=1e-2)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS),
         "-d", str(tmp_path / "cache"), str(tmp_path / "site")],
        capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
    page = (tmp_path / "site" / "api" / "losses.html").read_text(encoding="utf-8")
    assert "adaspdc.losses.SmoothPinball" in page
