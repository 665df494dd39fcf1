"""What was measured, as JSON lines: a run that is interrupted goes on where it stopped."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Records:
    """An append-only file and what it holds. A line cut short by a kill is ignored.

    ``clock`` is what verdicts count: "seconds" by the wall, or "cpu" seconds of the process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.clock = "seconds"
        self.all: list[Record] = []
        if path.exists():
            text = path.read_text()
            if not text.endswith("\n"):
                path.write_text(text + "\n")
            for line in text.splitlines():
                try:
                    self.all.append(json.loads(line))
                except json.JSONDecodeError:
                    continue

    def add(self, kind: str, **fields: Any) -> Record:
        """Write one down at once, with the number of the run."""
        runs = len(self.of("run")) + (kind == "run")
        record = {"kind": kind, "run": runs, **fields}
        self.all.append(record)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        return record

    def of(self, kind: str, **fields: Any) -> list[Record]:
        """All of a kind with these fields."""
        return [
            record
            for record in self.all
            if record["kind"] == kind
            and all(record.get(name) == value for name, value in fields.items())
        ]

    def drop(self, peers: Iterable[str]) -> None:
        """Forget what these peers did."""
        gone = set(peers)
        self._keep([record for record in self.all if record.get("peer") not in gone])

    def clear(self) -> None:
        """Forget everything but the optima, which no clock has a part in."""
        self._keep(self.of("optimum"))

    def _keep(self, kept: list[Record]) -> None:
        if len(kept) == len(self.all):
            return
        self.all = kept
        part = self._path.with_suffix(".part")
        part.write_text("".join(json.dumps(record) + "\n" for record in kept))
        part.replace(self._path)
