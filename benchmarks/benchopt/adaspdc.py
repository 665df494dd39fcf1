"""adaspdc as a solver of benchopt's benchmark_logreg_l2 and benchmark_ridge.

Copy it into the folder ``solvers`` of either. Both minimise a sum over the rows plus
``lmbd/2 |beta|^2``, adaspdc a mean, so ``lam = lmbd / n``.
"""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import adaspdc
from adaspdc import losses, regularizers


class Solver(BaseSolver):
    """The default method, asked for smaller and smaller certified gaps."""

    name = "adaspdc"
    sampling_strategy = "tolerance"
    # One step of a method may serve several tolerances: that is not the end of progress.
    stopping_criterion = SufficientProgressCriterion(patience=12, strategy="tolerance")
    install_cmd = "conda"
    requirements = ["pip::adaspdc"]  # noqa: RUF012 (as benchopt documents it)
    references = [  # noqa: RUF012
        "Z. Zhu and A. Storkey, 'Adaptive Stochastic Primal-Dual Coordinate Descent for Separable "
        "Saddle Point Problems', ECML PKDD (2015)"
    ]

    def set_objective(self, X, y, lmbd, fit_intercept=None):
        """Only the ridge benchmark has ``fit_intercept``, which tells the two apart."""
        self.X, self.y = X, np.asarray(y, dtype=np.float64)
        self.loss = losses.Logistic() if fit_intercept is None else losses.Squared()
        self.lam, self.intercept = lmbd / X.shape[0], bool(fit_intercept)

    def warm_up(self):
        """Compile, or load what has been compiled."""
        self.run(1e-1)
        self.run(1e-9)

    def run(self, tolerance):
        """Solve to a gap of ``tolerance`` times the objective at zero."""
        if not np.isfinite(tolerance):
            self.beta = np.zeros(self.X.shape[1] + self.intercept)
            return
        problem = adaspdc.ERM(
            self.X, self.y, self.loss, regularizers.L2(self.lam), intercept=self.intercept
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
            result = adaspdc.solve(problem, tol=max(tolerance, 1e-15))
        offset = [result.intercept] if self.intercept else []
        self.beta = np.append(result.x, offset)

    def get_result(self):
        """The coefficients, and the intercept last where there is one."""
        return {"beta": self.beta}
