"""The laws that convergence and the certificate rest on, tested on a user's functions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._loss import Conjugate, Loss

Floats: TypeAlias = NDArray[np.float64]

LOOSE = 1e-6  # relative tolerance for a loss, whose derivative may be good to eight digits only


# --- A loss ---


def check_loss(loss: Loss) -> None:
    """Raise ValueError where phi, phi*, its prox and its modulus contradict each other."""
    width = 1 if loss.is_scalar else 3
    directions = np.cos(np.outer(np.arange(7), np.arange(1, width + 1)) + 0.5)
    points = [scale * row for row in directions for scale in (0.1, 1.0, 8.0)]
    samples: dict[str, list[Any]] = {"binary": [-1.0, 1.0], "multiclass": [0.0, 1.0]}
    for targets in samples.get(loss.kind, [0.0, -1.5, 2.0]):
        block = loss.at(targets)
        slopes = [block.derivative(z) for z in points]
        _check_fenchel_young(block, points, slopes)
        _check_prox(block, points, slopes)
        _check_strong_convexity(block, slopes)


def _fail(block: Conjugate, law: str, **numbers: Any) -> None:
    shown = ", ".join(f"{name}={number}" for name, number in numbers.items())
    msg = f"loss {block.loss.name!r} breaks {law} at {shown}, target={block.targets}"
    raise ValueError(msg)


def _check_fenchel_young(block: Conjugate, points: list[Floats], slopes: list[Floats]) -> None:
    for z, own in zip(points, slopes, strict=True):
        phi = block.primal_value(z)
        for y in slopes:
            excess = phi + block.value(y) - float(z @ y)
            slack = LOOSE * (1.0 + abs(phi) + abs(float(z @ y)))
            if not excess >= -slack:
                law = "the Fenchel-Young inequality value(z) + conjugate(y) >= z y"
                _fail(block, law, z=z, y=y, excess=excess)
            if y is own and not excess <= slack:
                law = "the Fenchel-Young equality value(z) + conjugate(y) = z y for y=derivative(z)"
                _fail(block, law, z=z, y=y, excess=excess)


def _check_prox(block: Conjugate, points: list[Floats], slopes: list[Floats]) -> None:
    def objective(u: Floats, v: Floats, sigma: float) -> float:
        return sigma * block.value(u) + 0.5 * float((u - v) @ (u - v))

    for v in points:
        for sigma in (0.1, 1.0, 10.0):
            u = block.prox(v, sigma)
            best = objective(u, v, sigma)
            others = [u + share * (y - u) for y in slopes for share in (1e-3, 0.1, 1.0)]
            for other in others:
                if not best <= objective(other, v, sigma) + LOOSE * (1.0 + abs(best)):
                    law = (
                        "optimality of prox: sigma conjugate(u) + (u - v)^2/2 is smaller elsewhere"
                    )
                    _fail(block, law, v=v, sigma=sigma, prox=u, better=other)


def _check_strong_convexity(block: Conjugate, slopes: list[Floats]) -> None:
    for first in slopes:
        for second in slopes:
            ends = 0.5 * (block.value(first) + block.value(second))
            bend = block.gamma / 8.0 * float((first - second) @ (first - second))
            excess = block.value(0.5 * (first + second)) + bend - ends
            if not excess <= LOOSE * (1.0 + abs(ends)):
                law = f"strong convexity of conjugate with gamma={block.gamma:g}, by {excess:.3g}"
                _fail(block, law, y1=first, y2=second)


# --- A regulariser ---


def check_regularizer(functions: tuple[Any, Any, Any, Any], lam: float) -> None:
    """Raise ValueError where (prox, value, conjugate, gradient) contradict each other."""
    prox, value, conjugate, gradient = functions
    points = [sign * size for size in (0.0, 1e-3, 0.1, 0.7, 2.0, 30.0) for sign in (1.0, -1.0)]
    reached = [gradient(s) for s in points]
    for s, x in zip(points, reached, strict=True):
        law = "value(x) + conjugate(s) = s x at s, x = conjugate_gradient(s)"
        terms = value(x), conjugate(s), -s * x
        _expect_zero(law, terms, sum(terms), s, x)
        law = "value(x) + conjugate(s) >= s x at s, x"
        for other in reached:
            terms = value(other), conjugate(s), -s * other
            _expect_zero(law, terms, max(0.0, -sum(terms)), s, other)
    for tau in (1e-2, 1.0, 1e2):
        # p is the prox of u exactly where (u - p)/tau is a subgradient of h at p.
        law = f"p = prox(u, {tau}) minimises h(p) + (p - u)^2/(2 {tau}) at u, p"
        for u in points:
            p = prox(u, tau)
            terms = value(p), conjugate((u - p) / tau), -(u - p) / tau * p
            _expect_zero(law, terms, sum(terms), u, p)
    law = "value(x) - lam/2 x^2 is convex between x, z"
    for x in reached:
        for z in reached:
            terms = value((x + z) / 2), -(value(x) + value(z)) / 2, lam / 8 * (x - z) ** 2
            _expect_zero(law, terms, max(0.0, sum(terms)), x, z)


def _expect_zero(
    law: str, terms: tuple[float, ...], off: float, first: float, second: float
) -> None:
    if not abs(off) <= 1e-8 * sum(map(abs, terms)) + 1e-12:
        raise ValueError(
            f"the functions of Custom break the law '{law}' = {first!r}, {second!r}: off by "
            f"{off:.3g}. Compare value, prox and conjugate with their definitions."
        )
