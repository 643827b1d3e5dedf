"""Real engines whose workers die: row 8 of the table. They take a while to start."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import mmes
from mmes.testing import hostile
from paths import ROOT

START = (np.ones(20), 1.0)
OPTIONS = {"seed": 1, "max_evaluations": 1000}
EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # Of the engines, not ours.
    pytest.mark.filterwarnings("default"),
]


class Killer:
    """Kills six of the processes that `pids` names, one every so many seconds that the run moves.

    On a busy machine a worker may take longer to start than from one kill to the next.
    """

    def __init__(self, pids, seconds):
        self.killed, self._pids, self._seconds = [], pids, seconds
        self._over, self._moved = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work)

    def see(self, progress):
        self._moved.set()

    def _work(self):
        while len(self.killed) < 6 and not self._over.wait(self._seconds):
            if not self._moved.is_set():
                continue
            self._moved.clear()
            for pid in self._pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
                    break

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def test_row08_dask_workers_are_killed_and_nothing_changes(same):
    distributed = pytest.importorskip("distributed")
    alone = mmes.minimize(hostile.uneven, *START, **OPTIONS)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def pids():
            found = [worker.process.pid for worker in cluster.workers.values() if worker.process]
            return [pid for pid in found if pid]

        with Killer(pids, 1.0) as killer:
            result = mmes.minimize(
                hostile.uneven, *START, workers=client, callback=killer.see, **OPTIONS
            )
    assert killer.killed
    same(result, alone)


def test_row08_loky_workers_are_killed_and_nothing_changes(same):
    loky = pytest.importorskip("loky")
    options = {"seed": 1, "max_evaluations": 4000}  # longer than its processes take to start
    alone = mmes.minimize(hostile.sphere, *START, **options)

    def make():
        return loky.get_reusable_executor(max_workers=2)

    def pids():
        children = psutil.Process().children(recursive=True)
        return [p.pid for p in children if "loky.backend.popen_loky" in " ".join(p.cmdline())]

    with Killer(pids, 2.5) as killer:
        result = mmes.minimize(
            hostile.uneven, *START, workers=make, retries=20, callback=killer.see, **options
        )
    make().shutdown(kill_workers=True)
    assert killer.killed
    assert result.retried
    same(result, alone)


def mpiexec():
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).parent / "mpiexec"
    # Not by a link: its other programs are looked for beside it.
    found = str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec")
    return found


@pytest.fixture
def start_mpi(tmp_path):
    """Start a job of three ranks; what is left of it ends with the test."""
    jobs = []

    def start(*arguments):
        command = [mpiexec(), "-n", "3", sys.executable, "-m", "mpi4py.futures"]
        command += [str(EXAMPLES / "mpi_pool.py"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        jobs.append(subprocess.Popen(command, cwd=tmp_path, **pipes))
        return jobs[-1]

    yield start
    for job in jobs:
        if job.poll() is None:
            for process in psutil.Process(job.pid).children(recursive=True):
                process.kill()
            job.kill()
        job.communicate()


def final_x(out):
    (line,) = [line for line in out.splitlines() if line.startswith("x ")]
    return np.frombuffer(bytes.fromhex(line.split()[1]))


def test_row08_mpi_evaluates(start_mpi):
    out, errors = start_mpi().communicate(timeout=200)
    alone = mmes.minimize(hostile.uneven, *START, **OPTIONS)
    assert np.array_equal(final_x(out), alone.x), errors


def test_row08_mpi_loses_a_rank_and_the_job_is_resumed(tmp_path, start_mpi):
    job = start_mpi("run.mmes")
    patience = time.monotonic() + 120
    while not (tmp_path / "run.mmes").exists():
        assert time.monotonic() < patience
        assert job.poll() is None, job.communicate()
        time.sleep(0.02)
    ranks = [
        process
        for process in psutil.Process(job.pid).children(recursive=True)
        if "mpi_pool.py" in " ".join(process.cmdline()) and "mpiexec" not in process.name()
    ]
    ranks[-1].kill()
    job.communicate(timeout=60)
    assert job.returncode != 0  # MPI ends the whole job
    out, errors = start_mpi("run.mmes").communicate(timeout=200)
    alone = mmes.minimize(hostile.uneven, *START, **OPTIONS)
    assert np.array_equal(final_x(out), alone.x), errors


@pytest.mark.parametrize("name", ["loky_pool", "dask_cluster"])
def test_examples_run(tmp_path, name):
    pytest.importorskip("loky" if "loky" in name else "distributed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "fun:" in done.stdout
    assert "False" not in done.stdout.splitlines()[-1]
