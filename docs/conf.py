"""Settings of the site; `make docs` builds it."""

import re
from typing import Any

from adaspdc import __version__

project = "adaspdc"
author = "the adaspdc developers"
copyright = "the adaspdc developers"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # CONTRIBUTING.md; the tests check every link

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say it in words
autosummary_generate = False
numpydoc_show_class_members = False
default_role = "code"

html_theme = "furo"
html_title = f"adaspdc {release}"


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """``|x|`` means absolute values in our docstrings, and a substitution in Sphinx."""
    for number, line in enumerate(lines):
        if ">>>" not in line and "..." not in line[:8]:
            parts = re.split(r"(``.*?``|`.*?`)", line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "".join(parts)


def skip_inherited(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """What scikit-learn's base classes bring along is documented there."""
    return True if name.endswith("_request") or name == "get_metadata_routing" else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-skip-member", skip_inherited)
