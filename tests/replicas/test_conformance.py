"""Crews pass the public suite of evaluators."""

import pytest

from mmes.replicas import Local
from mmes.testing.evaluators import CHECKS


def local(task):
    return Local(2).evaluator(task)


def local_with_workers(task):
    return Local(1, each=2).evaluator(task)


def local_with_a_head_that_evaluates(task):
    return Local(1, head_evaluates=True).evaluator(task)


# The others start processes for each of many values; what they ask is not about workers.
ASKED_OF_WORKERS = [
    check
    for check in CHECKS
    if check.__name__
    in (
        "values_come_in_the_order_of_the_points",
        "what_the_objective_raises_says_where",
        "a_wrong_number_of_values_is_refused",
        "a_run_with_it_is_the_run_without",
    )
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_crew_conforms(check):
    check(local)


@pytest.mark.parametrize("check", ASKED_OF_WORKERS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", [local_with_workers, local_with_a_head_that_evaluates])
def test_workers_inside_and_a_head_that_evaluates_conform(make, check):
    check(make)
