"""``adaspdc verify``: the certificate of a model, recomputed from its training data."""

from __future__ import annotations

from typing import Any

import click

from . import _options
from ._run import ExitCode, explained, report


@click.command(short_help="Recompute the certificate of a model.")
@_options.MODEL
@_options.FILE
@_options.data
@_options.output
@explained
def verify(model_file: str, file: str, **options: Any) -> ExitCode:
    """Check MODEL against its training data FILE.

    Objective, lower bound and gap are recomputed from scratch by plain NumPy code that shares
    nothing with the solver. Exit status 4 if anything is not as the model claims.
    """
    from ..model import load
    from ..verification import verify as recompute
    from ._problem import DataOptions, for_model

    model = load(model_file)
    data = DataOptions.of(options, model.training.get("label")).read(file)
    found = recompute(model, for_model(data, model, options["quiet"]), data.y)
    code = ExitCode.CERTIFIED if found.holds else ExitCode.NOT_VERIFIED
    values = {
        "exit_code": int(code),
        "verified": found.holds,
        "primal": found.primal,
        "dual": found.dual,
        "gap": found.gap,
        "tol": found.tol,
        "rounding": found.rounding,
        "claimed": found.claimed,
        "problems": list(found.problems),
    }
    lines = [
        f"recomputed: primal {found.primal:.12g}, dual {found.dual:.12g}, gap {found.gap:.3e}",
        f"claimed:    primal {found.claimed['primal']:.12g}, dual {found.claimed['dual']:.12g}, "
        f"gap {found.claimed['gap']:.3e}",
        "verified" if found.holds else f"NOT VERIFIED: {'; '.join(found.problems)}",
    ]
    report("verify", values, lines, options["as_json"])
    return code
