"""Measuring where other processes take the processor whenever they like."""

import os
import time
from collections.abc import Callable
from math import inf


def fastest(seconds: Callable[[], float], limit: float, attempts: int = 8) -> float:
    """The least of some measurements, the last of which is the first below ``limit``.

    They lie further and further apart: what keeps the machine busy may have ended by then.
    """
    best = inf
    for k in range(attempts):
        time.sleep(0.1 * k)
        best = min(best, seconds())
        if best < limit:
            break
    return best


def wall_seconds(action: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def seconds_of_children(action: Callable[[], object]) -> float:
    """Processor time of the processes it starts and waits for; all its time on Windows."""
    before = os.times()
    wall = wall_seconds(action)
    after = os.times()
    spent = after.children_user - before.children_user
    spent += after.children_system - before.children_system
    return wall if os.name == "nt" else spent


PEAK = """
def peak():
    # Bytes this process has held so far. getrusage would count those of the one that started it.
    with open("/proc/self/status") as file:
        return 1024 * int(file.read().split("VmHWM:")[1].split()[0])
"""
