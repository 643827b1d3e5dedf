"""Promises about workers and the objectives sent to them: row 16, and what workers may be."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mmes
from mmes.evaluate.workers import pickling, pool
from mmes.testing import hostile
from worker_runs import START, no_memory, plain

pytestmark = [
    pytest.mark.usefixtures("no_orphans"),
    # Most of these kill; what is said of it has tests of its own.
    pytest.mark.filterwarnings("ignore::mmes.errors.LostWorkerWarning"),
]


# Row 16: objectives that cannot be sent


class Holder:
    def __init__(self):
        self.settings = {"lock": threading.Lock()}

    def __call__(self, x):
        return float(x @ x)

    def method(self, x):
        return float(x @ x)


def test_row16_the_part_that_cannot_be_pickled_is_named(tmp_path):
    lock = threading.Lock()

    def with_lock(x):
        with lock:
            return float(x @ x)

    for objective, part in (
        (Holder(), r"the objective\.settings\['lock'\]"),
        (Holder().method, r"the objective\.__self__\.settings\['lock'\]"),
        (with_lock, "its variable 'lock'"),
    ):
        with pytest.raises(TypeError, match=f"because {part}.*cannot be pickled.*lock"):
            mmes.Run(objective, *START, workers=2)  # before anything runs


def test_row16_lambdas_work_with_cloudpickle(same):
    pytest.importorskip("cloudpickle")
    factor = 1.0
    result = mmes.minimize(
        lambda x: factor * hostile.sphere(x), *START, seed=5, max_evaluations=60, workers=2
    )
    same(result, plain(max_evaluations=60))


def test_row16_without_cloudpickle_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(pickling, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"lambda.*pip install cloudpickle"):
        mmes.Run(lambda x: float(x @ x), *START, workers=2)


def test_row16_an_objective_that_the_worker_cannot_load_is_found_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(pickling, "cloudpickle", None)
    (tmp_path / "only_here.py").write_text("def f(x):\n    return float(x @ x)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import only_here
    finally:
        sys.path.remove(str(tmp_path))
    with pytest.raises(TypeError, match=r"cannot be loaded in a worker.*only_here.*; define it"):
        mmes.minimize(only_here.f, *START, workers=2)


def test_row16_a_script_without_a_guard_is_told_so(script):
    process = script(
        """
        import numpy as np, mmes
        from mmes.testing.hostile import sphere
        mmes.minimize(sphere, np.ones(5), 1.0, workers=2, max_evaluations=50)
        """
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "if __name__ == '__main__':" in errors.splitlines()[-1]


def test_row16_a_script_from_a_pipe_may_use_workers(tmp_path):
    pytest.importorskip("cloudpickle")
    code = (
        "import numpy as np, mmes\n"
        "def f(x): return float(x @ x)\n"
        "print(mmes.minimize(f, np.ones(5), 1.0, workers=2, max_evaluations=50).nfev)\n"
    )
    done = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "50\n", done.stderr


def needs_arguments(function, points):
    return list(map(function, points))


@pytest.mark.parametrize("workers", [0, -2, True, 1.5, "two", None, map, needs_arguments])
def test_workers_must_be_a_number_or_an_executor(workers):
    if workers is None:
        assert plain(workers=None, max_evaluations=9).nfev == 9
        return
    with pytest.raises((TypeError, ValueError), match="workers must be a number of processes"):
        plain(workers=workers)


def test_the_class_of_an_executor_creates_one(same):
    """Before, its `submit` was called without an executor."""
    same(plain(workers=ThreadPoolExecutor), plain())


def test_catch_must_name_exceptions():
    with pytest.raises(TypeError, match="catch must be a tuple of exception types"):
        plain(catch=("ValueError",))


def test_long_candidates_go_through_shared_memory_or_else_the_pipe(monkeypatch, same):
    options = {"seed": 5, "max_evaluations": 60}
    start = (np.ones(10_000), 0.5)
    serial = mmes.minimize(hostile.sphere, *start, **options)
    same(mmes.minimize(hostile.sphere, *start, workers=2, **options), serial)

    monkeypatch.setattr(pool, "Slots", no_memory)
    same(mmes.minimize(hostile.sphere, *start, workers=2, **options), serial)
