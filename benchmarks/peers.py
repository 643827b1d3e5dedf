"""The same strategies in other packages: functions, and the evaluations that a call is for."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

Stepper = tuple[Callable[[], object], int]
GENERATIONS_A_RUN = 150

# Our name, and the module and class of pypop7.
PYPOP7 = {
    "mmes": ("mmes", "MMES"),
    "cma-es": ("cmaes", "CMAES"),
    "sep-cma": ("sepcmaes", "SEPCMAES"),
    "lm-cma": ("lmcma", "LMCMA"),
    "lm-ma": ("lmmaes", "LMMAES"),
    "rm-es": ("rmes", "RMES"),
    "r1-es": ("r1es", "R1ES"),
    "fast-cma": ("fcmaes", "FCMAES"),
}


def peer_steppers(n: int) -> dict[str, dict[str, Stepper]]:
    """Return what is installed, by strategy and package; CMA-ES up to 2000 variables."""
    found: dict[str, dict[str, Stepper]] = {}
    for name in PYPOP7:
        if name == "cma-es" and n > 2000:
            continue
        makers = {"cma": with_cma, "cmaes": with_cmaes, "pypop7": with_pypop7}
        for package, make in makers.items():
            try:
                stepper = make(name, n)
            except ImportError:
                continue
            if stepper is not None:
                found.setdefault(name, {})[package] = stepper
    return found


def with_cma(name: str, n: int) -> Stepper | None:
    if name not in ("cma-es", "sep-cma"):
        return None
    import cma

    options = {"verbose": -9, "CMA_diagonal": name == "sep-cma", "seed": 1, "CSA_dampfac": 1e6}
    es = cma.CMAEvolutionStrategy(np.zeros(n), 1.0, options)

    def step() -> None:
        points = es.ask()
        es.tell(points, [x[n // 2] ** 2 for x in points])

    step()
    return step, es.popsize


def with_cmaes(name: str, n: int) -> Stepper | None:
    if name not in ("cma-es", "sep-cma"):
        return None
    import cmaes

    kind = cmaes.CMA if name == "cma-es" else cmaes.SepCMA
    es = kind(mean=np.zeros(n), sigma=1.0, seed=1)

    def step() -> None:
        points = [es.ask() for _ in range(es.population_size)]
        es.tell([(x, x[n // 2] ** 2) for x in points])

    step()
    return step, es.population_size


def with_pypop7(name: str, n: int) -> Stepper | None:
    """A whole run of some generations: pypop7 has no ask and tell."""
    module, kind = PYPOP7[name]
    solver = getattr(importlib.import_module(f"pypop7.optimizers.es.{module}"), kind)
    generations = 10 if name == "cma-es" else GENERATIONS_A_RUN
    evaluations = generations * (4 + int(3 * np.log(n)))
    problem = {
        "fitness_function": lambda x: x[n // 2] ** 2,
        "ndim_problem": n,
        "lower_boundary": np.full(n, -5.0),
        "upper_boundary": np.full(n, 5.0),
    }

    def step() -> None:
        options = {
            "max_function_evaluations": evaluations,
            "seed_rng": 1,
            "mean": np.zeros(n),
            "sigma": 1.0,
            "verbose": 0,
            "is_restart": False,
        }
        solver(problem, options).optimize()

    step()  # compiles
    return step, evaluations
