"""A user's own functions, made into numba dispatchers that the kernels can call."""

import re
from functools import lru_cache
from inspect import isfunction
from typing import Any, NamedTuple

import numba

from ._jit import helper

SLOPE_SIGMA = 1e8  # a prox of phi* this long is the slope of phi to eight digits
GRADIENT_STEP = 1e6  # times 1/lam: a prox of g this long is a millionth as far from its fixed point


# --- Any function ---


def _compile(function, signature, explain):
    """``function`` as a dispatcher, compiled; ``explain(reason)`` is the text of the TypeError."""
    try:
        compiled = function if hasattr(function, "py_func") else helper(function)
        if not numba.config.DISABLE_JIT:
            compiled.compile(signature)
    except Exception as error:  # numba raises errors of many kinds
        raise TypeError(explain(_first_reason(error))) from error
    return compiled


def _first_reason(error):
    """The first line of numba's message that says something about the user's function."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith("Failed in")]
    return (reasons or lines or [type(error).__name__])[0].rstrip(".")


# --- A loss ---


class LossFunctions(NamedTuple):
    """Compiled functions of a user's loss; ``prox(v, sigma, t)`` steps from v = y + sigma z."""

    value: Any
    conjugate: Any
    prox: Any
    derivative: Any


@lru_cache(maxsize=64)
def compile_loss(functions, is_block):
    """Compile (value, conjugate, prox, derivative or None), of numbers or of arrays."""
    value, conjugate, prox, slope = functions
    number, array = numba.float64, numba.float64[::1]
    point, written = (array, (array,)) if is_block else (number, ())
    value = _compile_of_loss("value", value, (point, point), True)
    conjugate = _compile_of_loss("conjugate", conjugate, (point, point), True)
    prox = _compile_of_loss("prox", prox, (point, number, point, *written), not is_block)
    if slope is None:
        slope = _slope_of_block(prox) if is_block else _slope_of_scalar(prox)
    slope = _compile_of_loss("derivative", slope, (point, point, *written), not is_block)
    return LossFunctions(value, conjugate, prox, slope)


def _compile_of_loss(name, function, types, returns_number):
    if not callable(function):
        msg = f"{name} must be a function, got {function!r}"
        raise TypeError(msg)

    def explain(reason):
        return (
            f"numba cannot compile {name}: {reason}; write it with float arithmetic, "
            "math and numpy only, and decorate with numba.njit the functions that it calls"
        )

    compiled = _compile(function, types, explain)
    if returns_number and not numba.config.DISABLE_JIT:
        result = compiled.overloads[types].signature.return_type
        if not isinstance(result, numba.types.Float | numba.types.Integer):
            msg = f"{name} must return a float on every path, but numba infers {result}"
            raise TypeError(msg)
    return compiled


def _slope_of_scalar(prox):
    def derivative(z, t):
        return prox(SLOPE_SIGMA * z, SLOPE_SIGMA, t)

    return derivative


def _slope_of_block(prox):
    def derivative(z, t, out):
        prox(SLOPE_SIGMA * z, SLOPE_SIGMA, t, out)

    return derivative


# --- A regulariser ---


def compile_regularizer(functions, lam):
    """(prox, value, conjugate, gradient) compiled, from (value, prox, conjugate, gradient or None).

    All are functions of numbers.
    """
    value, prox, conjugate, gradient = functions
    prox = _compile_of_regularizer("prox", prox, 2)
    value = _compile_of_regularizer("value", value, 1)
    conjugate = _compile_of_regularizer("conjugate", conjugate, 1)
    if gradient is None:
        gradient = _gradient_from_prox(prox, lam)
    else:
        gradient = _compile_of_regularizer("conjugate_gradient", gradient, 1)
    return prox, value, conjugate, gradient


def _compile_of_regularizer(name, function, n_arguments):
    plain = getattr(function, "py_func", function)
    if not isfunction(plain):
        raise TypeError(
            f"{name} must be a plain Python function, got {function!r}: wrap it in one with def."
        )

    def explain(reason):
        end = "" if reason.endswith((":", "!")) else "."
        return (
            f"{name} ({plain.__name__}) cannot be compiled by numba: {reason}{end} It must take "
            f"{n_arguments} float(s) and return a float; use arithmetic, math and NumPy scalars."
        )

    number = numba.float64
    return _compile(function, number(*[number] * n_arguments), explain)


def _gradient_from_prox(prox, lam):
    """Argmax of s x - h(x): the fixed point of proximal steps, each 1e-6 times as far from it."""
    step = GRADIENT_STEP / lam

    def gradient(s):
        x = 0.0
        for _ in range(20):
            moved = prox(x + step * s, step)
            if moved == x:
                break
            x = moved
        return x

    return helper(gradient)
