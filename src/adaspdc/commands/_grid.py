"""Several values of lambda for one problem, largest first, each started from the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from . import _options
from ._problem import chosen_loss, chosen_penalty, with_intercept
from ._solve import run

if TYPE_CHECKING:
    from .._loss import Loss
    from ..problem import ERM
    from ..result import Result, Status

_SPAN, _SPAN_L1 = 1e-5, 1e-3


def options(count: int) -> Callable[[_options.Command], _options.Command]:
    """The options that choose the grid."""
    return _options.several(
        click.option(
            "--alphas", metavar="LIST", help="Values of lambda, separated by commas, in any order."
        ),
        click.option(
            "--n-alphas",
            type=click.IntRange(min=1),
            default=count,
            show_default=True,
            help="How many, where --alphas is not given; evenly spaced on a log scale.",
        ),
        click.option(
            "--alpha-max",
            type=_options.Positive(),
            help="The largest; by default where all coefficients are zero (l1) or nearly so.",
        ),
        click.option("--alpha-min", type=_options.Positive(), help="The smallest."),
    )


@dataclass(frozen=True)
class Grid:
    """Data, loss, and the values of lambda, largest first."""

    X: Any
    y: Any
    loss: Loss
    alphas: list[float]
    chosen: dict[str, Any]

    @classmethod
    def of(cls, X: Any, y: Any, chosen: dict[str, Any]) -> Grid:
        """What the options describe."""
        loss = chosen_loss(chosen, y, chosen["quiet"])
        return cls(X, y, loss, _alphas(X, y, loss, chosen), chosen)

    def problem(self, alpha: float, rows: Any = slice(None)) -> ERM:
        """The problem of one lambda, on some of the rows."""
        penalty = chosen_penalty(self.chosen, alpha)
        return with_intercept(self.X[rows], self.y[rows], self.loss, penalty, self.chosen)

    def solved(
        self, settings: dict[str, Any], rows: Any = slice(None), title: str = "lambda"
    ) -> Iterator[tuple[float, ERM, Result]]:
        """Solve for one lambda after the other; ends early when it is interrupted."""
        from ..result import Status

        before = None
        for number, alpha in enumerate(self.alphas, start=1):
            problem = self.problem(alpha, rows)
            label = f"{title} {number} of {len(self.alphas)}"
            result = run(problem, settings, label, self.chosen["quiet"], start=before)
            yield alpha, problem, result
            if result.status is Status.STOPPED:
                return
            before = result


def _alphas(X: Any, y: Any, loss: Loss, chosen: dict[str, Any]) -> list[float]:
    if chosen["alphas"] is not None:
        return sorted(_listed(chosen["alphas"]), reverse=True)
    ratio = chosen["l1_ratio"] or (0.5 if chosen["penalty"] == "elasticnet" else 0.0)
    largest = chosen["alpha_max"] or _largest(X, y, loss, ratio, chosen)
    smallest = chosen["alpha_min"] or largest * (_SPAN_L1 if ratio else _SPAN)
    if smallest > largest:
        raise click.UsageError(f"--alpha-min {smallest:g} is above the largest, {largest:g}.")
    values: list[float] = np.geomspace(largest, smallest, chosen["n_alphas"]).tolist()
    return values


def _listed(text: str) -> list[float]:
    values = []
    for part in text.split(","):
        try:
            values.append(float(part))
        except ValueError:
            raise click.UsageError(f"--alphas: {part!r} is not a number.") from None
        if not 0 < values[-1] < np.inf:
            raise click.UsageError(f"--alphas: {part} is not a positive number.")
    return values


def _largest(X: Any, y: Any, loss: Loss, ratio: float, chosen: dict[str, Any]) -> float:
    """Lambda above which every coefficient is zero (l1), or held small by the penalty alone."""
    n = X.shape[0]
    squares = np.asarray((X * X).sum(axis=1)).ravel()
    if not ratio:
        return float(max(squares.mean() / loss.gamma, 1e-300))
    target, _ = loss.encode_targets(y, n)
    shape = (n,) if loss.is_scalar else (n, loss.n_outputs(target, n))
    margins = np.zeros(shape) + _best_constant(loss, target, chosen)
    slope = X.T @ loss.derivative(margins, target)
    return float(max(np.abs(slope).max() / (n * ratio), 1e-300))


def _best_constant(loss: Loss, target: Any, chosen: dict[str, Any]) -> Any:
    """The intercept of a model whose coefficients are zero; zero where there is none."""
    if chosen["intercept"] is False or chosen["method"] not in (None, "auto"):
        return 0.0
    if loss.kind == "multiclass":
        return np.log(np.bincount(target.astype(np.intp)) / target.size)
    reach = 50.0 if loss.kind == "binary" else 1.0
    low, high = float(target.min()) - reach, float(target.max()) + reach
    for _ in range(60):  # the mean derivative rises with the constant
        middle = (low + high) / 2
        if loss.derivative(np.full(target.size, middle), target).mean() < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def worst(results: list[Result]) -> Status | None:
    """The status of the first result that is not certified, None if all are."""
    return next((result.status for result in results if not result.converged), None)
