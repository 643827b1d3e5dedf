"""What the tests of the promises share: the ways to evaluate, and processes that must be gone."""

import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

import mmes
from mmes import checkpoint
from mmes.testing import hostile

WAYS = ("serial", "vectorized", "processes", "futures")


class Way:
    """One way to evaluate, as arguments of `minimize`."""

    def __init__(self, name):
        self.name = name

    def minimize(self, objective, *arguments, **options):
        if self.name == "vectorized":
            options |= {"vectorized": True}
            objective = Rowwise(objective)
        elif self.name == "processes":
            options |= {"workers": 2}
        elif self.name == "futures":
            with ThreadPoolExecutor(2) as executor:
                return mmes.minimize(objective, *arguments, workers=executor, **options)
        return mmes.minimize(objective, *arguments, **options)


class Rowwise:
    def __init__(self, objective):
        self.objective = objective

    def __call__(self, points):
        return [self.objective(x) for x in points]


@pytest.fixture(params=WAYS)
def way(request):
    return Way(request.param)


@pytest.fixture
def saved(tmp_path):
    """Return the path of a checkpoint without a previous one."""
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300, "strategy": "mmes"}
    mmes.minimize(hostile.sphere, np.ones(6), 0.5, checkpoint=path, **options)
    checkpoint.previous_path(path).unlink(missing_ok=True)
    return path


@pytest.fixture
def no_orphans():
    """Fail if a worker outlives the test."""
    before = workers()
    yield
    # Not with psutil's wait, which takes the end of a process from `multiprocessing`: for that, it
    # would live on.
    limit = time.monotonic() + 5
    while [p for p in workers() if p not in before and _lives(p)]:
        assert time.monotonic() < limit, "a worker outlives the test"
        time.sleep(0.02)


def workers():
    found = psutil.Process().children(recursive=True)
    return [p for p in found if "resource_tracker" not in _command(p) and not _is_server(p)]


def _lives(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _command(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _is_server(process):
    # The fork server itself stays for the next pool; its children are the workers.
    return "forkserver" in _command(process) and process.ppid() == psutil.Process().pid


@pytest.fixture
def same():
    def check(one, other):
        assert np.array_equal(one.x, other.x)
        assert (one.fun, one.nfev, one.nit) == (other.fun, other.nfev, other.nit)
        assert (one.sigma, one.seed, one.starts) == (other.sigma, other.seed, other.starts)
        for name, column in one.history.items():
            assert np.array_equal(column, other.history[name]), name

    return check


@pytest.fixture
def script(tmp_path):
    """Start a Python script of its own in the temporary folder."""
    started = []

    def start(text, **options):
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(text))
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        process = subprocess.Popen([sys.executable, str(file)], cwd=tmp_path, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
