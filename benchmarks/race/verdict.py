"""From what was measured to who won: the only place where accuracies are judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from .cells import TARGETS, Cell, Target
from .peers import OURS, PROTOTYPE
from .records import Record, Records


@dataclass(frozen=True)
class Took:
    """The fit by which a peer got there soonest."""

    seconds: float
    fit: Record


class Standings:
    """One cell on so many threads.

    Where there are two, a peer that is faster on one, or can use no more, is taken at that.
    """

    def __init__(self, records: Records, cell: str, threads: int, clock: str | None = None) -> None:
        everywhere = records.of("fit", cell=cell)
        self.fits = [
            fit
            for fit in everywhere
            if fit["threads"] == threads or (fit["threads"] < threads and fit["peer"] != OURS)
        ]
        self.outcomes = {
            record["peer"]: record for record in records.of("outcome", cell=cell, threads=threads)
        }
        self._lam = cell.rsplit(":", 1)[1]
        self._clock = clock or (records.clock if threads == 1 else "seconds")
        self._again: dict[tuple[str, int, str], list[float]] = {}
        for record in records.of("rematch", cell=cell):
            self._again.setdefault(key(record), []).extend(record[self._clock])
        optimum = records.of("optimum", cell=cell)[-1]
        self.zero = float(optimum["zero"])
        self.optimum = min([optimum["value"], *(fit["value"] for fit in everywhere)])
        self.bound = max([optimum["bound"], *(fit["bound"] for fit in everywhere)])

    @property
    def peers(self) -> list[str]:
        """Everybody who ran at least one fit, in order of appearance."""
        return list(dict.fromkeys(fit["peer"] for fit in self.fits))

    @property
    def unknown(self) -> float:
        """How far the optimum may lie below the best value known, relative to it."""
        return max(0.0, self.optimum - self.bound) / self.optimum

    def suboptimality(self, fit: Record) -> float:
        """Relative to the optimum."""
        return float((fit["value"] - self.optimum) / self.optimum)

    def meets(self, fit: Record, target: Target) -> bool:
        """Ours must certify a gap itself; from the others the distance to the optimum will do."""
        if target.kind == "sub":
            return self.suboptimality(fit) <= target.level
        if fit["peer"] != OURS:
            return bool(fit["value"] - self.optimum <= target.level * self.zero)
        claimed = fit["claimed"]
        return claimed is not None and fit["value"] - claimed <= target.level * self.zero

    def seconds(self, fit: Record) -> float:
        """The least of all turns."""
        return min(fit[self._clock] + self._again.get(key(fit), []))

    def time(self, peer: str, target: Target) -> Took | None:
        """The soonest a peer got there, or None."""
        fits = [fit for fit in self.fits if fit["peer"] == peer and self.meets(fit, target)]
        took = [Took(self.seconds(fit), fit) for fit in fits]
        return min(took, key=lambda one: one.seconds, default=None)

    def ranking(self, target: Target, but: Sequence[str] = ()) -> list[tuple[str, Took]]:
        """Who got there, the fastest first."""
        times = [(peer, self.time(peer, target)) for peer in self.peers if peer not in but]
        there = [(peer, took) for peer, took in times if took is not None]
        return sorted(there, key=lambda pair: pair[1].seconds)

    def duel(self, target: Target) -> list[Record]:
        """The fits that a verdict is made of: ours, and those of the two fastest peers."""
        ours = self.time(OURS, target)
        rivals = [took.fit for _, took in self.ranking(target, but=NOT_PEERS)[:2]]
        return [ours.fit, *rivals] if ours and rivals else []

    def line(self, peer: str, status: str, words: str) -> str:
        """One peer's times to every accuracy, for the terminal."""
        times = [self.time(peer, target) for target in TARGETS]
        shown = "  ".join(f"{took.seconds:9.4g}" if took else f"{'-':>9}" for took in times)
        return f"  {self._lam:>4} {peer:<26} {shown}   {status}{': ' + words if words else ''}"


NOT_PEERS = (OURS, PROTOTYPE)
"""The prototype runs along for information."""


def key(record: Record) -> tuple[str, int, str]:
    """What makes two turns turns of the same fit."""
    return record["peer"], record["threads"], str(record["settings"])


@dataclass(frozen=True)
class Verdict:
    """One cell at one accuracy."""

    cell: Cell
    target: Target
    ours: Took | None
    rival: str | None
    theirs: Took | None

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is; None unless both got there."""
        if self.ours is None or self.theirs is None:
            return None
        return self.theirs.seconds / self.ours.seconds

    @property
    def result(self) -> str:
        """In a word."""
        if self.ours is None:
            return "failed" if self.theirs is None else "lost"
        if self.ratio is None:
            return "alone"
        return "won" if self.ratio >= 1.0 else "lost"


def judge(records: Records, cells: Sequence[Cell], threads: int) -> list[Verdict]:
    """Every cell that both we and at least one peer have run."""
    verdicts = []
    for cell in cells:
        if not records.of("fit", cell=cell.name, peer=OURS, threads=threads):
            continue
        standings = Standings(records, cell.name, threads)
        for target in TARGETS:
            rivals = standings.ranking(target, but=NOT_PEERS)
            rival, theirs = rivals[0] if rivals else (None, None)
            verdicts.append(Verdict(cell, target, standings.time(OURS, target), rival, theirs))
    return verdicts


def mean_ratio(verdicts: Sequence[Verdict]) -> float:
    """The geometric mean over everything where both got there."""
    ratios = [verdict.ratio for verdict in verdicts if verdict.ratio is not None]
    return geometric_mean(ratios) if ratios else math.nan


def tally(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How often each result."""
    results = [verdict.result for verdict in verdicts]
    return {word: results.count(word) for word in ("won", "alone", "lost", "failed")}
