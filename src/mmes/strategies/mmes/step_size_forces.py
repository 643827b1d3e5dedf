"""The step size of AdaptiveMMES: two forces on sigma, both at the rate lambda / n.

    sigma <- sigma exp(e lambda / (n damping)),
    e = (|p| / chi_n - 1) / d  +  b (Phi(W) - 1 + alpha_z)

The first force is the path p of the isotropic parts z_0 of the selected candidates against its
length under random ranking: longer, where successive steps agree, and shorter, where they take back
one another. Under random ranking p is standard normal, so that this force is unbiased. Alone it
fails where one turned axis is short: the other n - 1 see random selection then.

The second is the paired test of the paper with a longer memory: sigma shrinks unless generations
improve. Alone it is slow on smooth functions, and shrinks sigma to nothing at a kink.

lambda / n is the rate at which an evolution strategy can converge at all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Handle, NoiseWithin, PathCall, ReducingKernel, ScaleCall
from mmes.spaces.boxes import Box
from mmes.strategies.mmes import mirroring
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State
from mmes.strategies.parts.step_size import growth, normal_cdf

C_S = 0.1
"""Rate of the success average of the paired test, where it is one of two forces."""
# d: how much the length of the path is damped.
_LENGTH_DAMPING = 0.3
# b: the weight of the paired test.
_SUCCESS_WEIGHT = 2.0
# Paths have at least the memory of two generations, and sigma moves at no higher rate.
_FASTEST = 0.5
# One generation changes sigma by no more than this factor, or its inverse.
_LARGEST_CHANGE = math.e


def rate(p: Parameters) -> float:
    """Return min(lambda / n, 1/2), the rate of the path and of both forces."""
    return min(p.population_size / p.n, _FASTEST)


def candidate_weights(
    p: Parameters, state: State, ranking: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the weight with which each candidate moves the mean."""
    parents, weights, _ = mirroring.selection(p, state, ranking)
    by_candidate = np.zeros(p.population_size)
    # N.B. with lambda = 2 or 3 a candidate may be among the best and among the worst.
    np.add.at(by_candidate, parents, weights)
    return by_candidate


class NoisePath:
    """Follows the isotropic parts of the selected candidates, which are treated points of `box`."""

    def __init__(self, p: Parameters, kernel: ReducingKernel, seed: int, box: Box | None):
        self._p, self._kernel, self._seed = p, kernel, seed
        # With reflection draws on both sides of a wall are selected alike, and the path stays
        # short. With clipping it would see draws that lead out of the box for ever, and sigma would
        # grow without end.
        self.walls = box if box is not None and box.onto_walls else None

    def follow(
        self,
        ranking: NDArray[np.int64],
        state: State,
        generation: int,
        lesson: ScaleCall | None,
    ) -> float:
        """Move the path by a generation without walls; `lesson` is learnt from the same noise.

        Returns what `Kernel.adapt_scale` returns.
        """
        p = self._p
        by_draw = self._by_draw(candidate_weights(p, state, ranking), state)
        square = math.fsum(by_draw * by_draw)
        if square > 0.0:
            decay, gain = self._rates(square)
            call = PathCall(state.noise_path, by_draw, decay, gain, p.noise, self._seed, generation)
            return self._kernel.follow_noise(call, lesson)
        # All that is drawn cancels out.
        return 0.0 if lesson is None else self._kernel.adapt_scale(lesson)

    def follow_within(
        self, population: Handle, ranking: NDArray[np.int64], state: State, generation: int
    ) -> None:
        """Move the path by a generation within walls, before the mean has moved."""
        p, walls = self._p, self.walls
        assert walls is not None
        weights = candidate_weights(p, state, ranking)
        by_draw = self._by_draw(weights, state)
        size = state.sigma * math.sqrt(1.0 - p.gamma)
        step, share = self._kernel.noise_within(
            NoiseWithin(
                population,
                weights,
                by_draw.size,
                state.mean,
                state.scale,
                size,
                walls,
                p.noise,
                self._seed,
                generation,
            )
        )
        square = math.fsum(by_draw * by_draw) * share
        if square > 0.0:  # else no draw left a wall
            self._kernel.blend(state.noise_path, *self._rates(square), step)

    def _by_draw(self, weights: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Return the weight of each draw, that of its mirror image taken off."""
        drawn = mirroring.draws(self._p, state)
        by_draw = weights[:drawn].copy()
        by_draw[: weights.size - drawn] -= weights[drawn:]
        return by_draw

    def _rates(self, square: float) -> tuple[float, float]:
        """Return decay and gain of the path for weights whose squares have this sum."""
        # p <- (1 - c) p + sqrt(c (2 - c)) u / |w|, u = sum_k w_k z_0k.
        c = rate(self._p)
        return 1 - c, math.sqrt(c * (2 - c) / square)

    def excess(self, state: State) -> float:
        """Return |p| / chi_n - 1."""
        n = self._p.n
        expected = math.sqrt(n) * (1 - 1 / (4 * n))
        return math.sqrt(self._kernel.dot(state.noise_path, state.noise_path)) / expected - 1


def both(p: Parameters, excess: float, success: float) -> float:
    """Return the factor of sigma by both forces."""
    second = normal_cdf(success) - 1 + p.significance
    exponent = rate(p) / p.damping * (excess / _LENGTH_DAMPING + _SUCCESS_WEIGHT * second)
    return min(max(growth(exponent), 1 / _LARGEST_CHANGE), _LARGEST_CHANGE)
