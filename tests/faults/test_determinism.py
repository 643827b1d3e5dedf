"""Promises about sameness: rows 19 and 24."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mmes
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

START = (np.linspace(-1, 1, 40), 0.5)


def digest(result):
    parts = (result.x, result.mean, np.array([result.fun, result.sigma, result.nfev]))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def run(**options):
    return mmes.minimize(hostile.sphere, *START, seed=11, max_evaluations=700, **options)


VARIANTS = {
    "one worker": {"workers": 1},
    "three workers": {"workers": 3},
    "odd chunks": {"workers": 2, "chunk_size": 5},
    "a function that makes an executor": {"workers": lambda: ThreadPoolExecutor(3)},
    "two threads of the kernel": {"threads": 2},
    "vectorized": {"vectorized": True},
    "vectorized over workers": {"vectorized": True, "workers": 3},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_row19_no_way_to_evaluate_changes_the_result(variant):
    options = VARIANTS[variant]
    objective = hostile.spheres if options.get("vectorized") else hostile.sphere
    result = mmes.minimize(objective, *START, seed=11, max_evaluations=700, **options)
    assert digest(result) == digest(run())


def test_row19_any_order_of_completion_gives_the_same():
    result = mmes.minimize(hostile.uneven, *START, seed=11, max_evaluations=700, workers=4)
    assert digest(result) == digest(run())


@pytest.mark.parametrize("options", [{}, {"bounds": (-1.0, 1.0)}, {"restarts": 3}])
@pytest.mark.parametrize("workers", [None, 2])
def test_row19_resuming_at_any_point_gives_the_same(tmp_path, options, workers, same):
    if "restarts" in options:
        options = options | {"stagnation_window": 4, "stagnation_tolerance": 0.05}
    whole = run(**options)
    path = tmp_path / "run.mmes"
    for budget in (1, 16, 17, 100, 333, 334, 650):
        limits = {"max_evaluations": budget, "workers": workers}
        if budget == 1:
            part = mmes.minimize(
                hostile.sphere, *START, seed=11, checkpoint=path, **options, **limits
            )
        else:
            part = mmes.resume(path, hostile.sphere, **limits)
        assert part.nfev == budget
    same(mmes.resume(path, hostile.sphere, max_evaluations=700), whole)
    if "restarts" in options:
        assert whole.starts >= 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row19_every_strategy_is_resumed(tmp_path, strategy, same):
    path = tmp_path / "run.mmes"
    options = {"seed": 11, "strategy": strategy}
    whole = mmes.minimize(hostile.sphere, *START, max_evaluations=600, **options)
    mmes.minimize(hostile.sphere, *START, max_evaluations=250, checkpoint=path, **options)
    same(mmes.resume(path, hostile.sphere, max_evaluations=600), whole)


def test_row19_resuming_a_finished_run_gives_its_result_again(tmp_path, same):
    path = tmp_path / "run.mmes"
    options = {"seed": 11, "target": 1e-3}
    whole = mmes.minimize(hostile.sphere, *START, checkpoint=path, **options)
    again = mmes.resume(path, hostile.Raises(str(tmp_path)))  # it is not called
    same(again, whole)
    assert again.reason is mmes.StopReason.TARGET_REACHED


def test_row19_an_optimum_on_the_wall_can_be_resumed(tmp_path):
    def slope(x):
        return float(-x.sum())

    path = tmp_path / "run.mmes"
    options = {"seed": 1, "bounds": (-1.0, 0.1), "stagnation_window": "off"}
    mmes.minimize(slope, np.zeros(7), 0.3, checkpoint=path, max_evaluations=900, **options)
    assert mmes.resume(path, slope, max_evaluations=1000).nfev == 1000


def test_row19_numpys_global_state_is_untouched():
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    run(workers=2)
    run()
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert np.array_equal(before["state"]["key"], after["state"]["key"])
    assert before["state"]["pos"] == after["state"]["pos"]


def test_row19_kernels_draw_the_same_and_agree_to_tolerance():
    pytest.importorskip("mmes.kernels.native")
    one = run(kernel="native")
    other = run(kernel="reference")
    assert one.nfev == other.nfev
    np.testing.assert_allclose(one.x, other.x, rtol=1e-3, atol=1e-4)


def test_row24_runs_in_threads_equal_running_alone():
    seeds = range(6)

    def one(seed):
        return digest(mmes.minimize(hostile.sphere, *START, seed=seed, max_evaluations=900))

    alone = [one(seed) for seed in seeds]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, seeds)) == alone


def test_row24_runs_with_workers_in_threads_equal_running_alone():
    def one(seed):
        return digest(
            mmes.minimize(hostile.sphere, *START, seed=seed, max_evaluations=300, workers=2)
        )

    alone = [one(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(3))) == alone


def test_row24_one_optimizer_from_two_threads_is_refused():
    es = mmes.MMES(*START, seed=1)
    inside, go_on = threading.Event(), threading.Event()
    sample = es.search.sample

    def slow(*arguments):
        inside.set()
        go_on.wait(10)
        sample(*arguments)

    es.search.sample = slow
    first = threading.Thread(target=es.ask)
    first.start()
    inside.wait(10)
    with pytest.raises(RuntimeError, match="another thread"):
        es.ask()
    go_on.set()
    first.join()
    assert es.ask().shape[1] == 40


def test_row24_the_kernel_lets_other_threads_run():
    pytest.importorskip("mmes.kernels.native")
    es = mmes.MMES(np.zeros(400_000), 1.0, seed=1, threads=1, archive_size=4)
    ticks, over = [], threading.Event()

    def count():
        while not over.is_set():
            ticks.append(1)
            over.wait(1e-3)

    counter = threading.Thread(target=count)
    counter.start()
    before = len(ticks)
    for _ in range(5):
        es.ask()
        es.skip()
    during = len(ticks) - before
    over.set()
    counter.join()
    # One call samples 43 x 400,000 numbers: several milliseconds in which the counter must have
    # run.
    assert during >= 3


def trace(matrix):
    """Return a value of a point that is a matrix: an eigenvalue problem on a manifold."""
    weights = np.arange(1.0, 1.0 + matrix.shape[0])
    return float(np.einsum("ij,i,ij->", matrix, weights, matrix))


@pytest.mark.parametrize("workers", [None, 2])
def test_row19_runs_on_manifolds_are_resumed_too(tmp_path, workers, same):
    space = mmes.spaces.manifolds.Stiefel(9, 2)
    options = {"manifold": space, "seed": 4}
    whole = mmes.minimize(trace, None, 1.0, max_evaluations=400, **options)
    assert whole.x.shape == (9, 2)
    path = tmp_path / "run.mmes"
    mmes.minimize(
        trace, None, 1.0, max_evaluations=150, checkpoint=path, workers=workers, **options
    )
    same(mmes.resume(path, trace, max_evaluations=400, workers=workers), whole)
    other = options | {"manifold": mmes.spaces.manifolds.Stiefel(2, 2)}
    with pytest.raises(mmes.CheckpointError, match="another run: manifold is"):
        mmes.minimize(trace, None, 1.0, checkpoint=path, resume="auto", **other)
