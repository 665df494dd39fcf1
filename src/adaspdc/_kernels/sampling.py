"""Random block orders. Every kernel advances an explicit generator state: four uint64 words."""

import numpy as np

from ._jit import helper, jit

_11, _17, _19, _23, _32, _41, _45 = (np.uint64(k) for k in (11, 17, 19, 23, 32, 41, 45))
_LOW_HALF = np.uint64(0xFFFFFFFF)
_TWO_TO_32 = np.uint64(1 << 32)
_ULP = 2.0**-53


@helper
def next_word(state):
    """64 random bits: xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021)."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    mixed = s0 + s3
    word = ((mixed << _23) | (mixed >> _41)) + s0
    s2 ^= s0
    s3 ^= s1
    state[1] = s1 ^ s2
    state[0] = s0 ^ s3
    state[2] = s2 ^ (s1 << _17)
    state[3] = (s3 << _45) | (s3 >> _19)
    return word


@helper
def unit(state):
    """Uniform on [0, 1)."""
    return (next_word(state) >> _11) * _ULP


@helper
def below(state, size):
    """Uniform on 0..size-1 without bias (Lemire, TOMACS 29, 2019), for size < 2**32."""
    bound = np.uint64(size)
    product = (next_word(state) >> _32) * bound
    if (product & _LOW_HALF) < bound:
        surplus = (_TWO_TO_32 - bound) % bound
        while (product & _LOW_HALF) < surplus:
            product = (next_word(state) >> _32) * bound
    return np.int64(product >> _32)


@jit
def uniform_singles(state, n, out):
    for t in range(out.shape[0]):
        out[t, 0] = below(state, n)


@jit
def uniform_subsets(state, order, out):
    """Independent subsets, each the head of a partial Fisher-Yates shuffle of ``order``."""
    n = order.size
    for t in range(out.shape[0]):
        for j in range(out.shape[1]):
            other = j + below(state, n - j)
            chosen = order[other]
            order[other] = order[j]
            order[j] = chosen
            out[t, j] = chosen


@jit
def permutation_batches(state, order, position, out):
    """Consecutive pieces of fresh shuffles; returns the position reached in the current one.

    The shuffle advances with the draws. A batch that begins in one shuffle and ends in the next
    finds its first blocks at the end of ``order``: they are kept out of reach until it is full.
    """
    n = order.size
    for t in range(out.shape[0]):
        out_of_reach = 0
        for j in range(out.shape[1]):
            if position == n:
                position = 0
                out_of_reach = j
            other = position + below(state, n - out_of_reach - position)
            chosen = order[other]
            order[other] = order[position]
            order[position] = chosen
            out[t, j] = chosen
            position += 1
    return position


@jit
def build_alias_table(threshold, alias):
    """Vose's table, in place: ``threshold`` comes in as n * probability.

    The blocks still to be paired form two linked lists that live in ``alias`` itself.
    """
    n = threshold.size
    poor = n
    rich = n
    for i in range(n):
        if threshold[i] < 1.0:
            alias[i] = poor
            poor = i
        else:
            alias[i] = rich
            rich = i
    while poor != n and rich != n:
        taker = poor
        giver = rich
        poor = np.int64(alias[taker])
        alias[taker] = giver
        threshold[giver] = (threshold[giver] + threshold[taker]) - 1.0
        if threshold[giver] < 1.0:
            rich = np.int64(alias[giver])
            alias[giver] = poor
            poor = giver
    rest = poor if poor != n else rich  # only rounding leaves a poor block without a giver
    while rest != n:
        following = np.int64(alias[rest])
        threshold[rest] = 1.0
        alias[rest] = rest
        rest = following


@jit
def alias_singles(state, threshold, alias, out):
    n = threshold.size
    for t in range(out.shape[0]):
        i = below(state, n)
        out[t, 0] = i if unit(state) < threshold[i] else alias[i]


@helper
def first_above(cumulative, point, low, high):
    """The first index in low..high whose entry exceeds ``point``, or ``high``."""
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def weighted_subsets(state, cumulative, order, out):
    """Independent batches by systematic sampling: points u, u+1, ... on the cumulative weights.

    In exact arithmetic no block of weight <= 1 holds two points; the bounds of the search keep
    that true when rounding would say otherwise.
    """
    n = cumulative.size
    m = out.shape[1]
    spacing = cumulative[n - 1] / m
    for t in range(out.shape[0]):
        shift = unit(state)
        place = -1
        for j in range(m):
            place = first_above(cumulative, (shift + j) * spacing, place + 1, n - m + j)
            out[t, j] = order[place]


@jit
def random_order(state, n):
    order = np.arange(n, dtype=np.uint32)
    for last in range(n - 1, 0, -1):
        other = below(state, last + 1)
        moved = order[last]
        order[last] = order[other]
        order[other] = moved
    return order


@helper
def fill_pass(state, inclusion, m, picks):
    """Write one pass of systematic batches, in random order, into ``picks``.

    Pick k of the pass sits at u + k on the cumulative weights, scaled to as many picks as there
    are, and goes to batch k mod length. A block's picks follow one another and number at most
    ``length``, so no batch holds it twice. Weights of larger batches are laid out in random order,
    else neighbours would never meet; that order is dropped after use.
    """
    n = inclusion.size
    length = n // m
    order = random_order(state, n if m > 1 else 0)
    total = 0.0
    for v in range(n):  # summed in the order used below, so that the last point lies inside
        total += inclusion[order[v] if m > 1 else v]
    wanted = length * m
    density = wanted / total
    shift = unit(state)
    reached = 0.0
    picked = 0
    for v in range(n):
        i = order[v] if m > 1 else v
        reached += inclusion[i]
        target = np.int64(reached * density - shift + 1.0)  # how many points lie below
        # Rounding must give no block too many picks, nor leave too many to those that remain.
        target = min(target, picked + length, wanted)
        target = max(target, picked, wanted - length * (n - 1 - v))
        picks[picked] = i  # to be overwritten if it gets none: cheaper than an unforeseeable branch
        for k in range(picked + 1, target):
            picks[k] = i
        picked = target
    for last in range(length - 1, 0, -1):
        other = below(state, last + 1)
        for k in range(0, wanted, length):
            moved = picks[k + last]
            picks[k + last] = picks[k + other]
            picks[k + other] = moved


@jit
def systematic_batches(state, inclusion, picks, position, out):
    """Hand out the batches from ``position`` on, refilled as needed; returns the new position.

    Batch b is ``picks[b::length]`` without the last, spare entry.
    """
    m = out.shape[1]
    length = inclusion.size // m
    for t in range(out.shape[0]):
        if position == length:
            fill_pass(state, inclusion, m, picks)
            position = 0
        for j in range(m):
            out[t, j] = picks[position + j * length]
        position += 1
    return position
