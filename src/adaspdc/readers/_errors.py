"""The one error that readers raise: which file, where in it, and why."""

from __future__ import annotations


class DataFileError(ValueError):
    """A data file that cannot be read; the message has file, line, column and reason.

    Attributes
    ----------
    file : str
        The path as it was given, or ``"standard input"``.
    line, column : int or None
        Where the trouble is, counted from 1; None where no place can be named.
    reason : str
        What is wrong there, and where possible what to do about it.
    """

    def __init__(
        self, file: str, reason: str, line: int | None = None, column: int | None = None
    ) -> None:
        self.file, self.reason, self.line, self.column = file, reason, line, column
        place = file if line is None else f"{file}, line {line}"
        super().__init__(f"{place if column is None else f'{place}, column {column}'}: {reason}")

    def __reduce__(self) -> tuple[type[DataFileError], tuple[object, ...]]:
        return type(self), (self.file, self.reason, self.line, self.column)
