"""Huber regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..losses import Huber
from ._base import LinearRegressor, number
from ._concomitant import Concomitant
from ._problems import stacked
from ._solve import centred, moved_back
from ._task import Array, Penalty, Task


class HuberRegressor(LinearRegressor):
    """Robust regression with scikit-learn's parameters, and a certificate.

    Minimises over w, the unpenalised intercept b and the scale sigma, with ``H(z) = z^2`` up to
    ``|z| = epsilon`` and the tangent beyond,

        sum_i s_i (sigma + sigma H((y_i - <x_i, w> - b) / sigma)) + alpha |w|^2.

    ``primal``, ``dual`` and ``gap`` of ``result_`` are of this objective, divided by ``sum_i s_i``.

    Parameters
    ----------
    epsilon : float
        Errors beyond this many sigma count as outliers; at least 1.
    alpha : float
        Strength of the penalty. Zero is allowed for up to 2000 features.
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an intercept).
    fit_intercept : bool
    random_state : int, Generator or RandomState
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
    verbose : int
    warm_start : bool
        Start from the previous fit of this object.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    scale_ : float
        sigma.
    outliers_ : ndarray of bool, shape (n_samples,)
        The rows with errors beyond epsilon sigma.
    dual_coef_ : ndarray of shape (n_samples,)
    dual_gap_ : float
    n_iter_ : int
    result_ : Result
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import HuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HuberRegressor().fit(X, y)
    >>> round(model.scale_, 2), int(model.outliers_.sum())
    (37.39, 159)
    """

    scale_: float
    outliers_: Array

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        alpha: float = 0.0001,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        random_state: Any = 0,
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        epsilon, alpha = number(self, "epsilon", 1.0), number(self, "alpha", 0.0)
        options = self._options()
        X, y = self._checked_data(X, y, y_numeric=True)
        weight = self._checked_weight(sample_weight, X.shape[0])
        total = X.shape[0] if weight is None else float(weight.sum())
        target: Array = np.asarray(y, dtype=np.float64)
        task = Task(X, target, Huber(), Penalty(1.0), weight, bool(self.fit_intercept))
        inner, shift, origin = centred(task)
        start = getattr(self, "_solutions", [None])[0] if self.warm_start else None
        if start is not None:
            start = moved_back(start, None if shift is None else -shift, -origin)
        search = Concomitant(inner, epsilon, alpha / total, options)
        solution, self.scale_ = search.run(start)
        solution = moved_back(solution, shift, origin)
        self.coef_, self.intercept_ = stacked([solution], flat=True)
        residual = np.abs(task.scores(solution.x, solution.b) - target)
        self.outliers_ = residual > epsilon * self.scale_
        self._keep([solution])
        return self
