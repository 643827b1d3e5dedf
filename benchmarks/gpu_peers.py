"""Evaluations per second on one GPU, beside EvoTorch and evosax: python benchmarks/gpu_peers.py

    python benchmarks/gpu_peers.py [ours] [evotorch] [evosax] [--n 1000000]

Whole generations are timed, including the objective |x|, which is one pass over the candidates. All
have the same number of candidates, float32. EvoTorch and ours are called from Python once per
generation; generations of evosax are compiled together, 50 in one call, which is its fastest use.
Each package runs in a separate process, so that JAX and torch do not share the GPU's memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

POPULATION = 46  # 4 + floor(3 ln 1e6), and one more: PGPE wants pairs
GENERATIONS, ROUNDS = 50, 9
OURS = "mmes", "adaptive", "sep-cma", "lm-ma", "rm-es"


def report(name: str, generations: Callable[[], None]) -> None:
    """Print how fast 50 generations are, the device's work included."""
    generations()
    generations()
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        generations()
        taken.append((time.perf_counter() - began) / GENERATIONS)
    seconds = statistics.median(taken)
    print(
        f"{name:32s} {1e6 * seconds:8.0f} us per generation (least {1e6 * min(taken):.0f})  "
        f"{POPULATION / seconds:9.3g} evaluations per second",
        flush=True,
    )


def ours(n: int, names: tuple[str, ...] = OURS) -> None:
    import torch

    import mmes

    print(f"mmes {mmes.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name in names:
        start = torch.ones(n, device="cuda")
        es = mmes.strategies.STRATEGIES[name](start, 0.1, seed=1, population_size=POPULATION)

        def generations(es: mmes.strategies.AskTell = es) -> None:
            for _ in range(GENERATIONS):
                es.tell(torch.linalg.vector_norm(es.ask(), dim=1))
            torch.cuda.synchronize()

        report(f"mmes: {name}", generations)
        del es, generations
        torch.cuda.empty_cache()


def evotorch(n: int) -> None:
    import evotorch
    import torch
    from evotorch import algorithms

    print(f"EvoTorch {evotorch.__version__}, torch {torch.__version__}")
    rates = {"center_learning_rate": 0.1, "stdev_learning_rate": 0.1}
    for name, options in (
        ("SNES", {}),
        ("PGPE", rates),
        ("CEM", {"parenthood_ratio": 0.5}),
        ("CMAES", {"separable": True}),
    ):
        problem = evotorch.Problem(
            "min",
            lambda x: torch.linalg.vector_norm(x, dim=1),
            solution_length=n,
            initial_bounds=(0.9, 1.1),
            dtype=torch.float32,
            device="cuda",
            vectorized=True,
            store_solution_stats=False,
        )
        common = {"popsize": POPULATION, "stdev_init": 0.1}
        search = getattr(algorithms, name)(problem, **common, **options)

        def generations(search: object = search) -> None:
            for _ in range(GENERATIONS):
                search.step()  # type: ignore[attr-defined]
            torch.cuda.synchronize()

        report(f"EvoTorch: {name}", generations)
        del search, problem, generations
        torch.cuda.empty_cache()


def evosax(n: int) -> None:
    import jax
    import jax.numpy as jnp
    from evosax import algorithms

    version = __import__("importlib.metadata", fromlist=["version"]).version("evosax")
    print(f"evosax {version}, JAX {jax.__version__}, {jax.devices()[0].device_kind}")
    for name in ("SNES", "PGPE", "Open_ES", "Sep_CMA_ES", "LM_MA_ES", "Rm_ES"):
        es = getattr(algorithms, name)(population_size=POPULATION, solution=jnp.ones(n))
        params = es.default_params
        state = es.init(jax.random.key(1), jnp.ones(n), params)

        def step(state, key, es=es, params=params):
            one, two = jax.random.split(key)
            points, state = es.ask(one, state, params)
            values = jnp.sqrt((points * points).sum(1))
            state, _ = es.tell(two, points, values, state, params)
            return state, values.min()

        @jax.jit
        def many(state, key, step=step):
            return jax.lax.scan(step, state, jax.random.split(key, GENERATIONS))

        held = [state]

        def generations(held=held, many=many) -> None:
            held[0], best = many(held[0], jax.random.key(2))
            best.block_until_ready()
            jax.block_until_ready(held[0])

        try:
            report(f"evosax: {name}", generations)
        except Exception as error:  # memory, or what it cannot compile
            print(f"evosax: {name} failed: {type(error).__name__}: {str(error)[:200]}", flush=True)


PACKAGES = {"ours": ours, "evotorch": evotorch, "evosax": evosax}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", choices=[*PACKAGES, []], default=[])
    parser.add_argument("--n", type=int, default=10**6, help="number of variables")
    arguments = parser.parse_args()
    if len(arguments.packages) == 1:
        warnings.simplefilter("ignore")
        PACKAGES[arguments.packages[0]](arguments.n)
        return
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    for name in arguments.packages or PACKAGES:
        # One that is not installed says so and ends.
        subprocess.run([sys.executable, __file__, name, "--n", str(arguments.n)], check=False)


if __name__ == "__main__":
    main()
