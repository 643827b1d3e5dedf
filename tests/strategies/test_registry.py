"""Strategies by name."""

from __future__ import annotations

import pytest

from mmes.strategies import LMCMA, MMES, STRATEGIES, RmES, SepCMA, get_strategy


def test_every_name_finds_its_strategy() -> None:
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert get_strategy(name) is strategy
        assert get_strategy(strategy.__name__) is strategy
        assert get_strategy(strategy) is strategy


@pytest.mark.parametrize(
    ("spelling", "strategy"),
    [("sep-CMA-ES", SepCMA), ("Rm_ES", RmES), ("rm", RmES), ("LM-CMA-ES", LMCMA), ("MMES", MMES)],
)
def test_usual_spellings_are_understood(spelling: str, strategy: type) -> None:
    assert get_strategy(spelling) is strategy


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"there is no strategy 'sepcmaa'; did you mean 'sep-cma'\?"
    ):
        get_strategy("sepcmaa")
    with pytest.raises(ValueError, match="it knows adaptive, ccpso2, cma-es"):
        get_strategy("gradient")


@pytest.mark.parametrize("wrong", [3, None, int, MMES([0.0], 1.0)])
def test_what_is_no_strategy_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="strategy must be a name or a strategy class"):
        get_strategy(wrong)
