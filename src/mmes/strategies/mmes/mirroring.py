"""How many candidates are mirror images, and what the worst candidates weigh.

Mirrored pairs cost half of the directions. Where the ranking is decided by the linear part of f,
independent draws with signed weights make up to twice the progress per evaluation; where it is
decided by the curvature, only pairs tell the direction. A pair itself shows which: members that are
ranked oppositely speak for the linear part, members ranked alike for the curvature. The smoothed
answer is the concordance C of the state, and kappa in [0, 1] follows from it. kappa = 0 is the
paper's generation, with all candidates in mirrored pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.kernels.short import add_by_draw, opposition
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State

# kappa grows from 0 to 1 while C grows from the first to the second.
_SETTLED, _LINEAR = 0.15, 0.45
# Rate at which one pair moves C, at lambda = 24.
_PAIR_RATE = 0.005 * 24


def kappa(p: Parameters, state: State) -> float:
    """Return the share of the way from the paper's generation to one of independent draws."""
    if not p.adaptive_mirroring:
        return 0.0
    return min(max((state.concordance - _SETTLED) / (_LINEAR - _SETTLED), 0.0), 1.0)


def draws(p: Parameters, state: State) -> int:
    """Return h, the independent draws of a generation; its other candidates mirror the first."""
    if not p.adaptive_mirroring:
        return p.population.draws
    size = p.population_size
    # A few pairs always remain, to keep watching.
    watching = max(2, size // 12)
    return math.ceil(size / 2) + round(kappa(p, state) * max(0, size // 2 - watching))


def selection(
    p: Parameters, state: State, ranking: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Return the candidates that move the mean, their weights, and mu_eff.

    The weight of rank r is w_r for the mu best, and -kappa w_(lambda-1-r) for the mu worst.
    """
    k = kappa(p, state)
    if k == 0.0:
        return ranking[: p.mu], p.weights, p.mu_eff
    worst = ranking[p.population_size - p.mu :]
    return (
        np.concatenate((ranking[: p.mu], worst)),
        np.concatenate((p.weights, -k * p.weights[::-1])),
        p.mu_eff / (1 + k * k),
    )


def scale_weights(p: Parameters, ranking: NDArray[np.int64], drawn: int) -> NDArray[np.float64]:
    """Return the selection weight of each draw, those of its mirror image added.

    By rank the weights are +w_1..+w_mu, [0 for odd lambda], -w_mu..-w_1, whatever kappa is.
    """
    total = np.zeros(drawn)
    add_by_draw(total, ranking, p.signed_weights)
    return total


def observe(p: Parameters, state: State, ranking: NDArray[np.int64]) -> None:
    """Let the pairs of the generation move the concordance.

    Of a pair with ranks r+ and r- (0 the best) and H = (lambda - 1) / 2, the verdict is
    -3 (r+ - H)(r- - H) / H^2: about 1 where the linear part decides, -1 for the curvature.
    """
    if not p.adaptive_mirroring:
        return
    size, drawn = p.population_size, draws(p, state)
    pairs = size - drawn
    if pairs == 0:
        return
    middle = (size - 1) / 2
    verdict = -3 * opposition(ranking, drawn) / (pairs * middle**2)
    rate = 1 - (1 - _PAIR_RATE / size) ** pairs
    state.concordance += rate * (verdict - state.concordance)
