"""Threads that walk through one kernel call together.

Work between two barriers is split by rows where rows are read and by columns where columns are
written, so no two threads ever write one number and every sum is taken in the order one thread
would take it: the result has the same bits for any number of threads.
"""

import os

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._jit import helper

_SPINS_BEFORE_YIELD = 4000
_yield_processor = types.ExternalFunction(
    "SwitchToThread" if os.name == "nt" else "sched_yield", types.int32()
)


@intrinsic
def _add_atomically(typing_context, array, value):  # type: ignore[no-untyped-def]
    """``array[0] += value`` seen by all threads at once; returns the number before."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array_type = signature.args[0]
        native = context.make_array(array_type)(context, builder, arguments[0])
        zero = context.get_constant(types.intp, 0)
        place = cgutils.get_item_pointer(context, builder, array_type, native, [zero])
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(array, types.int64), generate


@helper
def barrier(team, passed):
    """Wait until every member has come here ``passed`` times; returns ``passed + 1``."""
    if team.size > np.uint64(1):
        expected = numba.int64(team.size) * numba.int64(passed)
        _add_atomically(team.arrivals, numba.int64(1))
        spins = 0
        while _add_atomically(team.arrivals, numba.int64(0)) < expected:
            spins += 1
            if spins > _SPINS_BEFORE_YIELD:
                _yield_processor()
                spins = 0
    return passed + 1


@helper
def share(team, count):
    """The half-open range of ``count`` items that falls to this member."""
    return (count * team.member) // team.size, (count * (team.member + np.uint64(1))) // team.size
