"""One generation of MMES: Algorithm 1 of the paper, step by step, in its order.

Sampling and updating are two functions, because the evaluations in between belong to the caller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Box, Kernel
from mmes.strategies.mmes import paired_test
from mmes.strategies.mmes.directions import claim_row
from mmes.strategies.mmes.mixture import StepMixer
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State
from mmes.strategies.recombination import bounded_sigma


def sample(
    population: NDArray[np.float64],
    state: State,
    p: Parameters,
    mixer: StepMixer,
    kernel: Kernel,
    box: Box | None,
    seed: int,
    generation: int,
) -> None:
    """Fill the (lambda, n) population with the candidates of this generation."""
    # Sample: for i = 1..lambda: z_i ~ P_m, x_i = m + sigma z_i.
    # N.B. the pseudo-code does not mention mirrored pairs, m - sigma z_i; the tables need them
    # (without: Discus 3.2e6).
    # N.B. points outside a box are clipped or reflected, and go on in that form: the tables of the
    # CEC suites need it.
    law = mixer.law(state, generation)
    kernel.sample(
        population,
        p.draws,
        state.mean,
        state.sigma,
        state.archive.vectors,
        law,
        box,
        seed,
        generation,
    )


def update(
    population: NDArray[np.float64],
    ranking: NDArray[np.int64],
    values: NDArray[np.float64],
    state: State,
    p: Parameters,
    kernel: Kernel,
    seed: int,
    generation: int,
) -> None:
    """Take the evaluated generation into the state; `ranking` lists the candidates, best first."""
    # Sort, so that f(x_{1:lambda}) <= .. <= f(x_{lambda:lambda}).
    parents = ranking[: p.mu]
    best = values[parents]

    # Archive: the slot that the new path will take (the oldest direction, or one of the closest
    # pair).
    row = claim_row(state.archive, p.spacing, generation)

    # Mean:    m' = sum_{i <= mu} w_i x_{i:lambda}.
    # Path:    p <- (1 - c_c) p + sqrt(c_c (2 - c_c) mu_eff) (m' - m) / sigma.
    # Archive: q_row = p.           One pass over memory does the three.
    gain = math.sqrt(p.c_c * (2 - p.c_c) * p.mu_eff) / state.sigma
    kernel.recombine(
        population,
        parents,
        p.weights,
        state.mean,
        state.path,
        1 - p.c_c,
        gain,
        state.archive.vectors[row],
    )

    # Beyond the paper: learn the scale of each variable from the isotropic part of the steps.
    if p.c_d is not None and state.scale is not None:
        kernel.adapt_scale(
            state.scale, _scale_weights(ranking, p), p.c_d / 2, p.noise, seed, generation
        )

    # Success: L = sum_{i <= mu} w_i [f(x_{i:lambda}) < f(x_{i:lambda}) of the previous generation].
    share = paired_test.success_share(best, state.previous, p.weights)
    # Average: W <- (1 - c_sigma) W + sqrt(c_sigma (2 - c_sigma) mu_eff) (2 L - 1).
    state.success = paired_test.smoothed(state.success, share, p.mu_eff, p.c_s)
    # Strength: sigma <- sigma exp((Phi(W) - 1 + alpha_z) / d_sigma).
    # N.B. with the new W, where the pseudo-code has the old one: so the published figures come out.
    growth = paired_test.growth(state.success, p.significance, p.damping)
    state.sigma = bounded_sigma(state.sigma * growth)
    state.previous = best


def _scale_weights(ranking: NDArray[np.int64], p: Parameters) -> NDArray[np.float64]:
    """Return the selection weight of each draw, mirrored pairs added up.

    By rank the weights are +w_1..+w_mu, [0 for odd lambda], -w_mu..-w_1.
    """
    by_rank = np.zeros(p.population_size)
    by_rank[: p.mu] = p.weights
    by_rank[p.population_size - p.mu :] -= p.weights[::-1]
    by_candidate = np.empty(p.population_size)
    by_candidate[ranking] = by_rank
    total = by_candidate[: p.draws].copy()
    mirrored = by_candidate[p.draws :]
    total[: mirrored.size] += mirrored
    return total
