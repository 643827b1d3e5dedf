"""Short implementations of OpenAI-ES, PGPE and MeZO, for benchmarks/networks.py.

They are generators that yield the number of evaluations and the centre after each generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

Objective = Callable[[torch.Tensor, int], torch.Tensor]


def adam(rate: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what turns gradients into steps."""
    first = second = torch.zeros(())
    count = 0

    def step(gradient: torch.Tensor) -> torch.Tensor:
        nonlocal first, second, count
        count += 1
        first = 0.9 * first.to(gradient) + 0.1 * gradient
        second = 0.999 * second.to(gradient) + 0.001 * gradient.square()
        sizes = (second / (1 - 0.999**count)).sqrt() + 1e-8
        return -rate * (first / (1 - 0.9**count)) / sizes

    return step


def shaped(values: torch.Tensor) -> torch.Tensor:
    """Return centred ranks of losses, from -0.5 (best) to 0.5."""
    return values.argsort().argsort().float() / (len(values) - 1) - 0.5


def openai_es(
    f: Objective, x: torch.Tensor, sigma: float, rate: float, pairs: int = 25
) -> Iterator[tuple[int, torch.Tensor]]:
    """OpenAI-ES (Salimans et al. 2017): mirrored draws, centred ranks, Adam."""
    random = torch.Generator(x.device).manual_seed(11)
    x, step, generation = x.clone(), adam(rate), 0
    while True:
        draws = torch.randn(pairs, x.numel(), generator=random, device=x.device)
        values = f(torch.cat([x + sigma * draws, x - sigma * draws]), generation)
        weights = shaped(values)
        x += step((weights[:pairs] - weights[pairs:]) @ draws / (2 * pairs * sigma))
        generation += 1
        yield 2 * pairs, x


def pgpe(
    f: Objective, x: torch.Tensor, sigma: float, rate: float, pairs: int = 25
) -> Iterator[tuple[int, torch.Tensor]]:
    """PGPE (Sehnke et al. 2010): a standard deviation per variable, learnt; Adam for the centre."""
    random = torch.Generator(x.device).manual_seed(11)
    x, sizes, step, generation = x.clone(), torch.full_like(x, sigma), adam(rate), 0
    while True:
        draws = torch.randn(pairs, x.numel(), generator=random, device=x.device)
        values = f(torch.cat([x + sizes * draws, x - sizes * draws]), generation)
        weights = shaped(values)
        forward, backward = weights[:pairs], weights[pairs:]
        gradient = (forward - backward) @ draws / (2 * pairs) / sizes
        spread = (forward + backward) / 2
        change = spread @ (draws.square() - 1) / pairs  # relative to the sizes
        x += step(gradient)
        sizes *= (1 - 0.1 * change).clamp(0.8, 1.2)
        generation += 1
        yield 2 * pairs, x


def mezo(
    f: Objective, x: torch.Tensor, sigma: float, rate: float
) -> Iterator[tuple[int, torch.Tensor]]:
    """MeZO (Malladi et al. 2023): one mirrored pair per step, plain gradient descent."""
    random = torch.Generator(x.device).manual_seed(11)
    x, generation = x.clone(), 0
    while True:
        draw = torch.randn(x.numel(), generator=random, device=x.device)
        one, two = f(torch.stack([x + sigma * draw, x - sigma * draw]), generation)
        x -= rate * (one - two) / (2 * sigma) * draw
        generation += 1
        yield 2, x


def followed(
    peer: Iterator[tuple[int, torch.Tensor]],
    value: Callable[[torch.Tensor], float],
    marks: tuple[int, ...],
) -> dict[str, Any]:
    """Run a peer; return the value of its centre at each mark."""
    spent, curve, left = 0, {}, list(marks)
    while left:
        cost, centre = next(peer)
        spent += cost
        while left and spent >= left[0]:
            curve[left.pop(0)] = round(value(centre), 4)
    return {"curve": curve}
