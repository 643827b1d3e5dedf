"""Every strategy passes the public conformance suite; and the suite catches broken ones."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mmes
from mmes.strategies import STRATEGIES, AskTell
from mmes.strategies.rm_es import RmSearch
from mmes.testing import strategies as suite
from mmes.testing.strategies import STRATEGY_CHECKS, Check, check_strategy


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_conformance(name: str, check: Check) -> None:
    check(STRATEGIES[name])


class Unseeded(RmSearch):
    def sample(self, population, generation):
        super().sample(population, time.perf_counter_ns() % 2**31)


class Forgetful(RmSearch):
    def arrays(self):
        return {name: array for name, array in super().arrays().items() if name != "path"}


class Sharing(RmSearch):
    """Hands out numbers that are not its state's."""

    def scalars(self):
        return super().scalars() | {"step_average": 0.0}


class Escaping(RmSearch):
    def sample(self, population, generation, rows=None):
        super().sample(population, generation, rows)
        population += 1e-9


class Unsorted(RmSearch):
    """Pairs the rank weights with unsorted candidates, as packages have shipped."""

    def update(self, population, ranking, values, generation):
        super().update(population, np.arange(ranking.size), values, generation)


class Greedy(RmSearch):
    """Looks at the values, not at their order."""

    def update(self, population, ranking, values, generation):
        super().update(population, ranking, values, generation)
        self.state.sigma *= 1 + 1e-6 * float(np.log1p(values.min()))


class Fragile(RmSearch):
    """Lets an infinite value into the state."""

    def update(self, population, ranking, values, generation):
        super().update(population, ranking, values, generation)
        self.state.sigma *= 1 + 0 * values.mean()


class Huge(RmSearch):
    @classmethod
    def planned(cls, n, options, available):
        return options, 8 * n


class Undamped(RmSearch):
    def __init__(self, setup, options):
        super().__init__(setup, options | {"damping": 1.0})


class Long(RmSearch):
    def sample(self, population, generation, rows=None):
        super().sample(population, generation, rows)
        population += 3 * (population - self.mean)


@pytest.mark.parametrize(
    ("search", "check"),
    [
        (Unseeded, suite.check_seeds),
        (Unseeded, suite.check_skip),
        (Forgetful, suite.check_state),
        (Sharing, suite.check_state),
        (Escaping, suite.check_bounds),
        (Unsorted, suite.check_convergence),
        (Unsorted, suite.check_linear),
        (Greedy, suite.check_order_alone_counts),
        (Fragile, suite.check_unbounded),
        (Huge, suite.check_memory_is_planned),
        (Undamped, suite.check_restart_options),
        (Long, suite.check_step_length),
    ],
    ids=lambda item: item.__name__,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_suite_catches_it(search: type, check: Check) -> None:
    broken = type(search.__name__, (AskTell,), {"name": "broken", "search_type": search})
    with pytest.raises(AssertionError):
        check(broken)


class FreeSearch(RmSearch):
    """Has no damping that could be doubled."""

    options = tuple(option for option in RmSearch.options if option.name != "damping")

    def __init__(self, setup, options):
        super().__init__(setup, options | {"damping": 1.0})


class Free(AskTell):
    name, search_type = "free", FreeSearch


class FixedSearch(FreeSearch):
    options = tuple(option for option in FreeSearch.options if option.name != "population_size")


class Fixed(AskTell):
    name, search_type = "fixed", FixedSearch


@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=lambda check: check.__name__)
def test_a_strategy_may_have_no_damping(check: Check) -> None:
    check(Free)


def test_without_damping_noise_and_restarts_double_the_population_alone() -> None:
    draws = np.random.default_rng(1)

    def noisy(x):
        return float(x @ x) + draws.standard_normal()

    options = {"strategy": Free, "seed": 1, "max_evaluations": 4000}
    result = mmes.minimize(noisy, np.ones(10), 0.5, noise="yes", **options)
    assert result.noisy
    assert np.diff(result.history["evaluations"]).max() >= 20  # twice the default at least
    stuck = {"restarts": 2, "stagnation_window": 5, "stagnation_tolerance": 0.1}
    assert mmes.minimize(sphere, np.ones(10), 0.5, **options, **stuck).starts == 3


def test_a_strategy_without_population_size_is_refused_in_a_sentence() -> None:
    message = "the strategy 'fixed' has no option population_size: .*POPULATION_SIZE"
    with pytest.raises(TypeError, match=message):
        Fixed(np.ones(4), 1.0)
    with pytest.raises(TypeError, match=message):
        mmes.minimize(sphere, np.ones(4), 1.0, strategy=Fixed)


def test_the_whole_suite_names_the_check_that_failed() -> None:
    broken = type("Mine", (AskTell,), {"name": "mine", "search_type": Long})
    with pytest.raises(AssertionError, match="Mine, check_step_length: the first steps"):
        check_strategy(broken)
