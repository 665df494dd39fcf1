"""How long numba has kept this thread busy, so that compiling can be told from solving."""

import threading
from time import perf_counter

from numba.core import event


class CompileClock(event.Listener):
    """While active, adds up the time this thread spends compiling or loading from the cache."""

    def __init__(self):
        self.seconds = 0.0
        self._thread = threading.get_ident()
        self._depth = 0
        self._since = 0.0

    def __enter__(self):
        event.register("numba:compiler_lock", self)
        return self

    def __exit__(self, *exception):
        event.unregister("numba:compiler_lock", self)

    def on_start(self, event):
        if threading.get_ident() == self._thread:
            if self._depth == 0:
                self._since = perf_counter()
            self._depth += 1

    def on_end(self, event):
        if threading.get_ident() == self._thread and self._depth > 0:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += perf_counter() - self._since
