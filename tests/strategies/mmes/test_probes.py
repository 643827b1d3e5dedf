"""The step size by two probes: its law, its invariances, and every way to use it."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import mmes
from mmes.strategies.mmes.probes import adapt, advantage, damping

N = 30


def made(n: int = N, **options) -> mmes.AdaptiveMMES:
    return mmes.AdaptiveMMES(np.full(n, 2.0), 1.0, seed=4, step_size="probes", **options)


def bowl(x: np.ndarray) -> np.ndarray:
    """Whole multiples of 2^-20, so that a shift by a whole number changes no difference."""
    values = (np.asarray(x) ** 2 * np.arange(1.0, x.shape[1] + 1)).sum(1)
    return np.round(values * 2**20) / 2**20


def step(es: mmes.AdaptiveMMES, generations: int = 1) -> mmes.AdaptiveMMES:
    for _ in range(generations):
        es.tell(bowl(es.ask()))
    return es


def same(one: mmes.AdaptiveMMES, other: mmes.AdaptiveMMES) -> bool:
    return one.sigma == other.sigma and np.array_equal(one.mean, other.mean)


def test_the_advantage_is_a_difference_of_ranks() -> None:
    values = np.array([1.0, 2.0, 3.0, math.inf])
    assert advantage(0.0, 5.0, values) == 4 / 4  # ranks 1 and 5
    assert advantage(5.0, 0.0, values) == -4 / 4
    assert advantage(2.0, 2.0, values) == 0.0
    assert advantage(2.0, 2.5, values) == 1.5 / 4  # ranks 2.5 and 4
    for failed in (math.inf, math.nan):
        assert advantage(failed, 0.0, values) is None
        assert advantage(0.0, failed, values) is None


@pytest.mark.parametrize("size", [4, 11, 60])
def test_under_random_ranking_sigma_is_unbiased(size: int) -> None:
    rng, found = np.random.default_rng(3), []
    for _ in range(4000):
        forward, backward, *values = rng.permutation(size + 2).astype(float)
        found.append(advantage(forward, backward, np.array(values)))
    # False alarm: five standard errors, below 1e-6.
    assert abs(np.mean(found)) < 5 * np.std(found) / math.sqrt(len(found))
    es, logs = made(10, population_size=size), []
    for _ in range(1000):
        es.ask()
        es.tell(rng.standard_normal(es.rows))
        logs.append(math.log(es.sigma))
    # s averages over 1 / 0.3 generations without a change of the sum: log sigma is near sum a / 3
    # at most, where a has the variance (size + 3) (size + 2) / (6 size^2) of a difference of ranks.
    spread = math.sqrt(1000 * (size + 3) * (size + 2) / (6 * size**2)) / 3
    assert abs(logs[-1]) < 5 * spread


@pytest.mark.parametrize(("n", "size", "d"), [(10, 10, 3.0), (40, 10, 6.0), (1000, 24, 12.0)])
def test_sigma_follows_no_faster_than_a_search_can_converge(n: int, size: int, d: float) -> None:
    es = made(n, population_size=size)
    p, state = es.parameters, es.search.state
    assert (state.rising, damping(p, state)) == (20, 3.0)  # it may begin far too small
    for _ in range(20):
        adapt(p, state, 1.0, 0.0, np.arange(2.0, 2.0 + size))
    sigma = state.sigma
    assert (state.rising, damping(p, state)) == (0, d)
    adapt(p, state, 1.0, 0.0, np.arange(2.0, 2.0 + size))
    assert math.log(state.sigma / sigma) == pytest.approx(state.progress / d)


def test_rows_are_the_probes_and_the_candidates() -> None:
    es = made()
    assert es.ask().shape == (es.population_size, N)  # nothing has moved yet
    before = es.mean.copy()
    step(es)
    mean, shift = es.mean.copy(), es.mean - before
    points = es.ask()
    assert points.shape == (es.rows, N) == (es.population_size + 2, N)
    np.testing.assert_allclose(points[0], mean + shift, rtol=1e-14)
    np.testing.assert_allclose(points[1], mean - shift, rtol=1e-14)
    assert np.array_equal(es.ask(rows=[1, 5, 0])[[2, 0, 1]], points[[0, 1, 5]])
    fresh = step(made())
    assert np.array_equal(fresh.ask(rows=[1, 5, 0])[[2, 0, 1]], points[[0, 1, 5]])


def test_a_shift_of_all_values_of_a_generation_changes_nothing() -> None:
    rng, plain, shifted = np.random.default_rng(1), made(), made()
    for _ in range(300):
        plain.tell(bowl(plain.ask()))
        shifted.tell(bowl(shifted.ask()) + rng.integers(-1000, 1000))
        assert same(plain, shifted)
    assert plain.sigma < 0.1
    other = {"step_size": "forces"}
    plain, shifted = (mmes.AdaptiveMMES(np.full(N, 2.0), 1.0, seed=4, **other) for _ in range(2))
    for _ in range(30):
        plain.tell(bowl(plain.ask()))
        shifted.tell(bowl(shifted.ask()) + rng.integers(-1000, 1000))
    assert not same(plain, shifted)


def test_a_minibatch_does_not_end_the_steps() -> None:
    """Least squares with 32 of 2000 equations per generation: the loss on all of them falls."""
    rng = np.random.default_rng(5)
    matrix, solution = rng.standard_normal((2000, 40)), rng.standard_normal(40)
    target = matrix @ solution + rng.standard_normal(2000)
    es = mmes.AdaptiveMMES(np.zeros(40), 0.3, seed=1, step_size="probes")
    for _ in range(400):
        rows = rng.integers(2000, size=32)
        es.tell(np.mean((es.ask() @ matrix[rows].T - target[rows]) ** 2, axis=1))
    # 33 at the start, 1 at the optimum; with "forces" it stands above 7, sigma below 1e-20.
    assert np.mean((matrix @ es.mean - target) ** 2) < 1.2
    assert es.sigma > 1e-5


def test_a_probe_may_be_the_best_point_and_does_not_move_the_mean() -> None:
    one, other = step(made(), 3), step(made(), 3)
    points = one.ask()
    values = bowl(other.ask())
    other.tell(values)
    values[0] = -1.0
    one.tell(values)
    assert one.best_value == -1.0
    assert np.array_equal(one.best_x, points[0])
    assert np.array_equal(one.mean, other.mean)


@pytest.mark.parametrize("failed", [math.nan, math.inf])
def test_a_probe_that_failed_says_nothing(failed: float) -> None:
    es = step(made(), 5)
    sigma, values = es.sigma, bowl(es.ask())
    values[1] = failed
    es.tell(values)
    assert es.sigma == sigma
    step(es)
    assert es.sigma != sigma


@pytest.mark.parametrize("handling", ["clip", "reflect", "smooth"])
def test_probes_stay_in_the_box(handling: str) -> None:
    es = made(bounds=(np.full(N, 1.5), np.full(N, 4.0)), bounds_handling=handling)
    for _ in range(200):
        points = es.ask()
        assert (points >= 1.5).all()
        assert (points <= 4.0).all()
        es.tell(bowl(points))
    assert es.best_value < 1.1 * 2.25 * N * (N + 1) / 2


@pytest.mark.parametrize("options", [{}, {"rows_at_once": 3}, {"mirroring": "off"}])
def test_copies_pickles_and_states_go_on_to_the_bit(options: dict) -> None:
    es = step(made(**options), 7)
    es.ask(rows=[0, 4])
    es.tell(bowl(es.ask(rows=[0, 4])), [0, 4])
    twins = [copy.deepcopy(es), pickle.loads(pickle.dumps(es))]
    restored = mmes.AdaptiveMMES.from_state(es.state())
    rest = [row for row in range(es.rows) if row not in (0, 4)]
    for one in (es, *twins):
        one.tell(bowl(one.ask(rows=rest)), rest)
        step(one, 5)
    step(restored, 6)
    assert all(same(es, twin) for twin in (*twins, restored))
    whole = step(made(**options | {"rows_at_once": "all"}), 13)
    assert same(es, whole)


def test_growth_keeps_what_was_learnt() -> None:
    es = step(made(), 20)
    sigma, size = es.sigma, es.population_size
    es.grow()
    assert (es.sigma, es.population_size, es.rows) == (sigma, 2 * size, 2 * size)
    step(es)
    assert es.rows == 2 * size + 2
    best = es.best_value
    assert step(es, 100).best_value < best


def test_minimize_and_checkpoints(tmp_path) -> None:
    options = {"strategy": "adaptive", "step_size": "probes", "vectorized": True, "seed": 1}
    whole = mmes.minimize(bowl, np.full(N, 2.0), 1.0, max_evaluations=3000, **options)
    path = tmp_path / "run.mmes"
    mmes.minimize(bowl, np.full(N, 2.0), 1.0, max_evaluations=1500, checkpoint=path, **options)
    resumed = mmes.resume(path, bowl, max_evaluations=3000)
    assert resumed.fun == whole.fun < 1.0
    assert np.array_equal(resumed.x, whole.x)


def test_on_a_device() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")
    host, device = made(), made(device="cpu", population_dtype="float64")
    for _ in range(20):
        host.tell(bowl(host.ask()))
        device.tell(bowl(device.ask().numpy()))
    assert device.sigma == pytest.approx(host.sigma, rel=1e-6)
    # Directions are float32, and sums are taken in another order.
    np.testing.assert_allclose(np.asarray(device.mean), host.mean, atol=1e-5)


def test_probes_that_are_better_than_all_candidates_say_enough() -> None:
    values = np.arange(3.0, 60.0)
    assert advantage(1.0, 2.0, values) == 0.4
    assert advantage(2.0, 1.0, values) == -0.4
    assert advantage(2.0, 2.0, values) == 0.0
    # One candidate beside them, and ranks are what counts.
    assert abs(advantage(1.0, 3.5, values)) < 0.1  # type: ignore[arg-type]


def test_steps_that_are_far_too_long_become_short_soon() -> None:
    n = 3000
    es = mmes.AdaptiveMMES(np.ones(n), 30.0, seed=1, step_size="probes", stagnation_window="off")
    for _ in range(60):
        points = es.ask()
        es.tell((points**2).sum(1))
    assert es.sigma < 3.0  # by ranks alone it is above 10 still
