"""Names for losses and penalties, and back."""

import pytest

from adaspdc import losses, regularizers
from adaspdc._catalogue import LOSSES, PENALTIES, describe, make_loss, make_penalty
from adaspdc.commands import _options

EXAMPLES = {"quantile": 0.3, "gamma": 0.5, "epsilon": 0.2, "delta": 2.0, "l1": 0.1, "low": -1.0,
            "high": 2.0, "group_weight": 0.5, "groups": [0, 0, 1]}  # fmt: skip


def test_every_class_has_a_name_or_a_reason() -> None:
    named = {kind for kind, _ in LOSSES.values()} | {kind for kind, _ in PENALTIES.values()}
    abstract = {losses.Loss, losses.Conjugate, regularizers.Regularizer}
    user_code = {losses.Custom, losses.CustomBlock, regularizers.Custom}
    several_columns = {losses.MultiOutputSquared}
    for module in (losses, regularizers):
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and kind not in abstract | user_code | several_columns:
                assert kind in named, name


@pytest.mark.parametrize("name", LOSSES)
def test_losses_there_and_back(name: str) -> None:
    given = {key: EXAMPLES[key] for key in LOSSES[name][1]}
    loss = make_loss(name, given)
    assert describe(loss) == {"name": name, **given}
    assert make_loss(name.replace("_", "-").upper(), given) == loss


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_there_and_back(name: str) -> None:
    given = {key: EXAMPLES[key] for key in PENALTIES[name][1]}
    penalty = make_penalty(name, 0.25, given)
    assert penalty.lam == 0.25
    assert describe(penalty) == {"name": name, **given}


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="loss must be one of logistic"):
        make_loss("log", {})
    with pytest.raises(ValueError, match="logistic has no parameter 'gamma'; it has no parameters"):
        make_loss("logistic", {"gamma": 1.0})
    with pytest.raises(ValueError, match="no name in the catalogue"):
        describe(losses.MultiOutputSquared())


def test_the_command_offers_the_same_names() -> None:
    assert tuple(LOSSES) == _options.LOSSES
    assert tuple(PENALTIES) == _options.PENALTIES
    from adaspdc.readers import FORMATS

    assert _options.FORMATS == FORMATS
