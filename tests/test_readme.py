"""The README and the pages in docs say what is true, and their Python runs as written."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import adaspdc
from adaspdc import losses, regularizers

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "adaspdc"
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/mathematics.md",
    "docs/reproduce.md",
)
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
README = TEXT["README.md"]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", TEXT[page], flags=re.MULTILINE | re.DOTALL)


def run_blocks(page: str) -> dict[str, Any]:
    defined: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(python_blocks(page), start=1):
        exec(compile(block, f"{page}, Python block {number}", "exec"), defined)
    return defined


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the README's Python blocks define, run one after the other."""
    return run_blocks("README.md")


def test_blocks_run_and_certify(names: dict[str, Any]) -> None:
    assert len(python_blocks("README.md")) == 5
    for name in ("result", "longer", "solution", "fit"):
        assert names[name].converged, name
        assert 0.0 <= names[name].gap <= names[name].tol
    assert np.mean(names["predicted"] == names["y"]) > 0.9
    assert names["accuracy"] > 0.9
    assert 0.0 <= names["certified"] <= names["model"][-1].result_.tol


def test_error_bound_holds(names: dict[str, Any]) -> None:
    assert np.linalg.norm(names["result"].x - names["longer"].x) <= names["distance"]


def test_own_loss_gives_the_expectile(names: dict[str, Any]) -> None:
    X, t, x = names["X"], names["t"], names["fit"].x
    residual = X @ x - t
    weight = np.where(residual < 0.0, 0.9, 0.1)
    gradient = X.T @ (weight * residual) / t.size + 1e-3 * x
    assert np.linalg.norm(gradient) < 1e-2 * np.linalg.norm(X.T @ (weight * t) / t.size)


def test_dual_blocks_fit_their_problem(names: dict[str, Any]) -> None:
    assert [names[name].size for name in ("y1", "y2", "y3")] == [1, 4, 8]
    assert names["solution"].x.min() >= 0.0


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", TEXT[page]):
        linked = ((ROOT / page).parent / target).resolve()
        assert linked.is_file(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), flags=re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, anchor


def test_methods_table_is_complete() -> None:
    from adaspdc.methods import AUTO, METHODS

    listed = re.findall(r"^\| `([a-z-]+)` \|", README.split("## Methods")[1], flags=re.MULTILINE)
    assert sorted(listed) == sorted([AUTO, *METHODS])


def test_losses_and_regularizers_are_listed() -> None:
    for module in (losses, regularizers):
        for name in set(module.__all__) - {"Loss", "Conjugate", "Regularizer"}:
            assert name in README, name


@pytest.mark.parametrize(
    ("theirs", "loss", "regularizer"),
    [
        (
            LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10),
            losses.Logistic(),
            regularizers.L2(1 / (0.5 * 80)),
        ),
        (
            LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=100_000),
            losses.SquaredHinge(),
            regularizers.L2(1 / (2 * 0.5 * 80)),
        ),
        (Ridge(alpha=3.0, fit_intercept=False), losses.Squared(), regularizers.L2(3.0 / 80)),
        (
            ElasticNet(alpha=0.1, l1_ratio=0.6, fit_intercept=False, tol=1e-12),
            losses.Squared(),
            regularizers.ElasticNet(0.1 * (1 - 0.6), 0.1 * 0.6),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scikit_learn_equivalents(theirs: Any, loss: Any, regularizer: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(80)
    if loss.kind == "binary":
        y = np.sign(y)
    ours = adaspdc.solve(adaspdc.ERM(X, y, loss, regularizer), tol=1e-12)
    np.testing.assert_allclose(ours.x, np.ravel(theirs.fit(X, y).coef_), atol=1e-5)


# --- docs/mathematics.md ---


def test_counterexample_runs_as_the_page_says() -> None:
    assert run_blocks("docs/mathematics.md")["result"].converged


def test_counterexample_has_the_radius_the_page_gives() -> None:
    norms, lam, n = np.array([1.0, 0.1]), 1e-4, 2

    def radius(coupling: np.ndarray) -> float:
        """Spectral radius of E[M (x) M], M the map of (x, xbar, y_1, y_2) by one iteration."""
        second_moment = np.zeros((16, 16))
        x, xbar, *y = np.eye(4)
        for i, (a, c) in enumerate(zip(norms, coupling, strict=True)):
            sigma, tau = np.sqrt(n * lam) / (2 * c), 1 / (2 * c * np.sqrt(n * lam))
            theta = 1 - 1 / (n + c * np.sqrt(n / lam))
            move = (y[i] + sigma * a * xbar) / (1 + sigma) - y[i]
            r = (norms[0] * y[0] + norms[1] * y[1]) / n
            new = (x - tau * (r + a * move)) / (1 + lam * tau)
            dual = [y[k] + move * (k == i) for k in range(n)]
            step = np.array([new, new + theta * (new - x), *dual])
            second_moment += np.kron(step, step) / n
        return float(np.abs(np.linalg.eigvals(second_moment)).max())

    for value in (radius(norms), radius(np.full(2, norms.max()))):
        assert f"radius {value:.3f}" in TEXT["docs/mathematics.md"].replace(
            "\n  spectral", " spectral"
        )


# --- docs/architecture.md ---


def drawn_layers() -> list[set[str]]:
    block = TEXT["docs/architecture.md"].split("```text\n")[1].split("```")[0]
    return [set(re.split(r" \| ", line.split("  ")[0])) for line in block.splitlines()]


def imports_of(module: Path, among: set[str]) -> Iterator[str]:
    """Modules of the package that a module (or package) imports at any depth of its code."""
    for source in sorted(module.rglob("*.py")) if module.is_dir() else [module]:
        own = len(source.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == own:
                named = [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
                yield from among.intersection(named)


def test_layers_are_those_of_the_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    given = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    checked = [set(re.split(r" [|:] ", re.sub(r"[()]", "", layer))) for layer in given]
    assert drawn_layers() == [layer for layer in checked if layer != {"__main__"}]


def test_drawn_layers_hold_every_module_and_import_downwards() -> None:
    layers = drawn_layers()
    height = {name: -level for level, layer in enumerate(layers) for name in layer}
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"} - {"__init__"}
    modules |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(height) == modules
    for name in modules:
        file = PACKAGE / f"{name}.py"
        for imported in imports_of(file if file.is_file() else PACKAGE / name, modules):
            assert height[imported] < height[name], f"{name} imports {imported}"


def test_places_named_for_additions_exist() -> None:
    for place in re.findall(r"`((?:_kernels/)?[a-z_]+\.py)`", TEXT["docs/architecture.md"]):
        assert (PACKAGE / place).is_file(), place
