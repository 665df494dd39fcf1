"""Estimators for scikit-learn, each with a certificate.

They need the extra ``sklearn``; ``adaspdc`` loads them when one is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "AdaSPDCClassifier": "_general",
    "AdaSPDCRegressor": "_general",
    "ElasticNet": "_squares",
    "HuberRegressor": "_huber",
    "LinearSVC": "_svm",
    "LinearSVR": "_svm",
    "LogisticRegression": "_logistic",
    "LogisticRegressionCV": "_cv",
    "QuantileRegressor": "_quantile",
    "Ridge": "_squares",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _require_sklearn(name)
    module = importlib.import_module(f"{__name__}.{_PLACES[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _require_sklearn(name: str) -> None:
    try:
        from sklearn.utils.validation import validate_data  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"adaspdc.{name} needs scikit-learn 1.6 or newer: pip install 'adaspdc[sklearn]'"
        ) from error
