"""A run with replicas is the run without, to the bit."""

import numpy as np
import pytest

import mmes
from mmes.evaluate.remote import Task
from mmes.replicas import Local
from replica_runs import (
    Inside,
    Replicas,
    equal,
    never_quick,
    now_and_then_nan,
    rosenbrock,
    rosenbrocks,
    run,
    slow_for_some,
    weighted,
)

CASES = {
    "plain": {},
    "adaptive": {"scaling": "adaptive"},
    "bounds": {"bounds": (np.full(30, -1.0), np.full(30, 2.1)), "bounds_handling": "reflect"},
    "restarts": {"restarts": 2, "stagnation_window": 5, "stagnation_tolerance": 0.1},
    "lm-ma": {"strategy": "lm-ma"},
    "sep-cma": {"strategy": "sep-cma"},
    "student": {"isotropic": "student", "mirrored": False},
    "budget": {"max_evaluations": 777, "max_generations": None},
    "reevaluations": {"reevaluations": 3},
    "probes": {"strategy": "adaptive", "step_size": "probes"},
    "integers": {"strategy": "adaptive", "integers": [0, 7]},
}


@pytest.mark.parametrize("name", CASES)
def test_three_processes_give_the_serial_bits(name):
    options = CASES[name]
    equal(run(rosenbrock, workers=Local(3), **options), run(rosenbrock, **options))


def test_vectorized_objectives_give_the_serial_bits():
    alone = run(rosenbrocks, vectorized=True)
    equal(run(rosenbrocks, vectorized=True, workers=Local(3)), alone)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_failed_candidates_give_the_serial_bits():
    alone = run(now_and_then_nan)
    assert alone.failed > 0
    equal(run(now_and_then_nan, workers=Local(3)), alone)


@pytest.mark.parametrize("vectorized", [False, True])
def test_chunks_of_a_chosen_size_give_the_serial_bits(vectorized):
    crew = Replicas(2)
    objective = rosenbrocks if vectorized else rosenbrock
    options = {"vectorized": vectorized, "population_size": 10}
    equal(run(objective, workers=crew, chunk_size=3, **options), run(objective, **options))
    batches = [message for message, _ in crew.engine.sent if message == "work"]
    assert len(batches) == 4 * 60  # 3 + 3 + 3 + 1 rows


def test_a_display_says_how_busy_the_crew_can_be(capsys):
    run(workers=Local(3), population_size=10, max_generations=3, progress=True)
    first = capsys.readouterr().err.splitlines()[1]  # after the strategy
    assert first == "3 participants, 10 candidates: at most 83% busy"


def test_stealing_gives_the_serial_bits():
    crew = Replicas(3, steal="idle")
    equal(run(slow_for_some, workers=crew), run(rosenbrock))
    assert crew.crew.retried > 0


def test_a_manifold_and_a_strategy_of_ones_own():
    class Mine(mmes.MMES):
        name = "mine"

    equal(run(strategy=Mine, workers=Local(2)), run(strategy=Mine))
    place = mmes.spaces.manifolds.Sphere(30)
    options = {"manifold": place, "max_generations": 20}
    start = np.eye(30)[0]
    with_replicas = mmes.minimize(np.sum, start, 0.1, workers=Local(2), seed=1, **options)
    equal(with_replicas, mmes.minimize(np.sum, start, 0.1, seed=1, **options))


@pytest.mark.parametrize(
    "kind",
    ["Stiefel", *(pytest.param(k, marks=pytest.mark.slow) for k in ("Grassmann", "Oblique"))],
)
def test_matrices_give_the_serial_bits(kind):
    options = {"manifold": getattr(mmes.spaces.manifolds, kind)(10, 2), "max_generations": 25}
    for seed in range(1, 4):
        alone = mmes.minimize(weighted, None, 1.0, seed=seed, **options)
        equal(mmes.minimize(weighted, None, 1.0, seed=seed, workers=Local(2), **options), alone)


def test_only_values_travel():
    """At most 24 lambda + 600 bytes per replica and generation, whatever n is."""
    spent = {}
    for n in (1000, 100_000):
        crew = Replicas(2)
        # Vectorized, so that the shares do not depend on the time that evaluations take.
        options = {"vectorized": True, "population_size": 40, "archive_size": 20}
        result = run(rosenbrocks, n=n, workers=crew, max_generations=25, **options)
        first = next(k for k, (kind, _) in enumerate(crew.engine.sent) if kind == "work")
        spent[n] = sum(size for _, size in crew.engine.sent[first:]) / (2 * result.nit)
        assert spent[n] <= 24 * 40 + 600
    # The last answers may come after the end.
    assert abs(spent[1000] - spent[100_000]) <= 4


def test_values_alone_rebuild_a_run():
    """Replaying all values from the start gives the same state: the idea itself."""
    kept = []
    options = {"seed": 5, "population_size": 12}
    es = mmes.MMES(np.linspace(1, 2, 30), 0.5, **options)
    for _ in range(200):
        kept.append([rosenbrock(x) for x in es.ask()])
        es.tell(kept[-1])
    again = mmes.MMES(np.linspace(1, 2, 30), 0.5, **options)
    for values in kept:
        again.ask()
        again.tell(values)
    assert again.mean.tobytes() == es.mean.tobytes()
    assert again.sigma == es.sigma


@pytest.mark.parametrize("name", ["plain", "adaptive", "bounds", "lm-ma", "sep-cma", "student"])
def test_own_rows_first_gives_the_serial_bits(name):
    """Evaluations longer than sampling: the other rows are sampled meanwhile."""
    options = CASES[name] | {"max_generations": 15}
    equal(run(never_quick, workers=Local(2), **options), run(rosenbrock, **options))


def test_rows_asked_alone_are_the_rows():
    one, other = (mmes.MMES(np.linspace(1, 2, 500), 0.5, seed=5) for _ in range(2))
    for _ in range(5):
        rows = [3, 0, 7]
        alone = one.ask(rows=rows)
        points = other.ask()
        assert alone.tobytes() == points[rows].tobytes()
        assert one.ask().tobytes() == points.tobytes()
        assert one.ask(rows=rows).tobytes() == points[rows].tobytes()
        values = [rosenbrock(x) for x in points]
        one.tell(values)
        other.tell(values)


@pytest.mark.parametrize("name", ["plain", "adaptive", "bounds", "lm-ma", "student", "smooth"])
def test_values_may_be_told_where_not_all_candidates_were_asked_for(name):
    """Parents are made again then; the state is the same."""
    options = {"smooth": {"bounds": (-1.0, 2.1)}}.get(name) or CASES.get(name, {})
    options = {"seed": 5} | options
    kind = mmes.strategies.STRATEGIES[options.pop("strategy", "mmes")]
    one, other = (kind(np.linspace(1, 2, 30), 0.5, **options) for _ in range(2))
    chosen = np.random.default_rng(1)
    for _ in range(40):
        points = one.ask()
        for _ in range(chosen.integers(1, 3)):
            rows = chosen.permutation(len(points))[: chosen.integers(0, len(points))]
            assert other.ask(rows=rows).tobytes() == points[rows].tobytes()
        for es in (one, other):
            es.tell([rosenbrock(x) for x in points])
        assert other.mean.tobytes() == one.mean.tobytes()
        assert other.best_x.tobytes() == one.best_x.tobytes()
    assert other.needs_population == (name == "lm-ma")


@pytest.mark.parametrize("name", ["plain", "bounds", "student", "restarts", "budget"])
def test_parents_alone_give_the_serial_bits(name, monkeypatch):
    """Long candidates that become no parents are made only where they are evaluated."""
    monkeypatch.setattr("mmes.replicas.replica.LONG", 1)
    made = []
    kind = mmes.kernels.native.NativeKernel
    sample = kind.sample

    def counted(self, call):
        made.append(len(call.population) * (call.population.shape[1] == 30))  # not those of probes
        sample(self, call)

    monkeypatch.setattr(kind, "sample", counted)
    with_replicas = run(rosenbrock, workers=Replicas(3, Inside), **CASES[name])
    by_all = sum(made)
    made.clear()
    equal(with_replicas, run(rosenbrock, **CASES[name]))
    # The head makes all; each of three replicas a third, and the parents among the others. On a
    # busy machine a quick replica takes over the rows of a slow one.
    assert by_all < (1 + 3 * 0.95) * sum(made)


def test_a_search_that_grows_takes_its_replicas_along():
    es, other = (mmes.MMES(np.linspace(1, 2, 30), 0.5, seed=5) for _ in range(2))
    crew = Local(2).evaluator(Task(rosenbrock))
    try:
        crew.follow(es)
        for generation in range(20):
            if generation == 8:
                es.grow()
                other.grow()
            crew.begin(generation, es.rows)
            values = crew.evaluate(es.ask(), generation, lambda: True)
            es.tell(values)
            crew.told(values)
            other.tell([rosenbrock(x) for x in other.ask()])
    finally:
        crew.close()
    assert es.mean.tobytes() == other.mean.tobytes()
