"""A process per peer and data set, asked for one fit at a time, killed when it takes too long."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from .peers import find
from .pinned import PINNED

FOLDER = Path(__file__).parent.parent
Answer = dict[str, Any]


class Ended(Exception):
    """The process is gone: ``status`` is "timeout" or "crashed"."""

    def __init__(self, status: str, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class Session:
    """One worker. ``hello`` is its first answer: versions and seconds, or why it will not run."""

    def __init__(self, job: dict[str, Any], cap: float) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._process = subprocess.Popen(
            [_interpreter(job.get("peer", "")), "-m", "race.worker", json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(int(job.get("threads", 1))),
            start_new_session=True,  # so that all its threads and children can be killed
        )
        self._pending = b""
        try:
            self.hello = self._read(cap)
        except Ended as ended:
            self.hello = {"status": ended.status, "words": ended.words}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, message: Answer, cap: float) -> Answer:
        """The answer to one request; raises Ended when there is none within ``cap`` seconds."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            raise Ended("timeout", "killed before")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._crashed() from None
        return self._read(cap)

    def close(self) -> None:
        """Kill it and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):  # its other end may be gone
                    pipe.close()

    def _read(self, cap: float) -> Answer:
        assert self._process.stdout is not None
        stdout, end = self._process.stdout, monotonic() + cap
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, end - monotonic())):
                    self.close()
                    raise Ended("timeout", f"killed after {cap:.3g} s")
                part = os.read(stdout.fileno(), 1 << 16)
                if not part:
                    raise self._crashed()
                self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        answer: Answer = json.loads(line)
        return answer

    def _crashed(self) -> Ended:
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        return Ended("crashed", f"{how}: {said[-1][:200]}" if said else how)


def _interpreter(peer: str) -> str:
    own = find(peer).environment if peer else None
    if own is None:
        return sys.executable
    python = Path(sys.prefix) / own / "bin" / "python"
    return str(python) if python.exists() else sys.executable


def _environment(threads: int) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(FOLDER), *([inherited] if inherited else [])])
    return {**os.environ, "PYTHONPATH": path, **dict.fromkeys(PINNED, str(threads))}
