"""Every estimator obeys scikit-learn's rules: all of its checks, none excused."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import adaspdc
from adaspdc import estimators

OPTIONS = {"LogisticRegressionCV": {"cv": 3, "Cs": 3}}  # for speed


@parametrize_with_checks(
    [getattr(adaspdc, name)(**OPTIONS.get(name, {})) for name in estimators.__all__]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_estimator_is_public() -> None:
    assert set(estimators.__all__) <= set(adaspdc.__all__)
    with pytest.raises(AttributeError, match="NoSuchEstimator"):
        _ = adaspdc.NoSuchEstimator
