"""Asking for memory before it is needed.

Rows are visited in random order, so the processor cannot guess the next one; the solver knows it. A
visit of a row of some dozens of entries costs less than one wait for memory.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from .._containers import Dense
from ._jit import helper

_LINE = 64
_MOST_LINES = np.uint64(24)
"""Longer rows are recognised by the processor's own prefetcher."""

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@intrinsic
def _touch(typing_context, array, offset):
    """Ask for the cache line of the entry at a flat ``offset`` of a contiguous array."""
    signature = types.void(array, types.uint64)

    def generate(context, builder, signature, arguments):
        native = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = builder.gep(native.data, [arguments[1]])
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, data = ir.Constant(number, 0), ir.Constant(number, 3), ir.Constant(number, 1)
        builder.call(ask, [builder.bitcast(item, byte), to_read, keep, data])
        return context.get_dummy_value()

    return signature, generate


@helper
def fetch_span(array, first, last, itemsize):
    """Ask for the entries ``first`` to ``last`` (excluded) of a flat array."""
    step = np.uint64(_LINE) // np.uint64(itemsize)
    last = min(last, first + _MOST_LINES * step)
    for offset in range(first, last, step):
        _touch(array, np.uint64(offset))


@helper
def fetch_entry(array, place):
    """Ask for one entry of a contiguous array of one dimension."""
    _touch(array, np.uint64(place))


def fetch_row(rows, row):  # pragma: no cover - replaced by its overload
    """Ask for the entries of ``row``."""
    raise NotImplementedError


def fetch_start(rows, row):  # pragma: no cover
    """Ask for what says where the entries of ``row`` begin."""
    raise NotImplementedError


@overload(fetch_row, inline="always")
def _fetch_row(rows, row):
    if rows.instance_class is Dense:

        def dense(rows, row):
            width = np.uint64(rows.values.shape[1])
            start = np.uint64(row) * width
            fetch_span(rows.values, start, start + width, rows.values.itemsize)

        return dense

    def csr(rows, row):
        # A few lines without asking how long the row is: a wrong guess of a loop costs more.
        first = np.uint64(rows.indptr[row])
        _touch(rows.indices, first)
        _touch(rows.indices, first + np.uint64(15))
        _touch(rows.data, first)
        _touch(rows.data, first + np.uint64(8))
        _touch(rows.data, first + np.uint64(15))

    return csr


def fetch_long_row(rows, row):  # pragma: no cover
    """`fetch_row` where rows have dozens of entries: all of them."""
    raise NotImplementedError


@overload(fetch_long_row, inline="always")
def _fetch_long_row(rows, row):
    if rows.instance_class is Dense:
        return lambda rows, row: fetch_row(rows, row)

    def csr(rows, row):
        first, last = np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + _ONE])
        fetch_span(rows.indices, first, last, rows.indices.itemsize)
        fetch_span(rows.data, first, last, rows.data.itemsize)

    return csr


@overload(fetch_start, inline="always")
def _fetch_start(rows, row):
    if rows.instance_class is Dense:
        return lambda rows, row: None
    return lambda rows, row: fetch_entry(rows.indptr, row)
