"""Checks that every evaluator must pass, also for custom ones.

>>> from mmes.testing.evaluators import check_evaluator
>>> check_evaluator(lambda task: MyEvaluator(task.objective))     # doctest: +SKIP

`make` takes a `mmes.evaluate.remote.Task` (the objective, the exceptions to catch, whether it is
vectorized) and returns an evaluator. Each check raises `AssertionError` with a message. With
pytest, parametrize over `CHECKS` to run them one by one.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.errors import EvaluationError
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.remote import Task
from mmes.minimize import minimize
from mmes.testing import hostile
from mmes.testing.checking import require

Make = Callable[[Task], Evaluator]


def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the objective's notes.

    After an error a call may still be running in the user's executor: it may write a note while the
    folder is being removed.
    """
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


def check_evaluator(make: Make) -> None:
    """Run all checks."""
    for check in CHECKS:
        check(make)


def values_come_in_the_order_of_the_points(make: Make) -> None:
    """Values belong to their rows, to the bit, however long each evaluation takes."""
    points = _points(23, 7)
    with contextlib.closing(make(Task(hostile.uneven))) as evaluator:
        _equal(evaluator.evaluate(points, 0, _always), hostile.spheres(points))


def generations_may_differ_in_size(make: Make) -> None:
    """Restarts double the population; a budget may leave a single row."""
    with contextlib.closing(make(Task(hostile.sphere))) as evaluator:
        for rows in (4, 16, 1, 33, 2):
            points = _points(rows, 5)
            _equal(evaluator.evaluate(points, 0, _always), hostile.spheres(points))


def no_points_need_no_evaluation(make: Make) -> None:
    """Return no values for no points, and call nothing for them."""
    with _folder() as folder:
        for vectorized in (False, True):
            task = Task(hostile.Counting(folder), vectorized=vectorized)
            with contextlib.closing(make(task)) as evaluator:
                values = evaluator.evaluate(np.empty((0, 3)), 0, _always)
                require(np.shape(values) == (0,), f"no points gave {values!r}")
        require(hostile.Counting(folder).calls == 0, "the objective was called without a point")


def long_points_arrive_unchanged(make: Make) -> None:
    """Points longer than a pipe's buffer, of which only a view is given."""
    points = _points(10, 20_000)[::2]
    with contextlib.closing(make(Task(hostile.sphere))) as evaluator:
        _equal(evaluator.evaluate(points, 0, _always), hostile.spheres(points))


def vectorized_objectives_are_called_with_rows(make: Make) -> None:
    """Show a vectorized objective all rows, in one call or in several."""
    points = _points(11, 3)
    with contextlib.closing(make(Task(hostile.spheres, vectorized=True))) as evaluator:
        _equal(evaluator.evaluate(points, 0, _always), hostile.spheres(points))


def each_point_is_evaluated_once(make: Make) -> None:
    """Make no more evaluations than there are points."""
    with _folder() as folder:
        objective = hostile.Counting(folder)
        with contextlib.closing(make(Task(objective))) as evaluator:
            for _ in range(3):
                evaluator.evaluate(_points(9, 2), 0, _always)
        require(objective.calls == 27, f"27 points took {objective.calls} evaluations")


def values_that_are_values_are_taken(make: Make) -> None:
    """Real numbers and real arrays of one element, NaN and infinities included."""
    for answer, value in hostile.ACCEPTED:
        with contextlib.closing(make(Task(hostile.Returns(answer)))) as evaluator:
            _equal(evaluator.evaluate(_points(2, 2), 0, _always), np.array([value, value]))


def values_that_are_none_are_refused(make: Make) -> None:
    """Anything else is an immediate error and is not converted."""
    for answer, kind in hostile.REFUSED:
        with contextlib.closing(make(Task(hostile.Returns(answer)))) as evaluator:
            error = _raised(lambda e=evaluator: e.evaluate(_points(2, 2), 0, _always))
            require(
                type(error) is kind and "objective must return" in str(error),
                f"{answer!r} gave {error!r} instead of a {kind.__name__}",
            )


def a_wrong_number_of_values_is_refused(make: Make) -> None:
    """Refuse what is not one value per row."""
    task = Task(hostile.Returns(np.zeros(1000)), vectorized=True)
    with contextlib.closing(make(task)) as evaluator:
        error = _raised(lambda: evaluator.evaluate(_points(4, 2), 0, _always))
        require(type(error) is ValueError, f"1000 values for 4 points gave {error!r}")


def what_the_objective_raises_says_where(make: Make) -> None:
    """EvaluationError from the original, with the point, the candidate and the generation."""
    points = _points(6, 2)
    with (
        _folder() as folder,
        contextlib.closing(make(Task(hostile.Raises(folder)))) as evaluator,
    ):
        error = _raised(lambda: evaluator.evaluate(points, 17, _always))
    if not isinstance(error, EvaluationError):
        raise AssertionError(f"a raising objective gave {error!r}, not an EvaluationError")
    require(isinstance(error.__cause__, ZeroDivisionError), f"the cause is {error.__cause__!r}")
    require(error.generation == 17, f"the generation is {error.generation}, not 17")
    require(0 <= error.candidate < 6, f"there is no candidate {error.candidate}")
    _equal(error.x, points[error.candidate])


def what_is_to_be_caught_makes_a_failed_candidate(make: Make) -> None:
    """Exceptions named in `catch` give NaN; the other rows keep their values."""
    points = _points(6, 2)
    with _folder() as folder:
        task = Task(hostile.Raises(folder, at=(2, 4)), catch=(ArithmeticError,))
        with contextlib.closing(make(task)) as evaluator:
            values = evaluator.evaluate(points, 0, _always)
    failed = np.isnan(values)
    require(failed.sum() == 2, f"two calls raised, but {failed.sum()} values are NaN")
    _equal(values[~failed], hostile.spheres(points)[~failed])


def points_cannot_be_changed_by_the_objective(make: Make) -> None:
    """Points are read-only for the objective, or a private copy."""
    points = _points(4, 3)
    before = points.copy()
    with (
        _folder() as folder,
        contextlib.closing(make(Task(hostile.WritesIntoX(folder)))) as evaluator,
        contextlib.suppress(EvaluationError),
    ):
        evaluator.evaluate(points, 0, _always)
    _equal(points, before)


def it_stops_when_told(make: Make) -> None:
    """Once `keep_going` returns False, the first values are returned, and nothing is started."""
    points = _points(50, 2)
    with contextlib.closing(make(Task(hostile.uneven))) as evaluator:
        require(evaluator.evaluate(points, 0, lambda: False).size == 0, "it began all the same")
        answers = iter([True] * 5 + [False] * 1000)
        part = evaluator.evaluate(points, 0, lambda: next(answers))
        _equal(part, hostile.spheres(points)[: part.size])


def closing_twice_does_no_harm(make: Make) -> None:
    """`close` may be called after an error, again at the end, and before any evaluation."""
    make(Task(hostile.sphere)).close()
    evaluator = make(Task(hostile.sphere))
    evaluator.evaluate(_points(3, 2), 0, _always)
    evaluator.close()
    evaluator.close()


def a_run_with_it_is_the_run_without(make: Make) -> None:
    """As `workers` of `mmes.minimize`, with restarts and a last generation of one row."""
    points = _points(1, 6)[0]
    options: dict[str, Any] = {
        "strategy": "mmes",
        "seed": 3,
        "stagnation_window": 5,
        "stagnation_tolerance": 1e-2,
        "restarts": 2,
        "max_evaluations": 1 + 9 * 40 + 1,
    }
    plain = minimize(hostile.sphere, points, 0.5, **options)
    here = minimize(hostile.sphere, points, 0.5, workers=make(Task(hostile.sphere)), **options)
    _equal(here.x, plain.x)
    _equal(here.mean, plain.mean)
    require(here.nfev == plain.nfev, f"{here.nfev} evaluations instead of {plain.nfev}")


CHECKS: tuple[Callable[[Make], None], ...] = (
    values_come_in_the_order_of_the_points,
    generations_may_differ_in_size,
    no_points_need_no_evaluation,
    long_points_arrive_unchanged,
    vectorized_objectives_are_called_with_rows,
    each_point_is_evaluated_once,
    values_that_are_values_are_taken,
    values_that_are_none_are_refused,
    a_wrong_number_of_values_is_refused,
    what_the_objective_raises_says_where,
    what_is_to_be_caught_makes_a_failed_candidate,
    points_cannot_be_changed_by_the_objective,
    it_stops_when_told,
    closing_twice_does_no_harm,
    a_run_with_it_is_the_run_without,
)


def _always() -> bool:
    return True


def _points(rows: int, n: int) -> NDArray[np.float64]:
    points = np.random.Generator(np.random.PCG64(rows * 1000 + n)).standard_normal((rows, n))
    points.flags.writeable = False
    return points


def _raised(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def _equal(got: Any, expected: NDArray[np.float64]) -> None:
    require(
        np.array_equal(got, expected, equal_nan=True), f"values differ: {got!r}, not {expected!r}"
    )
