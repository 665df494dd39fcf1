"""Losses and penalties by name: what the command, the model files and their readers speak.

Only names in these tables can be made into objects, so a file can never choose code to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import losses, regularizers
from ._loss import Loss
from .regularizers import Regularizer

LOSSES: dict[str, tuple[type[Loss], tuple[str, ...]]] = {
    "logistic": (losses.Logistic, ()),
    "smooth_hinge": (losses.SmoothHinge, ("gamma",)),
    "squared_hinge": (losses.SquaredHinge, ()),
    "squared": (losses.Squared, ()),
    "huber": (losses.Huber, ("delta",)),
    "smooth_pinball": (losses.SmoothPinball, ("quantile", "gamma")),
    "smooth_epsilon_insensitive": (losses.SmoothEpsilonInsensitive, ("epsilon", "gamma")),
    "squared_epsilon_insensitive": (losses.SquaredEpsilonInsensitive, ("epsilon",)),
    "multinomial": (losses.Multinomial, ()),
    "smooth_crammer_singer": (losses.SmoothCrammerSinger, ("gamma",)),
}
"""Each loss of a single label column: its class and its parameters."""

PENALTIES: dict[str, tuple[type[Regularizer], tuple[str, ...]]] = {
    "l2": (regularizers.L2, ()),
    "elasticnet": (regularizers.ElasticNet, ("l1",)),
    "nonnegative": (regularizers.NonNegative, ()),
    "box": (regularizers.Box, ("low", "high")),
    "group_l2": (regularizers.GroupL2, ("group_weight", "groups")),
}
"""Each penalty: its class and its parameters beside ``lam``."""


def canonical(name: str) -> str:
    """``Smooth-Hinge`` is ``smooth_hinge``."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def make_loss(name: str, parameters: dict[str, float]) -> Loss:
    """The loss of that name; parameters it does not have are an error."""
    kind, known = _entry(LOSSES, name, "loss")
    _require_known(name, known, parameters)
    loss: Loss = kind(**parameters)
    return loss


def make_penalty(name: str, lam: float, parameters: dict[str, Any]) -> Regularizer:
    """The penalty of that name with ``lam/2 |x|^2`` in it."""
    kind, known = _entry(PENALTIES, name, "penalty")
    _require_known(name, known, parameters)
    penalty: Regularizer = kind(lam, **parameters)
    return penalty


def describe(thing: Loss | Regularizer) -> dict[str, Any]:
    """Name and parameters, from which `make_loss` or `make_penalty` builds the same again."""
    tables: Any = (LOSSES, PENALTIES)
    for table in tables:
        for name, (kind, parameters) in table.items():
            if type(thing) is kind:
                found = {key: _plain(getattr(thing, key)) for key in parameters}
                return {"name": name, **found}
    raise ValueError(
        f"{type(thing).__name__} has no name in the catalogue; a model file can hold only the "
        f"losses {', '.join(LOSSES)} and the penalties {', '.join(PENALTIES)}"
    )


def _plain(value: Any) -> Any:
    """A number, or a list of them."""
    return np.asarray(value).tolist()


def _entry(table: dict[str, Any], name: str, what: str) -> Any:
    found = table.get(canonical(name))
    if found is None:
        raise ValueError(f"{what} must be one of {', '.join(table)}; got {name!r}")
    return found


def _require_known(name: str, known: tuple[str, ...], given: dict[str, Any]) -> None:
    for parameter in given:
        if parameter not in known:
            has = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            raise ValueError(f"{name} has no parameter {parameter!r}; {has}")
