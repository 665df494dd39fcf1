"""adaspdc's default, and the prototype it came from where a folder with it is named."""

import os
import sys
import warnings

import numpy as np

from ..objective import Problem
from .base import Extras, Peer, Settings, tolerances


class Adaspdc(Peer):
    """``solve(ERM(X, y, loss, L2(lam)), tol=tol)``: nothing else is set. Building ERM counts."""

    name = "adaspdc"
    package = "adaspdc"
    losses = ("logistic", "smooth-hinge", "squared-hinge", "squared")
    threaded = True

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 12)]

    def compile_rest(self) -> None:
        """On text, the stage whose turn comes second."""
        self.fit(1e-8, 1e-14, max_passes=100.0)

    def fit(self, lam: float, tol: float, max_passes: float | None = None) -> np.ndarray:
        import adaspdc
        from adaspdc import losses, regularizers

        loss = {
            "logistic": losses.Logistic,
            "smooth-hinge": losses.SmoothHinge,
            "squared-hinge": losses.SquaredHinge,
            "squared": losses.Squared,
        }[self.problem.loss.name]()
        threads = {"n_threads": self.threads} if self.threads > 1 else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adaspdc.ConvergenceWarning)
            erm = adaspdc.ERM(self.problem.X, self.problem.b, loss, regularizers.L2(lam))
            result = adaspdc.solve(erm, tol=tol, max_passes=max_passes, **threads)
        words = "; ".join([f"{result.status}, {result.passes:.0f} passes", *result.events])
        self.extras = Extras(passes=result.passes, dual=result.y, words=words)
        return np.asarray(result.x)


class Prototype(Peer):
    """The recipe in the folder that ``ADASPDC_PROTOTYPE`` names (``engine.fit``)."""

    name = "prototype"
    losses = ("logistic", "smooth-hinge")

    def takes(self, loss: str) -> bool:
        return bool(os.environ.get("ADASPDC_PROTOTYPE")) and super().takes(loss)

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 11)]

    def convert(self, problem: Problem) -> None:
        from scipy import sparse

        sys.path.insert(0, os.environ["ADASPDC_PROTOTYPE"])
        from core import Prob  # type: ignore[import-not-found]

        code = {"logistic": 0, "smooth-hinge": 1}[problem.loss.name]
        self._scale = problem.value_at_zero()
        self._prob = Prob(sparse.csr_matrix(problem.X), problem.b, code)

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from engine import fit  # type: ignore[import-not-found]

        done = fit(self._prob, lam, tol=tol)  # relative to P(x), the stricter way
        self.extras = Extras(passes=done.get("passes"), words=str(done.get("mode", "")))
        return np.asarray(done["x"])
