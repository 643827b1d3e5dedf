"""What stored directions in bfloat16 cost in evaluations: python benchmarks/bfloat16.py

Ill-conditioned functions, unrotated and rotated at random: rounding a direction to eight bits
changes it by a third of a percent, which matters in the steep directions of a rotated function. By
default n = 300; the target is 1e-8.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable

import torch

import mmes

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SEEDS, BUDGET = 3, 400_000
Function = Callable[[torch.Tensor], torch.Tensor]


def functions(n: int) -> dict[str, Function]:
    weights = 1e6 ** (torch.arange(n, device=DEVICE) / (n - 1))
    return {
        "sphere": lambda x: (x**2).sum(1),
        "cigar": lambda x: x[:, 0] ** 2 + 1e6 * (x[:, 1:] ** 2).sum(1),
        "discus": lambda x: 1e6 * x[:, 0] ** 2 + (x[:, 1:] ** 2).sum(1),
        "ellipsoid": lambda x: (x**2 * weights).sum(1),
        "rosenbrock": lambda x: (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (x[:, :-1] - 1) ** 2).sum(
            1
        ),
    }


def turned(f: Function, n: int) -> Function:
    random = torch.Generator().manual_seed(1)
    turn, _ = torch.linalg.qr(torch.randn(n, n, generator=random, dtype=torch.float64))
    turn = turn.to(DEVICE)
    return lambda x: f(x @ turn)


def evaluations(f: Function, n: int, strategy: str, seed: int, dtype: str) -> float:
    r = mmes.minimize(
        f, torch.full((n,), 3.0, dtype=torch.float64, device=DEVICE), 2.0, vectorized=True,
        strategy=strategy, seed=seed, target=1e-8, max_evaluations=BUDGET, stagnation_window="off",
        archive_dtype=dtype,
    )  # fmt: skip
    return r.nfev if r.success else float("inf")


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    warnings.simplefilter("ignore")
    print(f"n = {n}, {SEEDS} seeds, median evaluations to 1e-8, on {DEVICE}", flush=True)
    for name, plain in functions(n).items():
        both = (
            {name: plain}
            if name == "sphere"
            else {name: plain, f"{name}, turned": turned(plain, n)}
        )
        for label, f in both.items():
            for strategy in ("mmes", "adaptive"):
                found = []
                for dtype in ("float32", "bfloat16"):
                    seeds = range(1, SEEDS + 1)
                    each = [evaluations(f, n, strategy, seed, dtype) for seed in seeds]
                    found.append(statistics.median(each))
                print(
                    f"{label:20s} {strategy:9s} float32 {found[0]:9.3g}  bfloat16 {found[1]:9.3g}"
                    f"  ratio {found[1] / found[0]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
