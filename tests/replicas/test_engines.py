"""The same bits on real engines: a Ray cluster, a Dask cluster, MPI ranks."""

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import features
import mmes
from features import too_small
from mmes.errors import ReplicaWarning
from mmes.replicas import MPI, Dask, Ray
from mmes.testing import hostile
from mmes.testing.evaluators import CHECKS
from paths import TESTS
from replica_runs import Pids, equal, now_and_then_nan, rosenbrock, rosenbrocks, run

# Ray's processes cannot import the tests; Dask's and MPI's ranks can.
cloudpickle.register_pickle_by_value(features)

CASES = {
    "plain": (rosenbrock, {}),
    "adaptive": (rosenbrock, {"scaling": "adaptive"}),
    "bounds": (rosenbrock, {"bounds": (np.full(30, -1.0), np.full(30, 2.1))}),
    "restarts": (
        rosenbrock,
        {"restarts": 1, "stagnation_window": 5, "stagnation_tolerance": 0.1},
    ),
    "vectorized": (rosenbrocks, {"vectorized": True}),
    "NaN": (now_and_then_nan, {}),
    "constraints": (rosenbrock, {"constraints": too_small}),
}

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("default"),  # of the engines, not ours
]


@pytest.fixture(scope="session")
def ray():
    ray = pytest.importorskip("ray")
    # Ray gives itself 30 seconds to start, which a busy machine may exceed.
    for last in (False, False, True):
        try:
            ray.init(
                address="local",
                num_cpus=4,
                include_dashboard=False,
                object_store_memory=200 * 2**20,
                logging_level="error",
                log_to_driver=False,
            )
            break
        except Exception as error:
            ray.shutdown()
            if last:
                pytest.skip(f"Ray does not start on this machine: {error}")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("name", CASES)
def test_ray_gives_the_serial_bits(ray, name):
    objective, options = CASES[name]
    equal(run(objective, workers=Ray(2), **options), run(objective, **options))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.slow
def test_ray_conforms(ray, check):
    check(lambda task: Ray(2).evaluator(task))


def test_ray_actors_are_killed_and_nothing_changes(ray, tmp_path):
    objective = Pids(tmp_path, (10, 30))
    equal(run(objective, workers=Ray(2), callback=objective.kill), run(rosenbrock))
    assert objective.killed == 2


@pytest.mark.slow
@pytest.mark.timeout(1800)  # an actor starts in a second, on a busy machine in ten
def test_fifty_ray_actors_are_killed_in_500_generations(ray, tmp_path):
    options = {"max_generations": 500, "n": 20, "stagnation_window": "off"}
    objective = Pids(tmp_path, range(5, 500, 10))
    equal(
        run(objective, workers=Ray(2), callback=objective.kill, **options),
        run(rosenbrock, **options),
    )
    assert objective.killed == 50


def test_a_hanging_ray_actor_is_killed(ray, tmp_path):
    hangs = hostile.Hangs(str(tmp_path), at=(40,))
    result = run(hangs, workers=Ray(2), evaluation_timeout=0.5)
    equal(result, run())
    assert result.retried >= 1


def test_ray_has_too_little(ray):
    with pytest.raises(mmes.EvaluationError, match=r"requested; the cluster has .*'CPU': 4.0"):
        run(workers=Ray(2, cpus=64, patience=1))
    with pytest.raises(ValueError, match="'max_restarts': losses are handled here"):
        Ray(2, actor_options={"max_restarts": -1})


def test_ray_is_left_running(ray):
    run(workers=Ray(1), max_generations=3)
    assert ray.is_initialized()


@pytest.mark.slow  # that of a killed worker compares them too
def test_dask_gives_the_serial_bits(client):
    for objective, options in CASES.values():
        equal(run(objective, workers=Dask(client, 2), **options), run(objective, **options))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.slow
def test_dask_conforms(client, check):
    check(lambda task: Dask(client).evaluator(task))


def test_a_dask_worker_is_killed_and_nothing_changes(client, tmp_path):
    objective = Pids(tmp_path, (10,))
    equal(run(objective, workers=Dask(client), callback=objective.kill), run(rosenbrock))
    assert objective.killed == 1


SCRIPT = """
import pickle, sys
from pathlib import Path
import numpy as np
import mmes
from features import too_small
from mmes.testing import hostile

def rosenbrock(x):
    a, b = x[1:] - x[:-1] ** 2, x[:-1] - 1
    return float(np.add.reduce(100 * a * a + b * b))

def rosenbrocks(points):
    return np.array([rosenbrock(x) for x in points])

def now_and_then_nan(x):
    return rosenbrock(x) if x[0] < 1.2 else np.nan

def with_constraint(x):
    return rosenbrock(x), too_small(x)

if __name__ == "__main__":
    workers = mmes.replicas.MPI()
    rank = workers.comm.Get_rank()
    results = {}
    for name, (objective, options) in pickle.loads(Path("cases").read_bytes()).items():
        results[name] = mmes.minimize(
            globals()[objective], np.linspace(1, 2, 30), 0.5, workers=workers,
            **{"strategy": "mmes", "seed": 5, "max_generations": 60} | options)
    options = {"strategy": "mmes", "seed": 5, "returns_constraints": True}
    mmes.minimize(with_constraint, np.linspace(1, 2, 30), 0.5, workers=workers,
                  checkpoint="run.mmes", max_generations=20, **options)
    results["resumed"] = mmes.resume("run.mmes", with_constraint, workers=workers,
                                     max_generations=60)
    Path(f"rank{rank}").write_bytes(pickle.dumps(results))
    try:
        mmes.minimize(hostile.Raises(".", at=(200,)), np.ones(10), 1.0, workers=workers,
                      strategy="mmes")
    except mmes.EvaluationError as error:
        Path(f"error{rank}").write_text(str(error))
"""


def need_mpi():
    pytest.importorskip("mpi4py")
    try:
        from mpi4py import MPI as library
    except RuntimeError:
        pytest.skip("the MPI library cannot be loaded")
    del library


def mpiexec(ranks, folder, *arguments):
    need_mpi()
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec")
    command = [found, "-n", str(ranks), sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(TESTS / "helpers")},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_mpi_gives_the_serial_bits_on_all_ranks(tmp_path):
    import pickle

    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    cases = {name: (objective.__name__, options) for name, (objective, options) in CASES.items()}
    cases["budget"] = ("rosenbrock", {"max_evaluations": 501, "reevaluations": 2})
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    done = mpiexec(3, tmp_path, "script.py")
    assert done.returncode == 0, done.stderr
    everyone = [pickle.loads((tmp_path / f"rank{rank}").read_bytes()) for rank in range(3)]
    cases["resumed"] = cases["constraints"]
    for name, (objective, options) in cases.items():
        alone = run(globals()[objective], **options)
        for results in everyone:
            equal(results[name], alone)
    errors = {(tmp_path / f"error{rank}").read_text() for rank in range(3)}
    assert len(errors) == 1
    assert "raised ZeroDivisionError" in errors.pop()


def test_mpi_without_mpiexec_warns():
    need_mpi()
    with pytest.warns(ReplicaWarning, match="one rank"):
        equal(run(rosenbrock, workers=MPI()), run(rosenbrock))
    with pytest.raises(TypeError, match="MPI has no option 'count'"):
        MPI(count=3)


def test_a_missing_package_is_named(monkeypatch):
    for package, make in (("ray", Ray), ("distributed", lambda: Dask(None)), ("mpi4py", MPI)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=r"pip install \"mmes\[(ray|dask|mpi)\]\""):
            make()


def test_no_thread_is_left(client):
    before = threading.active_count()
    run(workers=Dask(client), max_generations=3)
    assert threading.active_count() <= before + 1
