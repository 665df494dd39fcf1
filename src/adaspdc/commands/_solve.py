"""One solve with a progress bar, and what to say about it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ._progress import solving_bar
from ._run import ExitCode

if TYPE_CHECKING:
    from ..problem import ERM
    from ..result import Result


_PASSES, _PASSES_OF_AUTO = 500.0, 10_000.0


def solver_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options of the command as `adaspdc.solve` takes them."""
    usual = _PASSES_OF_AUTO if options["method"] in (None, "auto") else _PASSES
    settings = {
        "tol": options["tol"],
        "max_passes": options["max_passes"] or usual,
        "max_seconds": options["max_time"],
        "n_threads": options["threads"],
        "random_state": options["seed"],
    }
    return settings if options["method"] is None else {**settings, "method": options["method"]}


def run(
    problem: ERM, settings: dict[str, Any], title: str, quiet: bool, start: Any = None
) -> Result:
    """Solve; a result above its tolerance is told by its status, not by a warning."""
    from ..result import ConvergenceWarning
    from ..solver import solve

    with warnings.catch_warnings(), solving_bar(title, quiet) as show:
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, warm_start=start, callback=show, **settings)


def exit_code(result: Result) -> ExitCode:
    """What the shell is told about a result."""
    from ..result import Status

    if result.converged:
        return ExitCode.CERTIFIED
    if result.status is Status.STOPPED:
        return ExitCode.INTERRUPTED
    return ExitCode.ABOVE_TOLERANCE


def certificate_lines(result: Result) -> list[str]:
    """The certificate for people."""
    verdict = "certified" if result.converged else f"NOT within the tolerance ({result.status})"
    return [
        f"optimum between {result.dual:.9g} and {result.primal:.9g}",
        f"{verdict}: gap {result.gap:.2e}, asked for {result.tol:.2e}; "
        f"{result.passes:g} passes in {result.seconds:.2f} s",
    ]
