"""Logistic regression with its penalty chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._logistic import LogisticRegression
from ._task import Array

_SHARED = ("tol", "fit_intercept", "class_weight", "random_state", "solver", "max_iter", "verbose")


class LogisticRegressionCV(LogisticRegression):
    """`LogisticRegression` with C and l1_ratio chosen by cross-validation.

    In each fold the models are fitted from the strongest penalty to the weakest, each starting from
    the one before; the best pair is then fitted to all the data.

    Parameters
    ----------
    Cs : int or array-like of float
        Values of C; a number asks for that many between 1e-4 and 1e4, evenly on a log scale.
    l1_ratios : array-like of float
        Values of l1_ratio.
    fit_intercept : bool
    cv : int, splitter or iterable, optional
        By default five stratified folds, fewer where a class has fewer rows.
    scoring : str or callable, optional
        What to maximise: the accuracy, unless told.
    tol : float
        Relative duality gap of each fit.
    max_iter : int
        Passes over the data allowed, for each fit.
    class_weight : dict or "balanced", optional
    n_jobs : int, optional
        Folds fitted at a time.
    random_state : int, Generator or RandomState
    solver : str
        "auto", or a method of `adaspdc.solve`.
    verbose : int

    Attributes
    ----------
    C_, l1_ratio_ : float
        The values chosen.
    Cs_ : ndarray of shape (n_cs,)
    l1_ratios_ : ndarray of shape (n_l1_ratios,)
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_cs)
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_cs, n_classes or 1, n_features + 1)
        With the intercept last; without that column if there is none.
    dual_gaps_ : ndarray of shape (n_folds, n_l1_ratios, n_cs)
        The certificate of every fit.
    n_iter_ : ndarray of shape (n_folds, n_l1_ratios, n_cs)
    classes_, coef_, intercept_, dual_coef_, dual_gap_, result_, n_features_in_, feature_names_in_
        As in `LogisticRegression`, of the last fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from adaspdc import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.1, 1.0, 10.0], cv=3).fit(X, y)
    >>> model.C_ in (1.0, 10.0), model.scores_.shape
    (True, (3, 1, 3))
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        solver: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose C and l1_ratio, and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            Passed on to the splitter and the scorer, with metadata routing enabled.

        Returns
        -------
        self
        """
        self.Cs_, self.l1_ratios_ = self._grid()
        self._options()  # wrong parameters show before the first fold
        X, y = self._checked_data(X, y)
        self._encoded(y)
        weight = self._checked_weight(sample_weight, X.shape[0])
        routed = self._routed(weight, params)
        splits = list(self._splitter(y).split(X, y, **routed.splitter.split))
        paths = Parallel(n_jobs=self.n_jobs)(
            delayed(_path)(self, X, y, weight, split, ratio, routed.scorer.score)
            for split in splits
            for ratio in self.l1_ratios_
        )
        shape = (len(splits), self.l1_ratios_.size, self.Cs_.size)
        scores, coefs, gaps, passes = (np.array(part) for part in zip(*paths, strict=True))
        self.scores_, self.dual_gaps_ = scores.reshape(shape), gaps.reshape(shape)
        self.coefs_paths_ = coefs.reshape(*shape, *coefs.shape[2:])
        best = np.unravel_index(self.scores_.mean(axis=0).argmax(), shape[1:])
        self.l1_ratio_, self.C_ = float(self.l1_ratios_[best[0]]), float(self.Cs_[best[1]])
        self._refit(X, y, weight)
        self.n_iter_ = passes.reshape(shape)  # type: ignore[assignment]
        return self

    def _splitter(self, y: Any = None) -> Any:
        """Five folds unless told, and fewer where a class has fewer rows."""
        folds = self.cv
        if folds is None and y is not None:
            folds = max(2, min(5, int(np.unique(y, return_counts=True)[1].min())))
        return check_cv(folds, y, classifier=True)

    def _grid(self) -> tuple[Array, Array]:
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool):
            strengths = np.logspace(-4, 4, int(self.Cs))
        else:
            strengths = np.asarray(self.Cs, dtype=np.float64)
        ratios = np.asarray(self.l1_ratios, dtype=np.float64)
        good = strengths.ndim == ratios.ndim == 1 and strengths.size > 0 and ratios.size > 0
        if not good or not (np.isfinite(strengths) & (strengths > 0.0)).all():
            raise ValueError(
                "The 'Cs' parameter of LogisticRegressionCV must be a positive whole number or a "
                f"list of positive numbers, and 'l1_ratios' a list. Got {self.Cs!r} and "
                f"{self.l1_ratios!r} instead."
            )
        if not ((ratios >= 0.0) & (ratios <= 1.0)).all():
            raise ValueError(f"The 'l1_ratios' must lie between 0 and 1. Got {self.l1_ratios!r}.")
        return strengths, ratios

    def _model(self, C: float, ratio: float, warm_start: bool = False) -> LogisticRegression:
        shared = {name: getattr(self, name) for name in _SHARED}
        return LogisticRegression(C=C, l1_ratio=ratio, warm_start=warm_start, **shared)

    def _refit(self, X: Any, y: Any, weight: Array | None) -> None:
        model = self._model(self.C_, self.l1_ratio_).fit(X, y, weight)
        for name in ("coef_", "intercept_", "dual_coef_", "dual_gap_", "result_", "classes_"):
            setattr(self, name, getattr(model, name))

    # --- scoring and metadata ---

    def _scorer(self) -> Any:
        return check_scoring(self, scoring=self.scoring)

    def _routed(self, weight: Array | None, params: dict[str, Any]) -> Any:
        """What the splitter and the scorer are given."""
        if sklearn.get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", sample_weight=weight, **params)
        if params:
            raise ValueError(
                f"{sorted(params)} can be passed on only with metadata routing: "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        score = {} if weight is None else {"sample_weight": weight}
        return Bunch(splitter=Bunch(split={}), scorer=Bunch(score=score))

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reach this object, its splitter and its scorer."""
        to_fit = MethodMapping().add(caller="fit", callee="split")
        to_score = MethodMapping().add(caller="fit", callee="score")
        to_score.add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self._splitter(), method_mapping=to_fit)
        if self.scoring is not None:
            router.add(scorer=self._scorer(), method_mapping=to_score)
        else:
            plain = LogisticRegression().set_score_request(sample_weight=True)
            router.add(scorer=plain, method_mapping=to_score)
        return router

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """The score that was maximised, on other data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            Passed on to the scorer, with metadata routing enabled.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        given = dict(params)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        if given and sklearn.get_config()["enable_metadata_routing"]:
            given = dict(process_routing(self, "score", **given).scorer.score)
        return float(self._scorer()(self, X, y, **given))


def _path(
    owner: LogisticRegressionCV,
    X: Any,
    y: Any,
    weight: Array | None,
    split: tuple[Array, Array],
    ratio: float,
    score_params: dict[str, Any],
) -> tuple[list[float], list[Array], list[float], list[int]]:
    """Scores, coefficients, gaps and passes of one fold, in the order of the Cs."""
    train, test = split
    model = owner._model(1.0, float(ratio), warm_start=True)
    part = {
        name: value[test] if isinstance(value, np.ndarray) and len(value) == len(y) else value
        for name, value in score_params.items()
    }
    scorer = check_scoring(model, scoring=owner.scoring)
    out: dict[int, tuple[float, Array, float, int]] = {}
    for k in np.argsort(owner.Cs_):
        model.set_params(C=float(owner.Cs_[k]))
        model.fit(X[train], y[train], None if weight is None else weight[train])
        if model.classes_.size < owner.classes_.size:
            raise ValueError(
                f"a fold has only the classes {model.classes_.tolist()} to train on: use fewer "
                "folds, or stratified ones"
            )
        columns = [model.coef_]
        if owner.fit_intercept:
            columns.append(model.intercept_[:, None])
        score = float(scorer(model, X[test], y[test], **part))
        out[int(k)] = score, np.hstack(columns), float(model.dual_gap_), model.n_iter_
    parts = zip(*(out[k] for k in range(len(out))), strict=True)
    scores, coefs, gaps, passes = (list(part) for part in parts)
    return scores, coefs, gaps, passes
