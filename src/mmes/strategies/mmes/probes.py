"""The step size from two probes, for objectives that change between generations.

If each generation uses another minibatch, its values cannot be compared with those of the previous
one. So the last shift of the mean, delta = m_t - m_(t-1), is tested within a generation: two
further candidates, m + delta and m - delta, are evaluated and ranked with the generation,

    a = (rank of m - delta  -  rank of m + delta) / lambda,
    s <- 0.7 s + 0.3 a,    sigma <- sigma exp(s / d).

If a further step in the same direction is an improvement, the steps were too short, and sigma
grows. Under random ranking a has mean 0 for any n and lambda. Nothing here compares two
generations.

The damping d is 1.5 n / lambda, but at least 3 and at most 12: an evolution strategy converges at
most at the rate lambda / n, and where more noise than progress is ranked, sigma wanders with a
small d (least squares on minibatches, n = 1000, 1e5 evaluations: 117 with 3, 78 with 12). While
sigma rises from a start that was too small, d is 3. Sigma has stopped rising after 20 generations
without a new largest sigma.

Directions are learned only from then on. If sigma0 was far too small, every direction is a slope at
first: the archive would learn it instead of sigma, with steps that are then far too long (least
squares on minibatches, n = 150, sigma0 = 1e-5, 2e4 evaluations: a loss of 58 instead of 1e-5).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State
from mmes.strategies.parts.recombination import bounded_sigma

RISING = 20
"""Generations without a new largest sigma after which directions are learned."""
# Rate of the average s.
_RATE = 0.3
# The smallest d, which is also that while sigma rises; the largest; and d lambda / n between them.
_LEAST, _MOST, _SHARE = 3.0, 12.0, 1.5
_AT_LEAST = 0.4


def advantage(forward: float, backward: float, values: NDArray[np.float64]) -> float | None:
    """Return a from the ranks among both probes and the candidates; None if a probe failed.

    Of equal values each has the middle rank, so that they favour neither. A candidate that failed
    has the value inf. Where both probes are better than all candidates, as with steps that are far
    too long, ranks do not tell how much better one of them is: a is `_AT_LEAST` then, so that sigma
    does not take hundreds of generations to fall.
    """
    if not (math.isfinite(forward) and math.isfinite(backward)):
        return None
    low, high = min(forward, backward), max(forward, backward)
    # Twice the number of ranks between the two: ties count half, and the probes count too.
    above = np.count_nonzero(values > low) + np.count_nonzero(values >= low)
    beyond = np.count_nonzero(values > high) + np.count_nonzero(values >= high)
    apart = (above - beyond) / 2 + (low < high)
    a = math.copysign(apart, backward - forward) / values.size
    if low < high < values.min():
        return math.copysign(max(abs(a), _AT_LEAST), a)
    return a


def damping(p: Parameters, state: State) -> float:
    """Return d."""
    if state.rising:
        return _LEAST
    return min(max(_SHARE * p.n / p.population_size, _LEAST), _MOST)


def adapt(
    p: Parameters,
    state: State,
    forward: float,
    backward: float,
    values: NDArray[np.float64],
) -> None:
    """Update sigma with the probes of a generation."""
    a = advantage(forward, backward, values)
    if a is None:
        return
    state.progress = (1 - _RATE) * state.progress + _RATE * a
    state.sigma = bounded_sigma(state.sigma * math.exp(state.progress / damping(p, state)))
    if state.rising:
        state.rising = RISING if state.sigma > state.largest_sigma else state.rising - 1
        state.largest_sigma = max(state.largest_sigma, state.sigma)
