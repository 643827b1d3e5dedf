"""Evaluations to a gap of 1e-6 where the optimum lies on every wall of [-1, 1]^n; one run each."""

from __future__ import annotations

import numpy as np

import mmes

for n in (20, 200, 1000):
    for strategy in ("mmes", "auto"):
        result = mmes.minimize(
            lambda points: ((points - 2) ** 2).sum(1),
            bounds=(np.full(n, -1.0), 1.0),
            vectorized=True,
            seed=1,
            strategy=strategy,
            target=n + 1e-6,
            max_evaluations=150_000,
        )
        print(f"n = {n:5d}  {strategy:5s} {result.nfev:7d}  gap {result.fun - n:.1e}")
