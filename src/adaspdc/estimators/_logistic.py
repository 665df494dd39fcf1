"""Logistic regression, of two classes and of more."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..losses import Logistic, Multinomial
from ._base import LinearClassifier, number
from ._fit import minimise
from ._problems import signs, stacked
from ._task import Array, Penalty, Task


class LogisticRegression(LinearClassifier):
    """Logistic regression with scikit-learn's parameters, and a certificate.

    Minimises over w and the unpenalised intercept b

        C sum_i s_i log(1 + exp(-y_i (<x_i, w> + b))) + (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1,

    for more than two classes with the multinomial loss. In the scaling of `ERM`, that is
    ``lam = (1 - l1_ratio) / (C sum_i s_i)`` and ``l1 = l1_ratio / (C sum_i s_i)``.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty; infinity for none. Where the classes can then be separated,
        no coefficients attain the infimum, and a `ConvergenceWarning` says so.
    l1_ratio : float
        0 for L2 (the default), 1 for L1, between them the elastic net. At 1 the objective has no
        strong convexity; a shrinking L2 term takes its place, and the certificate is the one of the
        objective without it.
    tol : float
        Relative duality gap: the fit is done when the gap is at most tol times the objective at
        zero.
    fit_intercept : bool
    class_weight : dict or "balanced", optional
    random_state : int, Generator or RandomState
        Seed of the order in which rows are visited.
    solver : str
        "auto", or a method of `adaspdc.solve`. All lead to the same model.
    max_iter : int
        Passes over the data allowed.
    max_seconds : float, optional
        Time allowed; the best certified model so far is kept.
    verbose : int
    warm_start : bool
        Start from the previous fit of this object.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Derivative of the loss of each row at its score.
    dual_gap_ : float
        Bound on the distance of the objective, divided by ``C sum_i s_i``, from its minimum.
    n_iter_ : int
        Passes over the data.
    result_ : Result
        The run, with its certificate.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from adaspdc import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(tol=1e-8).fit(X, y)
    >>> bool(model.dual_gap_ <= model.result_.tol), float(model.score(X, y))
    (True, 0.9733333333333334)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = 0,
        solver: Any = "auto",
        max_iter: int = 10_000,
        max_seconds: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
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
        C = number(self, "C", 0.0, zero=False, infinite=True)
        ratio = number(self, "l1_ratio", 0.0, high=1.0)
        options = self._options()
        X, y = self._checked_data(X, y)
        task = self._task(X, self._encoded(y), self._checked_weight(sample_weight, X.shape[0]))
        total = X.shape[0] if task.weight is None else float(task.weight.sum())
        task = task.with_loss(task.loss, Penalty((1.0 - ratio) / (C * total), ratio / (C * total)))
        start = getattr(self, "_solutions", [None])[0] if self.warm_start else None
        solution = minimise(task, options, start)
        self.coef_, self.intercept_ = stacked([solution], flat=False)
        if task.vector:  # a common shift of all classes changes nothing: the mean is taken as zero
            self.intercept_ -= self.intercept_.mean()
            if np.inf == C:
                self.coef_ -= self.coef_.mean(axis=0)
        self._keep([solution])
        return self

    def _task(self, X: Any, index: Array, weight: Array | None) -> Task:
        weight = self._class_weighted(index, weight)
        intercept, classes = bool(self.fit_intercept), self.classes_.size
        if classes == 2:
            return Task(X, signs(index), Logistic(), Penalty(1.0), weight, intercept)
        return Task(X, index, Multinomial(), Penalty(1.0), weight, intercept, classes)

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of the probabilities, accurate where those are tiny.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))
