"""The rivals measured: evaluations to the target, step-size rules, the cost of an evaluation.

    python benchmarks/rivals.py convergence [--strategies rm-es,sda-es] [--problems cigar]
                                            [--seeds 3] [--dimension 1000]
    python benchmarks/rivals.py rules [--seeds 3]
    python benchmarks/rivals.py cost [--dimension 1000]
    python benchmarks/rivals.py peers [--dimension 1000]
    python benchmarks/rivals.py rosenbrock --dimension 100 [--seeds 3]
    python benchmarks/rivals.py table

`convergence` and `rules` follow the protocol of the MMES paper: start uniform in [-5, 5]^n, sigma
3, target 1e-8, no bounds. Finished runs are kept as lines of out/rivals.jsonl and not run again;
`table` prints their medians next to the published ones. `cost` times ask and tell alone on one
thread (set OMP_NUM_THREADS=1 for numpy's own), all strategies in turn, in processor time, the best
of several rounds. `peers` does the same with the packages cma, cmaes and pypop7 where they are
installed; pypop7 calls the objective itself, one point at a time, which costs it less than a
microsecond each. `rosenbrock` counts the evaluations of CMA-ES and of the package cma, without
active updates, by the same protocol.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mmes import problems
from mmes.strategies import STRATEGIES, AskTell, get_strategy

RECORD = Path("out/rivals.jsonl")
TARGET = 1e-8
BUDGET = 30_000_000
WHAT = ("convergence", "rules", "cost", "peers", "rosenbrock", "table")
PROBLEMS = ("cigar", "different_powers", "discus")
RULES = ("csa", "psr", "rsr", "gsr", "pta")
# Medians of 20 runs, n = 1000, of the MMES article; for LM-CMA as published, Fast-CMA-ES and R1-ES,
# which it does not list, figures of our specification.
PUBLISHED = {
    "mmes": (1.97e5, 5.88e5, 1.62e6),
    "cma-es": (3.53e5, 1.80e6, 7.08e6),
    "sep-cma": (2.07e5, 2.42e5, 1.66e5),
    "lm-ma": (1.76e6, 5.65e5, 4.10e6),
    "lm-cma": (1.77e5, 5.21e5, 3.63e6),
    "lm-cma fitted": (1.96e5, 5.10e5, 3.08e6),
    "rm-es": (1.81e5, 8.93e5, 1.98e6),
    "sda-es": (2.09e5, 7.21e5, 2.42e6),
    "fast-cma": (1.86e5, 8.15e5, 2.93e6),
    "r1-es": (1.88e5, 9.98e6, None),
}


def search(strategy: type[AskTell], problem: problems.Problem, seed: int, **options) -> AskTell:
    """Run a strategy by the article's protocol to the target or the budget."""
    n = problem.dimension
    start = np.random.Generator(np.random.Philox(seed)).uniform(-5, 5, n)
    es = strategy(start, 3.0, seed=seed, stagnation_window="off", **options)
    while not es.stop(target=TARGET, max_evaluations=BUDGET):
        es.tell(problem(es.ask()))
    return es


def measured(name: str, problem_name: str, n: int, seeds: int, **options) -> None:
    """Run what is not recorded yet, and record it."""
    for seed in range(1, seeds + 1):
        key = {"strategy": name, "problem": problem_name, "n": n, "seed": seed}
        if any(key.items() <= line.items() for line in recorded()):
            continue
        alpha = {"alpha": options["alpha"]} if "alpha" in options else {}
        problem = problems.get(problem_name.split(":")[0], dimension=n, **alpha)
        own = {key: value for key, value in options.items() if key != "alpha"}
        began = time.perf_counter()
        es = search(get_strategy(name.split()[0]), problem, seed, **own)
        line = key | {
            "evaluations": es.evaluations,
            "value": es.best_value,
            "distance": float(np.linalg.norm(es.mean - problem.optimum)),
            "seconds": round(time.perf_counter() - began, 1),
        }
        RECORD.parent.mkdir(exist_ok=True)
        with RECORD.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def recorded() -> list[dict]:
    if not RECORD.exists():
        return []
    return [json.loads(line) for line in RECORD.read_text().splitlines()]


def convergence(names: list[str], chosen: list[str], n: int, seeds: int) -> None:
    for problem in chosen:
        for name in names:
            preset = {"preset": "fitted"} if name == "lm-cma fitted" else {}
            measured(name, problem, n, seeds, **preset)


def rules(n: int, seeds: int) -> None:
    """Section IV-B of the article: the five rules on Sphere and Ellipsoid with alpha 1, 2, 3."""
    for rule in RULES:
        measured(f"isotropic-es {rule}", "sphere", n, seeds, rule=rule)
        for alpha in (1, 2, 3):
            few = seeds if alpha < 3 else 1
            measured(f"isotropic-es {rule}", f"ellipsoid:{alpha}", n, few, rule=rule, alpha=alpha)


def table() -> None:
    """Print medians of all that is recorded, next to the published figures."""
    runs: dict[tuple[str, str], list[dict]] = {}
    for line in recorded():
        if line["n"] == 1000:
            runs.setdefault((line["strategy"], line["problem"]), []).append(line)
    print("| strategy | problem | published | median | ratio | runs |")
    print("|---|---|---|---|---|---|")
    for (name, problem), lines in sorted(runs.items()):
        found = [line["evaluations"] for line in lines if line["value"] <= TARGET]
        figures = PUBLISHED.get(name, (None, None, None))
        paper = dict(zip(PROBLEMS, figures, strict=True)).get(problem)
        median = statistics.median(found) if found else None
        print(
            f"| {name} | {problem} | {paper or '':.3g} |"
            if paper
            else f"| {name} | {problem} | - |",
            f"{median:.3g} | {median / paper:.2f} |"
            if median and paper
            else f"{median or 'not reached'} | - |",
            ", ".join(f"{value:.3g}" for value in sorted(found))
            + (f" ({len(lines) - len(found)} not reached)" if len(found) < len(lines) else ""),
            "|",
        )


def seconds_a_call(step: Callable[[], object], seconds: float) -> float:
    """Return the processor time of a call, which other work on the machine disturbs little."""
    calls, began = 0, time.process_time()
    while (elapsed := time.process_time() - began) < seconds or calls == 0:
        step()
        calls += 1
    return elapsed / calls


def started(strategy: type[AskTell], n: int) -> AskTell:
    """Return a search on one thread whose sigma stays: the damping is enormous."""
    return strategy(np.zeros(n), 1.0, seed=1, stagnation_window="off", damping=1e12, threads=1)


def stepper(es: AskTell) -> Callable[[], object]:
    """Return one generation: ask, and tell values that cost nothing."""
    n = es.dimension

    def step() -> None:
        points = es.ask()
        es.tell(points[:, n // 2] ** 2)

    for _ in range(60):  # so that archives hold something
        step()
    return step


def cost(n: int, rounds: int, seconds: float) -> None:
    """Print microseconds per evaluation for all strategies, and relative to MMES."""
    steps = {}
    for name, strategy in STRATEGIES.items():
        if name in ("cma-es", "active-cma") and n > 2000:
            continue
        es = started(strategy, n)
        steps[name] = (stepper(es), es.population_size)
    best = dict.fromkeys(steps, np.inf)
    for _ in range(rounds):
        for name, (step, size) in steps.items():
            best[name] = min(best[name], seconds_a_call(step, seconds) / size)
    print(f"n = {n}: microseconds per evaluation, and relative to MMES")
    for name, value in best.items():
        print(f"{name:14s} {value * 1e6:10.2f} {value / best['mmes']:8.2f}")


def peers(n: int, rounds: int, seconds: float) -> None:
    """Print microseconds per evaluation side by side with other packages."""
    from peers import peer_steppers  # beside this file

    print(f"n = {n}: microseconds per evaluation")
    for name, others in peer_steppers(n).items():
        es = started(get_strategy(name), n)
        steps = {"mmes": (stepper(es), es.population_size), **others}
        best = dict.fromkeys(steps, np.inf)
        for _ in range(rounds):
            for package, (step, size) in steps.items():
                best[package] = min(best[package], seconds_a_call(step, seconds) / size)
        print(f"{name:10s}", ", ".join(f"{who} {value * 1e6:.1f}" for who, value in best.items()))


def rosenbrock(n: int, seeds: int) -> None:
    """Print the evaluations of CMA-ES and of its reference implementation."""
    from cma import CMAEvolutionStrategy

    problem = problems.get("rosenbrock", dimension=n)
    for seed in range(1, seeds + 1):
        ours = search(get_strategy("cma-es"), problem, seed)
        start = np.random.Generator(np.random.Philox(seed)).uniform(-5, 5, n)
        known = {"seed": seed, "CMA_active": False, "ftarget": TARGET, "verbose": -9}
        es = CMAEvolutionStrategy(start, 3.0, known)
        while not es.stop():
            points = es.ask()
            es.tell(points, problem.batch(np.array(points)).tolist())
        counts = ((ours.evaluations, ours.best_value), (es.countevals, es.best.f))
        told = (f"{count} ({count / n**2:.1f} n^2), f = {value:.2g}" for count, value in counts)
        print(f"n = {n}, seed {seed}: ours {next(told)}; cma {next(told)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=WHAT)
    names = [name for name in PUBLISHED if name not in ("mmes", "cma-es", "r1-es")]
    parser.add_argument("--strategies", default=",".join(names))
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    given = parser.parse_args()
    match given.what:
        case "convergence":
            convergence(
                given.strategies.split(","), given.problems.split(","), given.dimension, given.seeds
            )
        case "rules":
            rules(given.dimension, given.seeds)
        case "cost":
            cost(given.dimension, given.rounds, given.seconds)
        case "peers":
            peers(given.dimension, given.rounds, given.seconds)
        case "rosenbrock":
            rosenbrock(given.dimension, given.seeds)
        case "table":
            table()


if __name__ == "__main__":
    main()
