"""A fitted linear model on disk: what `adaspdc fit` writes and `adaspdc predict` reads.

>>> import pathlib, tempfile
>>> import numpy as np
>>> from adaspdc import ERM, losses, regularizers, solve
>>> from adaspdc.model import Model, load
>>> X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
>>> problem = ERM(X, ["yes", "yes", "no", "no"], losses.Logistic(), regularizers.L2(1e-2))
>>> model = Model.of(problem, solve(problem))
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model"
>>> model.save(path)
>>> load(path).predict(X).tolist()
['yes', 'yes', 'no', 'no']
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _envelope
from ._catalogue import describe, make_loss, make_penalty
from ._envelope import EnvelopeError
from ._loss import Loss
from ._version import __version__
from .problem import ERM
from .regularizers import Regularizer
from .result import Result

__all__ = ["Model", "ModelFileError", "load"]

Array = NDArray[Any]
ModelFileError = EnvelopeError

_RECORDED = ("primal", "dual", "gap", "tol", "passes", "seconds")


@dataclass(frozen=True)
class Model:
    """Coefficients with everything that is needed to use them and to check them.

    Attributes
    ----------
    loss, penalty : Loss, Regularizer
        What was minimised.
    coef : ndarray of shape (d,) or (d, K)
        One column per class where there are several outputs.
    intercept : ndarray of shape (1,) or (K,)
        Zero where none was fitted.
    labels : tuple or None
        The classes in increasing order, as they stood in the data; None for regression.
    dual : ndarray of shape (n,) or (n, K)
        The dual point of the certificate.
    certificate : dict
        ``primal``, ``dual``, ``gap``, ``tol`` (the absolute gap asked for), ``passes``,
        ``seconds``, ``status`` and ``method``.
    training : dict
        What else is known of the fit: rows, settings, the version that wrote it.
    """

    loss: Loss
    penalty: Regularizer
    coef: Array
    intercept: Array
    labels: tuple[Any, ...] | None
    dual: Array
    certificate: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: ERM, result: Result, **training: Any) -> Model:
        """The model that a solve has found; ``training`` is kept with it."""
        labels = None if problem.labels is None else tuple(problem.labels.tolist())
        recorded = {name: float(getattr(result, name)) for name in _RECORDED}
        outputs = problem.shape[1] if len(problem.shape) == 2 else 1
        intercept = np.broadcast_to(np.asarray(getattr(result, "intercept", 0.0)), outputs)
        return cls(
            loss=problem.loss,
            penalty=problem.regularizer,
            coef=np.asarray(result.x, dtype=np.float64),
            intercept=np.array(intercept, dtype=np.float64),
            labels=labels,
            dual=np.asarray(result.y, dtype=np.float64),
            certificate={**recorded, "status": str(result.status), "method": result.method},
            training={"rows": problem.rows.n, "adaspdc": __version__, **training},
        )

    @property
    def n_features(self) -> int:
        """Columns of the data it was fitted to."""
        return int(self.coef.shape[0])

    @property
    def has_intercept(self) -> bool:
        """Whether an intercept was fitted."""
        return bool(self.training.get("intercept", False))

    def decision_function(self, X: Any) -> Array:
        """``X @ coef + intercept``: shape (n,), or (n, K) for several outputs."""
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, the model was fitted to {self.n_features}"
            )
        margins: Array = np.asarray(X @ self.coef) + (
            self.intercept if self.coef.ndim == 2 else self.intercept[0]
        )
        return margins

    def predict(self, X: Any) -> Array:
        """Labels as they stood in the training data, or numbers."""
        margins = self.decision_function(X)
        if self.labels is None:
            return margins
        if margins.ndim == 2:
            index = margins[:, : len(self.labels)].argmax(axis=1)
        elif len(self.labels) == 1:
            index = np.zeros(len(margins), dtype=np.intp)
        else:
            index = (margins > 0).astype(np.intp)
        predicted: Array = np.array(self.labels)[index]
        return predicted

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, for the logistic and the multinomial loss."""
        margins = self.decision_function(X)
        name = describe(self.loss)["name"]
        if name == "logistic":
            margins = np.column_stack([np.zeros(len(margins)), margins])
        elif name != "multinomial":
            raise ValueError(
                f"a model with the {name} loss has no probabilities; fit with --loss logistic"
            )
        margins = margins - margins.max(axis=1, keepdims=True)
        powers = np.exp(margins)
        shares: Array = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, whole or not at all; see `docs/model-format.md` for the format."""
        penalty = describe(self.penalty)
        meta = {
            "loss": describe(self.loss),
            "penalty": {
                "lam": self.penalty.lam,
                **{key: _stated(value) for key, value in penalty.items()},
            },
            "labels": None if self.labels is None else list(self.labels),
            "certificate": {key: _stated(value) for key, value in self.certificate.items()},
            "training": self.training,
        }
        arrays = {"coef": self.coef, "intercept": self.intercept, "dual": self.dual}
        _envelope.write(path, "model", meta, arrays)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model; `ModelFileError` (a ValueError) for a file that is none, or is damaged."""
    meta, arrays = _envelope.read(path, "model")
    try:
        return _model(meta, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)}: not a usable model: {error}") from None


def _model(meta: dict[str, Any], arrays: dict[str, Array]) -> Model:
    loss = {key: _number(value) for key, value in meta["loss"].items()}
    penalty = {key: _number(value) for key, value in meta["penalty"].items()}
    labels = meta["labels"]
    model = Model(
        loss=make_loss(loss.pop("name"), loss),
        penalty=make_penalty(penalty.pop("name"), penalty.pop("lam"), penalty),
        coef=arrays["coef"].copy(),  # laid out in memory as an array that was never in a file
        intercept=arrays["intercept"].copy(),
        labels=None if labels is None else tuple(labels),
        dual=arrays["dual"],
        certificate={key: _number(value) for key, value in meta["certificate"].items()},
        training=dict(meta["training"]),
    )
    _check(model)
    return model


def _check(model: Model) -> None:
    """What the rest of the code relies on."""
    outputs = model.coef.shape[1] if model.coef.ndim == 2 else 1
    if model.coef.ndim not in (1, 2) or model.coef.shape[0] < 1 or outputs < 1:
        raise ValueError(f"coefficients of shape {model.coef.shape}")
    if (model.coef.ndim == 1) != model.loss.is_scalar or model.intercept.shape != (outputs,):
        raise ValueError("coefficients, intercept and loss do not fit together")
    if not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()):
        raise ValueError("a coefficient is not finite")
    classifies = model.loss.kind in ("binary", "multiclass")
    if classifies != (model.labels is not None):
        raise ValueError("labels and loss do not fit together")
    if model.labels is not None:
        most = 2 if model.loss.is_scalar else outputs
        kinds = {str if isinstance(label, str) else float for label in model.labels}
        plain = all(isinstance(label, str | int | float) for label in model.labels)
        if not plain or len(kinds) != 1 or len(model.labels) > most:
            raise ValueError("its labels are not classes of this loss")
    missing = {*_RECORDED, "status", "method"} - set(model.certificate)
    if missing:
        raise ValueError(f"its certificate lacks {min(missing)}")
    if not all(isinstance(model.certificate[name], int | float) for name in _RECORDED):
        raise ValueError("its certificate holds something that is no number")
    training = model.training
    if type(training.get("rows")) is not int or not isinstance(training.get("adaspdc"), str):
        raise ValueError("it does not say what it was fitted to")
    if not isinstance(training.get("label"), str | None):
        raise ValueError("its label column has no name")


def _stated(value: Any) -> Any:
    """JSON has no infinity and no NaN: they are written as text."""
    if isinstance(value, list):
        return [_stated(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(entry) for entry in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
