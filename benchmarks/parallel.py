"""What worker processes cost and gain: overhead, speed-up, bytes sent, utilisation.

    python benchmarks/parallel.py [--quick]

Evaluations that only sleep show the cost of the pool itself, even on a busy machine.
"""

from __future__ import annotations

import argparse
import pickle
import time

import numpy as np

from mmes.evaluate.remote import Task
from mmes.evaluate.serial import SerialEvaluator
from mmes.evaluate.workers.pool import ProcessEvaluator
from mmes.evaluate.workers.shared import SHARED_BYTES
from mmes.strategies.parts.population import default_population_size


class Sleeps:
    """An objective that takes a given time, or one that is exponentially distributed."""

    def __init__(self, seconds: float, uneven: bool = False):
        self.seconds, self.uneven = seconds, uneven

    def __call__(self, x: np.ndarray) -> float:
        share = -np.log(abs(np.sin(x[0] * 1e4)) + 1e-12) / np.log(2) if self.uneven else 1.0
        time.sleep(self.seconds * share)
        return self.seconds * share


def always() -> bool:
    return True


def seconds_for(evaluator: object, points: np.ndarray, generations: int) -> float:
    evaluator.evaluate(points, 0, always)  # processes started, sizes learnt
    began = time.perf_counter()
    for generation in range(generations):
        evaluator.evaluate(points, generation, always)
    return (time.perf_counter() - began) / generations


def population(n: int, multiple: int = 1) -> np.ndarray:
    rows = -(-default_population_size(n) // multiple) * multiple
    return np.random.Generator(np.random.PCG64(1)).standard_normal((rows, n))


def speed_up(generations: int) -> None:
    print("Throughput of a 20 ms objective at n = 10,000")
    points = population(10_000, 2)
    serial = seconds_for(SerialEvaluator(Sleeps(0.02)), points, generations)
    rate = len(points) / serial
    print(f"  this process {rate:6.1f} evaluations per second")
    for workers in (2, 4):
        evaluator = ProcessEvaluator(Task(Sleeps(0.02)), workers)
        parallel = seconds_for(evaluator, points, generations)
        evaluator.close()
        print(
            f"  {workers} workers    {len(points) / parallel:6.1f} evaluations per second: "
            f"{serial / parallel:.2f} times"
        )


def overhead(generations: int) -> None:
    print("Overhead of the pool for one evaluation (2 workers, an objective that does nothing)")
    for n in (10, 1000, 10_000, 100_000):
        points = population(n)
        for label, chunk in (("one at a time", 1), ("as it chooses", None)):
            evaluator = ProcessEvaluator(Task(Sleeps(0.0)), 2, chunk_size=chunk)
            taken = seconds_for(evaluator, points, generations) / len(points)
            evaluator.close()
            print(f"  n = {n:>7,}  {label}  {taken * 1e6:7.0f} us")


def bytes_sent() -> None:
    print("Bytes through the pipe for one candidate, there and back; and copies of its numbers")
    for n in (10, 1000, 10_000, 1_000_000):
        shared = 8 * n >= SHARED_BYTES
        points = np.zeros((1, n))
        message = (points.shape, None, "psm_0123456789", 0)
        if not shared:
            message = (points.shape, points.tobytes(), None, 0)
        there = len(pickle.dumps(message))
        back = len(pickle.dumps(Task(Sleeps(0.0))(points)))
        way = "shared memory, 2 copies" if shared else "pipe"
        print(f"  n = {n:>9,}  {there + back:>7,} of {8 * n:>9,}  ({way})")


def utilisation(generations: int) -> None:
    print("Utilisation with exponentially distributed times (mean 20 ms), n = 1000")
    for workers in (2, 4):
        for factor in (1, 4):
            points = np.vstack([population(1000, workers)] * factor)
            points += np.arange(len(points))[:, None]
            evaluator = ProcessEvaluator(Task(Sleeps(0.02, uneven=True)), workers)
            taken = seconds_for(evaluator, points, generations)
            evaluator.close()
            times = SerialEvaluator(_Duration()).evaluate(points, 0, always)
            least = max(times.sum() / workers, times.max())
            print(
                f"  {workers} workers, {len(points):>3} candidates: busy "
                f"{times.sum() / workers / taken:.0%} of the time; with the best possible order "
                f"{times.sum() / workers / least:.0%}"
            )


class _Duration(Sleeps):
    def __init__(self) -> None:
        super().__init__(0.02, uneven=True)

    def __call__(self, x: np.ndarray) -> float:
        return self.seconds * -np.log(abs(np.sin(x[0] * 1e4)) + 1e-12) / np.log(2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    generations = 2 if parser.parse_args().quick else 8
    speed_up(generations)
    overhead(generations * 5)
    bytes_sent()
    utilisation(generations)
