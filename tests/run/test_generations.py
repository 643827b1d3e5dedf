"""Generations that cannot be compared, ceilings, and what a run does about them."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes.run.noise import Answers, NoiseWatch, Verdict
from mmes.strategies.shell.lifecycle import Lifecycle

N = 60


class LeastSquares:
    """Least squares with another 32 of 1000 equations per call; `loss` takes all of them."""

    def __init__(self, calls: int = 0):
        rng = np.random.default_rng(5)
        self.rows = rng.standard_normal((1000, N))
        self.right = self.rows @ rng.standard_normal(N)
        self.calls = calls

    def loss(self, points, taken=slice(None)):
        return ((points @ self.rows[taken].T - self.right[taken]) ** 2).mean(-1)

    def __call__(self, points):
        taken = np.random.default_rng([1, self.calls]).integers(0, 1000, 32)
        self.calls += 1
        return self.loss(points, taken)


class PerGeneration(LeastSquares):
    """The same for one point at a time: the batch changes with the generation."""

    generation = 0

    def __call__(self, x):
        taken = np.random.default_rng([1, self.generation]).integers(0, 1000, 32)
        return float(self.loss(x, taken))

    def next(self, progress):
        self.generation = progress.generation


def options(**changes):
    return {"strategy": "adaptive", "seed": 1, "max_evaluations": 25_000} | changes


def test_a_minibatch_per_generation_is_noticed_and_answered_by_probes() -> None:
    """Failed before: sigma collapsed, and the loss stood at 8 or more."""
    f = LeastSquares()
    r = mmes.minimize(f, np.zeros(N), 0.5, vectorized=True, **options())
    assert r.options["step_size"] == "probes"
    assert r.noisy
    assert f.loss(r.x) < 1e-3
    assert r.options["population_size"] == 16  # what it grew by before is taken back


def test_a_batch_that_changes_between_generations_is_noticed_one_point_at_a_time() -> None:
    """Failed before: the centre had the same value three times, so nothing was noticed."""
    f = PerGeneration()
    r = mmes.minimize(f, np.zeros(N), 0.5, callback=f.next, **options(max_evaluations=15_000))
    assert r.options["step_size"] == "probes"
    assert f.loss(r.x) < 0.1


@pytest.mark.parametrize("seed", [1, 11, 22])
def test_a_minibatch_is_no_kink(seed) -> None:
    """Failed before: values that jump were taken for a kink, and the population grew to 152.

    The loss of the mean was 14, 16 and 85, because few generations were left.
    """
    n = 120
    rng, rows = np.random.default_rng(seed), np.random.default_rng(5).standard_normal((5000, n))
    right, sizes = rows @ np.random.default_rng(6).standard_normal(n), []

    def f(points):
        taken = rng.integers(0, 5000, 64)
        sizes.append(len(points))
        return ((points @ rows[taken].T - right[taken]) ** 2).mean(1)

    r = mmes.minimize(f, np.zeros(n), 0.5, vectorized=True, seed=seed, max_evaluations=8000)
    assert np.mean((rows @ r.mean - right) ** 2) < 0.05
    # 18 candidates and two probes; never more.
    assert max(sizes) == r.options["population_size"] + 2


def test_generations_that_are_often_far_worse_are_asked_about_at_once() -> None:
    watch, rng = NoiseWatch(), np.random.default_rng(3)
    spread = rng.standard_normal((40, 20))
    for shift in range(20):  # values that fall, however fast, are no reason to ask
        watch.observe(spread[shift] - 100.0 * shift, 1.0, 1.0)
        assert not watch.suspects(1.0, None)
    asked = []
    for shift in range(20, 40):
        watch.observe(spread[shift] + 100.0 * (shift % 2), 1.0, 1.0)
        asked.append(watch.suspects(1.0, None))
    assert asked.index(True) < 8


def test_generations_that_are_often_far_worse_are_asked_about_three_times() -> None:
    """By turns after a generation that was far worse and after one that was not."""
    watch, after, rng = NoiseWatch(), [], np.random.default_rng(3)
    for generation in range(60):
        watch.observe(rng.standard_normal(20) + 100.0 * (generation % 2), 1.0, 1.0)
        if watch.suspects(1.0, None):
            after.append(watch.worse)
            watch.answer(Answers(np.zeros(3), np.zeros(1), recorded=0.0), 1.0)
        assert watch.unasked == (len(after) < 3)
    assert after == [True, False, True]


class Shifted:
    """A sphere whose values are shifted by a function of the generation; a callback counts them."""

    def __init__(self, shift):
        self.shift, self.generation, self.seen = shift, 0, []

    def __call__(self, x):
        self.seen.append(x.tobytes())
        return float(x @ x) + self.shift(self.generation)

    def minimize(self, n=120, **options):
        return mmes.minimize(self, np.full(n, 3.0), 1.0, seed=1, callback=self.next, **options)

    def next(self, progress):
        self.generation = progress.generation


def normal(size):
    return lambda generation: size * np.random.default_rng(generation).standard_normal()


@pytest.mark.parametrize(
    ("shift", "budget", "most"), [(lambda g: -0.1 * g, 10_000, 1e-5), (normal(1.0), 4500, 0.2)]
)
def test_a_search_that_progresses_keeps_its_sigma(shift, budget, most) -> None:
    """Failed before: sigma went back to that of the start; the values were 0.026 and 2.2."""
    r = Shifted(shift).minimize(150, max_evaluations=budget)
    assert r.options["step_size"] == "probes"
    assert r.x @ r.x < most


def test_objectives_that_take_turns_are_noticed() -> None:
    """Failed before: the question always met the objective of the best point; f was 173."""
    r = Shifted(lambda generation: 100.0 * (generation % 2)).minimize(max_evaluations=12_000)
    assert r.noisy
    assert r.x @ r.x < 1e-8


@pytest.mark.parametrize("left", range(6))
def test_a_budget_that_ends_at_the_question_changes_nothing(tmp_path, left) -> None:
    """Failed before: a question that was cut off had another answer, for good."""
    f = Shifted(normal(100.0))
    whole = f.minimize(max_generations=40)
    assert whole.options["step_size"] == "probes"
    asked = next(i for i, x in enumerate(f.seen) if x == f.seen[i + 1])
    path, f = tmp_path / "run.mmes", Shifted(normal(100.0))
    f.minimize(max_generations=40, max_evaluations=asked + left, checkpoint=path)
    resumed = mmes.resume(path, f, max_evaluations=None, callback=f.next)
    assert resumed.nfev == whole.nfev
    assert np.array_equal(resumed.mean, whole.mean)


def test_a_centre_that_fails_is_not_asked_about_in_every_generation() -> None:
    """Failed before: 157 of 6000 evaluations were spent on that."""
    seen = []

    def f(x):
        seen.append(x.tobytes())
        return np.inf if 3 * x[0] % 1 > 0.12 else float(np.sum((x - 0.3) ** 2))

    mmes.minimize(f, np.ones(3), 1.0, seed=1, max_evaluations=6000)
    assert len(seen) - len(set(seen)) < 30


def test_generations_that_cannot_be_compared_are_no_success() -> None:
    """Failed before: CONVERGED_X with success at a true value of 36; the optimum is 0.5.

    With constraints only the centre is asked, whose values agree within a generation.
    """
    f = Shifted(lambda g: 100 * np.random.default_rng((2, g)).standard_normal())
    r = mmes.minimize(
        f, np.full(120, 3.0), 1.0, seed=2, callback=f.next,
        constraints=lambda x: 1 - x[0] - x[1], max_evaluations=20_000,
    )  # fmt: skip
    assert not r.success


def test_a_restart_begins_with_probes() -> None:
    """Failed before: it began with the default, whose steps collapsed once more."""
    f, begun = LeastSquares(), []

    def watch(progress):
        if progress.start == 1:
            begun.append(progress.generation)
            return len(begun) == 30
        return False

    r = mmes.minimize(
        f, np.zeros(N), 0.5, vectorized=True, restarts=1, callback=watch, xtol=0.05,
        **options(max_evaluations=60_000),
    )  # fmt: skip
    assert len(begun) >= 30
    assert r.options["step_size"] == "probes"


def test_a_restart_without_memory_for_probes_begins_without_them(monkeypatch) -> None:
    """Failed before: the run ended in the middle of the change to the next start."""
    f, begun = LeastSquares(), []
    probe = Lifecycle.probe

    def watch(progress):
        begun.append(progress.start)
        return begun.count(1) == 3

    def too_large(es, *args):
        if 0 in begun and es.generation == 0:
            raise MemoryError("no room")
        probe(es, *args)

    monkeypatch.setattr(Lifecycle, "probe", too_large)
    r = mmes.minimize(
        f, np.zeros(N), 0.5, vectorized=True, restarts=1, callback=watch, xtol=0.05,
        **options(max_evaluations=60_000),
    )  # fmt: skip
    assert begun[-1] == 1
    assert r.options["step_size"] == "auto"


def test_a_rule_that_was_named_stays() -> None:
    f = LeastSquares()
    for rule in ("forces", "paired"):
        named = options(step_size=rule, max_evaluations=8000)
        r = mmes.minimize(f, np.zeros(N), 0.5, vectorized=True, **named)
        assert r.options["step_size"] == rule


@pytest.mark.parametrize("strategy", ["mmes", "sep-cma", "lm-ma"])
def test_strategies_without_probes_go_on_as_they_are(strategy) -> None:
    f = LeastSquares()
    given = options(strategy=strategy, max_evaluations=6000)
    r = mmes.minimize(f, np.zeros(N), 0.5, vectorized=True, **given)
    assert not r.success
    assert "step_size" not in r.options
    with pytest.raises(TypeError, match="always compares generations"):
        mmes.strategies.get_strategy(strategy)(np.zeros(3), 1.0).probe(1.0, 8)


def test_noise_of_each_candidate_is_not_taken_for_that_of_a_generation() -> None:
    rng = np.random.default_rng(1)

    def f(points):
        return (points**2).sum(1) + rng.standard_normal(len(points))

    r = mmes.minimize(f, np.full(N, 2.0), 1.0, vectorized=True, **options())
    assert (r.noisy, r.options["step_size"]) == (True, "auto")
    assert r.options["population_size"] > 16


@pytest.mark.parametrize("generations", [100, 250, 600])
def test_the_change_of_the_rule_is_part_of_the_state(tmp_path, generations) -> None:
    whole = mmes.minimize(
        LeastSquares(), np.zeros(N), 0.5, vectorized=True, **options(max_generations=900)
    )
    assert whole.options["step_size"] == "probes"
    path, f = tmp_path / "run.mmes", LeastSquares()
    given = options(max_generations=generations, checkpoint=path, reevaluations=0)
    mmes.minimize(f, np.zeros(N), 0.5, vectorized=True, **given)
    rest = mmes.resume(path, LeastSquares(f.calls), max_generations=900, reevaluations=10)
    np.testing.assert_array_equal(rest.mean, whole.mean)
    assert (rest.nfev, rest.sigma) == (whole.nfev, whole.sigma)


def test_a_watch_tells_shared_noise_from_that_of_each_value() -> None:
    """False alarms: within 1000 questions of independent noise, about 1 (0.1 %)."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1000):
        watch = NoiseWatch()
        watch.answer(Answers(rng.standard_normal(3), twins=rng.standard_normal((3, 2))), 1.0)
        found.append(watch.shared)
    assert sum(found) <= 6
    watch = NoiseWatch()
    shifts = rng.standard_normal((3, 1))
    watch.answer(Answers(rng.standard_normal(3), twins=np.hstack((shifts, shifts))), 1.0)
    assert watch.shared


def test_the_best_point_tells_what_the_centre_hides() -> None:
    same = np.full(3, -300.0)

    def asked(*best):
        watch = NoiseWatch()
        watch.observe(np.linspace(-300, -200, 20), 1.0, 1.0)
        verdict = watch.answer(Answers(same, np.array(best), recorded=-300.0), 0.5)
        return verdict, watch.noisy, watch.shared

    assert asked(-300.0) == (Verdict.CLEAR, False, None)
    assert asked(-300.0 + 1e-8) == (Verdict.CLEAR, False, None)  # sums rounded otherwise
    assert asked(-300.0, -180.0, -220.0) == (Verdict.CLEAR, True, False)  # a ceiling
    assert asked(-220.0, -220.0, -220.0) == (Verdict.HIDDEN, True, True)  # another batch


def test_a_reward_with_a_ceiling_is_reported_by_averages() -> None:
    """Failed before: the first lucky point was returned, with success."""
    rng = np.random.default_rng(1)

    def true(x):
        return float(np.mean(np.minimum(10.0, 14.0 - x @ x + 4 * samples)))

    samples = np.random.default_rng(2).standard_normal(10_000)

    def f(x):
        return -min(10.0, 14.0 - float(x @ x) + 4 * rng.standard_normal())

    r = mmes.minimize(f, np.full(10, 1.5), 0.3, seed=1, max_evaluations=4000)
    assert r.noisy
    assert r.best_seen == -10.0 <= r.fun
    # 9.67 at the optimum. Failed before, with 9.25: the population did not grow.
    assert true(r.x) > 9.5
    assert r.options["population_size"] >= 80


def test_a_deterministic_plateau_is_asked_about_once() -> None:
    calls = []

    def f(x):
        calls.append(1)
        return float(np.round(x @ x))

    r = mmes.minimize(f, np.full(10, 2.0), 1.0, seed=1, max_generations=30)
    never = mmes.minimize(f, np.full(10, 2.0), 1.0, seed=1, max_generations=30, noise="no")
    assert not r.noisy
    assert 3 <= r.nfev - never.nfev <= 6


def test_larger_steps_are_tried_against_noise() -> None:
    """At most twice the largest lately, and never more than the largest of the start."""
    watch = NoiseWatch()
    for sigma in (1.0, *np.full(600, 0.1)):
        watch.observe(np.arange(8.0), sigma, 1.0)
    assert watch.sigma_before() == pytest.approx(0.2)
    for _ in range(600):
        watch.observe(np.arange(8.0), 0.7, 1.0)
    assert watch.sigma_before() == 1.0
    assert NoiseWatch.restored(watch.entries(), watch.arrays()) == watch
