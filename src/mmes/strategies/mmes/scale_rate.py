"""How fast AdaptiveMMES learns the scales of the variables.

Each generation teaches a lesson about every scale: whether steps that are long in this variable,
compared with the others, were selected or rejected. On some problems the lessons agree with one
another; on others they are random, and following them only adds noise. Their path q tells the two
apart: under random ranking it is standard normal, and where lessons agree it is longer. It sets the
rate in two ways, always by its state before the generation, so that random lessons do not bias the
scales.

- All variables: z compares the mean of min(q^2, 9) with its distribution under random ranking. The
  rate grows while z is above 2 (2 sqrt f at f > 1 times c_d, because fast changes cause lessons
  that take them back), and falls while it is below, down to c_d / 4.
- One variable: where q^2 > 9, its scale is learnt faster than the others.

Squares are cut off at 9 in the first, so that a few variables do not make all others wander.

The rate does not exceed c_d, or 16 c_d if the user asks for it. Smooth functions then take a
quarter to four fifths of the evaluations, but rugged ones end worse: scales follow the nearest
dent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.randomness import Stream
from mmes.kernels import Handle, Kernel, Lessons, Noise
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State

LARGEST_N = 2**20
"""With more variables the rate stays c_d: the path would cost memory, and could say little."""
# A variable learns faster, by the second for each unit of q^2 above the first.
_THRESHOLD, _SLOPE = 9.0, 0.25
_SLOWEST = 0.25
FASTEST = {"adaptive": 1.0, "fast": 16.0}
"""Values of the option `scale_rate` that let the rate change, with the largest factor of c_d."""
CUT_MEAN, CUT_VARIANCE = 0.9950072780, 1.9014515239
"""Mean and variance of min(q^2, 9) where q is standard normal."""
# z at which the rate stays, and its largest relative change per generation.
_SIGNIFICANT, _CHANGE = 2.0, 0.01
# Variance of z_0^2, by the law of z_0; signs teach nothing.
_SQUARES = {Noise.NORMAL: 2.0, Noise.STUDENT: 8.0, Noise.RADEMACHER: 1.0}


def learns_rate(n: int, options: Mapping[str, Any]) -> bool:
    """Return whether a search with these options follows a path of lessons."""
    chosen = options["scaling"] == "adaptive" and options.get("scale_rate") in FASTEST
    return chosen and n <= LARGEST_N


def memory(n: int) -> float:
    """Return c of the path of lessons, min(0.01, 0.08 / sqrt n)."""
    return min(0.01, 0.08 / math.sqrt(n))


def first_path(kernel: Kernel, n: int, seed: int) -> Handle:
    """Return a path of lessons with the distribution that it has under random ranking."""
    return kernel.from_host(kernel.normals(n, seed, Stream.FIRST_LESSONS, 0).astype(np.float64))


def lessons(p: Parameters, state: State, weights: NDArray[np.float64]) -> Lessons | None:
    """Return how this generation's lessons are taken; None if scales are learnt at a fixed rate."""
    square = math.fsum(weights * weights) * _SQUARES[p.noise]
    if state.lessons is None or square == 0.0:
        return None
    c = memory(p.n)
    gain = math.sqrt(c * (2 - c) / square)
    return Lessons(
        state.lessons, 1 - c, gain, state.scale_rate, _SLOPE, _THRESHOLD, p.fastest_scaling
    )


def adapt(p: Parameters, state: State, squares: float) -> None:
    """Let the factor of c_d follow the path of lessons, whose min(q^2, 9) have this sum."""
    z = (squares / p.n - CUT_MEAN) / math.sqrt(CUT_VARIANCE / p.n)
    needed = _SIGNIFICANT * math.sqrt(max(state.scale_rate, 1.0))
    change = _CHANGE * min(max(z / needed - 1, -1.0), 1.0)
    grown = state.scale_rate * math.exp(change)
    state.scale_rate = min(max(grown, _SLOWEST), p.fastest_scaling)
