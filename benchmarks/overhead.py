"""What the library itself costs: importing it, installing it, and the loop around ask and tell.

    python benchmarks/overhead.py [--repetitions 15] [--wheel]

Import time: ``import mmes`` in a new process with numpy already imported and byte-compiled modules,
as after the first use; median. Overhead of `minimize`: its time per evaluation minus that of the
same generations with ask and tell, both measured in turns in this run; medians. The objective
returns numbers from a table. All times are processor times, so that a busy machine matters less.
``--wheel`` also builds the wheel (a minute or two) and prints its size.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mmes

ROOT = Path(__file__).resolve().parent.parent
IMPORT = """
import time, numpy
began = time.process_time()
import mmes
print(time.process_time() - began)
"""
# The same work in every generation, whatever values come.
OPTIONS = {"strategy": "mmes", "seed": 1, "stagnation_window": "off", "damping": 1e6, "threads": 1}


def import_seconds(repetitions: int) -> float:
    """Return the median time of ``import mmes``."""
    command = [sys.executable, "-c", IMPORT]
    with tempfile.TemporaryDirectory() as compiled:
        settings = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        taken = [
            float(subprocess.run(command, check=True, capture_output=True, env=settings).stdout)
            for _ in range(repetitions + 1)
        ]
    return statistics.median(taken[1:])


def wheel_bytes() -> int:
    """Build the wheel and return its size."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
        subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
        (wheel,) = Path(folder).glob("mmes-*.whl")
        return wheel.stat().st_size


def objective() -> Callable[[np.ndarray], float]:
    """Return an objective that costs next to nothing."""
    values = itertools.cycle(np.random.default_rng(1).standard_normal(10_007).tolist())
    return lambda x: next(values)


def by_hand(n: int, generations: int) -> tuple[float, int]:
    """Ask and tell; return the seconds and the evaluations."""
    options = {name: value for name, value in OPTIONS.items() if name != "strategy"}
    f = objective()
    es = mmes.MMES(np.zeros(n), 1.0, **options)
    began = time.process_time()
    for _ in range(generations):
        es.tell([f(x) for x in es.ask()])
    return time.process_time() - began, es.evaluations


def by_minimize(n: int, generations: int) -> tuple[float, int]:
    """Let `minimize` do the same; return the seconds and the evaluations."""
    run = mmes.Run(objective(), np.zeros(n), 1.0, max_generations=generations, **OPTIONS)
    began = time.process_time()
    result = run.run()
    return time.process_time() - began, result.nfev


def overhead(n: int, repetitions: int) -> tuple[float, float]:
    """Return the seconds per evaluation that `minimize` adds, and those of ask and tell."""
    generations = max(200_000 // n, 200)
    hand, whole = [], []
    for _ in range(repetitions):
        seconds, evaluations = by_hand(n, generations)
        hand.append(seconds / evaluations)
        seconds, evaluations = by_minimize(n, generations)
        whole.append(seconds / evaluations)
    base = statistics.median(hand)
    return statistics.median(whole) - base, base


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--wheel", action="store_true", help="also build the wheel")
    arguments = parser.parse_args()
    print(f"import mmes              {1e3 * import_seconds(arguments.repetitions):8.1f} ms")
    for n in (100, 1000):
        added, base = overhead(n, arguments.repetitions)
        print(
            f"minimize, n = {n:<5}      {1e6 * added:8.2f} us per evaluation in addition to ask "
            f"+ tell, {1e6 * base:.2f} us"
        )
    if arguments.wheel:
        print(f"wheel                    {wheel_bytes() / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
