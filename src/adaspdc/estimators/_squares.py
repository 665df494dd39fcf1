"""Ridge regression and the elastic net."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin

from ..losses import MultiOutputSquared, Squared
from ._base import LinearRegressor, number
from ._fit import minimise
from ._problems import solve_all, stacked
from ._task import Array, Penalty, Task


class _Squares(MultiOutputMixin, LinearRegressor):
    """Least squares with a penalty, for one target or several."""

    fit_intercept: bool
    positive: bool

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        X, y = self._checked_data(X, y, multi_output=True, y_numeric=True)
        weight = self._checked_weight(sample_weight, X.shape[0])
        return X, np.asarray(y, dtype=np.float64), weight

    def _task(self, X: Any, y: Array, penalty: Penalty, weight: Array | None) -> Task:
        intercept = bool(self.fit_intercept)
        if y.ndim == 1 or y.shape[1] == 1:
            return Task(X, y.reshape(-1), Squared(), penalty, weight, intercept)
        return Task(X, y, MultiOutputSquared(), penalty, weight, intercept, y.shape[1])


class Ridge(_Squares):
    """Ridge regression with scikit-learn's parameters, and a certificate.

    Minimises ``sum_i s_i (y_i - <x_i, w> - b)^2 + alpha |w|^2``. In the scaling of `ERM`, which has
    half the mean square, ``lam = alpha / sum_i s_i``.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,)
        Strength of the penalty, for all targets or for each. Zero is least squares.
    fit_intercept : bool
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an intercept).
    positive : bool
        Whether coefficients must not be negative.
    random_state : int, Generator or RandomState
    solver : str
        "auto", or a method of `adaspdc.solve`.
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
    verbose : int
    warm_start : bool
        Start from the previous fit of this object.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float, or ndarray of shape (n_targets,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
    dual_gap_ : float, or ndarray with one for each alpha
    n_iter_ : int
    result_ : Result, or list of one for each alpha
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(Ridge(alpha=0.1).fit(X, y).score(X, y), 4)
    0.5126
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        positive: bool = False,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.positive = positive
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        options = self._options()
        X, y, weight = self._targets(X, y, sample_weight)
        total = X.shape[0] if weight is None else float(weight.sum())
        alphas = self._alphas(1 if y.ndim == 1 else y.shape[1])
        columns = [y] if alphas.size == 1 else list(y.T)
        tasks = [
            self._task(X, column, Penalty(alpha / total, 0.0, bool(self.positive)), weight)
            for alpha, column in zip(alphas.tolist(), columns, strict=True)
        ]
        starts = getattr(self, "_solutions", None) if self.warm_start else None
        solutions = solve_all(tasks, options, starts)
        self.coef_, self.intercept_ = stacked(solutions, flat=y.ndim == 1)
        self._keep(solutions)
        return self

    def _alphas(self, targets: int) -> Array:
        alphas = np.atleast_1d(np.asarray(self.alpha, dtype=object))
        if alphas.ndim == 0 or alphas.size == 1:
            return np.array([number(self, "alpha", 0.0)])
        values = alphas.astype(np.float64)
        if values.shape != (targets,) or not (np.isfinite(values) & (values >= 0.0)).all():
            raise ValueError(
                f"The 'alpha' parameter of Ridge must be a finite number at least 0, or one for "
                f"each of the {targets} targets. Got {self.alpha!r} instead."
            )
        return values


class ElasticNet(_Squares):
    """The elastic net with scikit-learn's parameters, and a certificate.

    Minimises, with the s_i scaled to the mean 1,

        1/(2 n) sum_i s_i (y_i - <x_i, w> - b)^2
            + alpha (1 - l1_ratio)/2 |w|^2 + alpha l1_ratio |w|_1,

    the scaling of `ERM`: ``lam = alpha (1 - l1_ratio)``, ``l1 = alpha l1_ratio``. Several targets
    are penalised each on its own.

    Parameters
    ----------
    alpha : float
        Strength of the penalty.
    l1_ratio : float
        0 for L2 alone, 1 for the lasso. At 1 the objective has no strong convexity; a shrinking L2
        term takes its place, and the certificate is the one of the objective without it.
    fit_intercept : bool
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an intercept).
    positive : bool
        Whether coefficients must not be negative.
    random_state : int, Generator or RandomState
    solver : str
        "auto", or a method of `adaspdc.solve`.
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
    verbose : int
    warm_start : bool
        Start from the previous fit of this object.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float, or ndarray of shape (n_targets,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
    dual_gap_ : float
        As in scikit-learn: the objective is at most this far from its minimum.
    n_iter_ : int
    result_ : Result
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=0.5, l1_ratio=1.0).fit(X, y)
    >>> int((model.coef_ != 0).sum())
    4
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        positive: bool = False,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.positive = positive
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        alpha, ratio = number(self, "alpha", 0.0), number(self, "l1_ratio", 0.0, high=1.0)
        options = self._options()
        X, y, weight = self._targets(X, y, sample_weight)
        penalty = Penalty(alpha * (1.0 - ratio), alpha * ratio, bool(self.positive))
        start = getattr(self, "_solutions", [None])[0] if self.warm_start else None
        solution = minimise(self._task(X, y, penalty, weight), options, start)
        self.coef_, self.intercept_ = stacked([solution], flat=y.ndim == 1)
        self._keep([solution])
        return self
