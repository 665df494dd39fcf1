"""Scores of a model on labelled rows, without scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..model import Model


def scores(model: Model, X: Any, y: Any) -> dict[str, float]:
    """Every score that makes sense for the model and these labels."""
    return _regression(model, X, y) if model.labels is None else _classification(model, X, y)


def _regression(model: Model, X: Any, y: Any) -> dict[str, float]:
    if y.dtype.kind not in "fiub":
        raise ValueError("the labels are text, but the model is one of regression")
    goal = y.astype(np.float64)
    error = model.predict(X) - goal
    spread = float(((goal - goal.mean()) ** 2).sum())
    return {
        "R2": 1.0 - float((error**2).sum()) / spread if spread > 0 else float("nan"),
        "MAE": float(np.abs(error).mean()),
        "RMSE": float(np.sqrt((error**2).mean())),
        "mean_loss": float(model.loss.value(error + goal, goal).mean()),
    }


def _classification(model: Model, X: Any, y: Any) -> dict[str, float]:
    assert model.labels is not None
    if (y.dtype.kind == "U") != isinstance(model.labels[0], str):
        kinds = ("text", "numbers") if y.dtype.kind == "U" else ("numbers", "text")
        raise ValueError(f"the labels are {kinds[0]}, those of the model are {kinds[1]}")
    found = {"accuracy": float(np.mean(model.predict(X) == y))}
    index = {label: k for k, label in enumerate(model.labels)}
    position = np.array([index.get(label, -1) for label in y.tolist()])
    if position.min() < 0:  # nothing else has a meaning for a class never seen
        return found
    margins = model.decision_function(X)
    if margins.ndim == 1 and len(model.labels) == 2:
        found["AUC"] = area_under_curve(margins, position == 1)
    if type(model.loss).__name__ in ("Logistic", "Multinomial") and len(model.labels) > 1:
        shares = model.predict_proba(X)[np.arange(len(y)), position]
        with np.errstate(divide="ignore"):
            found["log_loss"] = float(-np.log(shares).mean())
    targets = position if margins.ndim == 2 else 2.0 * position - 1.0
    if len(model.labels) > 1:
        found["mean_loss"] = float(model.loss.value(margins, targets).mean())
    return found


def area_under_curve(margins: Any, positive: Any) -> float:
    """The chance that a positive row has a larger margin than a negative one; ties count half.

    >>> import numpy as np
    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    many, few = int(positive.sum()), int((~positive).sum())
    if not many or not few:
        return float("nan")
    _, rank, counts = np.unique(margins, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2.0
    total = float(middle[rank][positive].sum())
    return (total - many * (many + 1) / 2) / (many * few)
