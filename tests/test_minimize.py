"""minimize: limits, results, callbacks, restarts, errors of the objective."""

from __future__ import annotations

import concurrent.futures
import math

import numpy as np
import pytest

import mmes
from mmes import kernels
from mmes.base.reasons import StopReason
from mmes.errors import FailedEvaluationWarning, KernelWarning

X0 = np.ones(12)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def rastrigin(x: np.ndarray) -> float:
    return float((x**2 - 10 * np.cos(2 * np.pi * x) + 10).sum())


class Counting:
    """An objective that knows how often it was called, and where."""

    def __init__(self, f=sphere):
        self.f, self.calls, self.points = f, 0, []

    def __call__(self, x):
        self.calls += 1
        self.points.append(np.array(x))
        return self.f(x)


def test_the_result_speaks_scipys_words() -> None:
    r = mmes.minimize(sphere, X0, 0.5, seed=1, target=1e-8)
    assert r.success
    assert r.status == StopReason.TARGET_REACHED.status
    assert r.message == StopReason.TARGET_REACHED.sentence
    assert r.fun <= 1e-8
    assert sphere(r.x) == r.fun
    assert r.seed == 1
    assert r.starts == 1
    assert r.failed == 0
    assert r.strategy == "active-cma (auto: n = 12 is at most 100)"
    assert r.reasons == (StopReason.TARGET_REACHED,)
    assert (r.noisy, r.fun_std, r.best_seen) == (False, None, r.fun)
    assert r.kernel.startswith("native")
    assert "success: True" in str(r)
    assert "history" not in repr(r)


def test_vectorized_and_serial_are_the_same_run() -> None:
    a = mmes.minimize(sphere, X0, 0.5, seed=3, max_evaluations=500)
    b = mmes.minimize(
        lambda X: np.array([sphere(x) for x in X]),
        X0,
        0.5,
        seed=3,
        max_evaluations=500,
        vectorized=True,
    )
    np.testing.assert_array_equal(a.x, b.x)
    assert (a.fun, a.nfev, a.nit) == (b.fun, b.nfev, b.nit)


def test_a_run_can_be_repeated_from_its_result() -> None:
    a = mmes.minimize(sphere, X0, 0.5, max_evaluations=300)
    b = mmes.minimize(sphere, X0, 0.5, max_evaluations=300, seed=a.seed)
    np.testing.assert_array_equal(a.x, b.x)
    c = mmes.minimize(sphere, X0, 0.5, max_evaluations=300)
    assert c.seed != a.seed


@pytest.mark.parametrize("budget", [1, 2, 12, 13, 100, 101, 250])
@pytest.mark.parametrize("vectorized", [False, True])
def test_never_one_evaluation_above_the_budget(budget: int, vectorized: bool) -> None:
    counting = Counting()

    def batch(X):
        return np.array([counting(x) for x in X])

    r = mmes.minimize(
        batch if vectorized else counting,
        X0,
        0.5,
        seed=1,
        max_evaluations=budget,
        vectorized=vectorized,
        restarts=3,
    )
    assert counting.calls == r.nfev == budget
    assert r.reason is StopReason.MAX_EVALUATIONS
    assert not r.success
    assert r.fun == min(sphere(x) for x in counting.points)


def test_every_limit_ends_a_run_with_its_reason() -> None:
    for options, reason in (
        ({"max_generations": 7}, StopReason.MAX_GENERATIONS),
        (
            {"time_limit": 0.05, "sigma_min": 0.0, "xtol": 0.0, "stagnation_window": "off"},
            StopReason.TIME_LIMIT,
        ),
        ({"callback": lambda p: True}, StopReason.CALLBACK),
        ({"callback": lambda p: p.request_stop()}, StopReason.REQUESTED),
        ({"stagnation_window": 5}, StopReason.FLAT),
        ({"sigma_max": 0.501}, StopReason.SIGMA_TOO_LARGE),
        ({"sigma_min": 0.49}, StopReason.SIGMA_TOO_SMALL),
    ):
        f = (lambda x: 1.0) if reason is StopReason.FLAT else sphere
        r = mmes.minimize(f, X0, 0.5, seed=1, **options)
        assert r.reason is reason
        if reason is StopReason.MAX_GENERATIONS:
            assert r.nit == 7


def test_the_time_limit_is_asked_after_every_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("mmes.run.limits.time.monotonic", lambda: clock[0])

    def takes_a_second(x: np.ndarray) -> float:
        clock[0] += 1.0
        return 1.0

    r = mmes.minimize(takes_a_second, X0, 0.5, time_limit=2.5)
    assert r.reason is StopReason.TIME_LIMIT
    assert r.nfev == 3


def test_history_is_bounded_and_ends_with_the_run() -> None:
    noise = np.random.default_rng(0)
    r = mmes.minimize(
        lambda x: noise.random(),
        X0,
        0.5,
        seed=1,
        max_generations=9000,
        damping=1e6,  # so that sigma stays where it is
        stagnation_window="off",
    )
    assert r.nit == 9000
    h = r.history
    assert set(h) == {"evaluations", "best", "sigma", "start"}
    assert 900 <= h["best"].size <= 2001
    assert h["evaluations"][-1] == r.nfev
    assert h["best"][-1] == r.fun
    assert (np.diff(h["evaluations"]) > 0).all()
    assert (np.diff(h["best"]) <= 0).all()


def test_a_search_that_converges_above_its_target_says_so() -> None:
    """Failed before: success was False, and the message said only that the search converged."""
    r = mmes.minimize(sphere, X0, 0.5, seed=1, target=-1.0)
    assert not r.success
    assert r.reason.converged
    assert r.message == f"{r.reason.sentence} The target was not reached."


# Errors of the objective


def test_an_objective_that_raises_stops_the_run_and_says_where() -> None:
    def broken(x):
        if broken.calls == 20:
            raise ZeroDivisionError("singular")
        broken.calls += 1
        return sphere(x)

    broken.calls = 0
    where = "ZeroDivisionError at candidate 8 of generation 1: singular"
    with pytest.raises(mmes.EvaluationError, match=where) as e:
        mmes.minimize(broken, X0, 0.5, seed=1, strategy="mmes")
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    assert e.value.x.shape == X0.shape
    assert (e.value.candidate, e.value.generation) == (8, 1)


def test_caught_exceptions_make_failed_candidates() -> None:
    def fragile(x):
        if x[0] < 0.9:
            raise ArithmeticError
        return sphere(x)

    with pytest.warns(FailedEvaluationWarning, match="once per run"):
        r = mmes.minimize(fragile, X0, 0.5, seed=1, catch=(ArithmeticError,), max_evaluations=500)
    assert r.failed > 0
    assert r.x[0] >= 0.9


def misspelt(x):
    raise KeyError("widht")


def misspelt_rows(points):
    return misspelt(points)


@pytest.mark.parametrize("how", [{}, {"workers": 2}, {"workers": "threads"}, {"vectorized": True}])
def test_the_warning_names_the_exception_that_was_caught(how) -> None:
    """Failed before: who catches every Exception did not learn of a mistake of his own."""
    fun = misspelt_rows if how.get("vectorized") else misspelt
    if how.get("workers") == "threads":
        how = {"workers": concurrent.futures.ThreadPoolExecutor(2)}
    with pytest.warns(FailedEvaluationWarning, match="failed with KeyError: 'widht'"):
        r = mmes.minimize(fun, X0, 0.5, seed=1, catch=(Exception,), max_evaluations=500, **how)
    assert r.reason is StopReason.ALL_FAILED


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("answer", [None, "1", True, 1j, np.zeros(2), [1.0, 2.0]], ids=repr)
def test_answers_that_are_no_values_are_named(answer, vectorized: bool) -> None:
    with pytest.raises((TypeError, ValueError), match=r"expected|must return"):
        mmes.minimize(lambda x: answer, X0, 0.5, vectorized=vectorized)


@pytest.mark.parametrize("vectorized", [False, True])
def test_the_objective_cannot_write_into_x(vectorized: bool) -> None:
    def vandal(x):
        x[...] = 0
        return 0.0

    with pytest.raises(mmes.EvaluationError, match="read-only"):
        mmes.minimize(vandal, X0, 0.5, vectorized=vectorized)


def test_nothing_but_nan_ends_after_ten_generations() -> None:
    with pytest.warns(FailedEvaluationWarning):
        r = mmes.minimize(lambda x: math.nan, X0, 0.5, seed=1)
    assert r.reason is StopReason.ALL_FAILED
    assert r.nit == 10
    assert not r.success
    assert r.fun == math.inf
    np.testing.assert_array_equal(r.x, X0)


def test_nan_warns_once_a_run(recwarn: pytest.WarningsRecorder) -> None:
    mmes.minimize(
        lambda x: math.nan if x[0] > 1 else sphere(x), X0, 0.5, seed=1, max_evaluations=300
    )
    assert sum(issubclass(w.category, FailedEvaluationWarning) for w in recwarn.list) == 1


def test_an_objective_may_itself_minimise() -> None:
    def outer(x):
        return (
            mmes.minimize(lambda y: sphere(y - x), X0[:3], 0.5, seed=2, max_evaluations=60).fun
            + x[0] ** 2
        )

    r = mmes.minimize(outer, X0[:3], 0.5, seed=1, max_evaluations=40)
    assert r.nfev == 40


# Bounds, start, restarts


def test_bounds_alone_tell_where_to_start_and_how_far_to_step() -> None:
    counting = Counting(lambda x: sphere(x - 1))
    lower, upper = np.full(10, -3.0), np.linspace(2, 30, 10)
    r = mmes.minimize(counting, bounds=(lower, upper), seed=4, target=1e-6, max_evaluations=20_000)
    assert r.success
    points = np.array(counting.points)
    assert ((lower <= points) & (points <= upper)).all()
    spread = points[1:11].std(axis=0)
    assert spread[9] > 2 * spread[0]  # unequal widths set the scale of each variable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": None, "sigma0": 1.0}, "x0 is needed"),
        ({"x0": None, "sigma0": 1.0, "bounds": (np.zeros(3), np.inf)}, "x0 is needed"),
        ({"x0": X0}, "sigma0 is needed"),
        ({"x0": X0, "bounds": (-np.inf, 5.0)}, "sigma0 is needed"),
        ({"x0": None, "bounds": (0.0, 1.0)}, "number of variables"),
        ({"x0": X0, "sigma0": 1.0, "bounds": (2.0, 3.0)}, "outside"),
        ({"x0": X0, "sigma0": 1.0, "restarts": "unlimited"}, "needs a target"),
        ({"x0": X0, "sigma0": 1.0, "strategy": "mmse"}, "did you mean 'mmes'"),
    ],
    ids=str,
)
def test_what_is_missing_is_said(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mmes.minimize(sphere, **arguments)


def test_fun_and_callback_must_be_callable() -> None:
    with pytest.raises(TypeError, match="fun must be callable, not 3"):
        mmes.minimize(3, X0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callback must be callable"):
        mmes.minimize(sphere, X0, 1.0, callback=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="strategy must be a name"):
        mmes.minimize(sphere, X0, 1.0, strategy=3)  # type: ignore[arg-type]


def test_restarts_double_population_and_damping_and_begin_elsewhere() -> None:
    sizes, starts = {}, {}
    counting = Counting(rastrigin)

    def watch(p: mmes.Progress) -> None:
        if not p.final:
            sizes.setdefault(p.start, []).append(p.evaluations)
        starts.setdefault(p.start, p.mean.copy())

    options = {"seed": 2, "restarts": 3, "target": 1e-9, "noise": "no"}
    r = mmes.minimize(counting, bounds=(np.full(6, -5.0), 5.0), callback=watch, **options)
    assert 2 <= r.starts <= 4
    for start, evaluations in sizes.items():
        assert set(np.diff(evaluations)) == {9 * 2**start}
        assert not np.array_equal(starts[start], starts[0]) or start == 0
    assert r.options["damping"] == 2.0 ** (r.starts - 1)
    assert r.fun == min(rastrigin(x) for x in counting.points)
    assert counting.calls == r.nfev
    np.testing.assert_array_equal(np.unique(r.history["start"]), np.arange(r.starts, dtype=float))


def test_restarts_without_bounds_begin_around_x0() -> None:
    starts = {}
    r = mmes.minimize(
        lambda x: 1.0,
        np.full(20, 100.0),
        0.5,
        seed=2,
        restarts=2,
        callback=lambda p: starts.setdefault(p.start, p.mean.copy()) is None,
    )
    assert r.starts == 3
    for start in (1, 2):
        assert 0 < np.abs(starts[start] - 100).max() < 5


@pytest.mark.slow
def test_restarts_solve_what_one_start_does_not() -> None:
    def batch(X):
        return (X**2 - 10 * np.cos(2 * np.pi * X) + 10).sum(axis=1)

    def solved(restarts: int) -> int:
        return sum(
            mmes.minimize(
                batch,
                bounds=(np.full(4, -5.0), 5.0),
                seed=seed,
                target=1e-6,
                restarts=restarts,
                max_evaluations=150_000,
                vectorized=True,
            ).success
            for seed in range(5)
        )

    once, often = solved(0), solved(8)
    assert often > once
    assert often >= 4


# The kernel


def test_a_missing_native_kernel_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.choose, "native_problem", lambda: "no such file")
    with pytest.warns(KernelWarning, match="no such file"):
        r = mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=100)
    assert r.kernel == "reference"
    with pytest.raises(ImportError, match="no such file"):
        mmes.minimize(sphere, X0, 0.5, seed=1, kernel="native")


def test_kernels_agree_on_a_whole_run() -> None:
    runs = [
        mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=300, kernel=kernel)
        for kernel in ("native", "reference")
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-3)
