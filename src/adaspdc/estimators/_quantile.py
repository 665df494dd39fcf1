"""Quantile regression, one quantile or several at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._arguments import is_real
from ._base import LinearRegressor, number
from ._problems import solve_all, stacked
from ._task import Array, Penalty, Pinball, Task


class QuantileRegressor(LinearRegressor):
    """Linear quantile regression with scikit-learn's parameters, and a certificate.

    Minimises ``(1/sum_i s_i) sum_i s_i pinball_q(y_i - <x_i, w> - b) + alpha |w|_1``. The solvers
    round the corners, less and less; the gap that is reported and compared with the tolerance is
    the one of this objective, nothing rounded. Memory and time grow linearly with the number of
    rows.

    Parameters
    ----------
    quantile : float, or array-like of shape (n_quantiles,)
        Strictly between 0 and 1. Several are fitted in one call, and `predict` then has one column
        for each. The fits are independent of each other, so that predictions may cross.
    alpha : float
        Strength of the L1 penalty. Zero is allowed for up to 1000 features.
    fit_intercept : bool
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an intercept).
    random_state : int, Generator or RandomState
    solver : str
        "auto", or a method of `adaspdc.solve`.
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
        Time allowed for each quantile.
    verbose : int

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantiles, n_features)
    intercept_ : float, or ndarray of shape (n_quantiles,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_quantiles)
    dual_gap_ : float, or ndarray of shape (n_quantiles,)
    n_iter_ : int
    result_ : Result, or list of one for each quantile
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import QuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0).fit(X, y)
    >>> (model.predict(X) > y[:, None]).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    """

    def __init__(
        self,
        *,
        quantile: Any = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.verbose = verbose

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
        quantiles, alpha = self._quantiles(), number(self, "alpha", 0.0)
        options = self._options()
        X, y = self._checked_data(X, y, y_numeric=True)
        weight = self._checked_weight(sample_weight, X.shape[0])
        target: Array = np.asarray(y, dtype=np.float64)
        first = Task(X, target, Pinball(0.5), Penalty(0.0, alpha), weight, bool(self.fit_intercept))
        tasks = [first.with_loss(Pinball(q)) for q in quantiles]
        solutions = solve_all(tasks, options, chain=True)
        self.coef_, self.intercept_ = stacked(solutions, flat=np.ndim(self.quantile) == 0)
        self._keep(solutions)
        return self

    def _quantiles(self) -> list[float]:
        given = np.atleast_1d(np.asarray(self.quantile, dtype=object))
        good = given.ndim == 1 and given.size > 0
        if not good or not all(is_real(q) and 0.0 < q < 1.0 for q in given.tolist()):
            raise ValueError(
                "The 'quantile' parameter of QuantileRegressor must be a number strictly between "
                f"0 and 1, or a list of such. Got {self.quantile!r} instead."
            )
        return [float(q) for q in given.tolist()]
