"""glum, adelie, rehline, and SciPy's general minimisers for the losses nobody else has."""

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..objective import Problem
from .base import Extras, Peer, Refused, Settings, tolerances
from .scikit import refuse_wide


class GlumIrls(Peer):
    """glum, irls-ls."""

    name, package, losses, threaded = "glum-irls", "glum", ("logistic", "squared"), True

    def convert(self, problem: Problem) -> None:
        import tabmat

        refuse_wide(problem, 5_000)
        self.problem = problem
        if sparse.issparse(problem.X):
            self._X = tabmat.SparseMatrix(problem.X.tocsc())
        else:
            self._X = tabmat.DenseMatrix(np.asfortranarray(problem.X))
        self._y = (problem.b + 1) / 2 if problem.loss.classifies else problem.b

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family="binomial" if self.problem.loss.classifies else "normal",
            alpha=lam,
            l1_ratio=0,
            solver="irls-ls",
            gradient_tol=tol,
            max_iter=1_000,
            fit_intercept=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self._X, self._y)
        self.extras = Extras(passes=float(np.max(model.n_iter_)))
        return np.asarray(model.coef_)


class Adelie(Peer):
    """adelie, grpnet with alpha = 0 at one lambda."""

    name, package, losses = "adelie", "adelie", ("logistic", "squared")
    threaded = True
    environment = "adelie"

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(3, 14)]

    def convert(self, problem: Problem) -> None:
        import adelie as ad

        self.problem = problem
        if sparse.issparse(problem.X):
            self._X = ad.matrix.sparse(problem.X.tocsc(), method="naive", n_threads=self.threads)
        else:
            dense = np.asfortranarray(problem.X)
            self._X = ad.matrix.dense(dense, method="naive", n_threads=self.threads)

    def fit(self, lam: float, tol: float) -> np.ndarray:
        import adelie as ad

        b = self.problem.b
        glm = ad.glm.binomial((b + 1) / 2) if self.problem.loss.classifies else ad.glm.gaussian(b)
        state = ad.grpnet(
            X=self._X,
            glm=glm,
            alpha=0,
            lmda_path=[lam],
            intercept=False,
            early_exit=False,
            tol=tol,
            irls_tol=tol,
            progress_bar=False,
            n_threads=self.threads,
            max_iters=1_000_000,
        )
        if state.betas.shape[0] == 0:
            raise RuntimeError("no solution on its path")
        return np.asarray(state.betas[-1].toarray()).ravel()


class Rehline(Peer):
    """ReHLine: coordinate descent on the dual of piecewise quadratic losses."""

    name, package = "rehline", "rehline"
    losses = ("smooth-hinge", "squared-hinge", "squared")
    most_entries = 300_000_000

    def settings(self, loss: str) -> list[Settings]:
        return [{"tol": tol} for tol in tolerances(1, 9)]

    def convert(self, problem: Problem) -> None:
        if problem.n * problem.d > self.most_entries:
            raise Refused(f"takes dense data only: {problem.n:,} x {problem.d:,}")
        self.problem = problem
        dense = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
        self._X = np.ascontiguousarray(dense, dtype=float)

    def fit(self, lam: float, tol: float) -> np.ndarray:
        from rehline import ReHLine

        root = np.sqrt(1.0 / (lam * self.problem.n))
        slopes, shifts, widths = self._pieces()
        model = ReHLine(
            C=1.0,
            S=root * slopes,
            T=root * shifts,
            Tau=root * widths if np.isfinite(widths).all() else widths,
            max_iter=100_000,
            tol=tol,
            verbose=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X=self._X)
        self.extras = Extras(passes=float(np.max(model.n_iter_)))
        return np.asarray(model.coef_).ravel()

    def _pieces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every loss of the race is a sum of ReHU(s z + t), quadratic up to tau, then linear."""
        b, ones = self.problem.b, np.ones_like(self.problem.b)
        if self.problem.loss.name == "squared":
            return np.array([ones, -ones]), np.array([-b, b]), np.full((2, b.size), np.inf)
        width = 1.0 if self.problem.loss.name == "smooth-hinge" else np.inf
        return -b[None, :], ones[None, :], np.full((1, b.size), width)


class _Scipy(Peer):
    package = "scipy"
    losses = ("smooth-hinge", "squared-hinge", "squared")
    method: ClassVar[str]

    def convert(self, problem: Problem) -> None:
        self.problem = problem
        self._T = problem.X.T.tocsr() if sparse.issparse(problem.X) else problem.X.T

    def _value_and_gradient(self, lam: float) -> Any:
        X, b, loss, n = self.problem.X, self.problem.b, self.problem.loss, self.problem.n

        def both(x: np.ndarray) -> tuple[float, np.ndarray]:
            z = X @ x
            value = loss.value(z, b).mean() + 0.5 * lam * (x @ x)
            return value, self._T @ loss.slope(z, b) / n + lam * x

        return both

    def _minimise(self, lam: float, options: Settings, **more: Any) -> np.ndarray:
        from scipy.optimize import minimize

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = minimize(
                self._value_and_gradient(lam),
                np.zeros(self.problem.d),
                jac=True,
                method=self.method,
                options=options,
                **more,
            )
        self.extras = Extras(passes=float(done.nfev))
        return np.asarray(done.x)


class ScipyLbfgs(_Scipy):
    """scipy.optimize.minimize, L-BFGS-B."""

    name, method = "scipy-lbfgs", "L-BFGS-B"

    def fit(self, lam: float, tol: float) -> np.ndarray:
        limits = {"maxiter": 100_000, "maxfun": 200_000, "maxls": 50}
        return self._minimise(lam, {"gtol": tol, "ftol": 0.01 * tol * tol, **limits})


class ScipyNewtonCG(_Scipy):
    """scipy.optimize.minimize, Newton-CG with Hessian products."""

    name, method = "scipy-newton-cg", "Newton-CG"

    def fit(self, lam: float, tol: float) -> np.ndarray:
        X, b, loss, n = self.problem.X, self.problem.b, self.problem.loss, self.problem.n
        seen: dict[str, Any] = {}

        def product(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            if "x" not in seen or not np.array_equal(seen["x"], x):
                seen["x"], seen["h"] = x.copy(), loss.curvature(X @ x, b) / n
            return self._T @ (seen["h"] * (X @ v)) + lam * v

        return self._minimise(lam, {"xtol": tol, "maxiter": 10_000}, hessp=product)


PEERS = (GlumIrls, Adelie, Rehline, ScipyLbfgs, ScipyNewtonCG)
