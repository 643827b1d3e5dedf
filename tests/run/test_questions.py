"""Questions about noise where they meet errors, failures and the end of the budget."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.run.noise import Answers, NoiseWatch, Verdict
from mmes.testing import hostile

N = 12
PLACE = (np.full(N, 2.0), 1.0)
OPTIONS = {"vectorized": True, "seed": 1, "strategy": "sep-cma", "evaluate_x0": False}
pytestmark = pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")


class Told:
    """A sphere with noise that depends on the number of the call; a question asks single rows."""

    def __init__(self, calls=0, fails_at=None):
        self.calls, self.fails_at = calls, fails_at
        self.questions = 0

    def __call__(self, points):
        rng = np.random.default_rng(self.calls)
        self.calls += len(points)
        values = (points**2).sum(1) + rng.standard_normal(len(points))
        if len(points) == 1:
            self.questions += 1
            if self.questions == self.fails_at:
                self.calls -= 1
                raise ZeroDivisionError
        return values


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_row38_a_question_that_was_interrupted_is_asked_again(tmp_path, at) -> None:
    """Failed before: CONVERGED_F or STAGNATED, noisy=False, and other evaluations."""
    limits = {"max_evaluations": 9000}
    whole = mmes.minimize(Told(), *PLACE, **OPTIONS, **limits)
    assert whole.noisy
    path = tmp_path / "run.mmes"
    broken = Told(fails_at=at)
    with pytest.raises(mmes.EvaluationError):
        mmes.minimize(broken, *PLACE, checkpoint=path, **OPTIONS, **limits)
    entries, _ = checkpoint.read(path)
    assert entries["question"] == "asking"
    rest = mmes.resume(path, Told(entries["evaluations"]))
    assert (rest.nfev, rest.noisy, rest.reason) == (whole.nfev, True, whole.reason)
    np.testing.assert_array_equal(rest.mean, whole.mean)


def ended_at(generation, how):
    """Return what ends a run after so many generations: by an error, a request, or a limit."""

    def stop(progress):
        if progress.generation == generation and how == "error":
            raise ZeroDivisionError
        return progress.generation == generation

    return {"max_generations": generation} if how == "limit" else {"callback": stop}


@pytest.mark.parametrize("how", ["error", "request", "limit"])
def test_row38_what_ends_a_run_before_the_question_does_not_suppress_it(tmp_path, how) -> None:
    """Failed before: a run that ended where it would have asked had converged when resumed."""

    def f(points):
        return (points**2).sum(1)

    whole = mmes.minimize(f, *PLACE, **OPTIONS)
    assert whole.success
    path = tmp_path / "run.mmes"
    with contextlib.suppress(ZeroDivisionError):
        mmes.minimize(f, *PLACE, checkpoint=path, **ended_at(whole.nit, how), **OPTIONS)
    rest = mmes.resume(path, f, max_generations=None)
    assert (rest.nfev, rest.reason) == (whole.nfev, whole.reason)


def test_row10_a_request_to_stop_is_not_lost_where_noise_is_answered(tmp_path) -> None:
    """Failed before: the run went on, with a larger sigma, to the end of its budget."""
    sigmas = []
    given = {"max_evaluations": 3000, **OPTIONS}
    watch = {"callback": lambda progress: sigmas.append(progress.sigma)}
    whole = mmes.minimize(Told(), *PLACE, **watch, **given)
    at = 1 + int(np.argmax(np.divide(sigmas[1:], sigmas[:-1]) > 3))
    assert at > 1
    path = tmp_path / "run.mmes"
    stop = ended_at(at, "request")
    ended = mmes.minimize(Told(), *PLACE, checkpoint=path, reevaluations=0, **stop, **given)
    assert (ended.reason, ended.nit) == (mmes.StopReason.CALLBACK, at)
    rest = mmes.resume(path, Told(ended.nfev), reevaluations=None)
    assert rest.nfev == whole.nfev
    np.testing.assert_array_equal(rest.mean, whole.mean)


def test_row38_an_end_by_noise_stays_one_when_it_is_resumed(tmp_path, monkeypatch) -> None:
    """Failed before: resumed, the run had converged."""

    def full(self, sigma=None):
        raise MemoryError("no room")

    monkeypatch.setattr(mmes.strategies.AskTell, "grow", full)
    path = tmp_path / "run.mmes"
    ended = mmes.minimize(Told(), *PLACE, checkpoint=path, max_evaluations=60_000, **OPTIONS)
    assert ended.reason is mmes.StopReason.NOISY
    again = mmes.resume(path, Told(ended.nfev))
    assert (again.reason, again.nfev) == (ended.reason, ended.nfev)


def test_row38_a_single_value_beside_failures_is_no_answer() -> None:
    """Failed before: NaN, NaN, 1.3 counted as three equal values."""
    watch = NoiseWatch()
    assert watch.answer(Answers(np.array([np.nan, np.nan, 1.3])), 0.5) is Verdict.UNANSWERED
    assert watch.asked_at == np.inf
    assert (watch.evaluations, watch.failed) == (3, 2)
    assert watch.answer(Answers(np.array([np.nan, 1.3, 1.3])), 0.5) is Verdict.CLEAR
    assert watch.asked_at == 0.5
    assert watch.answer(Answers(np.array([np.nan, 1.3, 2.3])), 0.5) is Verdict.HIDDEN


def test_row38_where_the_centre_always_fails_nothing_has_converged(tmp_path) -> None:
    """The candidates are never exactly at the centre, which fails."""

    def hollow(points):
        if len(points) == 1:
            return np.array([np.nan])
        return (points**2).sum(1)

    path = tmp_path / "run.mmes"
    result = mmes.minimize(hollow, *PLACE, checkpoint=path, max_evaluations=20_000, **OPTIONS)
    assert result.reason is mmes.StopReason.STAGNATED
    assert not result.success
    assert result.failed == 9  # three rounds
    assert mmes.resume(path, hollow).reason is mmes.StopReason.STAGNATED


class Counts:
    """Counts the calls and the rows, which are never none."""

    def __init__(self):
        self.rows, self.inner = 0, Told()

    def __call__(self, points):
        assert len(points) > 0
        self.rows += len(points)
        return self.inner(points)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("budget", [13, 14, 15, 16, 17, 18, 26, 32, 33, 34, 35, 36, 50])
def test_row39_a_question_that_spends_the_budget_ends_the_run(budget, workers) -> None:
    """Failed before: f was called with no row; with workers, ValueError."""
    options = {"noise": "yes", "max_evaluations": budget, "reevaluations": 0, "seed": 1}
    if workers is None:
        f = Counts()
        result = mmes.minimize(f, *PLACE, vectorized=True, **options)
        assert f.rows == result.nfev
    else:
        result = mmes.minimize(hostile.sphere, *PLACE, workers=workers, **options)
    assert result.reason is mmes.StopReason.MAX_EVALUATIONS
    assert result.nfev <= budget


class FailsNowAndThen:
    """A sphere in which every third evaluation fails; counts what fails."""

    def __init__(self):
        self.calls = self.failed = 0

    def __call__(self, x):
        self.calls += 1
        if self.calls % 3 == 0:
            self.failed += 1
            return np.nan
        return float(x @ x)


@pytest.mark.parametrize("budget", [10, 17, 40, 41, 42, 43])
@pytest.mark.parametrize("noise", ["yes", "no"])
def test_row39_every_failed_evaluation_is_counted(budget, noise) -> None:
    """Failed before: those of an incomplete generation and of questions were left out."""
    f = FailsNowAndThen()
    result = mmes.minimize(f, *PLACE, seed=1, max_evaluations=budget, noise=noise)
    assert (result.nfev, result.failed) == (f.calls, f.failed)
