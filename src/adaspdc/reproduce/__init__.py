"""The empirical section of the paper, redone: ``adaspdc reproduce``.

Everything here is for the command; matplotlib, and the methods themselves, are loaded when it has
work to do.
"""

from ._command import reproduce

__all__ = ["reproduce"]
