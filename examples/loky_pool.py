"""Evaluate with loky, which can send lambdas and notebook functions to its processes.

    pip install mmes[loky]
    python examples/loky_pool.py

`workers` is a function that creates the executor: if the executor breaks, it is created again.
"""

import numpy as np
from loky import get_reusable_executor

import mmes

if __name__ == "__main__":
    weights = np.linspace(1, 10, 200)
    result = mmes.minimize(
        lambda x: float(weights @ x**2),
        np.ones(200),
        1.0,
        workers=lambda: get_reusable_executor(max_workers=2),
        max_evaluations=20_000,
        target=1e-3,
        seed=1,
    )
    print(result)
