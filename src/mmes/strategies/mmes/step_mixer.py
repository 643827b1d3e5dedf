"""Fast mixture sampling: which directions the steps of a generation mix, and with what factors."""

from __future__ import annotations

import math

import numpy as np

from mmes.base.randomness import Stream
from mmes.kernels import DrawnRows, Kernel, StepLaw
from mmes.strategies.mmes.ages import age_probabilities, cumulative_ages
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State


class StepMixer:
    """Makes the step law of each generation; holds the tables that do not change during a run."""

    def __init__(self, parameters: Parameters, kernel: Kernel, seed: int):
        self._parameters = parameters
        self._kernel = kernel
        self._seed = seed
        self._isotropic = math.sqrt(1.0 - parameters.gamma)
        self._factor = math.sqrt(parameters.gamma / parameters.mixing)
        self._cumulative = cumulative_ages(parameters.c_a, parameters.archive_size)
        self._mixture = StepLaw()

    def law(self, state: State, draws: int, generation: int) -> StepLaw:
        """Return the law of the steps of this generation."""
        p = self._parameters
        if p.exact:
            return self._exact(state, draws, generation)
        # P_m: l directions with replacement, i_1..i_l ~ alpha, with factors sqrt(gamma / l) z_j.
        # N.B. the geometric law of the paper starts at 0 (the newest direction); from 1 on, the
        # newest would come last. Folding it modulo m gives alpha exactly, and inverting alpha's own
        # cumulative table gives the same law.
        order, scale, law = state.archive.order, state.scale, self._mixture
        # Once the archive is full, its order changes in place: the record stays the same.
        if (
            law is None
            or law.drawn is None
            or law.drawn.order is not order
            or law.scale is not scale
        ):
            drawn = DrawnRows(self._cumulative, order, p.mixing, self._factor)
            law = StepLaw(self._isotropic, noise=p.noise, scale=scale, drawn=drawn)
            self._mixture = law
        return law

    def _exact(self, state: State, draws: int, generation: int) -> StepLaw:
        """P_a: every direction, the j-th with factor sqrt(c_a (1-c_a)^(m-j)) z_j."""
        p = self._parameters
        stored = state.archive.order.size
        weight = p.gamma * age_probabilities(p.c_a, p.archive_size)[:stored]
        normals = self._kernel.normals(
            draws * stored, self._seed, Stream.MIXTURE_FACTOR, generation
        ).reshape(draws, stored)
        rows = np.ascontiguousarray(np.broadcast_to(state.archive.order[::-1], normals.shape))
        factors = normals * np.sqrt(weight).astype(np.float32)
        return StepLaw(self._isotropic, rows, factors, p.noise, state.scale)
