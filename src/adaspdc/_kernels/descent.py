"""Coordinate descent on a Newton model without its Hessian: sparse columns, one output."""

from ._jit import jit

_INNER = 10


@jit
def descend(
    ends, places, values, columns, bend, force, curve, lam, l1, bounded, x, dz, share, sweeps
):
    """Minimise over the coefficients x in ``columns``, all others held,

        <force, x - x0> + sum_i bend_i dz_i^2 / 2 + lam |x - x0|^2 / 2 + sum_j l1_j |x_j|

    with dz = X (x - x0), from x = x0 and dz = 0, both of which it changes. ``force`` is the
    gradient of loss and L2 term at x0, ``curve`` the diagonal of the Hessian of the loss, and x_j
    that are ``bounded`` stay at or above zero. Column j is ``places[ends[j]:ends[j + 1]]``, and a
    column beyond the last is one of ones: the intercept. Ends when a sweep over all columns changes
    no derivative by more than ``share`` of what the first changed, or after so many sweeps; returns
    whether it was the former.
    """
    start = x.copy()
    width = ends.shape[0] - 1
    target, done = 0.0, 0
    while done < sweeps:
        inside = done % (_INNER + 1) != 0  # between sweeps over all, those over what is not zero
        most = 0.0
        for j in columns:
            if inside and x[j] == 0.0:
                continue
            pull = force[j] + lam[j] * (x[j] - start[j])
            if j < width:
                for k in range(ends[j], ends[j + 1]):
                    pull += values[k] * bend[places[k]] * dz[places[k]]
            else:
                for i in range(dz.shape[0]):
                    pull += bend[i] * dz[i]
            stiff = curve[j] + lam[j]
            if stiff <= 0.0:
                continue
            aim = x[j] - pull / stiff
            reach = l1[j] / stiff
            new = aim - reach if aim > reach else (aim + reach if aim < -reach else 0.0)
            if bounded[j]:
                new = max(new, 0.0)
            move = new - x[j]
            if move == 0.0:
                continue
            most = max(most, abs(move) * stiff)
            x[j] = new
            if j < width:
                for k in range(ends[j], ends[j + 1]):
                    dz[places[k]] += values[k] * move
            else:
                for i in range(dz.shape[0]):
                    dz[i] += move
        done += 1
        if done == 1:
            target = share * most
        elif most <= target:
            if not inside:
                return True
            done += _INNER - (done - 1) % (_INNER + 1)  # to the next sweep over all
    return target == 0.0
