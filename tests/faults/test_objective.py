"""Promises about what an objective may do: rows 1 to 6, 18, 25, 26, 28 and 29 of the table."""

from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes.errors import FailedEvaluationWarning
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

START = (np.ones(6), 0.5)


def plain(**options):
    return mmes.minimize(hostile.sphere, *START, seed=5, **options)


# Row 1: the objective raises


@pytest.mark.parametrize("position", range(10))
def test_row01_resuming_after_an_error_equals_a_run_without(tmp_path, position, same):
    rows = mmes.MMES(*START).population_size + 1  # of the first generation
    objective = hostile.Raises(str(tmp_path), at=(5 * rows + position,))
    path = tmp_path / "run.mmes"
    with pytest.raises(mmes.EvaluationError) as caught:
        mmes.minimize(objective, *START, seed=5, max_evaluations=200, checkpoint=path)
    error = caught.value
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.x.shape == (6,)
    assert error.generation == error.result.nit  # the one after those completed
    assert error.result.reason is mmes.StopReason.INTERRUPTED
    assert "mmes.resume" in error.__notes__[-1]
    same(mmes.resume(path, hostile.sphere), plain(max_evaluations=200))


def test_row01_every_way_of_evaluating_says_where(way, tmp_path):
    with pytest.raises(mmes.EvaluationError, match="ZeroDivisionError at candidate") as caught:
        way.minimize(hostile.Raises(str(tmp_path), at=(20,)), *START, seed=5)
    assert caught.value.generation == 2
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row01_caught_exceptions_make_failed_candidates(way, tmp_path):
    objective = hostile.Raises(str(tmp_path), at=(3,))
    result = way.minimize(objective, *START, seed=5, max_evaluations=60, catch=(ZeroDivisionError,))
    whole_generation = mmes.strategies.ActiveCMA(*START).population_size
    assert result.failed == (whole_generation if way.name == "vectorized" else 1)
    assert np.isfinite(result.fun)


def test_row05_what_is_no_value_keeps_what_was_found(way, tmp_path):
    """Failed before: the error had no result, and did not say where it was."""
    objective = hostile.Raises(str(tmp_path), at=(20,))
    with pytest.raises(TypeError, match="must return") as caught:
        way.minimize(Nothing(objective), *START, seed=5)
    error = caught.value
    assert error.result.nit == error.generation == 2
    assert error.result.nfev >= 10
    assert (error.candidate is None) == (way.name == "vectorized")
    who = "the candidates" if error.candidate is None else f"candidate {error.candidate}"
    assert f"mmes: this was {who} of generation 2" in error.__notes__


class Nothing:
    """Returns None where another objective raises."""

    def __init__(self, objective):
        self.objective = objective

    def __call__(self, x):
        try:
            return self.objective(x)
        except ZeroDivisionError:
            return None


# Rows 2 to 4: NaN and infinities


def test_row02_nan_ranks_as_plus_infinity_and_is_said_once(way):
    bad = Replaced(np.nan)
    with pytest.warns(FailedEvaluationWarning) as said:
        with_nan = way.minimize(bad, *START, seed=5, max_evaluations=300)
    assert len(said) == 1
    with_inf = way.minimize(Replaced(np.inf), *START, seed=5, max_evaluations=300)
    assert np.array_equal(with_nan.x, with_inf.x)
    assert np.isfinite(with_nan.fun)
    assert with_nan.failed > 0
    assert with_inf.failed == 0


class Replaced:
    """Gives one fixed value on part of the space, the sphere's on the rest."""

    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return self.value if x[0] > 0.9 else float(x @ x)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_row03_a_run_of_failures_ends(way, value):
    result = way.minimize(hostile.Returns(value), *START, seed=5)
    assert result.reason is mmes.StopReason.ALL_FAILED
    assert result.nit == 10
    assert np.array_equal(result.x, START[0])
    assert not result.success


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row03_every_strategy_ends_where_nothing_has_a_value(strategy):
    result = mmes.minimize(hostile.Returns(np.nan), *START, seed=5, strategy=strategy)
    assert result.reason is mmes.StopReason.ALL_FAILED
    assert result.sigma == START[1]  # the state is unchanged


def test_row04_minus_infinity_is_taken_and_ends_the_run(way):
    result = way.minimize(Replaced(-np.inf), *START, seed=5)
    assert result.reason is mmes.StopReason.UNBOUNDED
    assert result.fun == -np.inf
    assert result.x[0] > 0.9


# Rows 5 and 6: what comes back, and what must not be changed


@pytest.mark.parametrize(("answer", "kind"), hostile.REFUSED, ids=lambda v: repr(v)[:20])
def test_row05_what_is_no_value_is_refused_at_once(way, answer, kind):
    kinds = (TypeError, ValueError) if way.name == "vectorized" else kind
    with pytest.raises(kinds, match=r"must return|values of the objective are expected"):
        way.minimize(hostile.Returns(answer), *START, seed=5)


def test_row06_the_objective_cannot_change_a_candidate(way, tmp_path):
    objective = hostile.WritesIntoX(str(tmp_path))
    with pytest.raises(mmes.EvaluationError, match="read-only"):
        way.minimize(objective, *START, seed=5)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("bounds", [None, (-5, 5)])
def test_row06_a_point_cannot_be_made_writable(strategy, bounds):
    """Neither by its own flag nor by that of an array it is a part of."""
    refused = []

    def writes(x):
        point = x
        while isinstance(point, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                point.flags.writeable = True
            refused.append(1)
            point = point.base
        return hostile.sphere(x)

    options = {"seed": 5, "strategy": strategy, "bounds": bounds, "max_evaluations": 60}
    mmes.minimize(writes, np.ones(6), 0.5, **options)
    assert len(refused) >= 60


@pytest.mark.parametrize("part", [lambda x: x[3], lambda x: x[:, 1], memoryview, lambda x: x.T])
def test_row06_a_part_of_the_candidates_that_is_kept_never_changes(part):
    """Its memory is not used again while any view of it lives, however the view was made."""
    es = mmes.MMES(np.ones(50), 0.5, seed=1)
    kept, copies = [], []
    for _ in range(8):
        points = es.ask()
        kept.append(part(points))
        copies.append(np.array(kept[-1]))
        es.tell(hostile.spheres(points))
        del points
    for view, copy in zip(kept, copies, strict=True):
        assert np.array_equal(view, copy)


def test_row06_a_point_that_the_objective_keeps_stays_as_it_was():
    kept = []

    def keeps(x):
        kept.append((x, x.copy()))
        return float(x @ x)

    mmes.minimize(keeps, *START, seed=5, max_evaluations=100)
    assert all(np.array_equal(x, copy) for x, copy in kept)


# Rows 18, 25, 26, 28 and 29


def test_row18_a_noisy_objective_can_be_evaluated_again(way):
    result = way.minimize(
        hostile.Noisy(),
        *START,
        seed=5,
        max_evaluations=500,
        reevaluations=20,
        stagnation_window="off",
    )
    again = result.reevaluated
    assert again is not None
    assert {name: values.shape for name, values in again.items()} == {"x": (20,), "mean": (20,)}
    assert result.nfev == 500
    assert np.unique(again["x"]).size == 20
    # The best observed value is a lucky one: of 480 draws of N(f(x), 1), far below its mean. That
    # it is not below the mean of 20 new ones has a probability under 1e-9.
    assert result.best_seen < again["x"].mean()


def test_row18_reevaluations_must_leave_a_budget():
    with pytest.raises(ValueError, match="must be larger than 2 \\* reevaluations = 40"):
        mmes.minimize(hostile.sphere, *START, max_evaluations=40, reevaluations=20)


def test_row25_an_objective_may_minimize(way):
    result = way.minimize(hostile.nested, *START, seed=5, max_evaluations=40)
    assert result.nfev == 40
    serial = mmes.minimize(hostile.nested, *START, seed=5, max_evaluations=40)
    assert np.array_equal(result.x, serial.x)


@pytest.mark.parametrize("budget", [1, 9, 10, 57, 100])
def test_row26_the_budget_is_never_exceeded(way, tmp_path, budget):
    objective = hostile.Counting(str(tmp_path))
    result = way.minimize(objective, *START, seed=5, max_evaluations=budget)
    assert objective.calls == budget == result.nfev
    assert result.reason is mmes.StopReason.MAX_EVALUATIONS


def test_row26_restarts_share_the_budget(way, tmp_path):
    objective = hostile.Counting(str(tmp_path), hostile.Returns(1.0))
    result = way.minimize(
        objective, *START, seed=5, max_evaluations=333, restarts="unlimited", stagnation_window=3
    )
    assert objective.calls == 333 == result.nfev
    assert result.starts > 2


def test_row28_a_callback_that_raises_ends_the_run_cleanly(tmp_path, same):
    path = tmp_path / "run.mmes"

    def callback(progress):
        if progress.generation == 7:
            raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing") as caught:
        mmes.minimize(hostile.sphere, *START, seed=5, callback=callback, checkpoint=path)
    assert "generation 7" in caught.value.__notes__[-1]
    same(mmes.resume(path, hostile.sphere, max_evaluations=200), plain(max_evaluations=200))


@pytest.mark.parametrize("way", ["serial", "vectorized", "processes", "futures"])
def test_row29_an_objective_may_print_fork_and_start_threads(way, script):
    """In a process of its own: libraries that other tests load may object to forks."""
    process = script(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy as np
        from conftest import Way
        from mmes.testing import hostile

        if __name__ == "__main__":
            result = Way({way!r}).minimize(
                hostile.messy, np.ones(6), 0.5, seed=5, max_evaluations=12
            )
            assert result.nfev == 12
    """)
    said, told = process.communicate()
    assert process.returncode == 0, told
    assert said.count("the objective prints") == 12


def test_row29_processes_do_not_start_by_fork():
    from mmes.evaluate.workers.children import start_context

    assert start_context().get_start_method() in ("forkserver", "spawn")


class Stubborn(KeyboardInterrupt):
    """An interruption of the user's own that can be given nothing."""

    @property
    def result(self):
        return None


def test_an_interruption_that_refuses_the_result_comes_through():
    """Failed before: AttributeError came instead, and the checkpoint's note was lost."""

    def objective(x):
        raise Stubborn

    with pytest.raises(Stubborn):
        mmes.minimize(objective, np.ones(3), 1.0, seed=1)
