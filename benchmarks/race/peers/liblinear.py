"""LIBLINEAR by its own authors (``liblinear-official``): a newer TRON than scikit-learn's copy.

``-s 3`` minimises the plain hinge, which no cell of the race has, so it does not start.
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..objective import Problem
from .base import Peer, Settings, tolerances


class _Liblinear(Peer):
    package = "liblinear-official"
    code: ClassVar[int]
    weight: ClassVar[float] = 1.0
    """C = weight / (lam n): its squared losses have no 1/2."""

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(0, 8, finer=True)]

    def convert(self, problem: Problem) -> None:
        from liblinear.liblinear import problem as native

        self.problem = problem
        self._native = native(problem.b, sparse.csr_matrix(problem.X))

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from liblinear.liblinear import parameter
        from liblinear.liblinearutil import train

        cost = self.weight / (lam * self.problem.n)
        options = parameter(f"-s {self.code} -c {cost:.17g} -e {tol:g} -B -1 -q")
        return self._weights(train(self._native, options))

    def _weights(self, model: Any) -> np.ndarray:
        w = np.ctypeslib.as_array(model.w, (self.problem.d,)).copy()
        flipped = self.problem.loss.classifies and model.get_labels()[0] < 0
        return -w if flipped else w


class LogisticTron(_Liblinear):
    """-s 0: logistic, trust-region Newton."""

    name, code, losses = "liblinear-s0-tron", 0, ("logistic",)


class LogisticDual(_Liblinear):
    """-s 7: logistic, dual coordinate descent."""

    name, code, losses = "liblinear-s7-dual", 7, ("logistic",)


class SquaredHingeTron(_Liblinear):
    """-s 2: squared hinge, trust-region Newton."""

    name, code, losses, weight = "liblinear-s2-tron", 2, ("squared-hinge",), 0.5


class SquaredHingeDual(_Liblinear):
    """-s 1: squared hinge, dual coordinate descent."""

    name, code, losses, weight = "liblinear-s1-dual", 1, ("squared-hinge",), 0.5


class SquaredTron(_Liblinear):
    """-s 11 with -p 0: support vector regression whose tube has no width, which is ridge."""

    name, code, losses, weight = "liblinear-s11-tron", 11, ("squared",), 0.5

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from liblinear.liblinear import parameter
        from liblinear.liblinearutil import train

        cost = self.weight / (lam * self.problem.n)
        options = parameter(f"-s 11 -p 0 -c {cost:.17g} -e {tol:g} -B -1 -q")
        return self._weights(train(self._native, options))


PEERS = (LogisticTron, LogisticDual, SquaredHingeTron, SquaredHingeDual, SquaredTron)
