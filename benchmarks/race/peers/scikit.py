"""scikit-learn: every solver of LogisticRegression, LinearSVC and Ridge that takes the problem."""

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..objective import Problem
from .base import Extras, Peer, Settings, tolerances


def _fitted(peer: Peer, model: Any) -> np.ndarray:
    """The coefficients; "did not converge" is no news to the harness, which looks itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(peer.problem.X, peer.problem.b)
    n_iter = getattr(model, "n_iter_", None)
    peer.extras = Extras(passes=None if n_iter is None else float(np.max(n_iter)))
    return np.asarray(model.coef_).ravel()


class _Logistic(Peer):
    package = "scikit-learn"
    losses = ("logistic",)
    solver: ClassVar[str]
    max_iter: ClassVar[int] = 10_000

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=1.0 / (lam * self.problem.n),
            solver=self.solver,
            tol=tol,
            max_iter=self.max_iter,
            fit_intercept=False,
            random_state=0,
        )
        return _fitted(self, model)


class Lbfgs(_Logistic):
    """LogisticRegression, lbfgs."""

    name, solver, threaded = "sklearn-lbfgs", "lbfgs", True


class NewtonCG(_Logistic):
    """LogisticRegression, newton-cg."""

    name, solver, threaded = "sklearn-newton-cg", "newton-cg", True


class NewtonCholesky(_Logistic):
    """LogisticRegression, newton-cholesky: it forms d x d matrices."""

    name, solver, threaded = "sklearn-newton-cholesky", "newton-cholesky", True
    most_columns = 5_000

    def convert(self, problem: Problem) -> None:
        super().convert(problem)
        refuse_wide(problem, self.most_columns)


class Sag(_Logistic):
    """LogisticRegression, sag."""

    name, solver = "sklearn-sag", "sag"

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 8)]


class Saga(Sag):
    """LogisticRegression, saga."""

    name, solver = "sklearn-saga", "saga"


class LiblinearPrimal(_Logistic):
    """LogisticRegression, liblinear (its trust region)."""

    name, solver = "sklearn-liblinear-primal", "liblinear"


class LiblinearDual(Peer):
    """LogisticRegression, liblinear, dual=True."""

    name, package, losses = "sklearn-liblinear-dual", "scikit-learn", ("logistic",)

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=1.0 / (lam * self.problem.n),
            solver="liblinear",
            dual=True,
            tol=tol,
            max_iter=10_000,
            fit_intercept=False,
            random_state=0,
        )
        return _fitted(self, model)


class _LinearSVC(Peer):
    package = "scikit-learn"
    losses = ("squared-hinge",)
    dual: ClassVar[bool]

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from sklearn.svm import LinearSVC

        model = LinearSVC(
            C=0.5 / (lam * self.problem.n),  # its squared hinge has no 1/2
            dual=self.dual,
            tol=tol,
            max_iter=10_000,
            fit_intercept=False,
            random_state=0,
        )
        return _fitted(self, model)


class LinearSVCPrimal(_LinearSVC):
    """LinearSVC, dual=False."""

    name, dual = "sklearn-linearsvc-primal", False


class LinearSVCDual(_LinearSVC):
    """LinearSVC, dual=True."""

    name, dual = "sklearn-linearsvc-dual", True


class _Ridge(Peer):
    package = "scikit-learn"
    losses = ("squared",)
    solver: ClassVar[str]
    direct: ClassVar[bool] = False

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": 1e-4}] if self.direct else [{"tol": tol} for tol in tolerances(1, 10)]

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from sklearn.linear_model import Ridge

        model = Ridge(
            alpha=lam * self.problem.n,
            solver=self.solver,
            tol=tol,
            max_iter=None if self.direct else 10_000,
            fit_intercept=False,
            random_state=0,
        )
        return _fitted(self, model)


class RidgeCholesky(_Ridge):
    """Ridge, cholesky."""

    name, solver, direct, threaded = "sklearn-ridge-cholesky", "cholesky", True, True

    def convert(self, problem: Problem) -> None:
        super().convert(problem)
        refuse_wide(problem, 5_000)


class RidgeSvd(_Ridge):
    """Ridge, svd."""

    name, solver, direct, threaded = "sklearn-ridge-svd", "svd", True, True

    def convert(self, problem: Problem) -> None:
        from .base import Refused

        super().convert(problem)
        if sparse.issparse(problem.X):
            raise Refused("takes no sparse data")
        refuse_wide(problem, 5_000)


class RidgeLsqr(_Ridge):
    """Ridge, lsqr."""

    name, solver = "sklearn-ridge-lsqr", "lsqr"


class RidgeSparseCG(_Ridge):
    """Ridge, sparse_cg."""

    name, solver = "sklearn-ridge-cg", "sparse_cg"


class RidgeSag(_Ridge):
    """Ridge, sag."""

    name, solver = "sklearn-ridge-sag", "sag"


class RidgeSaga(_Ridge):
    """Ridge, saga."""

    name, solver = "sklearn-ridge-saga", "saga"


def refuse_wide(problem: Problem, columns: int) -> None:
    """Solvers that form d x d matrices are not sent where those do not fit."""
    from .base import Refused

    if problem.d > columns:
        raise Refused(f"forms d x d matrices; d = {problem.d:,}")


PEERS = (
    Lbfgs,
    NewtonCG,
    NewtonCholesky,
    Sag,
    Saga,
    LiblinearPrimal,
    LiblinearDual,
    LinearSVCPrimal,
    LinearSVCDual,
    RidgeCholesky,
    RidgeSvd,
    RidgeLsqr,
    RidgeSparseCG,
    RidgeSag,
    RidgeSaga,
)
