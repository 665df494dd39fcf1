"""What every sub-command shares: exit codes, errors a person can use, results as text or JSON."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

SCHEMA = 1
"""Version of the JSON objects; raised when a key changes its meaning."""


class ExitCode(IntEnum):
    """What the shell is told."""

    CERTIFIED = 0
    ERROR = 1
    USAGE = 2
    ABOVE_TOLERANCE = 3
    NOT_VERIFIED = 4
    INTERRUPTED = 130


def explained(command: Command) -> Command:
    """A command whose errors end in one sentence instead of a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except MemoryError:
            raise click.ClickException("there is not enough memory for this") from None
        except BrokenPipeError:  # whoever reads our output has seen enough: no error
            raise
        except OSError as error:
            raise click.ClickException(_about_file(error)) from None
        except (ValueError, TypeError, ImportError) as error:
            raise click.ClickException(str(error)) from None

    return run  # type: ignore[return-value]


def _about_file(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def writing(path: str | os.PathLike[str], write: Callable[[], None]) -> None:
    """Write a file, with its name in whatever goes wrong."""
    try:
        write()
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.ClickException(f"cannot write {os.fspath(path)}: {reason}") from None


def check_outputs(*paths: str | None, inputs: tuple[str, ...] = ()) -> None:
    """Refuse files that could not be written, or must not be, before the work is done."""
    from .._files import check_writable

    for path in paths:
        if path is None:
            continue
        if path == "-":
            raise click.UsageError("this cannot go to standard output; name a file.")
        for source in inputs:
            if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
                raise click.UsageError(f"'{path}' is read and would be written over.")
        writing(path, functools.partial(check_writable, path))


def write_text(path: str, text: str) -> None:
    """Write a text file, whole or not at all."""
    from .._files import written_whole

    with written_whole(path) as stream:
        stream.write(text.encode())


def require_matplotlib() -> None:
    """Raise ImportError with the remedy before the work that is to be drawn is done."""
    from .._plots import new_figure

    new_figure(1.0, 1.0)


def save_figure(path: str, figure: Any) -> None:
    """Write a picture, whole or not at all."""
    from .._files import written_whole

    def write() -> None:
        with written_whole(path) as stream:
            figure.savefig(stream, dpi=150, format=os.path.splitext(path)[1][1:].lower())

    writing(path, write)


def report(command: str, values: dict[str, Any], lines: list[str], as_json: bool) -> None:
    """The result on standard output."""
    if as_json:
        text = json.dumps({"schema": SCHEMA, "command": command, **_json_ready(values)})
    else:
        text = "\n".join(lines)
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"cannot write to standard output: {error.strerror}") from None


def note(text: str) -> None:
    """A remark on standard error."""
    click.echo(f"note: {text}", err=True)


def _json_ready(value: Any) -> Any:
    """Infinity and NaN, which JSON lacks, as null."""
    if isinstance(value, dict):
        return {str(key): _json_ready(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
