"""Every strategy passes the public conformance suite; and the suite catches broken ones."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mmes.strategies import STRATEGIES, AskTell
from mmes.strategies.rm_es import RmSearch
from mmes.testing import strategies as suite
from mmes.testing.strategies import STRATEGY_CHECKS, Check, check_strategy


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
    """Lets failed evaluations into the state."""

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
        (Fragile, suite.check_failed_evaluations),
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


def test_the_whole_suite_names_the_check_that_failed() -> None:
    broken = type("Mine", (AskTell,), {"name": "mine", "search_type": Long})
    with pytest.raises(AssertionError, match="Mine, check_step_length: the first steps"):
        check_strategy(broken)
