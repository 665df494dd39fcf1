"""Certified solver for separable convex-concave saddle-point problems and regularised ERM.

>>> import numpy as np
>>> import adaspdc
>>> from adaspdc import losses, regularizers
>>> X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
>>> problem = adaspdc.ERM(X, [1, 1, -1, -1], losses.Logistic(), regularizers.L2(1e-2))
>>> result = adaspdc.solve(problem, tol=1e-6)
>>> result.status.value, bool(result.gap <= result.tol)
('converged', True)
"""

from typing import Any as _Any

from . import estimators, losses, regularizers, sampling
from ._path import path
from ._version import __version__
from .methods import Method
from .problem import ERM, SaddlePoint
from .result import ConvergenceWarning, History, Result, Status
from .solver import Progress, solve

__all__ = [
    "ERM",
    "ConvergenceWarning",
    "History",
    "Method",
    "Progress",
    "Result",
    "SaddlePoint",
    "Status",
    "__version__",
    "estimators",
    "losses",
    "path",
    "regularizers",
    "sampling",
    "solve",
    *estimators.__all__,
]


def __getattr__(name: str) -> _Any:  # the estimators, which need scikit-learn
    if name in estimators.__all__:
        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
