"""What the PyTorch adapter costs per generation: python benchmarks/module.py [cpu|cuda]."""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from torch import nn

from mmes.integrations.torch import FlatParameters

CANDIDATES, REPEATS = 40, 3


def measured(width: int, samples: int, device: str) -> None:
    data = torch.randn(samples, 64, device=device)
    labels = torch.randint(10, (samples,), device=device)
    net = nn.Sequential(
        nn.Linear(64, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 10)
    ).to(device)
    flat = FlatParameters(net)
    steps = np.random.default_rng(1).standard_normal((CANDIDATES, flat.n), dtype=np.float32)
    points = flat.x0 + 0.01 * steps
    for mode in ("vmap", "loop"):
        objective = flat.objective(
            lambda model: nn.functional.cross_entropy(model(data), labels),
            mode=mode,  # type: ignore[arg-type]
        )
        objective(points)
        began = time.perf_counter()
        for _ in range(REPEATS):
            objective(points)
        spent = (time.perf_counter() - began) / REPEATS
        print(f"n = {flat.n:>9,}  {samples:>5} samples  {mode}: {1e3 * spent:8.2f} ms")


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if place == "cuda" else "the CPU"
    print(f"{CANDIDATES} candidates per generation on {name}, torch {torch.__version__}")
    for width, samples in ((64, 256), (512, 1024), (2048, 1024)):
        measured(width, samples, place)
