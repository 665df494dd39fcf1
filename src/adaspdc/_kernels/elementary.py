"""Exponential and logarithm without a branch or a call, so that loops over them are vectorised.

The C library's are as exact, but a loop that calls them handles one number at a time.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from ._jit import helper

_LOG2_E = 1.4426950408889634
# log(2) in two parts: products of the first with whole numbers are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest whole number in the low bits
_BIAS = np.int64(1023 << 52)
_MANTISSA = np.int64((1 << 52) - 1)
_HALF_BITS = np.int64(1022 << 52)
_SHIFT = np.int64(52)


def _cast(result, argument):
    """An intrinsic that reads the bits of a number as one of another type."""

    def cast(typing_context, number):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return result(argument), generate

    return intrinsic(cast)


_bits = _cast(types.int64, types.float64)
_number = _cast(types.float64, types.int64)


@helper(inline=True)
def exp_of_negative(x):
    """exp(x) for x <= 0, to about one unit in the last place; below -708 that of -708."""
    x = -708.0 if x < -708.0 else x
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = (p * r) * r + r
    return (1.0 + p) * _number((_bits(shifted) << _SHIFT) + _BIAS)


@helper(inline=True)
def log_of_positive(x):
    """log(x) for finite x > 0, to about one unit in the last place; some -745 for x = 0.

    The series of fdlibm: log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)) with s = f / (2 + f).
    """
    tiny = x < 1e-290
    x = x * 18014398509481984.0 if tiny else x  # 2^54
    bits = _bits(x)
    m = _number((bits & _MANTISSA) | _HALF_BITS)  # in [1/2, 1)
    small = m < 0.7071067811865476
    m = m + m if small else m
    # The exponent as a number, by the same trick as above: conversions are not vectorised.
    k = _number((bits >> _SHIFT) + np.int64(0x4338000000000000)) - _ROUND - 1022.0
    k = k - 1.0 if small else k
    k = k - 54.0 if tiny else k
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    odd = z * (
        0.6666666666666735130
        + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    )
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + (even + odd)) + k * _LN2_LOW)) - f)


@helper(inline=True)
def log1p_of_unit(x):
    """log(1 + x) for -1 <= x <= 1; some -745 for x = -1."""
    w = 1.0 + x
    lost = x - (w - 1.0)
    return log_of_positive(w) + (lost / w if w > 0.0 else 0.0)
