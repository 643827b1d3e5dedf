"""A search with defaults for all but the update: what authors of strategies begin with."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmes.base.memory import in_words
from mmes.base.options import Option
from mmes.kernels import Handle, RecombineCall, SampleCall, StepLaw
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    Population,
    default_population_size,
    value_or,
)
from mmes.strategies.parts.record import Recorded, S
from mmes.strategies.shell.protocol import Setup, Vector


@dataclass
class SearchState:
    """The least that a search carries from one generation to the next; add fields in a subclass."""

    mean: Handle
    sigma: float
    _: KW_ONLY
    scale: Handle | None = None


class SearchBase(Recorded[S]):
    """A `Search` that samples m + sigma z, z ~ N(0, I), and lacks only `update`.

    A subclass says what differs: its options, the class of its state, the law of its steps, how
    many vectors it holds.

    Attributes
    ----------
    population : Population
        Sizes and weights of a generation.
    """

    options: ClassVar[tuple[Option, ...]] = (POPULATION_SIZE,)
    needs_start_value: ClassVar[bool] = False
    on_host: ClassVar[bool] = False
    replicable: ClassVar[bool] = True
    label: ClassVar[str] = ""
    """Its name in messages; by default that of the class."""
    state_type: ClassVar[Any] = SearchState

    def __init__(self, setup: Setup, options: dict[str, Any]):
        self.population = Population.from_options(setup.n, options)
        self.population_size = self.population.size
        self._kernel, self._box, self._seed = setup.kernel, setup.box, setup.seed
        self._step: Handle | None = None
        self.state = self.first_state(setup)

    def first_state(self, setup: Setup) -> Any:
        """Return the state before the first generation."""
        return self.state_type(setup.mean, setup.sigma, scale=setup.scale)

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        """Return how many vectors of float64 and of float32 it holds besides the population."""
        return 3, 0

    @classmethod
    def planned(
        cls,
        n: int,
        options: dict[str, Any],
        available: int,
        entry_bytes: int = 8,
        vector_bytes: int = 8,
    ) -> tuple[dict[str, Any], int]:
        """See `Search.planned`."""
        candidates = value_or(options["population_size"], default_population_size(n))
        doubles, singles = cls.vectors(n, options)
        # Every search has the best point, the start point and the mean besides.
        needed = n * (entry_bytes * candidates + vector_bytes * (doubles + 3) + 4 * singles)
        if needed > available:
            raise MemoryError(
                f"{cls.label or cls.__name__} needs {in_words(needed)} for n = {n}: a population "
                f"of {candidates}, {doubles} more vectors of {vector_bytes} bytes per entry and "
                f"{singles} of 4; but {in_words(available)} are usable"
            )
        return options, needed

    def start(self, value: float) -> None:
        """Take f(start point) for the values of the generation before the first.

        Only where `needs_start_value` is true; F_(k) = f(m_0) for all k then.
        """
        state: Any = self.state
        state.step.start(value, self.population_size)

    def law(self, generation: int) -> StepLaw:
        """Return the law of the steps of a generation."""
        state: Any = self.state  # one without a scale has a law of its own
        return StepLaw(scale=state.scale)

    def directions(self) -> Handle | None:
        """Return the stored directions that the law mixes."""
        return None

    def sample(
        self, population: Handle, generation: int, rows: NDArray[np.int64] | None = None
    ) -> None:
        """Sample x_k = m + sigma y_k, with y_k of the law."""
        state, draws, law = self.state, self.population.draws, self.law(generation)
        moved = population, draws, state.mean, state.sigma, self.directions(), law
        self._kernel.sample(SampleCall(*moved, self._box, self._seed, generation, rows))

    def update(
        self, population: Handle, ranking: NDArray[np.int64], values: Vector, generation: int
    ) -> None:
        """See `Search.update`."""
        raise NotImplementedError(f"{type(self).__name__} must define update")

    def recombine(
        self,
        population: Handle,
        parents: NDArray[np.int64],
        weights: Vector,
        gain: float = 1.0,
    ) -> Handle:
        """Move the mean to the weighted mean of the parents; return `gain` times its step."""
        if self._step is None:
            self._step = self._kernel.vector(self.state.mean.shape[0])
        mean, step = self.state.mean, self._step
        self._kernel.recombine(RecombineCall(population, parents, weights, mean, step, 0.0, gain))
        return step

    def recombine_along(
        self,
        population: Handle,
        parents: NDArray[np.int64],
        path: tuple[Handle, float],
        row: Handle | None = None,
        ranking: Handle | None = None,
    ) -> None:
        """Move mean and path, of this rate c, by the parents; copy the path to a row of an archive.

        m <- sum_k w_k x_(k); p <- (1 - c) p + sqrt(c (2 - c) mu_eff) (m - m_old) / sigma. With a
        ranking that lies on the device, the parents are its places.
        """
        p, state, (along, c) = self.population, self.state, path
        gain = math.sqrt(c * (2 - c) * p.mu_eff) / state.sigma
        self._kernel.recombine(
            RecombineCall(
                population, parents, p.weights, state.mean, along, 1 - c, gain, row, ranking
            )
        )
