"""Strategies by name."""

from __future__ import annotations

import pytest

import mmes
from mmes.strategies import (
    AUTO_LIMIT,
    LMCMA,
    MMES,
    STRATEGIES,
    ActiveCMA,
    AdaptiveMMES,
    RmES,
    SepCMA,
    automatic,
    get_strategy,
    options_of,
)


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
    with pytest.raises(ValueError, match="known names are active-cma, adaptive, ccpso2, cma-es"):
        get_strategy("gradient")


@pytest.mark.parametrize("wrong", [3, None, int, MMES([0.0], 1.0)])
def test_what_is_no_strategy_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="strategy must be a name or a strategy class"):
        get_strategy(wrong)


def test_auto_goes_by_the_number_of_variables_and_by_what_can_be_done_there() -> None:
    assert automatic(AUTO_LIMIT) == (ActiveCMA, "n = 100 is at most 100")
    assert automatic(AUTO_LIMIT + 1) == (AdaptiveMMES, "n = 101 is above 100")
    assert automatic(10, elsewhere="replicas can follow it")[0] is AdaptiveMMES
    assert automatic(10, manifold=True)[0] is MMES


@pytest.mark.parametrize(("n", "name"), [(3, "active-cma"), (101, "adaptive")])
def test_minimize_without_a_strategy_takes_auto_and_says_so(n: int, name: str) -> None:
    found = mmes.minimize(lambda x: float(x @ x), [1.0] * n, 1.0, max_evaluations=50, seed=1)
    named = mmes.minimize(
        lambda x: float(x @ x), [1.0] * n, 1.0, max_evaluations=50, seed=1, strategy=name
    )
    assert found.strategy.startswith(f"{name} (auto: n = {n} is ")
    assert named.strategy == name
    assert found.fun == named.fun


def test_replicas_are_given_a_strategy_that_they_can_follow() -> None:
    crew = mmes.replicas.Local(1)
    found = mmes.minimize(np_sphere, [1.0] * 3, 1.0, max_evaluations=50, workers=crew)
    assert found.strategy == "adaptive (auto: replicas can follow it)"


def np_sphere(x):
    return float(x @ x)


def test_an_option_of_another_strategy_names_those_that_have_it() -> None:
    with pytest.raises(TypeError, match="archive_size is an option of the strategies mmes, adapt"):
        mmes.minimize(np_sphere, [1.0] * 3, 1.0, archive_size=5)
    with pytest.raises(TypeError, match="has no option 'archive_sizes'"):
        mmes.minimize(np_sphere, [1.0] * 3, 1.0, archive_sizes=5)


def test_the_options_of_auto_are_those_of_all_that_it_may_choose() -> None:
    names = [option.name for option in options_of("auto")]
    assert len(names) == len(set(names))
    for strategy in (ActiveCMA, AdaptiveMMES):
        assert {option.name for option in strategy.option_table()} <= set(names)
