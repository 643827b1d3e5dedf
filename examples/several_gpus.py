"""One search on several GPUs: each holds the optimizer, and nothing but values travels.

    torchrun --standalone --nproc-per-node 2 examples/several_gpus.py

Needs torch (``pip install 'mmes[torch]'``). Every rank makes the candidates of its share on its own
GPU, evaluates them, and is told the values of the others. A candidate is a function of seed, state
and generation, so that all ranks go the same way to the bit; at the end they compare their means.
Ranks may share a GPU, and do without one. Ends that depend on a clock would differ between ranks:
give `max_evaluations` or `max_generations`, not `time_limit`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import distributed

import mmes

N = 1000


class Ranks:
    """Evaluates the candidates of this rank; all ranks learn all values."""

    on_demand = True  # where there is no population, only the candidates of this rank are made

    def __init__(self, fun: Callable[[Any, int], torch.Tensor]):
        self.fun = fun
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()

    def evaluate(self, points: Any, generation: int, keep_going: Any) -> np.ndarray:
        """Return the values of all candidates, in their order."""
        values = torch.full((-(-len(points) // self.count),), torch.nan, dtype=torch.float64)
        if self.rank < len(points):
            own = self.fun(points[self.rank :: self.count], generation)
            values[: len(own)] = own
        every = [torch.empty_like(values) for _ in range(self.count)]
        distributed.all_gather(every, values)
        return torch.stack(every, dim=1).flatten()[: len(points)].numpy()

    def close(self) -> None:
        """Nothing is held."""


def squares(points: torch.Tensor, generation: int) -> torch.Tensor:
    """Return sums of squares with different weights; a batch would be chosen by the generation."""
    weights = torch.linspace(1, 10, N, dtype=points.dtype, device=points.device)
    return ((points - 1) ** 2 * weights).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--evaluations", type=int, default=6000)
    evaluations = parser.parse_args().evaluations
    distributed.init_process_group("gloo")  # values are a few bytes; NCCL wants a GPU per rank
    rank, gpus = distributed.get_rank(), torch.cuda.device_count()
    device = f"cuda:{int(os.environ.get('LOCAL_RANK', rank)) % gpus}" if gpus else "cpu"
    result = mmes.minimize(
        None,
        np.zeros(N),
        0.3,
        workers=Ranks(squares),
        device=device,
        max_evaluations=evaluations,
        seed=1,
    )
    bits = hashlib.sha256(result.mean.cpu().numpy().tobytes()).hexdigest()
    every: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(every, bits)
    if rank == 0:
        print(f"f = {result.fun:.4g} after {result.nfev} evaluations on {result.kernel}")
        same = "the same" if len(set(every)) == 1 else "NOT the same"
        print(f"the means of {len(every)} ranks are {same} to the bit: {bits[:16]}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
