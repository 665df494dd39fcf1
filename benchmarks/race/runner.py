"""The race itself: every peer up its ladder of tolerances, in every cell, and then a rematch."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from .cells import TARGETS, Cell
from .peers import OURS, find
from .records import Record, Records
from .session import Ended, Session
from .verdict import NOT_PEERS, Standings, key

Say = Callable[[str], None]
_STARTING = 120.0
"""Seconds for imports, compilation, warm-up and conversion on top of the cap of a fit."""
_LAST = min(target.level for target in TARGETS if target.kind == "sub")


@dataclass(frozen=True)
class Limits:
    """How long anything may take, in seconds."""

    fit: float = 60.0
    patience: float = 5.0
    """A fit is killed after so many times what the fastest peer needed to the last accuracy,"""
    least: float = 2.0
    """but not before this."""
    repeats: int = 3
    repeating: float = 3.0
    """A fit is repeated once, and again as long as all its turns take less than this."""
    optimum: float = 120.0
    rematch: float = 10.0
    """Fits longer than this are not run again, in the rematch or before."""


class Race:
    """Runs cells and writes down what happened."""

    def __init__(self, records: Records, work: Path, limits: Limits, say: Say) -> None:
        self.records, self.work, self.limits, self.say = records, work, limits, say

    def run(self, cells: Sequence[Cell], peers: Sequence[str], threads: int) -> None:
        """All peers in all cells; cells of one data set and loss share a process per peer."""
        for (_, loss), group in groupby(cells, key=lambda cell: (cell.data, cell.loss)):
            ready = [cell for cell in group if self._optimum(cell)]
            takers = [peer for peer in peers if find(peer)(threads).takes(loss)]
            if threads > 1:
                takers = [peer for peer in takers if find(peer).threaded]
            for peer in takers:
                todo = [cell for cell in ready if not self._done(cell, peer, threads)]
                if todo:
                    self._race(peer, todo, threads)
            for cell in ready:
                self._rematch(cell, threads)

    def _optimum(self, cell: Cell) -> bool:
        if self.records.of("optimum", cell=cell.name):
            return True
        job = {"data": cell.data, "loss": cell.loss, "lam": cell.lam, "work": str(self.work)}
        job["seconds"] = self.limits.optimum
        with Session(job, 3 * self.limits.optimum + _STARTING) as session:
            found = session.hello
        if found["status"] != "ok":
            self.say(f"{cell.name}: left out, {found['words']}")
            return False
        self.records.add("optimum", cell=cell.name, **found)
        gap = max(found["value"] - found["bound"], 0.0) / max(found["value"], 1e-300)
        self.say(f"{cell.name}: optimum {found['value']:.12g} known to {gap:.0e}")
        return True

    def _done(self, cell: Cell, peer: str, threads: int) -> bool:
        return bool(self.records.of("outcome", cell=cell.name, peer=peer, threads=threads))

    def _race(self, peer: str, cells: Sequence[Cell], threads: int) -> None:
        """One process, and a new one after each that had to be killed."""
        left = list(cells)
        while left:
            with self._open(peer, left[0], threads) as session:
                hello = session.hello
                if hello["status"] != "ready":
                    for cell in left:
                        self._outcome(cell, peer, threads, hello["status"], hello["words"])
                    return
                alive = True
                while left and alive:
                    cell = left.pop(0)
                    self.records.add("hello", cell=cell.name, peer=peer, threads=threads, **hello)
                    alive = self._climb(session, cell, peer, threads)

    def _open(self, peer: str, cell: Cell, threads: int) -> Session:
        job = {"peer": peer, "data": cell.data, "loss": cell.loss, "threads": threads}
        return Session({**job, "work": str(self.work)}, _STARTING + self.limits.fit)

    def _climb(self, session: Session, cell: Cell, peer: str, threads: int) -> bool:
        """Tolerance after tolerance until the last accuracy; whether the process still lives."""
        status, words, alive = "not reached", "", True
        for settings in find(peer)(threads).settings(cell.loss):
            turn = self._turns(session, cell, settings, self._cap(cell, threads, peer))
            if turn.get("seconds"):
                fit = self.records.add("fit", cell=cell.name, peer=peer, threads=threads, **turn)
                if self._arrived(cell, fit):
                    status, alive = "reached", turn["status"] == "ok"
                    break
            if turn["status"] != "ok":
                status, words = turn["status"], turn["words"]
                alive = status not in ("timeout", "crashed")
                break
        self._outcome(cell, peer, threads, status, words)
        return alive

    def _turns(self, session: Session, cell: Cell, settings: dict[str, Any], cap: float) -> Record:
        """One fit, several times; what a turn that was cut short leaves is kept."""
        turn: Record = {"settings": settings, "seconds": [], "cpu": []}
        seconds = turn["seconds"]
        while True:
            try:
                answer = session.ask({"lam": cell.lam, "settings": settings}, cap)
            except Ended as ended:
                return {**turn, "status": ended.status, "words": ended.words}
            if answer["status"] != "ok":
                return {**turn, **answer}
            seconds.append(answer.pop("seconds"))
            turn["cpu"].append(answer.pop("cpu"))
            turn.update(answer)
            if self._enough(seconds):
                return turn

    def _enough(self, seconds: list[float]) -> bool:
        """A second turn is skipped only where it is long: the first may have met a cold branch."""
        limits = self.limits
        if len(seconds) == 1 and limits.repeats > 1:
            return seconds[0] > limits.rematch
        return len(seconds) >= limits.repeats or sum(seconds) + min(seconds) > limits.repeating

    def _cap(self, cell: Cell, threads: int, peer: str) -> float:
        """Ours cuts nobody short: a peer's patience is measured by the fastest peer."""
        standings = Standings(self.records, cell.name, threads, clock="seconds")
        rivals = standings.ranking(TARGETS[2], but=NOT_PEERS)
        if peer in NOT_PEERS or not rivals:
            return self.limits.fit
        fastest = rivals[0][1].seconds
        return min(self.limits.fit, max(self.limits.least, self.limits.patience * fastest))

    def _arrived(self, cell: Cell, fit: Record) -> bool:
        """At the last accuracy, and for a solver that certifies at the last gap."""
        standings = Standings(self.records, cell.name, fit["threads"])
        if fit["peer"] != OURS:
            return standings.meets(fit, TARGETS[2])
        return all(standings.meets(fit, target) for target in TARGETS)

    def _outcome(self, cell: Cell, peer: str, threads: int, status: str, words: str) -> None:
        self.records.add(
            "outcome", cell=cell.name, peer=peer, threads=threads, status=status, words=words
        )
        self.say(Standings(self.records, cell.name, threads).line(peer, status, words))

    def _rematch(self, cell: Cell, threads: int) -> None:
        """Ours and the fastest peers of every accuracy take turns: the machine is not always alike.

        The new times join the old ones, of which the least counts.
        """
        standings = Standings(self.records, cell.name, threads)
        duels = [fit for target in TARGETS for fit in standings.duel(target)]
        fits = {key(fit): fit for fit in duels if min(fit["seconds"]) < self.limits.rematch}
        known = {key(record) for record in self.records.of("rematch", cell=cell.name)}
        if set(fits) <= known:
            return
        sides = {(fit["peer"], fit["threads"]) for fit in fits.values()}
        with ExitStack() as stack:
            sessions = {
                (peer, count): stack.enter_context(self._open(peer, cell, count))
                for peer, count in sides
            }
            self._turn_about(sessions, cell, list(fits.values()))

    def _turn_about(
        self, sessions: dict[tuple[str, int], Session], cell: Cell, fits: list[Record]
    ) -> None:
        turns: list[list[Record]] = [[] for _ in fits]
        order = list(range(len(fits)))
        for _ in range(self.limits.repeats):
            for k in order:
                request = {"lam": cell.lam, "settings": fits[k]["settings"]}
                session = sessions[fits[k]["peer"], fits[k]["threads"]]
                with suppress(Ended):
                    answer = session.ask(request, self.limits.fit)
                    if answer["status"] == "ok":
                        turns[k].append(answer)
            order.reverse()
        for fit, answers in zip(fits, turns, strict=True):
            about = {name: fit[name] for name in ("peer", "threads", "settings")}
            times = {clock: [answer[clock] for answer in answers] for clock in ("seconds", "cpu")}
            self.records.add("rematch", cell=cell.name, **about, **times)
