"""Progress on standard error, where that is a terminal and rich is installed; else nothing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[[Any], None]


def _bar(quiet: bool, *columns: Any) -> Any:
    """A rich progress display, or None where there is nobody to look at it."""
    if quiet or not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    except ImportError:
        return None
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def reading_bar(path: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of the bytes read so far."""
    bar = _bar(quiet)
    if bar is None:
        yield None
        return
    with bar:
        task = bar.add_task(f"reading {'standard input' if path == '-' else path}", state="")

        def show(done: int, size: int) -> None:
            bar.update(task, completed=done, total=size or None, state=f"{done / 1e6:,.0f} MB")

        yield show


@contextmanager
def solving_bar(title: str, quiet: bool) -> Iterator[Show | None]:
    """A bar of how far the gap has fallen, with the gap and the time left."""
    bar = _bar(quiet)
    if bar is None:
        yield None
        return
    with bar:
        task = bar.add_task(title, total=1.0, state="compiling")
        fall = _Fall()

        def show(progress: Any) -> None:
            share = fall.share(progress.gap, progress.tol)
            bar.update(
                task,
                completed=share,
                state=f"pass {progress.passes:.0f}, gap {progress.gap:.1e} of "
                f"{progress.tol:.1e}, {time_left(progress.seconds, share)}",
            )

        yield show


@contextmanager
def counting_bar(title: str, total: int, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """A bar of so many things to do; what it gives is called after each."""
    bar = _bar(quiet)
    if bar is None:
        yield lambda: None
        return
    with bar:
        task = bar.add_task(title, total=total, state="")
        yield lambda: bar.advance(task)


class DownloadBar:
    """What pooch tells of every piece it has fetched."""

    def __init__(self, name: str, quiet: bool) -> None:
        self.total = 0
        self._done = 0
        self._bar = _bar(quiet)
        self._name, self._task = name, None

    def __enter__(self) -> DownloadBar:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(f"fetching {self._name}", total=None, state="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, size: int) -> None:
        """So many more bytes."""
        self._done += size
        if self._bar is not None:
            state = f"{self._done / 1e6:,.1f} MB"
            total = self.total or None
            self._bar.update(self._task, completed=self._done, total=total, state=state)

    def reset(self) -> None:
        """Begin again."""
        self._done = 0

    def close(self) -> None:
        """Nothing to do: leaving the context ends the display."""


class _Fall:
    """How far a gap has come from its first value to the tolerance, in powers of ten."""

    def __init__(self) -> None:
        self._first = math.inf

    def share(self, gap: float, tol: float) -> float:
        if not (0 < gap < math.inf) or not tol > 0:
            return 0.0
        self._first = gap if self._first == math.inf else max(self._first, gap)
        whole = math.log(self._first / tol)
        return min(1.0, math.log(self._first / gap) / whole) if whole > 0 else 1.0


def time_left(seconds: float, share: float) -> str:
    """What remains if the gap goes on falling at its rate so far."""
    if share <= 0.0:
        return "time left unknown"
    left = seconds * (1.0 - share) / share
    if left >= 3600:
        return f"{left / 3600:.1f} h left"
    return f"{left / 60:.0f} min left" if left >= 120 else f"{left:.0f} s left"
