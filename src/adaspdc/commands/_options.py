"""Options that several sub-commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("libsvm", "csv", "parquet", "npz")
LOSSES = (
    "logistic",
    "smooth_hinge",
    "squared_hinge",
    "squared",
    "huber",
    "smooth_pinball",
    "smooth_epsilon_insensitive",
    "squared_epsilon_insensitive",
    "multinomial",
    "smooth_crammer_singer",
)
PENALTIES = ("l2", "elasticnet", "nonnegative", "box", "group_l2")


class Name(click.Choice[str]):
    """One of several names, written with ``-`` or ``_``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from difflib import get_close_matches

        name = str(value).lower().replace("-", "_")
        near = [] if name in self.choices else get_close_matches(name, self.choices, n=1)
        if near:
            self.fail(f"there is no {value!r}. Did you mean {near[0]!r}?", param, ctx)
        return super().convert(name, param, ctx)


class Positive(click.ParamType[float]):
    """A finite number above zero (or from zero on), which click's ranges do not check for NaN."""

    name = "number"

    def __init__(self, zero: bool = False, infinite: bool = False) -> None:
        self._zero, self._infinite = zero, infinite

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        large = number == float("inf") and not self._infinite
        if not (number > 0 or (self._zero and number == 0)) or large:
            self.fail(f"{value} is not a positive number.", param, ctx)
        return number


def picture(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a kind of picture that cannot be drawn before the work is done."""
    if value is not None and not value.lower().endswith((".png", ".svg", ".pdf")):
        raise click.BadParameter(f"'{value}' must end in .png, .svg or .pdf.")
    return value


def several(*options: Any) -> Callable[[Command], Command]:
    """One decorator for several options, shown in this order."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


data = several(
    click.option(
        "--format",
        "file_format",
        type=Name(FORMATS),
        help="Format of the data; by default told from the name (libsvm unless it ends in .csv, "
        ".parquet or .npz, with or without .gz, .bz2, .xz).",
    ),
    click.option(
        "--label",
        metavar="COLUMN",
        help="Label column of a CSV or Parquet table (default: label, target, class or y).",
    ),
    click.option("--zero-based", is_flag=True, help="libsvm features count from 0, not from 1."),
)

output = several(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines."),
    click.option("-q", "--quiet", is_flag=True, help="No progress bar, no notes."),
)

loss = several(
    click.option(
        "--loss",
        type=Name(LOSSES),
        default="logistic",
        show_default=True,
        metavar="NAME",
        help=f"What is minimised on average over the rows: {', '.join(LOSSES)}.",
    ),
    click.option("--gamma", type=Positive(), help="Smoothing of the smooth_ losses (default 1)."),
    click.option("--delta", type=Positive(), help="Where huber becomes linear (default 1)."),
    click.option("--quantile", type=Positive(), help="Of smooth_pinball (default 0.5)."),
    click.option(
        "--epsilon",
        type=Positive(zero=True),
        help="Errors up to this cost nothing in the epsilon_insensitive losses (default 0.1).",
    ),
)

penalty = several(
    click.option(
        "--penalty",
        type=Name(PENALTIES),
        help="Default l2, or elasticnet where --l1-ratio is given.",
    ),
    click.option(
        "--l1-ratio",
        type=Positive(zero=True),
        help="Share r < 1 of the absolute values: alpha (r |x|_1 + (1-r)/2 |x|^2).",
    ),
    click.option("--low", type=float, help="Lower bound of each coefficient, for box."),
    click.option("--high", type=float, help="Upper bound of each coefficient, for box."),
    click.option(
        "--groups",
        type=click.Path(),
        metavar="FILE",
        help="For group_l2: a text file with one whole number per feature, its group.",
    ),
    click.option(
        "--group-weight",
        type=Positive(zero=True),
        help="For group_l2: weight of the norms of the groups (default: alpha).",
    ),
)

alpha = click.option(
    "--alpha",
    type=Positive(),
    help="Lambda, the weight of the penalty against the mean loss; default 1/n, which is -c 1 of "
    "liblinear and C=1 of scikit-learn.",
)

intercept = click.option(
    "--intercept/--no-intercept",
    default=None,
    help="Fit an intercept that is not penalised. The default; but with group_l2, or a --method "
    "by name, there can be none.",
)

solver = several(
    click.option(
        "--tol",
        type=Positive(zero=True),
        default=1e-6,
        show_default=True,
        help="Certified gap to reach, relative to the objective at zero.",
    ),
    click.option(
        "--max-passes", type=Positive(), help="Passes allowed (default 10000; with --method 500)."
    ),
    click.option(
        "--max-time",
        type=Positive(infinite=True),
        metavar="SECONDS",
        help="Time allowed for solving (reading and compiling apart).",
    ),
    click.option("--method", help="Method to use instead of the automatic choice."),
    click.option(
        "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads."
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
    ),
)

FILE = click.argument("file", metavar="FILE", type=click.Path())
MODEL = click.argument("model_file", metavar="MODEL", type=click.Path())
