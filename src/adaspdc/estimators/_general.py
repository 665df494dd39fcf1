"""The two general estimators, in the scaling of the solver: mean loss and lambda."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from .._catalogue import LOSSES, make_loss
from ..losses import Logistic, Loss, Multinomial
from ..regularizers import Regularizer
from ._base import LinearClassifier, LinearEstimator, LinearRegressor, choice, number
from ._fit import minimise
from ._problems import one_against_rest, solve_all, stacked
from ._solve import Options, Solution
from ._task import Array, Corner, EpsilonInsensitive, Hinge, Penalty, Pinball, Task

_PENALTIES = ("l2", "elasticnet", "l1", "nonnegative")
_CLASSES = ("binary", "multiclass")
_CORNERS: dict[str, Corner] = {
    "hinge": Hinge(),
    "absolute": EpsilonInsensitive(0.0),
    "median": Pinball(0.5),
}


class _General(LinearEstimator):
    """What the two share: the choice of loss and penalty."""

    loss: Any
    penalty: Any
    alpha: float
    l1_ratio: float

    def _chosen_loss(self, kinds: tuple[str, ...]) -> Loss | Corner:
        corners = {name: loss for name, loss in _CORNERS.items() if loss.kind in kinds}
        if isinstance(self.loss, Loss):
            if self.loss.kind in kinds:
                return self.loss
            raise ValueError(
                f"The 'loss' parameter of {type(self).__name__} is {self.loss!r}, a loss for "
                f"{self.loss.kind} targets; it needs one for {' or '.join(kinds)} targets."
            )
        known = [name for name, (kind, _) in LOSSES.items() if kind.kind in kinds]
        name = choice(self, "loss", (*known, *corners))
        return corners[name] if name in corners else make_loss(name, {})

    def _chosen_penalty(self) -> Penalty | Regularizer:
        if isinstance(self.penalty, Regularizer):
            return self.penalty
        name = choice(self, "penalty", _PENALTIES)
        alpha = number(self, "alpha", 0.0, zero=False)
        if name == "elasticnet":
            ratio = number(self, "l1_ratio", 0.0, high=1.0)
            return Penalty(alpha * (1.0 - ratio), alpha * ratio)
        if name == "l1":
            return Penalty(0.0, alpha)
        return Penalty(alpha, positive=name == "nonnegative")


class AdaSPDCClassifier(LinearClassifier, _General):
    """Any loss and penalty of the package as a classifier, in the scaling of the paper.

    Minimises ``sum_i s_i phi(<x_i, w> + b; y_i) / sum_i s_i + g(w)``, the intercept b unpenalised.
    Note that the *mean* loss stands against ``alpha``: scikit-learn's ``C`` is
    ``1 / (alpha sum_i s_i)``.

    Parameters
    ----------
    loss : str or Loss
        "logistic" (multinomial for more than two classes), "smooth_hinge", "squared_hinge", "hinge"
        (these three one class against the rest), "multinomial", "smooth_crammer_singer"; or an
        object of `adaspdc.losses`, such as ``SmoothHinge(0.5)``.
    penalty : str or Regularizer
        "l2": ``alpha/2 |w|^2``; "elasticnet": ``alpha (1 - l1_ratio)/2 |w|^2 + alpha l1_ratio
        |w|_1``; "l1": ``alpha |w|_1``; "nonnegative": "l2" on w >= 0; or an object of
        `adaspdc.regularizers`, which holds its own ``lam``: alpha and l1_ratio are then not used.
        Groups need ``fit_intercept=False``.
    alpha : float
        The lambda of the paper, positive.
    l1_ratio : float
        Share of the L1 term in "elasticnet".
    fit_intercept : bool
    class_weight : dict or "balanced", optional
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective at
        zero.
    random_state : int, Generator or RandomState
    solver : str or Method
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
    >>> from adaspdc import AdaSPDCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaSPDCClassifier(loss="smooth_crammer_singer", alpha=1e-3).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        loss: Any = "logistic",
        penalty: Any = "l2",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
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
        loss, penalty = self._chosen_loss(_CLASSES), self._chosen_penalty()
        options = self._options()
        X, y = self._checked_data(X, y)
        index = self._encoded(y)
        weight = self._class_weighted(index, self._checked_weight(sample_weight, X.shape[0]))
        task = Task(X, index, loss, penalty, weight, bool(self.fit_intercept))
        solutions = self._solved(task, index, options)
        self.coef_, self.intercept_ = stacked(solutions, flat=False)
        if self.classes_.size == 2 and self.coef_.shape[0] == 2:  # one score for two classes
            self.coef_ = self.coef_[1:] - self.coef_[:1]
            self.intercept_ = self.intercept_[1:] - self.intercept_[:1]
        elif len(solutions) == 1 < self.coef_.shape[0]:  # a common shift changes nothing
            self.intercept_ -= self.intercept_.mean()
        self._keep(solutions)
        return self

    def _solved(self, task: Task, index: Array, options: Options) -> list[Solution]:
        starts = getattr(self, "_solutions", None) if self.warm_start else None
        classes = self.classes_.size
        loss = task.loss
        if isinstance(loss, Logistic) and classes > 2:
            loss = Multinomial()
        if loss.kind == "multiclass":
            task = replace(task, loss=loss, n_outputs=classes)
            return solve_all([task], options, starts)
        return solve_all(one_against_rest(task, index, classes), options, starts)

    def _has_probabilities(self) -> bool:
        name = self.loss if isinstance(self.loss, str) else getattr(self.loss, "name", "")
        if name in ("logistic", "multinomial"):
            return True
        raise AttributeError(f"predict_proba needs loss='logistic'; this model has {self.loss!r}")

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, of the logistic and the multinomial loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)


class AdaSPDCRegressor(LinearRegressor, _General):
    """Any loss and penalty of the package as a regressor, in the scaling of the paper.

    Minimises ``sum_i s_i phi(<x_i, w> + b; y_i) / sum_i s_i + g(w)``, the intercept b unpenalised.
    Note that the *mean* loss stands against ``alpha``: the ``alpha`` of scikit-learn's Ridge is
    ``alpha sum_i s_i``.

    Parameters
    ----------
    loss : str or Loss
        "squared", "huber" (delta 1), "absolute", "smooth_pinball", "smooth_epsilon_insensitive"
        or "squared_epsilon_insensitive" with their default parameters, "median"; or an object of
        `adaspdc.losses`, such as ``Huber(0.5)``.
    penalty : str or Regularizer
        "l2": ``alpha/2 |w|^2``; "elasticnet": ``alpha (1 - l1_ratio)/2 |w|^2 + alpha l1_ratio
        |w|_1``; "l1": ``alpha |w|_1``; "nonnegative": "l2" on w >= 0; or an object of
        `adaspdc.regularizers`, which holds its own ``lam``: alpha and l1_ratio are then not used.
        Groups need ``fit_intercept=False``.
    alpha : float
        The lambda of the paper, positive.
    l1_ratio : float
        Share of the L1 term in "elasticnet".
    fit_intercept : bool
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective of
        the best constant (of zero, without an intercept).
    random_state : int, Generator or RandomState
    solver : str or Method
        "auto", or a method of `adaspdc.solve`.
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
    dual_coef_ : ndarray of shape (n_samples,)
    dual_gap_ : float
    n_iter_ : int
    result_ : Result
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from adaspdc import AdaSPDCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(AdaSPDCRegressor(loss="absolute", alpha=1e-6).fit(X, y).score(X, y), 2)
    0.51
    """

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "l2",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
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
        loss, penalty = self._chosen_loss(("regression",)), self._chosen_penalty()
        options = self._options()
        X, y = self._checked_data(X, y, y_numeric=True)
        weight = self._checked_weight(sample_weight, X.shape[0])
        target: Array = np.asarray(y, dtype=np.float64)
        task = Task(X, target, loss, penalty, weight, bool(self.fit_intercept))
        start = getattr(self, "_solutions", [None])[0] if self.warm_start else None
        solution = minimise(task, options, start)
        self.coef_, self.intercept_ = stacked([solution], flat=True)
        self._keep([solution])
        return self
