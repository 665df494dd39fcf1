"""cyanure, snapml, skglm and lightning: stochastic and coordinate solvers with compiled kernels."""

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..objective import Problem
from .base import Extras, Peer, Settings, tolerances


class _Cyanure(Peer):
    package = "cyanure"
    losses = ("logistic", "squared-hinge", "squared")
    threaded = True
    solver: ClassVar[str]

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from cyanure.estimators import Classifier, Regression

        options: dict[str, Any] = {
            "penalty": "l2",
            "lambda_1": lam,
            "solver": self.solver,
            "tol": tol,
            "max_iter": 2_000,
            "duality_gap_interval": 5,
            "fit_intercept": False,
            "verbose": False,
            "n_threads": self.threads,
            "random_state": 0,
        }
        loss = self.problem.loss.name
        if loss == "squared":
            model = Regression(**options)
        else:
            names = {"logistic": "logistic", "squared-hinge": "sqhinge"}
            model = Classifier(loss=names[loss], **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.problem.X, self.problem.b)
        return np.asarray(model.coef_).ravel()


class CyanureAuto(_Cyanure):
    """The solver it picks itself."""

    name, solver = "cyanure-auto", "auto"


class CyanureQningMiso(_Cyanure):
    """qning-miso."""

    name, solver = "cyanure-qning-miso", "qning-miso"


class CyanureCatalystMiso(_Cyanure):
    """catalyst-miso."""

    name, solver = "cyanure-catalyst-miso", "catalyst-miso"


class _Snapml(Peer):
    package = "snapml"
    losses = ("logistic", "squared")
    threaded = True
    dual: ClassVar[bool]

    def convert(self, problem: Problem) -> None:
        X = problem.X.astype(np.float32) if sparse.issparse(problem.X) else problem.X
        if sparse.issparse(X) and not self.dual:
            X = X.tocsc()
        self.problem, self._X = problem, X

    def fit(self, lam: float, tol: float) -> np.ndarray:
        import snapml

        logistic = self.problem.loss.name == "logistic"
        model = (snapml.LogisticRegression if logistic else snapml.LinearRegression)(
            regularizer=lam * self.problem.n,
            dual=self.dual,
            tol=tol,
            max_iter=5_000,
            n_jobs=self.threads,
            fit_intercept=False,
            random_state=0,
        )
        model.fit(self._X, self.problem.b)
        return np.asarray(model.coef_, dtype=np.float64).ravel()


class SnapmlPrimal(_Snapml):
    """Coordinate descent over columns."""

    name, dual = "snapml-primal", False


class SnapmlDual(_Snapml):
    """Dual coordinate descent over rows."""

    name, dual = "snapml-dual", True


class _Skglm(Peer):
    package = "skglm"
    solver: ClassVar[str]

    def convert(self, problem: Problem) -> None:
        X = problem.X.tocsc() if sparse.issparse(problem.X) else np.asfortranarray(problem.X)
        self.problem, self._X = problem, X

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from skglm import datafits, penalties, solvers

        datafit = (datafits.Logistic if self.problem.loss.classifies else datafits.Quadratic)()
        options: dict[str, Any] = {}
        if self.solver != "LBFGS":
            options = {"fit_intercept": False, "ws_strategy": "fixpoint"}
        # its elastic net with no l1 part has the proximal operator that its L2 lacks
        plain = self.solver == "LBFGS"
        penalty = penalties.L2(lam) if plain else penalties.L1_plus_L2(lam, 0.0)
        solver = getattr(solvers, self.solver)(tol=tol, max_iter=5_000, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = solver.solve(self._X, self.problem.b, datafit, penalty)[0]
        return np.asarray(x)


class SkglmLbfgs(_Skglm):
    """L-BFGS."""

    name, solver, losses = "skglm-lbfgs", "LBFGS", ("logistic",)


class SkglmAndersonCD(_Skglm):
    """Accelerated coordinate descent."""

    name, solver, losses = "skglm-andersoncd", "AndersonCD", ("logistic", "squared")


class _Lightning(Peer):
    package = "sklearn-contrib-lightning"

    def model(self, lam: float, tol: float) -> Any:
        """The estimator."""
        raise NotImplementedError

    def fit(self, lam: float, tol: float) -> np.ndarray:
        model = self.model(lam, tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.problem.X, self.problem.b)
        self.extras = Extras()
        return np.asarray(model.coef_, dtype=float).ravel()


class LightningSdca(_Lightning):
    """SDCA. Its ``tol`` hardly ever ends it, so the ladder is one of passes."""

    name = "lightning-sdca"
    losses = ("smooth-hinge", "squared-hinge", "squared")

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": float(passes)} for passes in (3, 10, 30, 100, 300, 1000, 3000, 10_000)]

    def model(self, lam: float, tol: float) -> Any:
        from lightning.classification import SDCAClassifier
        from lightning.regression import SDCARegressor

        options = {"max_iter": int(tol), "tol": 0.0, "random_state": 0}
        if self.problem.loss.name == "squared":
            return SDCARegressor(alpha=lam, loss="squared", **options)
        if self.problem.loss.name == "smooth-hinge":
            return SDCAClassifier(alpha=lam, loss="smooth_hinge", **options)
        return SDCAClassifier(alpha=2 * lam, loss="squared_hinge", **options)  # it has no 1/2


class LightningCD(_Lightning):
    """Coordinate descent over columns."""

    name = "lightning-cd"
    losses = ("logistic", "squared-hinge", "squared")

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 8)]

    def model(self, lam: float, tol: float) -> Any:
        from lightning.classification import CDClassifier
        from lightning.regression import CDRegressor

        loss = self.problem.loss.name
        weight = 1.0 if loss == "logistic" else 0.5  # its squares have no 1/2
        options = {
            "C": weight / self.problem.n,
            "alpha": lam,
            "penalty": "l2",
            "max_iter": 5_000,
            "tol": tol,
            "random_state": 0,
        }
        if loss == "squared":
            return CDRegressor(**options)
        return CDClassifier(loss="log" if loss == "logistic" else "squared_hinge", **options)


class LightningSaga(_Lightning):
    """SAGA."""

    name = "lightning-saga"
    losses = ("logistic", "smooth-hinge")

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 8)]

    def model(self, lam: float, tol: float) -> Any:
        from lightning.classification import SAGAClassifier

        loss = {"logistic": "log", "smooth-hinge": "smooth_hinge"}[self.problem.loss.name]
        return SAGAClassifier(alpha=lam, loss=loss, max_iter=2_000, tol=tol, random_state=0)


PEERS = (
    CyanureAuto,
    CyanureQningMiso,
    CyanureCatalystMiso,
    SnapmlPrimal,
    SnapmlDual,
    SkglmLbfgs,
    SkglmAndersonCD,
    LightningSdca,
    LightningCD,
    LightningSaga,
)
