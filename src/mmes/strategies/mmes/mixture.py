"""Fast mixture sampling: which directions the steps of a generation mix, and with what factors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Kernel, StepLaw
from mmes.mixture import age_probabilities, cumulative_ages
from mmes.randomness import Stream
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State


class StepMixer:
    """Makes the step law of each generation; holds the tables that do not change during a run."""

    def __init__(self, parameters: Parameters, kernel: Kernel, seed: int):
        self._parameters = parameters
        self._kernel = kernel
        self._seed = seed
        self._isotropic = math.sqrt(1.0 - parameters.gamma)
        self._factor = np.float32(math.sqrt(parameters.gamma / parameters.mixing))
        self._cumulative = cumulative_ages(parameters.c_a, parameters.archive_size)

    def law(self, state: State, generation: int) -> StepLaw:
        """Return the law of the steps of this generation."""
        p = self._parameters
        rows, factors = (self._exact if p.exact else self._mixture)(state, generation)
        return StepLaw(self._isotropic, rows, factors, p.noise, state.scale)

    def _mixture(
        self, state: State, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """P_m: l directions with replacement, i_1..i_l ~ alpha, with factors sqrt(gamma / l) z_j.

        N.B. the geometric law of the paper starts at 0 (the newest direction); from 1 on, the
        newest would come last. Folding it modulo m gives alpha exactly, and inverting alpha's own
        cumulative table gives the same law.
        """
        p = self._parameters
        ages, normals = self._kernel.mixture_draws(
            self._cumulative, p.draws, p.mixing, self._seed, generation
        )
        order = state.archive.order
        if order.size == p.archive_size:
            rows = order[order.size - 1 - ages]
        else:
            # Places of the archive that are still empty hold zero vectors: the kernel skips row -1.
            by_age = np.full(p.archive_size, -1, dtype=np.int64)
            by_age[: order.size] = order[::-1]
            rows = by_age[ages]
        return rows, normals * self._factor

    def _exact(
        self, state: State, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """P_a: every direction, the j-th with factor sqrt(c_a (1-c_a)^(m-j)) z_j."""
        p = self._parameters
        stored = state.archive.order.size
        weight = p.gamma * age_probabilities(p.c_a, p.archive_size)[:stored]
        normals = self._kernel.normals(
            p.draws * stored, self._seed, Stream.MIXTURE_FACTOR, generation
        ).reshape(p.draws, stored)
        rows = np.broadcast_to(state.archive.order[::-1], (p.draws, stored))
        return np.ascontiguousarray(rows), normals * np.sqrt(weight).astype(np.float32)
