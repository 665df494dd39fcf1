"""What step rules answer: the step sizes of a run."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConstantSteps:
    """Primal steps that are the same in every iteration.

    ``sigma`` is (n,); ``weight`` is c_j, one number or (n,).
    """

    sigma: FloatArray
    tau: float
    theta: float
    weight: float | FloatArray

    def primal(self, batches: NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        """Return tau and theta of each of the T batches, always two arrays of length T."""
        length = batches.shape[0]
        return np.full(length, self.tau), np.full(length, self.theta)


@dataclass(frozen=True, eq=False)
class BatchSteps:
    """Primal steps set by the largest coupling in the batch, ``C = max_S coupling_i``.

    ``tau = tau_scale / C`` and ``theta = 1 - 1 / (passes + theta_slope C)`` with ``passes = n/m``.
    ``coupling`` is proportional to rho_i; it may be the caller's array of norms.
    """

    sigma: FloatArray
    weight: float
    coupling: FloatArray
    tau_scale: float
    theta_slope: float
    passes: float

    def primal(self, batches: NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        """Return tau and theta of each of the T batches, two arrays of length T."""
        largest = self.coupling[batches[:, 0]]
        for column in range(1, batches.shape[1]):
            np.maximum(largest, self.coupling[batches[:, column]], out=largest)
        drag = self.theta_slope * largest
        theta = drag + (self.passes - 1.0)  # does not cancel where passes = 1 and drag is tiny
        drag += self.passes
        theta /= drag
        return np.divide(self.tau_scale, largest, out=largest), theta


StepSizes: TypeAlias = ConstantSteps | BatchSteps


@dataclass(frozen=True, eq=False)
class DualSteps:
    """Steps of a method that moves the dual variables only."""

    sigma: FloatArray


@dataclass(frozen=True)
class GradientSteps:
    """The step of a primal gradient method; ``smoothness`` is the constant L it came from."""

    tau: float
    smoothness: float
