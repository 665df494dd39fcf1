"""A parser of libsvm/svmlight text: bytes in, labels and CSR arrays out.

Numbers are rounded correctly, as Python's ``float`` does it: up to 19 digits with one product of
64 by 128 bits (Lemire, Number parsing at a gigabyte per second, Software 2021); whatever is longer
or not made of digits is left to the caller, who has ``float``.
"""

import math

import numpy as np

from ._jit import helper, jit

OK, MORE, FULL = 0, 1, 2
"""All of it parsed; a line without its end at the end; no room for what is deferred."""
BAD_LABEL, NO_COLON, BAD_INDEX, ZERO_INDEX, NOT_ASCENDING = 11, 12, 13, 14, 15
BAD_VALUE, HUGE_INDEX, SEVERAL_LABELS = 16, 17, 18

_NOT_A_NUMBER, _NUMBER, _DEFERRED = 0, 1, 2
_MAX_INDEX = 2**31 - 2
_LOWEST_POWER, _HIGHEST_POWER = -342, 308


def _powers_of_five() -> np.ndarray:
    """Leading 128 bits of 5**q for every q a double can need: high and low words."""
    table = np.zeros((_HIGHEST_POWER - _LOWEST_POWER + 1, 2), dtype=np.uint64)
    for q in range(_LOWEST_POWER, _HIGHEST_POWER + 1):
        if q >= 0:
            power = 5**q
            shift = power.bit_length() - 128
            power = power >> shift if shift > 0 else power << -shift
        else:
            divisor = 5**-q
            length = divisor.bit_length()
            power = (1 << (length + 127 if q >= -27 else 2 * length + 128)) // divisor + 1
            power >>= max(power.bit_length() - 128, 0)
        table[q - _LOWEST_POWER] = power >> 64, power & (2**64 - 1)
    return table


POWERS = _powers_of_five()
TENS = 10.0 ** np.arange(23)


@helper
def _product(a, b):
    """High and low word of the product of two 64-bit numbers."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> half) + (middle & mask) + (other & mask)
    high = a1 * b1 + (middle >> half) + (other >> half) + (carry >> half)
    return high, (low & mask) | (carry << half)


@helper
def _leading_zeros(w):
    n = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - shift) == 0:
            n += shift
            w <<= np.uint64(shift)
    return n


@helper
def _rounded(w, q, powers):
    """``w * 10**q`` rounded to the nearest double, for 0 < w < 2**64."""
    if q < _LOWEST_POWER:
        return 0.0
    if q > _HIGHEST_POWER:
        return math.inf
    zeros = _leading_zeros(w)
    w <<= np.uint64(zeros)
    high, low = _product(w, powers[q - _LOWEST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(w, powers[q - _LOWEST_POWER, 1])
        low += more
        if low < more:
            high += np.uint64(1)
    upper = int(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    mantissa = high >> shift
    power = ((217706 * q) >> 16) + 63 + upper - zeros + 1023
    if power <= 0:  # subnormal: fewer bits
        if 1 - power >= 64:
            return 0.0
        mantissa >>= np.uint64(1 - power)
        mantissa += mantissa & np.uint64(1)
        return math.ldexp(float(mantissa >> np.uint64(1)), -1074)
    halfway = low <= np.uint64(1) and -4 <= q <= 23 and mantissa & np.uint64(3) == np.uint64(1)
    if halfway and mantissa << shift == high:
        mantissa &= ~np.uint64(1)  # exactly between two doubles: to the even one
    mantissa += mantissa & np.uint64(1)
    return math.ldexp(float(mantissa >> np.uint64(1)), power - 1075)


@helper
def _is_blank(byte):
    return byte == 32 or byte == 9 or byte == 13 or byte == 11 or byte == 12


@helper
def _token_end(text, at, stop):
    """Where the run of characters other than blanks, ':', ',' and '#' ends."""
    while at < stop:
        byte = text[at]
        if _is_blank(byte) or byte == 10 or byte == 58 or byte == 44 or byte == 35:
            break
        at += 1
    return at


@helper
def _number(text, at, stop, powers, tens):
    """(kind, value, end) of the number at ``at``; DEFERRED where Python must decide."""
    begin, negative = at, False
    if at < stop and (text[at] == 43 or text[at] == 45):
        negative = text[at] == 45
        at += 1
    w, digits, exponent, seen = np.uint64(0), 0, 0, 0
    while at < stop and 48 <= text[at] <= 57:
        w = w * np.uint64(10) + np.uint64(text[at] - 48)
        digits += 1 if digits > 0 or w != 0 else 0
        seen += 1
        at += 1
    if at < stop and text[at] == 46:
        at += 1
        while at < stop and 48 <= text[at] <= 57:
            w = w * np.uint64(10) + np.uint64(text[at] - 48)
            digits += 1 if digits > 0 or w != 0 else 0
            exponent -= 1
            seen += 1
            at += 1
    if seen > 0 and at < stop and (text[at] == 101 or text[at] == 69):
        mark, at = at, at + 1
        downwards = at < stop and text[at] == 45
        if at < stop and (text[at] == 43 or text[at] == 45):
            at += 1
        written, any_digit = 0, False
        while at < stop and 48 <= text[at] <= 57:
            written = min(written * 10 + int(text[at] - 48), 100_000)
            any_digit = True
            at += 1
        if any_digit:
            exponent += -written if downwards else written
        else:
            at = mark
    end = _token_end(text, at, stop)
    if end == begin:
        return _NOT_A_NUMBER, 0.0, end
    if end != at or seen == 0 or digits > 19:
        return _DEFERRED, 0.0, end
    if w == 0:
        value = 0.0
    elif w < np.uint64(1) << np.uint64(53) and -22 <= exponent <= 22:
        value = float(w) * tens[exponent] if exponent >= 0 else float(w) / tens[-exponent]
    else:
        value = _rounded(w, exponent, powers)
    if value == math.inf:
        return _DEFERRED, 0.0, end
    return _NUMBER, -value if negative else value, end


@helper
def _index(text, at, stop):
    """(index, end) of the digits at ``at``; -1 where there are none, beyond the maximum if huge."""
    begin, index = at, 0
    while at < stop and 48 <= text[at] <= 57:
        index = min(index * 10 + int(text[at] - 48), _MAX_INDEX + 2)
        at += 1
    return (index if at > begin else -1), at


@helper
def _is_qid(text, at, stop):
    return at + 4 <= stop and (
        text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58
    )


@helper
def _pair(text, at, end, base, previous, powers, tens):
    """(code, place, index, kind, value, place of the value, end) of the pair at ``at``."""
    index, after = _index(text, at, end)
    if index < 0:
        return BAD_INDEX, at, index, 0, 0.0, after, after
    if after == end or text[after] != 58:
        code = NO_COLON if after == end or _is_blank(text[after]) else BAD_INDEX
        return code, at, index, 0, 0.0, after, after
    if index > _MAX_INDEX:
        return HUGE_INDEX, at, index, 0, 0.0, after, after
    index -= base
    if index < 0:
        return ZERO_INDEX, at, index, 0, 0.0, after, after
    if index <= previous:
        return NOT_ASCENDING, at, index, 0, 0.0, after, after
    kind, value, stop = _number(text, after + 1, end, powers, tens)
    ended = stop == end or _is_blank(text[stop]) or text[stop] == 35
    if kind == _NOT_A_NUMBER or not ended:
        return BAD_VALUE, after + 1, index, 0, 0.0, after, after
    return OK, at, index, kind, value, after + 1, stop


@helper
def _pairs(text, at, end, base, indices, values, pairs, deferred, n_deferred, powers, tens):
    """The pairs of one line: (code, place, pairs, n_deferred, last index)."""
    previous = -1
    while True:
        while at < end and _is_blank(text[at]):
            at += 1
        if at >= end or text[at] == 35:
            return OK, at, pairs, n_deferred, previous
        if _is_qid(text, at, end):
            at = _token_end(text, at + 4, end)
            continue
        code, at, index, kind, value, begin, after = _pair(
            text, at, end, base, previous, powers, tens
        )
        if code != OK:
            return code, at, pairs, n_deferred, previous
        if kind == _DEFERRED:
            if n_deferred == deferred.shape[0]:
                return FULL, at, pairs, n_deferred, previous
            deferred[n_deferred] = pairs, begin, after
            n_deferred += 1
        indices[pairs], values[pairs] = index, value
        pairs += 1
        previous, at = index, after


@jit
def parse(text, stop, final, base, labels, lengths, indices, values, deferred, powers, tens):
    """Parse whole lines of ``text[:stop]``.

    Parameters
    ----------
    text : uint8 array
    stop : int
        Bytes of it that count.
    final : bool
        Whether the last line is whole even without a line end.
    base : int
        The number of the first feature, 1 or 0.
    labels, lengths, indices, values : arrays
        Filled: one label and number of pairs per row; one feature and value per pair.
    deferred : int64 array of shape (m, 3)
        Numbers the caller must parse: slot (~row for a label, else the position in values), begin
        and end.

    Returns
    -------
    code, at, rows, pairs, n_deferred, lines, highest
        What happened, and the byte to go on from, or of the trouble; lines counts those before it.
    """
    at = rows = pairs = n_deferred = lines = 0
    highest = -1
    while at < stop:
        start, end = at, at
        while end < stop and text[end] != 10:
            end += 1
        if end == stop and not final:
            return MORE, start, rows, pairs, n_deferred, lines, highest
        while at < end and _is_blank(text[at]):
            at += 1
        if at < end and text[at] != 35:
            if n_deferred == deferred.shape[0]:
                return FULL, start, rows, pairs, n_deferred, lines, highest
            kind, labels[rows], after = _number(text, at, end, powers, tens)
            if kind == _NOT_A_NUMBER or (after < end and text[after] == 58):
                return BAD_LABEL, at, rows, pairs, n_deferred, lines, highest
            if after < end and text[after] == 44:
                return SEVERAL_LABELS, after, rows, pairs, n_deferred, lines, highest
            if kind == _DEFERRED:
                deferred[n_deferred] = ~rows, at, after
            code, at, filled, used, last = _pairs(
                text, after, end, base, indices, values, pairs, deferred,
                n_deferred + (kind == _DEFERRED), powers, tens,
            )  # fmt: skip
            if code == FULL:
                return FULL, start, rows, pairs, n_deferred, lines, highest
            if code != OK:
                return code, at, rows, pairs, n_deferred, lines, highest
            lengths[rows] = filled - pairs
            pairs, n_deferred, highest = filled, used, max(highest, last)
            rows += 1
        at = end + 1
        lines += 1
    return OK, min(at, stop), rows, pairs, n_deferred, lines, highest
