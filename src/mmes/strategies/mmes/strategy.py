"""MMES behind the protocol of a search algorithm, and the public ask/tell class."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.arrays import Arrays
from mmes.base.memory import in_words
from mmes.errors import ReducedArchiveWarning, warn_user
from mmes.kernels import KEPT_NOISE_BYTES, Handle
from mmes.spaces.manifolds import Manifold
from mmes.strategies.mmes.generation import Generation
from mmes.strategies.mmes.parameters import OPTIONS, Parameters, default_archive_size
from mmes.strategies.mmes.probes import RISING, adapt
from mmes.strategies.mmes.scale_rate import first_path, learns_rate
from mmes.strategies.mmes.state import State
from mmes.strategies.parts.archive import Archive
from mmes.strategies.parts.population import default_population_size
from mmes.strategies.parts.record import Recorded
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

# Mean, path, start point; and the best point, and one in passing.
_VECTORS, _POINTS = 3, 2
# With fewer directions than this MMES is hardly itself; better to say that memory does not suffice.
_SMALLEST_ARCHIVE = 10


class MMESSearch(Recorded[State]):
    """MMES: parameters, state and the two halves of a generation."""

    options: ClassVar = OPTIONS
    needs_start_value: ClassVar = True
    on_host: ClassVar = False
    replicable: ClassVar = True

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n, freedom, kernel = setup.n, setup.degrees_of_freedom, setup.kernel
        archive_size = options["archive_size"] or default_archive_size(freedom)
        self.archive_size: int = archive_size
        self.parameters = p = self.parameters_of(freedom, options, archive_size)
        self.population_size = p.population_size
        if setup.manifold is not None and p.c_d is not None:
            raise ValueError(
                f"scaling='adaptive' cannot be combined with a manifold, here {setup.manifold}"
            )
        self._kernel = kernel
        self._generation = Generation(p, setup)
        scale = setup.scale
        if scale is None and p.c_d is not None:
            scale = kernel.from_host(np.ones(n))
        self.state = State(
            mean=setup.mean,
            sigma=setup.sigma,
            path=kernel.vector(n),
            archive=Archive.empty(archive_size, n, kernel, options["archive_dtype"]),
            previous=np.empty(0),
            scale=scale,
            noise_path=kernel.vector(n) if p.two_forces else None,
            lessons=first_path(kernel, n, setup.seed) if p.fastest_scaling else None,
            shift=kernel.vector(n) if p.two_probes else None,
            rising=RISING if p.two_probes else 0,
            largest_sigma=setup.sigma if p.two_probes else 0.0,
        )

    @staticmethod
    def parameters_of(n: int, options: dict[str, Any], archive_size: int) -> Parameters:
        """Return the constants of a run; a variant of MMES has its own."""
        return Parameters.from_options(n, options, archive_size)

    @classmethod
    def planned(
        cls,
        n: int,
        options: dict[str, Any],
        available: int,
        entry_bytes: int = 8,
        vector_bytes: int = 8,
    ) -> tuple[dict[str, Any], int]:
        """See `Search.planned`: the archive gives way, down to ten directions."""
        candidates = options["population_size"] or default_population_size(n)
        few = options["rows_at_once"]
        # Without a population: a few rows, and one for the best of them.
        rows = candidates if few in (None, "all") or few >= candidates else few + 1
        population = entry_bytes * n * rows
        vectors = n * (vector_bytes * _VECTORS + entry_bytes * _POINTS)
        learnt = options["scaling"] == "adaptive", options.get("step_size") in ("auto", "forces")
        # The scale, the path of the isotropic parts, that of lessons; and a change in passing.
        vectors += vector_bytes * n * (sum(learnt) + any(learnt) + learns_rate(n, options))
        if options.get("step_size") == "probes":
            # The shift and the mean before it; both probes, and one of them in passing.
            vectors += vector_bytes * n * 3 + entry_bytes * n * 2
        if any(learnt):  # the noise that they are learnt from
            vectors += min(4 * n * candidates, KEPT_NOISE_BYTES)
        wanted = options["archive_size"] or default_archive_size(n)
        row = n * (2 if options["archive_dtype"] == "bfloat16" else 4)
        needed = population + vectors + row * wanted
        if needed <= available:
            return options, needed
        fitting = max(available - population - vectors, 0) // row
        if options["archive_size"] is None and fitting >= _SMALLEST_ARCHIVE:
            warn_user(
                f"the default archive of m = {wanted} directions of {n} variables takes "
                f"{in_words(row * wanted)}, but {in_words(available)} are usable: "
                f"m is reduced to {fitting}",
                ReducedArchiveWarning,
            )
            reduced = options | {"archive_size": int(fitting)}
            return reduced, population + vectors + row * fitting
        who = f"the population of {rows} candidates" if rows == candidates else f"{rows} candidates"
        advice = (
            f"archive_size={fitting} would fit"
            if fitting >= 1
            else f"no archive fits: {who} alone take {in_words(population)}"
        )
        raise MemoryError(
            f"{in_words(needed)} are needed for n = {n} and an archive of m = {wanted} directions "
            f"({in_words(row * wanted)}), but {in_words(available)} are usable; {advice}"
        )

    def take_over(self, other: Self) -> None:  # type: ignore[override]
        """See `Search.take_over`; another rule for sigma begins anew at the mean.

        Directions that were learnt while sigma collapsed are far too long for it.
        """
        if self.parameters.two_probes == other.parameters.two_probes:
            super().take_over(other)
            # A larger population says more about the scales: begin with c_d again.
            self.state.scale_rate = max(self.state.scale_rate, 1.0)
        else:
            self._kernel.assign(self.state.mean, other.state.mean)

    def start(self, value: float) -> None:
        """Before the first generation, all previous values are f(m_0)."""
        self.state.previous = np.full(self.parameters.mu, value)

    def sample(
        self, population: Handle, generation: int, rows: NDArray[np.int64] | None = None
    ) -> None:
        """See `Search.sample`."""
        self._generation.sample(population, self.state, generation, rows)

    @property
    def probing(self) -> bool:
        """See `Probes.probing`."""
        return self.parameters.two_probes

    @property
    def probes_ready(self) -> bool:
        """See `Probes.probes_ready`: from the second generation on, and after growth."""
        return self.parameters.two_probes and self.state.previous.size > 0

    def probes(self) -> tuple[Handle, ...]:
        """See `Probes.probes`: the mean and its last shift, once more and taken back."""
        kernel, state, points = self._kernel, self.state, []
        for sign in (1.0, -1.0):
            point = kernel.copy(state.mean)
            kernel.blend(point, 1.0, sign, state.shift)
            points.append(point)
        return tuple(points)

    def take_probes(self, probes: Vector, values: Vector) -> None:
        """See `Probes.take_probes`."""
        adapt(self.parameters, self.state, probes.item(0), probes.item(1), values)

    @property
    def needs_population(self) -> bool:
        """See `MakesParents.needs_population`."""
        return self._generation.needs_all

    def update(
        self, population: Handle, ranking: NDArray[np.int64], values: Vector, generation: int
    ) -> None:
        """See `Search.update`."""
        self._generation.update(population, ranking, values, self.state, generation)

    def update_alone(self, ranking: NDArray[np.int64], values: Vector, generation: int) -> None:
        """See `MakesParents.update_alone`."""
        self._generation.update(None, ranking, values, self.state, generation)

    def begin(self, population: Handle, ranking: Handle, generation: int) -> None:
        """Begin `update` ahead of the values; it follows, or `give_up` where all failed."""
        self._generation.begin(population, ranking, self.state, generation)

    def give_up(self) -> None:
        """Take back what was begun."""
        self._generation.give_up(self.state)

    def restore(self, scalars: dict[str, Any], arrays: Arrays) -> None:
        """See `Search.restore`."""
        # What states of earlier versions do not have.
        fresh = {"concordance": self.state.concordance, "progress": self.state.progress}
        fresh |= {"rising": 0, "largest_sigma": 0.0, "scale_rate": 1.0}
        super().restore(fresh | scalars, arrays)
        if self.state.previous.size not in (0, self.parameters.mu):
            raise ValueError(f"previous must have {self.parameters.mu} values")


class MMES(AskTell):
    """Mixture Model based Evolution Strategy, to be asked for candidates and told their values.

    >>> import mmes, numpy as np
    >>> es = mmes.MMES(np.zeros(100), 1.0, seed=1)
    >>> while not es.stop(target=1e-8):
    ...     X = es.ask()
    ...     es.tell([float(x @ x) for x in X])

    Parameters are those of `AskTell`; `MMES.option_table()` lists the options.
    """

    name = "mmes"
    search_type = MMESSearch
    on_manifolds = True

    @property
    def parameters(self) -> Parameters:
        """The constants of the run, all filled in."""
        return cast(MMESSearch, self.search).parameters


class RiemannianMMES(MMES):
    """MMES on a manifold: the same generation, with a kernel that projects and retracts.

    >>> import mmes, numpy as np
    >>> from mmes.spaces.manifolds import Grassmann
    >>> es = mmes.RiemannianMMES(np.eye(100, 3), 1.0, manifold=Grassmann(100, 3), seed=1)
    >>> es.ask().shape[1:]
    (100, 3)

    Parameters and methods are those of `MMES`, which takes a manifold as well; here it must be
    given. States of the two are the same.
    """

    def __init__(self, x0: ArrayLike, sigma0: float, *, manifold: Manifold, **options: Any):
        super().__init__(x0, sigma0, manifold=manifold, **options)
