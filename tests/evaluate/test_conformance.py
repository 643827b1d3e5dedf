"""All evaluators pass the public suite."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from mmes.evaluate.futures import FuturesEvaluator
from mmes.evaluate.serial import SerialEvaluator, VectorizedEvaluator
from mmes.evaluate.workers.pool import ProcessEvaluator
from mmes.testing.evaluators import CHECKS, check_evaluator


def serial(task):
    if task.vectorized:
        return VectorizedEvaluator(task.objective, task.catch)
    return SerialEvaluator(task.objective, task.catch)


def processes(task):
    return ProcessEvaluator(task, 2)


def threads(task):
    return FuturesEvaluator(task, lambda: ThreadPoolExecutor(3))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", [serial, processes, threads], ids=lambda make: make.__name__)
def test_evaluator_conforms(make, check):
    check(make)


@pytest.mark.slow
def test_process_pool_executor_conforms():
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as executor:
        check_evaluator(lambda task: FuturesEvaluator(task, executor))


def test_the_suite_finds_an_evaluator_that_sorts_its_values():
    class Sorted(SerialEvaluator):
        def evaluate(self, *arguments):
            return sorted(super().evaluate(*arguments))

    with pytest.raises(AssertionError, match="values differ"):
        check_evaluator(lambda task: Sorted(task.objective, task.catch))


def test_the_suite_finds_an_evaluator_that_evaluates_twice():
    class Twice(SerialEvaluator):
        def evaluate(self, *arguments):
            super().evaluate(*arguments)
            return super().evaluate(*arguments)

    with pytest.raises(AssertionError, match="54 evaluations"):
        {c.__name__: c for c in CHECKS}["each_point_is_evaluated_once"](
            lambda task: Twice(task.objective)
        )
