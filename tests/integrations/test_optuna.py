"""The sampler for Optuna."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mmes.integrations.optuna import MMESSampler, _axis  # noqa: E402
from mmes.spaces.manifolds import Sphere  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)
N = 6
SPACE = {f"x{i}": FloatDistribution(-5, 5) for i in range(N)}


def made(space: Any = SPACE, **options: Any) -> MMESSampler:
    return MMESSampler(space, **{"seed": 1, "strategy": "mmes"} | options)


def value(x: Any) -> float:
    return float(np.sum((np.asarray(x) - 1) ** 2))


def objective(trial: Any) -> float:
    return value([trial.suggest_float(name, -5, 5) for name in SPACE])


def places(study: Any) -> dict[tuple[int, int], float]:
    """Return the value of each (generation, row)."""
    return {tuple(t.system_attrs["mmes:place"]): t.value for t in study.trials}


def journal(path: Path) -> Any:
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))


def test_the_lines_of_the_documentation() -> None:
    sampler = MMESSampler({f"x{i}": FloatDistribution(-5, 5) for i in range(100)}, seed=1)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value(sampler.vector(trial)), n_trials=500, n_jobs=4)
    assert study.best_value < 0.7 * study.trials[0].value
    assert value(sampler.vector(study.best_trial, study)) == study.best_value
    assert study.best_params == {}


def test_parameters_and_vectors_are_the_same_search() -> None:
    by_name, by_vector = made(), made()
    one = optuna.create_study(sampler=by_name)
    two = optuna.create_study(sampler=by_vector)
    one.optimize(objective, n_trials=60)
    two.optimize(lambda trial: value(by_vector.vector(trial)), n_trials=60)
    assert places(one) == places(two)
    assert len(places(one)) == 60
    best = [one.best_params[name] for name in SPACE]
    np.testing.assert_array_equal(by_vector.vector(two.best_trial, two), best)


def test_resumed_equals_in_one_go(tmp_path: Path) -> None:
    def go_on(name: str, trials: int) -> list[float]:
        sampler = made()
        study = optuna.create_study(
            study_name="a", storage=journal(tmp_path / name), sampler=sampler, load_if_exists=True
        )
        study.optimize(lambda trial: value(sampler.vector(trial)), n_trials=trials)
        return [trial.value for trial in study.trials]

    go_on("parts", 47)
    parts = go_on("parts", 73)
    assert len(parts) == 120
    assert parts == go_on("whole", 120)


def test_threads_walk_the_path_of_the_serial_run() -> None:
    serial = optuna.create_study(sampler=made())
    threads = optuna.create_study(sampler=made())
    serial.optimize(objective, n_trials=150)
    threads.optimize(objective, n_trials=150, n_jobs=4)
    one, four = places(serial), places(threads)
    common = one.keys() & four.keys()
    assert len(common) > 100  # rows that ran twice are repeats, not new ones
    assert {place: one[place] for place in common} == {place: four[place] for place in common}


def test_samplers_of_several_processes_agree(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    optuna.create_study(study_name="a", storage=storage)
    studies = [optuna.load_study(study_name="a", storage=storage, sampler=made()) for _ in range(3)]
    for turn in range(90):
        studies[turn % 3].optimize(objective, n_trials=1)
    alone = optuna.create_study(sampler=made())
    alone.optimize(objective, n_trials=90)
    assert [t.value for t in studies[0].trials] == [t.value for t in alone.trials]


def test_a_whole_generation_can_be_asked_at_a_time() -> None:
    sampler = made(population_size=8)
    study = optuna.create_study(sampler=sampler)
    for generation in range(5):
        rows = 9 if generation == 0 else 8  # the start point comes first
        trials = [study.ask() for _ in range(rows)]
        vectors = [sampler.vector(trial) for trial in trials]
        assert len({tuple(v) for v in vectors}) == rows
        for trial, vector in reversed(list(zip(trials, vectors, strict=True))):
            np.testing.assert_array_equal(sampler.vector(trial), vector)  # asked again: the same
            study.tell(trial, value(vector))
    alone = optuna.create_study(sampler=made(population_size=8))
    alone.optimize(objective, n_trials=41)
    assert places(study) == places(alone)


def test_the_row_that_runs_longest_is_repeated_and_its_first_value_counts() -> None:
    sampler = made(population_size=4)
    study = optuna.create_study(sampler=sampler)
    rows = 5  # with the start point
    trials = [study.ask() for _ in range(rows + 3)]
    vectors = [sampler.vector(trial) for trial in trials]
    for repeated in range(3):
        np.testing.assert_array_equal(vectors[rows + repeated], vectors[repeated])
    study.tell(trials[rows], 0.5)  # the repeat of row 0 comes first
    for row in range(rows):
        study.tell(trials[row], 10.0 + row)
    lost = sampler.vector(trials[rows + 1])  # its generation has ended in the meantime
    np.testing.assert_array_equal(lost, vectors[1])
    following = study.ask()
    sampler.vector(following)
    assert following.storage.get_trial(following._trial_id).system_attrs["mmes:place"] == [1, 0]
    told = sampler._paths[study.study_name].es
    assert told.best_value == 0.5


def test_failed_and_pruned_trials_rank_last() -> None:
    def search(fails: bool) -> Any:
        sampler = made(population_size=6)
        study = optuna.create_study(sampler=sampler)

        def objective(trial: Any) -> float:
            x = sampler.vector(trial)
            if x[0] > 0.5:
                if not fails:
                    return math.inf
                if x[1] > 0:
                    raise optuna.TrialPruned
                raise ArithmeticError
            return value(x)

        study.optimize(objective, n_trials=80, catch=(ArithmeticError,))
        return sampler._paths[study.study_name].es

    failing, infinite = search(True), search(False)
    assert failing.failed_evaluations > 0
    assert failing.best_value < math.inf
    assert failing.generation == infinite.generation


def test_maximising_is_minimising_the_negative() -> None:
    up, down = (optuna.create_study(sampler=made(), direction=d) for d in ("maximize", "minimize"))
    up.optimize(lambda trial: -objective(trial), n_trials=60)
    down.optimize(objective, n_trials=60)
    assert [-t.value for t in up.trials] == [t.value for t in down.trials]


def test_other_distributions() -> None:
    space = {
        "float": FloatDistribution(-1, 3),
        "log": FloatDistribution(1e-5, 1e-1, log=True),
        "step": FloatDistribution(0, 1, step=0.25),
        "int": IntDistribution(2, 9),
        "logint": IntDistribution(1, 1000, log=True),
        "stepint": IntDistribution(0, 12, step=3),
        "fixed": FloatDistribution(2.0, 2.0),
    }
    start = {"float": 0.0, "log": 1e-4, "int": 3, "step": 0.75, "logint": 10, "stepint": 9}
    sampler = made(space, x0=start)
    study = optuna.create_study(sampler=sampler)
    seen = []

    def objective(trial: Any) -> float:
        values = {
            "float": trial.suggest_float("float", -1, 3),
            "log": trial.suggest_float("log", 1e-5, 1e-1, log=True),
            "step": trial.suggest_float("step", 0, 1, step=0.25),
            "int": trial.suggest_int("int", 2, 9),
            "logint": trial.suggest_int("logint", 1, 1000, log=True),
            "stepint": trial.suggest_int("stepint", 0, 12, step=3),
            "fixed": trial.suggest_float("fixed", 2.0, 2.0),
        }
        np.testing.assert_array_equal(list(values.values()), sampler.vector(trial))
        seen.append(values)
        distance = math.log(values["log"] / 1e-3) ** 2 + (values["int"] - 7) ** 2
        return distance + (values["float"] - 1) ** 2 + (values["stepint"] - 6) ** 2

    study.optimize(objective, n_trials=300)
    assert {k: v for k, v in seen[0].items() if k != "fixed"} == pytest.approx(start)
    assert study.best_params["int"] == 7
    assert study.best_params["stepint"] == 6
    assert study.best_params["log"] == pytest.approx(1e-3, rel=0.3)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (IntDistribution(2, 9), list(range(2, 10))),
        (IntDistribution(0, 12, step=3), [0, 3, 6, 9, 12]),
        (FloatDistribution(0, 1, step=0.25), [0.0, 0.25, 0.5, 0.75, 1.0]),
    ],
)
def test_each_step_has_the_same_share_of_the_range(kind: Any, expected: list[float]) -> None:
    axis = _axis("a", kind)
    shares = (np.arange(10 * len(expected)) + 0.5) / (10 * len(expected))
    values = [axis.value(share) for share in shares]
    assert values == [v for v in expected for _ in range(10)]
    assert (axis.value(0.0), axis.value(1.0)) == (expected[0], expected[-1])
    assert all(axis.value(axis.unit(v)) == v for v in expected)


def test_a_parameter_outside_the_search_space_is_sampled_by_another() -> None:
    study = optuna.create_study(sampler=made())

    def both(trial: Any) -> float:
        return objective(trial) + (trial.suggest_categorical("colour", ["red", "blue"]) == "red")

    study.optimize(both, n_trials=20)
    assert {t.params["colour"] for t in study.trials} == {"red", "blue"}


def test_enqueued_trials_do_not_disturb() -> None:
    study = optuna.create_study(sampler=made())
    study.enqueue_trial(dict.fromkeys(SPACE, 1.0))
    study.optimize(objective, n_trials=31)
    alone = optuna.create_study(sampler=made())
    alone.optimize(objective, n_trials=30)
    assert study.trials[0].value == 0.0
    assert [t.value for t in study.trials[1:]] == [t.value for t in alone.trials]
    with pytest.raises(ValueError, match="not sampled by this sampler"):
        made().vector(study.trials[0], study)


def test_a_pickled_or_copied_sampler_goes_on() -> None:
    sampler = made()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=30)
    study.sampler = pickle.loads(pickle.dumps(copy.deepcopy(sampler)))
    study.optimize(objective, n_trials=30)
    alone = optuna.create_study(sampler=made())
    alone.optimize(objective, n_trials=60)
    assert [t.value for t in study.trials] == [t.value for t in alone.trials]


def test_a_fresh_seed_is_kept_in_the_study() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(study_name="a", storage=storage, sampler=made(seed=None))
    study.optimize(objective, n_trials=30)
    again = optuna.load_study(study_name="a", storage=storage, sampler=made(seed=None))
    again.optimize(objective, n_trials=30)
    assert len(places(again)) == 60
    best = again.best_trial
    np.testing.assert_array_equal(
        made(seed=None).vector(best, again), [best.params[name] for name in SPACE]
    )


def test_a_study_of_another_sampler_is_refused() -> None:
    study = optuna.create_study(sampler=made())
    study.optimize(objective, n_trials=3)
    study.sampler = made(seed=2)
    with pytest.raises(ValueError, match="was started with"):
        study.optimize(objective, n_trials=1)


@pytest.mark.parametrize("name", ["AUTO", " Auto "])
def test_auto_is_auto_in_any_case(name: str) -> None:
    assert made(strategy=name)._strategy is made(strategy="auto")._strategy


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="needs search_space, a mapping of names to distributions"):
        MMESSampler()
    with pytest.raises(ValueError, match="'colour' must have a float or an integer"):
        made({"colour": CategoricalDistribution(["red"])})
    with pytest.raises(ValueError, match="'x' must have a range whose width is a finite number"):
        made({"x": FloatDistribution(-1.7e308, 1.7e308)})  # failed before: OverflowError later
    with pytest.raises(ValueError, match="no parameter that can vary"):
        made({"a": FloatDistribution(1, 1)})
    with pytest.raises(ValueError, match="not in search_space"):
        made(x0={"y": 1})
    with pytest.raises(ValueError, match="x0 must lie in"):
        made(x0={"x0": 9})
    with pytest.raises(TypeError, match="colour"):
        made(colour="red")
    with pytest.raises(TypeError, match="MMESSampler takes no option bounds: the ranges of"):
        made(bounds=(0, 1))
    with pytest.raises(TypeError, match="MMESSampler takes no option manifold"):
        made(manifold=Sphere(N))
    study = optuna.create_study(sampler=made(), directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=1)
    with pytest.raises(ValueError, match="needs its study"):
        made().vector(optuna.create_study().ask().study.trials[0])


def test_a_vector_trial_is_small_in_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    sampler = made({f"x{i}": FloatDistribution(-5, 5) for i in range(1000)})
    study = optuna.create_study(storage=f"sqlite:///{file}", sampler=sampler)
    study.optimize(lambda trial: value(sampler.vector(trial)), n_trials=3)
    before = file.stat().st_size
    study.optimize(lambda trial: value(sampler.vector(trial)), n_trials=12)
    assert (file.stat().st_size - before) / 12 < 4000


def test_little_is_read_again() -> None:
    # The trials of generations that have ended are not looked at any more.
    study = optuna.create_study(sampler=made(population_size=6))
    study.optimize(objective, n_trials=200)
    assert len(study.sampler._paths[study.study_name].open) <= 7
