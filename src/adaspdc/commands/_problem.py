"""From a data file and options to a problem, and from new data to what a model expects."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ._progress import reading_bar
from ._run import note

if TYPE_CHECKING:
    from .._loss import Loss
    from ..model import Model
    from ..problem import ERM
    from ..readers import Data
    from ..regularizers import Regularizer
    from ..result import Result

_LOSS_PARAMETERS = ("gamma", "delta", "quantile", "epsilon")


@dataclass(frozen=True)
class DataOptions:
    """How to read a file."""

    file_format: str | None
    label: str | None
    zero_based: bool
    quiet: bool

    @classmethod
    def of(cls, options: dict[str, Any], label: str | None = None) -> DataOptions:
        """From the options of a command; ``label`` stands in for one that is not given."""
        return cls(
            options["file_format"],
            options["label"] or label,
            options["zero_based"],
            options["quiet"],
        )

    def read(self, path: str, require_label: bool = True) -> Data:
        """Read a file, with a bar where that takes long."""
        from .. import readers

        with reading_bar(path, self.quiet) as progress:
            return readers.read(
                path,
                self.file_format,
                label=self.label,
                require_label=require_label,
                zero_based=self.zero_based,
                progress=progress,
            )


def chosen_loss(options: dict[str, Any], y: Any, quiet: bool) -> Loss:
    """The loss asked for; logistic becomes multinomial where there are more than two classes."""
    from .._catalogue import make_loss

    name = options["loss"]
    parameters = {key: options[key] for key in _LOSS_PARAMETERS if options[key] is not None}
    loss = make_loss(name, parameters)
    if loss.kind == "regression":
        return loss
    classes = np.unique(y)
    looks_continuous = y.dtype.kind == "f" and classes.size > max(20, y.size // 2)
    if looks_continuous or (classes.size > 1000 and y.dtype.kind == "f"):
        raise ValueError(
            f"the labels are {classes.size} different numbers, which does not look like classes; "
            "for regression choose e.g. --loss squared or --loss huber"
        )
    if loss.kind != "binary" or classes.size <= 2:
        return loss
    if name != "logistic":
        raise ValueError(
            f"the labels are {classes.size} classes, but the {name} loss is for two; choose "
            "--loss multinomial or --loss smooth_crammer_singer"
        )
    if not quiet:
        note(f"{classes.size} classes: the logistic loss becomes the multinomial one")
    return make_loss("multinomial", {})


def chosen_penalty(options: dict[str, Any], alpha: float) -> Regularizer:
    """The penalty asked for."""
    from .._catalogue import make_penalty

    ratio, low, high = options["l1_ratio"], options["low"], options["high"]
    bounded = low is not None or high is not None
    name = options["penalty"] or ("elasticnet" if ratio else "box" if bounded else "l2")
    given = {
        "--l1-ratio": (ratio, "elasticnet"),
        "--low": (low, "box"),
        "--high": (high, "box"),
        "--groups": (options["groups"], "group_l2"),
        "--group-weight": (options["group_weight"], "group_l2"),
    }
    for option, (value, owner) in given.items():
        if value is not None and owner != name and not (option == "--l1-ratio" and value == 0):
            raise click.UsageError(f"{option} belongs to --penalty {owner}, not to {name}.")
    if name == "elasticnet":
        share = 0.5 if ratio is None else ratio
        if share >= 1:
            raise click.UsageError("--l1-ratio must be below 1: the certificate needs an l2 part.")
        return make_penalty(name, alpha * (1 - share), {"l1": alpha * share})
    if name == "box":
        bounds = {
            "low": -np.inf if low is None else low,
            "high": np.inf if high is None else high,
        }
        return make_penalty(name, alpha, bounds)
    if name == "group_l2":
        weight = alpha if options["group_weight"] is None else options["group_weight"]
        return make_penalty(
            name, alpha, {"group_weight": weight, "groups": _groups(options["groups"])}
        )
    return make_penalty(name, alpha, {})


def _groups(path: str | None) -> list[int]:
    if path is None:
        raise click.UsageError("--penalty group_l2 needs --groups FILE.")
    groups = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        try:
            groups.append(int(line))
        except ValueError:
            raise ValueError(
                f"{path}, line {number}: {line[:40]!r} is not a whole number; "
                "one group per feature and line"
            ) from None
    return groups


def build(data: Data, options: dict[str, Any], quiet: bool) -> ERM:
    """The problem that the options describe."""
    loss = chosen_loss(options, data.y, quiet)
    alpha = options["alpha"] or 1.0 / data.X.shape[0]
    return with_intercept(data.X, data.y, loss, chosen_penalty(options, alpha), options)


def with_intercept(
    X: Any, y: Any, loss: Loss, penalty: Regularizer, options: dict[str, Any]
) -> ERM:
    """The problem, with an intercept where that is asked for or usual."""
    from ..problem import ERM

    _check_width(X, len(np.unique(y)) if loss.kind == "multiclass" else 1)
    return ERM(X, y, loss, penalty, intercept=_intercept(options, loss, penalty, y))


def _check_width(X: Any, outputs: int) -> None:
    """A mistyped index must not ask for all memory there is."""
    needed = 8 * 8 * X.shape[1] * outputs
    try:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if needed > present:
        raise ValueError(
            f"the largest feature is number {X.shape[1]:,}; coefficients for so many need about "
            f"{needed / 1e9:,.0f} GB, which this machine does not have. Is an index mistyped?"
        )


def _intercept(options: dict[str, Any], loss: Loss, penalty: Regularizer, y: Any) -> bool:
    """Whether to fit one: as asked, else where the solver can and it has a finite value."""
    from ..regularizers import GroupL2

    one_class = loss.kind != "regression" and bool(np.all(y == y[0]))
    if options["intercept"] is None:
        automatic = options["method"] in (None, "auto")
        return automatic and not one_class and not isinstance(penalty, GroupL2)
    if options["intercept"] and one_class:
        raise ValueError(
            f"all rows have the label {y[0]}, for which no finite intercept is best; "
            "say --no-intercept, or check the labels"
        )
    return bool(options["intercept"])


def model_of(problem: ERM, result: Result, data: Data, options: dict[str, Any]) -> Model:
    """The model, with what is needed to read more data of the same kind."""
    from ..model import Model

    return Model.of(
        problem,
        result,
        intercept=problem.intercept,
        features=None if data.features is None else list(data.features),
        label=options["label"],
        seed=options["seed"],
    )


def for_model(data: Data, model: Model, quiet: bool) -> Any:
    """The matrix with the columns that a model expects."""
    X, names = data.X, model.training.get("features")
    if names is not None and data.features is not None:
        return _by_name(data, [str(name) for name in names])
    missing = model.n_features - X.shape[1]
    if hasattr(X, "indptr"):
        from scipy import sparse

        if missing < 0:
            if not quiet:
                note(
                    f"{-missing} features beyond the {model.n_features} of the training data are "
                    "left out: their coefficients are zero"
                )
            return X[:, : model.n_features]
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], model.n_features))
    if missing:
        raise ValueError(
            f"{data.source} has {X.shape[1]} columns of features, the model {model.n_features}"
        )
    return X


def _by_name(data: Data, wanted: list[str]) -> Any:
    assert data.features is not None
    position = {name: k for k, name in enumerate(data.features)}
    absent = [name for name in wanted if name not in position]
    if absent:
        raise ValueError(
            f"{data.source} lacks {len(absent)} of the columns that the model was fitted to: "
            f"{', '.join(absent[:5])}"
        )
    return data.X[:, [position[name] for name in wanted]]
