"""From the parts asked for to a folder with a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ._beyond import beyond
from ._classify import hinge, logistic
from ._context import Context
from ._page import write_pages
from ._parallel import parallel
from ._report import Report
from ._ridge import ridge
from ._settings import Settings
from ._store import Store
from ._table1 import table1

_PARTS: dict[str, Callable[[Context], Report]] = {
    "ridge": ridge,
    "table1": table1,
    "hinge": hinge,
    "logistic": logistic,
    "parallel": parallel,
    "beyond": beyond,
}


def reproduce(
    parts: Sequence[str],
    settings: Settings,
    out: Path,
    processes: int | None = None,
    store: Store | None = None,
    told: Callable[[Report], None] | None = None,
) -> Path:
    """Run some parts of the paper's empirical section and write a page about them.

    Parameters
    ----------
    parts : sequence of str
        Names from `PARTS`.
    settings : Settings
        `DEFAULT`, `QUICK` or `FULL`.
    out : Path
        The folder for figures, numbers, settings and pages; made if absent.
    processes : int, optional
        Runs at a time, one a core; by default as many as there are cores.
    store : Store, optional
        Where finished runs are kept; by default in the user's cache.
    told : callable, optional
        Called with the report of each part as soon as it is there.

    Returns
    -------
    Path
        The page as HTML; ``index.md`` beside it is the same as Markdown.
    """
    out.mkdir(parents=True, exist_ok=True)
    context = Context(settings, out, store or Store(), processes or os.cpu_count() or 1)
    page = write_pages(out)
    for part in parts:
        report = _PARTS[part](context)
        report.save(out)
        page = write_pages(out)
        if told is not None:
            told(report)
    return page
