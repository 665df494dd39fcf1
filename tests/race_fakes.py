"""Peers that do everything a peer can do wrong, for tests/test_race.py."""

import os
import time

import numpy as np
from race.objective import LOSSES, Problem
from race.peers import Peer, Refused


class Good(Peer):
    """Gradient descent: right, and the better the smaller ``tol``."""

    name = "good"
    losses = tuple(LOSSES)

    def settings(self, loss):
        return [{"tol": tol} for tol in (1e-2, 1e-12)]

    def fit(self, lam, tol):
        os.write(1, b"noise on standard output must not reach the harness\n")
        cell = Problem("", self.problem.X, self.problem.b, self.problem.loss, lam)
        hessian = np.asarray((cell.X.T @ cell.X) / cell.n + lam * np.eye(cell.d))
        x = np.zeros(cell.d)
        for _ in range(2_000):
            gradient = cell.X.T @ cell.slope(cell.X @ x) / cell.n + lam * x
            step = np.linalg.solve(hessian, gradient)
            x = x - step
            if np.linalg.norm(step) <= tol:
                break
        return x


class Wrong(Good):
    name = "wrong"

    def fit(self, lam, tol):
        return super().fit(lam, tol) * 1.5


class Unfinished(Good):
    name = "unfinished"

    def fit(self, lam, tol):
        return np.full(self.problem.d, np.nan)


class Slow(Good):
    name = "slow"

    def fit(self, lam, tol):
        if lam < 1e-2:  # not while warming up
            time.sleep(0.0 if tol > 1e-3 else 60.0)
        return super().fit(lam, tol)


class Crashing(Good):
    name = "crashing"

    def fit(self, lam, tol):
        if lam < 1e-2:
            os.abort()
        return super().fit(lam, tol)


class Raising(Good):
    name = "raising"

    def fit(self, lam, tol):
        if lam < 1e-2:
            raise FloatingPointError("gave up")
        return super().fit(lam, tol)


class Refusing(Good):
    name = "refusing"

    def convert(self, problem):
        raise Refused("takes no such thing")


class Absent(Good):
    name = "absent"
    package = "a-package-that-nobody-has"
