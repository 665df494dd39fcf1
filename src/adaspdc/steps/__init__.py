"""Step rules: how far each iteration moves.

Each rule is a pure function of a few numbers. In

    min_x max_y  g(x) + (1/n) sum_i ( <x, A_i y_i> - phi_i*(y_i) ),

let g be ``lam``-strongly convex, ``phi_i*`` be ``gamma_i``-strongly convex (``gamma`` is one number
or one per block), ``R_i = |A_i|_2``, and ``rho_i = R_i / sqrt(gamma_i)`` the coupling of block i.
With batches S of ``m`` blocks that hold block i with probability ``pi_i``, an iteration does

    y_i+ = argmin_y  phi_i*(y) - <x, A_i y> + |y - y_i|^2 / (2 sigma_i)        for i in S,
    x+   = argmin_z  g(z) + <z, r + sum_{j in S} c_j A_j (y_j+ - y_j)> + |z - x|^2 / (2 tau),

where ``r = (1/n) sum_i A_i y_i`` precedes the dual step, ``c_j = 1 / (n pi_j)`` (1/m if uniform),
and one of the two is extrapolated by ``theta``. Blocks of norm zero have no finite step, so they
are refused: their dual variables are constants of the problem.
"""

from ._others import pdhg, sag, saga, sdca
from ._sizes import BatchSteps, ConstantSteps, DualSteps, GradientSteps, StepSizes
from ._spdc import adaspdc, is_valid_spdc, spdc, spdc_nonuniform
from ._spdhg import fixed_size_eso, is_valid_spdhg, spdhg, spdhg_probabilities

__all__ = [
    "BatchSteps",
    "ConstantSteps",
    "DualSteps",
    "GradientSteps",
    "StepSizes",
    "adaspdc",
    "fixed_size_eso",
    "is_valid_spdc",
    "is_valid_spdhg",
    "pdhg",
    "sag",
    "saga",
    "sdca",
    "spdc",
    "spdc_nonuniform",
    "spdhg",
    "spdhg_probabilities",
]
