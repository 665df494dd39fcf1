"""What all estimators share: checked parameters, checked data, predictions, fitted attributes."""

from __future__ import annotations

import warnings
from math import ceil
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._arguments import is_real
from ..methods import METHODS, Method
from ..result import ConvergenceWarning, Result
from ._solve import Options, Solution
from ._task import Array, times

_TYPES = (np.float64, np.float32)


def number(
    owner: object,
    name: str,
    low: float,
    *,
    zero: bool = True,
    high: float = np.inf,
    infinite: bool = False,
) -> float:
    """A parameter as a float above ``low`` (or equal to it, with ``zero``)."""
    value = getattr(owner, name)
    good = is_real(value) and (np.isfinite(value) or infinite) and low <= value <= high
    if not good or (value == low and not zero):
        bound = f"{'at least' if zero else 'greater than'} {low:g}"
        bound += f" and at most {high:g}" if high < np.inf else ""
        kind = "number" if infinite else "finite number"
        raise ValueError(
            f"The {name!r} parameter of {type(owner).__name__} must be a {kind} {bound}. "
            f"Got {value!r} instead."
        )
    return float(value)


def choice(owner: object, name: str, allowed: tuple[str, ...]) -> str:
    """A parameter that is one of a few words."""
    value = getattr(owner, name)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(
            f"The {name!r} parameter of {type(owner).__name__} must be one of "
            f"{', '.join(map(repr, allowed))}. Got {value!r} instead."
        )
    return str(value)


class LinearEstimator(BaseEstimator):
    """Base of all: anything that is ``X @ coef_.T + intercept_`` and was certified."""

    coef_: Any
    intercept_: Any
    dual_coef_: Array
    dual_gap_: Any
    n_iter_: int
    result_: Result | list[Result]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a sparse matrix: worth it for models with mostly zeros."""
        from scipy import sparse

        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Undo `sparsify`."""
        check_is_fitted(self)
        if hasattr(self.coef_, "toarray"):
            shape = np.shape(self.intercept_)
            self.coef_ = self.coef_.toarray() if shape else self.coef_.toarray()[0]
        return self

    # --- fitting ---

    def _options(self) -> Options:
        state = getattr(self, "random_state", 0)
        if state is not None and not isinstance(state, Integral | np.random.Generator):
            state = int(check_random_state(state).randint(2**31 - 1))
        seconds = getattr(self, "max_seconds", None)
        return Options(
            tol=number(self, "tol", 0.0),
            max_passes=number(self, "max_iter", 0.0, zero=False),
            max_seconds=None if seconds is None else number(self, "max_seconds", 0.0),
            method=self._method(),
            random_state=state,
            verbose=int(number(self, "verbose", 0.0)) if hasattr(self, "verbose") else 0,
        )

    def _method(self) -> str | Method:
        solver = getattr(self, "solver", "auto")
        if isinstance(solver, Method) or solver in ("auto", *METHODS):
            return solver
        raise ValueError(
            f"The 'solver' parameter of {type(self).__name__} must be 'auto' or one of "
            f"{', '.join(sorted(METHODS))}; all lead to the same model. Got {solver!r} instead."
        )

    def _checked_data(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, accept_sparse="csr", dtype=_TYPES, order="C", **options
        )

    def _checked_weight(self, weight: Any, n: int) -> Array | None:
        if weight is None:
            return None
        checked = check_array(
            np.full(n, weight) if is_real(weight) else weight,
            ensure_2d=False,
            dtype=np.float64,
            input_name="sample_weight",
        )
        if checked.ndim != 1:
            raise ValueError(
                f"Sample weights must be 1D array or scalar, got {checked.ndim}D array"
            )
        if checked.shape[0] != n:
            raise ValueError(f"sample_weight.shape == {checked.shape}, expected {(n,)}!")
        if checked.min() < 0.0:
            raise ValueError(f"sample_weight must not be negative; it holds {checked.min()}")
        if not checked.max() > 0.0:
            raise ValueError("sample_weight is zero everywhere; give at least one row a weight")
        return checked

    def _keep(self, solutions: list[Solution]) -> None:
        """The attributes that speak of the fit; warns where it has not converged."""
        results = [solution.result for solution in solutions]
        single = len(results) == 1
        self._solutions = solutions
        self.result_ = results[0] if single else results
        self.dual_gap_ = results[0].gap if single else np.array([r.gap for r in results])
        self.n_iter_ = max(1, ceil(max(r.passes for r in results)))
        self.dual_coef_ = solutions[0].y if single else np.column_stack([s.y for s in solutions])
        for solution in solutions:
            text = self._complaint(solution)
            if text:
                name = type(self).__name__
                warnings.warn(f"{name} {text}.", ConvergenceWarning, stacklevel=3)

    @staticmethod
    def _complaint(solution: Solution) -> str:
        """What is wrong with a solution, and the remedy."""
        result, remark = solution.result, solution.remark
        if result.converged:
            return remark
        text = result.message.replace("max_passes", "max_iter")
        remedy = remark or "raise max_iter, loosen tol, or scale the features"
        if not np.isfinite(result.gap):
            remedy = "nothing bounds it: without a penalty take a small one; else scale X"
        return f"ended above its tolerance: {text}; {remedy}"

    # --- predicting ---

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_TYPES, reset=False)
        coef = self.coef_
        if hasattr(coef, "toarray"):
            scores = X @ coef.T
            dense = scores.toarray() if hasattr(scores, "toarray") else np.asarray(scores)
            return (
                np.asarray(dense[:, 0] if np.ndim(self.intercept_) == 0 else dense)
                + self.intercept_
            )
        return times(X, np.asarray(coef).T) + self.intercept_


class LinearRegressor(RegressorMixin, LinearEstimator):
    """Base of the regressors."""

    def predict(self, X: Any) -> Array:
        """The predicted targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._scores(X)


class LinearClassifier(ClassifierMixin, LinearEstimator):
    """Base of the classifiers."""

    classes_: Array

    def decision_function(self, X: Any) -> Array:
        """The scores: of ``classes_[1]`` for two classes, else one column per class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The predicted classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[index]

    def _encoded(self, y: Any) -> Array:
        """Class indices; sets ``classes_``."""
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the "
                f"data contains only one class: {self.classes_[0]!r}"
            )
        return np.asarray(index)

    def _class_weighted(self, index: Array, weight: Array | None) -> Array | None:
        """The weights of the rows with those of their classes in them."""
        given = self.class_weight
        if given is None:
            return self._with_two_classes(index, weight)
        base = np.ones(index.size) if weight is None else weight
        size = self.classes_.size
        if isinstance(given, str):
            if given != "balanced":
                raise ValueError(
                    f"The 'class_weight' parameter of {type(self).__name__} must be 'balanced', a "
                    f"dict of weights by class, or None. Got {given!r} instead."
                )
            mass = np.bincount(index, weights=base, minlength=size)
            factors = mass.sum() / (size * np.maximum(mass, 1e-300))
        else:
            factors = np.array([float(given.get(label, 1.0)) for label in self.classes_.tolist()])
            unknown = set(given) - set(self.classes_.tolist())
            if unknown:
                raise ValueError(
                    f"The classes, {sorted(unknown, key=str)}, are not in class_weight's data: "
                    f"the labels are {self.classes_.tolist()}"
                )
        return self._with_two_classes(index, base * factors[index])

    def _with_two_classes(self, index: Array, weight: Array | None) -> Array | None:
        """The weights, unless those of all classes but one are zero."""
        if weight is not None and np.unique(index[weight > 0.0]).size < 2:
            heavy = self.classes_[index[weight > 0.0][:1]].tolist()
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes with positive weight, "
                f"but all others than those of class {heavy} have weight zero; check sample_weight "
                "and class_weight"
            )
        return weight

    class_weight: Any = None
