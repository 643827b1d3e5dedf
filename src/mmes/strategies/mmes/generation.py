"""One generation of MMES: Algorithm 1 of the paper, step by step, in its order.

Sampling and updating are two functions, because the evaluations in between belong to the caller.
What goes beyond the paper is named where it happens; with `mirroring` fixed and `c_d` off it does
nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Handle, Kernel, RecombineCall, SampleCall, ScaleCall
from mmes.kernels.short import success_share
from mmes.spaces.boxes import Box
from mmes.strategies.mmes import mirroring, scale_rate
from mmes.strategies.mmes import step_size_forces as forces
from mmes.strategies.mmes.parameters import Parameters
from mmes.strategies.mmes.state import State
from mmes.strategies.mmes.step_mixer import StepMixer
from mmes.strategies.parts.archive import claim_row
from mmes.strategies.parts.population import reducing
from mmes.strategies.parts.recombination import bounded_sigma
from mmes.strategies.parts.step_size import paired_growth, smoothed
from mmes.strategies.shell.protocol import Setup


class Generation:
    """The two halves of a generation, on a state that changes in place."""

    def __init__(self, parameters: Parameters, setup: Setup):
        self.parameters = parameters
        self._kernel: Kernel = setup.kernel
        self._box, self._seed = setup.box, setup.seed
        self._mixer = StepMixer(parameters, setup.kernel, setup.seed)
        self._noise_path = (
            forces.NoisePath(parameters, reducing(setup.kernel), setup.seed, setup.box)
            if parameters.two_forces
            else None
        )
        # The archive's table before the search moved ahead of the values.
        self._former: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def sample(
        self,
        population: Handle,
        state: State,
        generation: int,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        """Fill the population with the candidates of this generation, or with those named."""
        # Sample: for i = 1..lambda: z_i ~ P_m, x_i = m + sigma z_i.
        # N.B. the pseudo-code does not mention mirrored pairs, m - sigma z_i; the tables need them
        # (without: Discus 3.2e6).
        # N.B. points outside a box are clipped or reflected, and go on in that form: the tables of
        # the CEC suites need it.
        self._kernel.sample(self._sampling(population, state, generation, rows))

    def _sampling(
        self,
        population: Handle | None,
        state: State,
        generation: int,
        rows: NDArray[np.int64] | None = None,
    ) -> SampleCall:
        draws = mirroring.draws(self.parameters, state)
        return SampleCall(
            population,
            draws,
            state.mean,
            state.sigma,
            state.archive.vectors,
            self._mixer.law(state, draws, generation),
            self._box,
            self._seed,
            generation,
            rows,
            self.parameters.c_d is not None or self.parameters.two_forces,
        )

    def update(
        self,
        population: Handle | None,
        ranking: NDArray[np.int64],
        values: NDArray[np.float64],
        state: State,
        generation: int,
    ) -> None:
        """Take the evaluated generation into the state; `ranking` lists the best first.

        Without a population, the parents are made again.
        """
        p, kernel = self.parameters, self._kernel
        # Sort, so that f(x_{1:lambda}) <= .. <= f(x_{lambda:lambda}).
        best = values[ranking[: p.mu]]

        # Beyond the paper: the path of the isotropic parts; within walls as seen from the old mean.
        if self._noise_path is not None and self.needs_all:
            self._noise_path.follow_within(population, ranking, state, generation)

        # Archive, mean and path, unless they have moved ahead of the values.
        former = kernel.copy(state.mean) if p.two_probes else None
        if self._former is None:
            self._move(population, ranking, state, generation)
        self._former = None

        # With signed weights the mean may leave the box.
        if self._box is not None and mirroring.kappa(p, state) > 0:
            self._lead_back(state.mean, self._box)

        # Beyond the paper: the shift of the mean, for the probes of the next generation.
        if former is not None:
            kernel.assign(state.shift, state.mean)
            kernel.blend(state.shift, 1.0, -1.0, former)

        # Beyond the paper: no directions while sigma rises from a start that was too small.
        if state.rising:
            state.archive.order = state.archive.order[:0]
            kernel.blend(state.path, 0.0, 0.0, state.path)

        # Beyond the paper: learn the scale of each variable from the isotropic part of the steps.
        lesson = None
        if p.c_d is not None:
            by_draw = mirroring.scale_weights(p, ranking, mirroring.draws(p, state))
            lessons = scale_rate.lessons(p, state, by_draw)
            lesson = ScaleCall(
                state.scale, by_draw, p.c_d / 2, p.noise, self._seed, generation, lessons
            )
        squares = 0.0
        if self._noise_path is not None and not self.needs_all:
            squares = self._noise_path.follow(ranking, state, generation, lesson)
        elif lesson is not None:
            squares = kernel.adapt_scale(lesson)
        # Beyond the paper: adapt the learning rate to how well the lessons agree.
        if lesson is not None and lesson.lessons is not None:
            scale_rate.adapt(p, state, squares)

        # Beyond the paper: what the pairs say about the share of independent draws.
        mirroring.observe(p, state, ranking)

        # Without a value of the start point, the first generation has nothing to be compared with.
        # With probes generations are not compared at all.
        if state.previous.size and not p.two_probes:
            # Success: L = sum_{i <= mu} w_i [f(x_{i:lambda}) < that of the previous generation].
            share = success_share(best, state.previous, p.weights)
            # Average: W <- (1 - c_sigma) W + sqrt(c_sigma (2 - c_sigma) mu_eff) (2 L - 1).
            state.success = smoothed(state.success, share, p.mu_eff, p.c_s)
            # Strength: sigma <- sigma exp((Phi(W) - 1 + alpha_z) / d_sigma).
            # N.B. with the new W, where the pseudo-code has the old one: so the published figures
            # come out.
            # Beyond the paper, the path of the isotropic parts is a second force.
            growth = (
                paired_growth(state.success, p.significance, p.damping)
                if self._noise_path is None
                else forces.both(p, self._noise_path.excess(state), state.success)
            )
            state.sigma = bounded_sigma(state.sigma * growth)
        state.previous = best

    @property
    def needs_all(self) -> bool:
        """Whether an update looks at all candidates, and at the mean that they were drawn from."""
        return self._noise_path is not None and self._noise_path.walls is not None

    def begin(self, population: Handle, ranking: Handle, state: State, generation: int) -> None:
        """Begin an update ahead of the values, by their ranking on a device (`Kernel.ranked`)."""
        if self.needs_all or self.parameters.two_probes:
            return
        self._former = state.archive.order.copy(), state.archive.stamps.copy()
        ranks = np.arange(self.parameters.population_size)
        self._move(population, ranks, state, generation, on_device=ranking)

    def give_up(self, state: State) -> None:
        """Take back what was begun: no value is a number, so that no vector has moved."""
        if self._former is not None:
            state.archive.order, state.archive.stamps = self._former
            self._former = None

    def _move(
        self,
        population: Handle | None,
        ranking: NDArray[np.int64],
        state: State,
        generation: int,
        on_device: Handle | None = None,
    ) -> None:
        p, kernel = self.parameters, self._kernel
        again = None if population is not None else self._sampled(state, generation)
        # Archive: the slot that the new path will take (the oldest direction, or one of the closest
        # pair).
        row = claim_row(state.archive, p.spacing, generation)

        # Mean:    m' = sum_{i <= mu} w_i x_{i:lambda}.
        # Path:    p <- (1 - c_c) p + sqrt(c_c (2 - c_c) mu_eff) (m' - m) / sigma.
        # Archive: q_row = p.           One pass over memory does the three.
        # Beyond the paper, the worst may push the mean away, with signed weights; mu_eff follows.
        parents, weights, mu_eff = mirroring.selection(p, state, ranking)
        gain = math.sqrt(p.c_c * (2 - p.c_c) * mu_eff) / state.sigma
        newest = kernel.row(state.archive.vectors, row)
        step = RecombineCall(
            population,
            parents,
            weights,
            state.mean,
            state.path,
            1 - p.c_c,
            gain,
            newest,
            on_device,
        )
        if again is None:
            kernel.recombine(step)
        else:
            kernel.sample_and_recombine(again, step)

    def _sampled(self, state: State, generation: int) -> SampleCall:
        """Return the call with which this generation was sampled, to be made again."""
        call = self._sampling(None, state, generation)
        drawn = call.law.drawn
        if drawn is None:
            return call
        # The archive's table changes before the call is carried out.
        former = drawn._replace(order=drawn.order.copy())
        return call._replace(law=call.law._replace(drawn=former))

    def _lead_back(self, mean: Handle, box: Box) -> None:
        """Lead a mean outside the box back: slowly where it does no harm outside, else at once.

        With clipping, all candidates of a variable whose mean is far outside lie on the wall, and
        where the weights sum to 0 nothing else leads back (CEC 2013 f1 stood at 1.6e5). At once is
        too soon: a variable that is held on its wall leaves the search to the others (2010 f14 ends
        at 9e3 then; at 2e3 with a share of 1/n per generation).
        """
        kernel = self._kernel
        if not box.onto_walls:
            kernel.confine(mean, mean, box)
            return
        step = kernel.copy(mean)
        kernel.confine(step, mean, box)
        kernel.blend(step, 1.0, -1.0, mean)  # 0 for what lies inside, to the bit
        kernel.blend(mean, 1.0, 1.0 / self.parameters.n, step)
