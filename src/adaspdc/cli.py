"""The ``adaspdc`` command.

Sub-commands live in modules of their own and are imported when they are asked for, so that
``adaspdc --help`` stays fast: neither numba nor matplotlib is loaded before there is work to do. A
new one is a click command named like its entry in `_COMMANDS`; it returns its exit status.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ._version import __version__

_ERROR = 1
_INTERRUPTED = 130
"""What shells report for a command ended by Ctrl-C."""

_COMMANDS = {
    "fit": ("adaspdc.commands.fit", "Fit a model to a data file."),
    "predict": ("adaspdc.commands.predict", "Predict labels with a model."),
    "evaluate": ("adaspdc.commands.evaluate", "Measure a model on labelled data."),
    "path": ("adaspdc.commands.path", "Fit along a path of lambdas."),
    "cv": ("adaspdc.commands.cv", "Choose lambda by cross-validation."),
    "data": ("adaspdc.commands.data", "List, fetch and describe data sets."),
    "convert": ("adaspdc.commands.convert", "Write a data file in another format."),
    "doctor": ("adaspdc.commands.doctor", "Check that this installation works."),
    "precompile": (
        "adaspdc.commands.precompile",
        "Compile now, so that the first fit starts at once.",
    ),
    "info": ("adaspdc.commands.info", "Show what is in a model file."),
    "verify": ("adaspdc.commands.verify", "Recompute the certificate of a model."),
    "reproduce": ("adaspdc.reproduce", "Redo the paper's experiments and judge its statements."),
}
"""Sub-command: the module with a click command of that name, and its line in the overview."""


class _Commands(click.Group):
    """A group whose members are imported on use, and whose exit codes are documented."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*_COMMANDS, *sorted(self.commands)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return super().get_command(context, name)
        command: click.Command = getattr(import_module(_COMMANDS[name][0]), name)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest name where there is none like it."""
        from difflib import get_close_matches

        near = get_close_matches(args[0], self.list_commands(context), n=1)
        if near and near[0] != args[0] and not args[0].startswith("-"):
            context.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, summary) for name, (_, summary) in _COMMANDS.items()]
        rows += [(name, command.get_short_help_str()) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, with the exit status that the command returns, and 130 for Ctrl-C."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            status = super().main(args, prog_name, complete_var, False, **extra)
        except click.ClickException as error:
            error.show()
            status = error.exit_code
        except click.Abort:
            click.echo("Interrupted.", err=True)
            status = _INTERRUPTED
        except BrokenPipeError:  # whoever reads our output has seen enough
            status = _ERROR
        sys.exit(_flushed(int(status or 0)))


def _flushed(status: int) -> int:
    """The status, after making sure that the interpreter cannot fail while it writes the rest."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        status = status or _ERROR
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


_EXAMPLES = """\b
Examples:
  adaspdc fit train.svm --loss logistic --alpha 1e-6 -o model
  adaspdc predict model test.svm -o predictions.csv
  adaspdc evaluate model test.svm
"""


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXAMPLES
)
@click.version_option(__version__, "-V", "--version", prog_name="adaspdc")
def main() -> None:
    """Fit linear models with a certificate: each answer comes with a bound on its error."""


def _png(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """Refuse a file that could not be written before the work that fills it is done."""
    if value.suffix.lower() != ".png":
        raise click.BadParameter(f"'{value}' must end in .png.")
    if not value.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{value.parent}'; create it first.")
    return value


def _weight(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Keep to weights for which a closed-form optimum is worth comparing with."""
    if not 1e-12 <= value <= 1e3:  # refuses NaN too, as click's ranges do not
        raise click.BadParameter(f"{value:g} is not between 1e-12 and 1000.")
    return value


@main.command(short_help="Compare all methods on the paper's ridge problem.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_png,
    default="convergence.png",
    show_default=True,
    help="Where the picture goes.",
)
@click.option(
    "--lam",
    type=float,
    callback=_weight,
    default=1e-5,
    show_default=True,
    help="Weight of the L2 term; the paper shows 1e-3 (easy) to 1e-6 (hard).",
)
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Passes over the data each method may make.",
)
@click.option("--quick", is_flag=True, help="Take 200 rows and columns instead of 1000.")
def demo(out: Path, lam: float, passes: int, quick: bool) -> int:
    """Solve the paper's ridge problem with every method and draw the comparison.

    Prints a table with the certified duality gap of each method and writes a picture of how far
    each was from the optimum after how many passes. The first run compiles for some seconds.
    """
    from .demo import missing_packages, run_demo

    missing = missing_packages()
    if missing:
        raise click.ClickException(
            f"the demo needs {' and '.join(missing)}: pip install 'adaspdc[demo]'"
        )
    size = 200 if quick else 1000
    try:
        finished = run_demo(out, n=size, d=size, lam=lam, passes=passes)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None
    return 0 if finished else _INTERRUPTED
