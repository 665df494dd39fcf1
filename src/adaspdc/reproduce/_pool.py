"""Carrying jobs out, one a core, with a bar that says how long it will take."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from ..result import Status
from ._jobs import Job, perform
from ._store import Store

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_jobs(
    jobs: Iterable[Job], store: Store, processes: int, label: str
) -> dict[Job, dict[str, Any]]:
    """The records of all jobs, from the store where it has them.

    Raises KeyboardInterrupt on Ctrl-C; what was finished by then is in the store.
    """
    wanted = sorted(set(jobs), key=_order)
    records = {job: record for job in wanted if (record := store.read(job)) is not None}
    missing = [job for job in wanted if job not in records]
    if not missing:
        return records
    with progress(label, sum(job.cost for job in missing)) as bar:
        for job, record in _results(missing, processes):
            if record["status"] == Status.STOPPED:
                raise KeyboardInterrupt
            store.write(job, record)
            records[job] = record
            bar.add(job.cost)
    return records


def _order(job: Job) -> tuple[Any, ...]:
    """Jobs of one data set, and there of one problem, follow each other: it is read once."""
    task = job.task
    return task.material.name, task.loss, -task.lam, str(job.method), job.step or 0.0, job.seed


def _results(jobs: list[Job], processes: int) -> Iterator[tuple[Job, dict[str, Any]]]:
    if processes == 1 or len(jobs) == 1:
        for job in jobs:
            yield job, perform(job)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            processes, mp_context=multiprocessing.get_context("spawn"), initializer=_quiet
        )
    try:
        with _one_thread_each():
            yield from _as_completed(pool, jobs, processes)
    finally:
        workers = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(5.0)


def _as_completed(
    pool: ProcessPoolExecutor, jobs: list[Job], processes: int
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """At most twice as many jobs at a time as processes, so that the order is kept."""
    waiting = iter(jobs)
    running: dict[Future[dict[str, Any]], Job] = {}
    while True:
        while len(running) < 2 * processes and (job := next(waiting, None)) is not None:
            running[pool.submit(perform, job)] = job
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future.result()


def _quiet() -> None:
    """Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Worker processes inherit an environment in which every library uses one thread."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# --- progress -------------------------------------------------------------------------------------


@contextmanager
def progress(label: str, total: float) -> Iterator[Any]:
    """A bar on stderr with the time left; nothing at all where that is not a terminal."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    try:
        import rich.progress as bars
    except ImportError:
        line = _Line(label, total)
        try:
            yield line
        finally:
            line.end()
        return
    columns = (
        bars.TextColumn("{task.description:<10}"),
        bars.BarColumn(bar_width=24),
        bars.TextColumn("{task.percentage:>3.0f} %"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left:"),
        bars.TimeRemainingColumn(elapsed_when_finished=False),
    )
    from rich.console import Console

    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Rich(shown, shown.add_task(label, total=total))


class _Silent:
    def add(self, amount: float) -> None:
        """Nothing."""


class _Rich:
    def __init__(self, shown: Any, task: Any) -> None:
        self._shown, self._task = shown, task

    def add(self, amount: float) -> None:
        """Move on."""
        self._shown.advance(self._task, amount)


class _Line:
    """One line, rewritten in place, for terminals without rich."""

    def __init__(self, label: str, total: float) -> None:
        self._label, self._total, self._done = label, total, 0.0
        self._begun = time.monotonic()
        self.add(0.0)

    def add(self, amount: float) -> None:
        """Move on."""
        self._done += amount
        share = self._done / self._total
        left = ""
        if share > 0.0:
            seconds = (time.monotonic() - self._begun) * (1.0 / share - 1.0)
            left = f", {seconds / 60.0:.1f} minutes left"
        sys.stderr.write(f"\r{self._label}: {share:4.0%}{left}   ")
        sys.stderr.flush()

    def end(self) -> None:
        """Make room for what comes next."""
        sys.stderr.write("\r" + " " * 60 + "\r")
        sys.stderr.flush()
