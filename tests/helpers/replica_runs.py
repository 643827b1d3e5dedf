"""What the tests of replicas share: runs to compare, and an engine that can be watched."""

import os
import pickle
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import cloudpickle
import numpy as np

import mmes
from mmes.replicas.crew import Crew
from mmes.replicas.engine import Terms
from mmes.replicas.local import LocalEngine
from mmes.replicas.replica import Replica
from mmes.testing import hostile

# Replicas cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def rosenbrock(x):
    """Return the Rosenbrock function by sums that do not depend on the machine."""
    a, b = x[1:] - x[:-1] ** 2, x[:-1] - 1
    return float(np.add.reduce(100 * a * a + b * b))


def rosenbrocks(points):
    return np.array([rosenbrock(x) for x in points])


def now_and_then_nan(x):
    return rosenbrock(x) if x[0] < 1.2 else np.nan


def never_quick(x):
    time.sleep(0.002)
    return rosenbrock(x)


def slow_for_some(x):
    value = rosenbrock(x)
    time.sleep(0.02 if value * 1e6 % 10 < 1 else 0.0)
    return value


def weighted(matrix):
    """Return the squares of a matrix, each with a weight of its own."""
    return float(np.add.reduce((matrix.ravel() ** 2) * np.arange(1, matrix.size + 1)))


def counted(count):
    """Return an objective and count that it was made."""
    count.count()
    return hostile.sphere


def equal(one, other):
    """Fail unless two results are the same to the bit."""
    for name in ("x", "mean"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("fun", "nfev", "nit", "sigma", "starts", "failed"):
        assert getattr(one, name) == getattr(other, name), name
    if one.multipliers is not None:
        assert one.multipliers.tobytes() == other.multipliers.tobytes()
    for name, column in one.history.items():
        assert np.array_equal(column, other.history[name]), name


class Pids:
    """Notes the process of each replica, and kills one at a chosen generation."""

    def __init__(self, folder, at):
        self.folder, self.at, self.killed = Path(folder), set(at), 0

    def __call__(self, x):
        (self.folder / str(os.getpid())).touch()
        return rosenbrock(x)

    def kill(self, progress):
        if progress.generation in self.at:
            newest = max(self.folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            newest.unlink()
            os.kill(int(newest.name), signal.SIGKILL)
            self.killed += 1


class Watched(LocalEngine):
    """Processes of this machine; counts what travels, and may kill before or after a message."""

    def __init__(self, count):
        super().__init__(count)
        self.sent, self.handles, self.before, self.killed = [], [], None, 0

    def start(self, setup):
        handle = super().start(setup)
        self.handles.append(handle)
        return handle

    def call(self, handle, message):
        self.sent.append((message[0], len(pickle.dumps(message, 5))))
        if self.before is not None:
            self.before(handle, message)
        return super().call(handle, message)

    def result(self, future):
        answer = super().result(future)
        self.sent.append((answer[0], len(pickle.dumps(answer, 5))))
        return answer

    def shoot(self, handle):
        if handle.process.is_alive():
            os.kill(handle.process.pid, signal.SIGKILL)
            self.killed += 1

    @property
    def alive(self):
        return [handle for handle in self.handles if handle.process.is_alive()]


class Replicas:
    """`workers=` with an engine of the tests."""

    def __init__(self, count=2, engine=Watched, **terms):
        self.engine = engine(count)
        self.terms = Terms.checked("Replicas", count=count, **terms)
        self.crew = None

    def evaluator(self, task, retries, lost, timeout, chunk_size=None):
        terms = replace(self.terms, chunk_size=chunk_size)
        self.crew = Crew(self.engine, terms, task, retries, lost, timeout, 1)
        return self.crew


def run(objective=hostile.sphere, n=30, **options):
    options = {"strategy": "mmes", "seed": 5, "max_generations": 60} | options
    return mmes.minimize(objective, np.linspace(1, 2, n), 0.5, **options)


class Answer(list):
    """A list that can be a key."""

    __hash__ = object.__hash__


class Inside:
    """An engine without processes: replicas are objects here, which tests can look into."""

    lost = (ConnectionError,)

    def __init__(self, count):
        self.count, self.replicas, self.room = count, [], True

    def capacity(self):
        return self.count

    def start(self, setup):
        if not self.room:
            return None
        self.replicas.append(Replica(*setup))
        return self.replicas[-1]

    def call(self, handle, message):
        if handle not in self.replicas:
            raise ConnectionError("it is gone")
        return Answer([handle.handle(message)])

    def wait(self, futures, timeout):
        return futures

    def result(self, future):
        return future[0]

    def kill(self, handle):
        if handle in self.replicas:
            self.replicas.remove(handle)

    def describe(self, handle):
        return "a replica inside"

    def shortage(self):
        return "there is no room"

    def close(self):
        pass
