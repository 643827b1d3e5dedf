"""The interface of a search algorithm, which the ask/tell shell calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from mmes.base.arrays import Arrays, Indices, Vector
from mmes.base.options import Option
from mmes.kernels import Handle, Kernel
from mmes.spaces.boxes import Box
from mmes.spaces.manifolds import Manifold


@dataclass(frozen=True)
class Setup:
    """The start of a search: everything that is not an option of the algorithm."""

    n: int  # The number of variables.
    mean: Handle  # The start point, a copy for the algorithm.
    sigma: float  # The initial mutation strength.
    scale: Handle | None  # Typical size of each variable, relative to sigma; None means ones.
    # The bounds, if treated points are the candidates. A treatment with separate points of the
    # search is handled by the shell, and there is no box here.
    box: Box | None
    kernel: Kernel  # The operations on vectors.
    seed: int  # The seed of all random numbers.
    # The search space, if it is not R^n. The mean is then a flattened point of it, and the kernel
    # interprets it as such.
    manifold: Manifold | None = None

    @property
    def degrees_of_freedom(self) -> int:
        """The n of the formulas: the number of variables, or the dimension of the manifold."""
        return self.n if self.manifold is None else self.manifold.dim


class Search(Protocol):
    """A search algorithm: samples a generation and learns from its ranking.

    It is deterministic given the values told. The shell (`AskTell`) does everything else:
    bookkeeping, partial tells, failures, the best point, stopping.
    """

    options: ClassVar[tuple[Option, ...]]
    """The algorithm's option table."""
    needs_start_value: ClassVar[bool]
    """Whether f(start point) is evaluated in the first generation, as one more row."""
    on_host: ClassVar[bool]
    """Whether it works on numpy arrays besides the kernel, and hence on the host alone."""
    replicable: ClassVar[bool]
    """Whether the same values give the same bits on every processor."""

    population_size: int
    """Candidates per generation, lambda."""

    def __init__(self, setup: Setup, options: dict[str, Any]): ...

    @property
    def mean(self) -> Handle:
        """The centre of the search."""
        ...

    @property
    def sigma(self) -> float:
        """The mutation strength; the shell sets it on a plateau."""
        ...

    @sigma.setter
    def sigma(self, sigma: float) -> None: ...

    def spread(self) -> float:
        """Return the largest scale of a variable: steps are about sigma times this."""
        ...

    @classmethod
    def planned(
        cls,
        n: int,
        options: dict[str, Any],
        available: int,
        entry_bytes: int = 8,
        vector_bytes: int = 8,
    ) -> tuple[dict[str, Any], int]:
        """Return the options, reduced to what fits into `available` bytes, and the bytes needed.

        An entry of a candidate takes `entry_bytes`, one of a mean, path or scale `vector_bytes`.

        Raises
        ------
        MemoryError
            If the search cannot fit; names the array, the bytes and what would fit.
        """
        ...

    def take_over(self, other: Self) -> None:
        """Continue from the state of a search with another population size, without its values."""
        ...

    def start(self, value: float) -> None:
        """Receive f(start point); called once, before the first update, if `needs_start_value`."""
        ...

    def sample(self, population: Handle, generation: int, rows: Indices | None = None) -> None:
        """Fill the population; the same generation always gives the same candidates.

        `rows` are the candidates to generate, one per row of the population; None means all.
        """
        ...

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state: `ranking` from best to worst, and values to compare.

        Failed candidates rank last. Their values are neither NaN nor +inf, and all values are
        sorted by the ranking, so that generations can be compared (`parts.ranking.evenly`).
        """
        ...

    def scalars(self) -> dict[str, Any]:
        """Return the numbers and strings of the state, for JSON."""
        ...

    def arrays(self) -> Arrays:
        """Return the arrays of the state, not copied."""
        ...

    def restore(self, scalars: dict[str, Any], arrays: Arrays) -> None:
        """Restore a state."""
        ...


# What a search may offer besides; the shell asks by these names.


@runtime_checkable
class HasArchive(Protocol):
    """A search with stored directions, whose number is fixed when it begins."""

    @property
    def archive_size(self) -> int:
        """The number of stored directions, m."""
        ...


@runtime_checkable
class HasAxes(Protocol):
    """A search whose distribution may become smaller in all directions while sigma stays."""

    @property
    def learning_time(self) -> float:
        """The generations in which its distribution adapts."""
        ...

    def mean_axis(self) -> float:
        """Return the geometric mean of the axes of its distribution, relative to sigma."""
        ...


@runtime_checkable
class MakesParents(Protocol):
    """A search that can update without the population: it generates the parents again."""

    @property
    def needs_population(self) -> bool:
        """Whether it needs all candidates in this run."""
        ...

    def update_alone(self, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state like `Search.update`, to the same bits."""
        ...


@runtime_checkable
class Probes(Protocol):
    """A search that evaluates further points with a generation, to learn sigma from them."""

    @property
    def probing(self) -> bool:
        """Whether it does so in this run; then generations are not compared with each other."""
        ...

    @property
    def probes_ready(self) -> bool:
        """Whether the current generation has such points."""
        ...

    def probes(self) -> tuple[Handle, ...]:
        """Return the two points: rows before the drawn ones, with the same treatment of bounds."""
        ...

    def take_probes(self, probes: Vector, values: Vector) -> None:
        """Receive their values and those of the candidates, after the update; inf means failed."""
        ...


@runtime_checkable
class UpdatesAhead(Protocol):
    """A search on a device that starts its update while the values are copied to the host."""

    def begin(self, population: Handle, ranking: Handle, generation: int) -> None:
        """Start the update with a ranking on the device."""
        ...


@runtime_checkable
class Revalues(Protocol):
    """A search that compares a generation with the previous one, and must know if f changed."""

    def revalue(self, values: Vector) -> None:
        """Replace the values of the previous generation, best first."""
        ...


@runtime_checkable
class GivesUp(Protocol):
    """A search that must know when all candidates of a generation failed."""

    def give_up(self) -> None:
        """Continue as if that generation had not existed."""
        ...
