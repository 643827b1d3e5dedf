"""What three things bring that shorten a generation of replicas: time with all, and without.

    python benchmarks/replica_steps.py [1e5 1e6] [--turns 3] [--generations 10]

(a) values are sent at once, so that replicas take them in while the head does; (b) where
evaluations take longer than sampling, a replica begins with its own rows and samples the others
meanwhile; (c) long candidates that become no parents are made only where they are evaluated. Two
replicas in processes of this machine; evaluations of nothing but f = x @ x, and of 10 ms of sleep
more. Medians of all turns: wall time of a generation, and processor time of a replica, which other
work on the machine changes less. Then (c) alone: processor time of ask and tell where all
candidates are made, and where a share of 1/K of them and the parents are.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import psutil

import mmes
from mmes.evaluate.remote import Task
from mmes.replicas import Local, replica
from mmes.replicas.crew import Crew
from mmes.replicas.local import LocalEngine
from mmes.replicas.shares import Cutting

WAYS = ("all", "without (a)", "without (b) and (c)", "without (c)")
LARGEST_ARCHIVE = 200


class AllRowsFirst(replica.Replica):
    """Samples the whole generation before it evaluates."""

    def _points(self, es, rows):
        points = self._sample(es, None)
        return [points[one:end] for one, end in rows]


class Objective:
    """f = x @ x after a sleep; where it arrives, it switches off what is to be left out."""

    def __init__(self, way, seconds):
        self.way, self.seconds = way, seconds

    def __setstate__(self, state):
        self.__dict__ = state
        if self.way == "without (b) and (c)":
            replica.Replica._points = AllRowsFirst._points
        elif self.way == "without (c)":
            replica.LONG = math.inf

    def __call__(self, x):
        time.sleep(self.seconds)
        return float(x @ x)


class Late(Crew):
    """Sends the values with the next generation's rows."""

    def _announce(self, values):
        pass


class Counted(LocalEngine):
    """Knows the processor time of its processes."""

    def __init__(self, count):
        super().__init__(count)
        self.pids = []

    def start(self, setup):
        handle = super().start(setup)
        self.pids.append(handle.process.pid)
        return handle

    def seconds(self):
        times = [psutil.Process(pid).cpu_times() for pid in self.pids]
        return sum(one.user + one.system for one in times) / len(times)


def measured(way, n, seconds, count):
    """Return wall and processor seconds per generation, after two that do not count."""
    archive = min(LARGEST_ARCHIVE, 2 * math.ceil(math.sqrt(n)))
    es = mmes.MMES(np.ones(n), 1.0, seed=1, archive_size=archive, threads=1)
    engine = Counted(2)
    kind = Late if way == "without (a)" else Crew
    crew = kind(engine, Local(2).terms, Task(Objective(way, seconds)), threads=1)
    spent = []
    try:
        crew.follow(es)
        for number in range(count + 2):
            if number == 2:
                before = engine.seconds()
            began = time.perf_counter()
            crew.begin(es.generation, es.rows)
            points = es.ask()
            values = crew.evaluate(points, es.generation, lambda: True)
            del points
            es.tell(values)
            crew.told(values)
            spent.append(time.perf_counter() - began)
        return statistics.median(spent[2:]), (engine.seconds() - before) / count, es.sigma
    finally:
        crew.close()


def alone(n, parts, count):
    """Return processor seconds of ask and tell per generation, of one of so many participants."""
    archive = min(LARGEST_ARCHIVE, 2 * math.ceil(math.sqrt(n)))
    es = mmes.MMES(np.ones(n), 1.0, seed=1, archive_size=archive, threads=1)
    dice = np.random.default_rng(1)
    own = None if parts == 1 else Cutting(parts, False, 0.0).batches(es.population_size)[0]
    spent = []
    for _ in range(count + 2):
        values = dice.standard_normal(es.rows)
        began = time.process_time()
        es.ask(rows=own)
        es.tell(values)
        spent.append(time.process_time() - began)
    return statistics.median(spent[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dims", nargs="*", type=float, default=[1e5, 1e6])
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3, help="how often all ways take turns")
    arguments = parser.parse_args()
    print(f"| n | f | {' | '.join(WAYS)} |\n{'| --- ' * (len(WAYS) + 2)}|")
    for n in map(int, arguments.dims):
        for seconds in (0.0, 0.01):
            found = {way: [] for way in WAYS}
            for _ in range(arguments.turns):
                for way in WAYS:
                    found[way].append(measured(way, n, seconds, arguments.generations))
            if len({sigma for results in found.values() for *_, sigma in results}) != 1:
                raise SystemExit("the ways have gone different paths")
            middle = partial(map, statistics.median)
            cells = [
                "{:.3g} ms, {:.3g} ms".format(*(1e3 * s for s in middle(zip(*rows, strict=True))))
                for rows in ([result[:2] for result in found[way]] for way in WAYS)
            ]
            print(f"| {n:.0e} | {seconds * 1e3:g} ms | {' | '.join(cells)} |", flush=True)
    shares = (1, 2, 4, 16)
    print(
        f"\n| n | all | {' | '.join(f'1/{k} and parents' for k in shares[1:])} |\n{'| --- ' * 5}|"
    )
    for n in map(int, arguments.dims):
        found = {k: [] for k in shares}
        for _ in range(arguments.turns):
            for k in shares:
                found[k].append(alone(n, k, arguments.generations))
        cells = [f"{1e3 * statistics.median(found[k]):.3g} ms" for k in shares]
        print(f"| {n:.0e} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
