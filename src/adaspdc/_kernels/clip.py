"""The nearest number of an interval."""

from ._jit import helper


@helper
def clip(x, low, high):
    """x moved into low..high; NaN stays NaN, which a pair of min and max would hide."""
    if x < low:
        return low
    if x > high:
        return high
    return x
