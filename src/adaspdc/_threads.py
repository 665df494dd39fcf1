"""Teams of threads for kernels: one call a member, the caller's thread among them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np

from ._containers import Team

_ENTRIES_WORTH_A_BARRIER = 4000
"""Below this many matrix entries between two barriers, waiting costs more than it saves."""
_ABANDONED = 1 << 62
"""More arrivals than any barrier waits for."""


class Threads:
    """``n_threads`` threads that run kernels together; a context manager."""

    def __init__(self, n_threads: int) -> None:
        self.size = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None
        self._holds_blas = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if self._holds_blas:
            _BLAS.release()

    def quiet_blas(self) -> None:
        """From now on BLAS uses one thread of its own: ours do what there is to share.

        Its threads wait for each other by spinning, which on a busy machine takes a hundred times
        longer than the work.
        """
        if not self._holds_blas:
            self._holds_blas = True
            _BLAS.hold()

    def worth(self, entries: float) -> int:
        """How many threads to use where ``entries`` matrix entries lie between two barriers."""
        return self.size if entries >= _ENTRIES_WORTH_A_BARRIER else 1

    def run(self, call: Callable[[Team], Any], size: int) -> None:
        """``call(team)`` once for each of ``size`` members, all at once.

        Where one of them fails (a user's function may raise), no barrier holds the others any more:
        they run to their end, and the error is raised.
        """
        arrivals = np.zeros(1, dtype=np.int64)
        teams = [Team(np.uint64(i), np.uint64(size), arrivals) for i in range(size)]
        if size == 1 or self._pool is None:
            call(teams[0])
            return

        def member(team: Team) -> None:
            try:
                call(team)
            except BaseException:
                arrivals[0] = _ABANDONED
                raise

        others: list[Future[None]] = []
        try:
            for team in teams[1:]:
                others.append(self._pool.submit(member, team))
            member(teams[0])
        except BaseException:
            arrivals[0] = _ABANDONED
            raise
        finally:
            wait(others)
        for other in others:
            other.result()


class _QuietBlas:
    """The limit on BLAS, shared by solves that overlap: the first sets it, the last lifts it."""

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._limit: Any = None

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = _blas_controller().limit(limits=1, user_api="blas")
            self._holders += 1

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._limit is not None:
                self._limit.restore_original_limits()


_BLAS = _QuietBlas()


@cache
def _blas_controller() -> Any:
    """The BLAS libraries of NumPy and SciPy, found once."""
    import scipy.linalg  # noqa: F401 - loads its BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
