"""Linear support vector machines: classification and regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..losses import Loss, SmoothHinge, SquaredEpsilonInsensitive, SquaredHinge
from ._base import LinearClassifier, LinearEstimator, LinearRegressor, choice, number
from ._problems import one_against_rest, solve_all, stacked
from ._solve import Solution
from ._task import Array, Corner, EpsilonInsensitive, Hinge, Penalty, Task


class _PenalisedIntercept(LinearEstimator):
    """liblinear's intercept: the coefficient of one more feature, constant and penalised."""

    fit_intercept: bool
    intercept_scaling: float | None

    def _with_constant(self, X: Any) -> Any:
        """The data, with a constant column where the intercept is penalised."""
        if not self._penalised:
            return X
        scaling = number(self, "intercept_scaling", 0.0, zero=False)
        column = np.full((X.shape[0], 1), scaling, dtype=X.dtype)
        if isinstance(X, np.ndarray):
            return np.hstack([X, column])
        from scipy import sparse

        return sparse.hstack([X, sparse.csr_array(column)], format="csr", dtype=X.dtype)

    @property
    def _penalised(self) -> bool:
        return bool(self.fit_intercept) and self.intercept_scaling is not None

    def _keep_model(self, solutions: list[Solution], flat: bool) -> None:
        shown = solutions
        if self._penalised:
            scaling = float(self.intercept_scaling)  # type: ignore[arg-type]
            shown = [replace(s, x=s.x[:-1], b=scaling * s.x[-1]) for s in solutions]
        self.coef_, self.intercept_ = stacked(shown, flat)
        self._keep(solutions)


class LinearSVC(LinearClassifier, _PenalisedIntercept):
    """Linear support vector classification with scikit-learn's parameters, and a certificate.

    Minimises ``1/2 |w|^2 + C sum_i s_i phi(y_i (<x_i, w> + b))``, one class against the rest where
    there are more than two. In the scaling of `ERM`, ``lam = 1 / (C sum_i s_i)``, and half of that
    for "squared_hinge", which `losses.SquaredHinge` halves.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "smooth_hinge"}
        ``max(0, 1 - m)^2`` as in scikit-learn, ``max(0, 1 - m)``, or that with its corner rounded
        over a margin of ``gamma``, the loss of the AdaSPDC paper.
    gamma : float
        Width of the rounding of "smooth_hinge".
    C : float
        Inverse strength of the penalty, finite.
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective at
        zero.
    fit_intercept : bool
    intercept_scaling : float or None
        A number: the intercept is the coefficient of a constant feature of this size, and is
        penalised like the others, as in scikit-learn and liblinear. None: it is not penalised.
    class_weight : dict or "balanced", optional
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
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
    dual_gap_ : float, or ndarray of shape (n_classes,)
    n_iter_ : int
    result_ : Result, or list of one per class
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from adaspdc import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearSVC(loss="hinge").fit(X[:100], y[:100]).score(X[:100], y[:100])
    1.0
    """

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        gamma: float = 1.0,
        C: float = 1.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        class_weight: Any = None,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.gamma = gamma
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        C = number(self, "C", 0.0, zero=False)
        options, loss = self._options(), self._loss()
        X, y = self._checked_data(X, y)
        index = self._encoded(y)
        weight = self._class_weighted(index, self._checked_weight(sample_weight, X.shape[0]))
        total = X.shape[0] if weight is None else float(weight.sum())
        factor = 2.0 if isinstance(loss, SquaredHinge) else 1.0
        free = bool(self.fit_intercept) and not self._penalised
        penalty = Penalty(1.0 / (factor * C * total))
        task = Task(self._with_constant(X), index, loss, penalty, weight, free)
        starts = getattr(self, "_solutions", None) if self.warm_start else None
        tasks = one_against_rest(task, index, self.classes_.size)
        self._keep_model(solve_all(tasks, options, starts), flat=False)
        return self

    def _loss(self) -> Loss | Corner:
        name = choice(self, "loss", ("squared_hinge", "hinge", "smooth_hinge"))
        if name == "smooth_hinge":
            return SmoothHinge(number(self, "gamma", 0.0, zero=False))
        return SquaredHinge() if name == "squared_hinge" else Hinge()


class LinearSVR(LinearRegressor, _PenalisedIntercept):
    """Linear support vector regression with scikit-learn's parameters, and a certificate.

    Minimises ``1/2 |w|^2 + C sum_i s_i phi(|y_i - <x_i, w> - b| - epsilon)`` with
    ``phi(e) = max(0, e)``, or its square. In the scaling of `ERM`, ``lam = 1 / (C sum_i s_i)``, and
    half of that for the square, which `losses.SquaredEpsilonInsensitive` halves. The certificate is
    the one of this loss; nothing is rounded.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        ``max(0, e)`` or ``max(0, e)^2`` of an error that exceeds epsilon by e.
    epsilon : float
        Errors up to this size cost nothing.
    C : float
        Inverse strength of the penalty, finite.
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an unpenalised intercept).
    fit_intercept : bool
    intercept_scaling : float or None
        A number: the intercept is the coefficient of a constant feature of this size, and is
        penalised like the others, as in scikit-learn and liblinear. None: it is not penalised.
    random_state : int, Generator or RandomState
    solver : str
        "auto", or a method of `adaspdc.solve`.
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
    verbose : int

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    dual_coef_ : ndarray of shape (n_samples,)
    dual_gap_ : float
    n_iter_ : int
    result_ : Result
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=10.0).fit(X, y)
    >>> bool(model.dual_gap_ <= model.result_.tol)
    True
    """

    def __init__(
        self,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        C: float = 1.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float | None = 1.0,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
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
        C = number(self, "C", 0.0, zero=False)
        options, loss = self._options(), self._loss()
        X, y = self._checked_data(X, y, y_numeric=True)
        weight = self._checked_weight(sample_weight, X.shape[0])
        total = X.shape[0] if weight is None else float(weight.sum())
        free = bool(self.fit_intercept) and not self._penalised
        factor = 2.0 if isinstance(loss, SquaredEpsilonInsensitive) else 1.0
        penalty = Penalty(1.0 / (factor * C * total))
        target: Array = np.asarray(y, dtype=np.float64)
        task = Task(self._with_constant(X), target, loss, penalty, weight, free)
        self._keep_model(solve_all([task], options), flat=True)
        return self

    def _loss(self) -> Loss | Corner:
        name = choice(self, "loss", ("epsilon_insensitive", "squared_epsilon_insensitive"))
        epsilon = number(self, "epsilon", 0.0)
        squared = name == "squared_epsilon_insensitive"
        return SquaredEpsilonInsensitive(epsilon) if squared else EpsilonInsensitive(epsilon)
