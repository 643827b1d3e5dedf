"""Common parts of the rivals: population and weights, options, memory estimate, sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.memory import in_words
from mmes.base.options import Option
from mmes.kernels import Handle, Kernel, ReducingKernel, SampleCall, StepLaw
from mmes.strategies.parts.recombination import default_population_size, effective_size, log_weights
from mmes.strategies.parts.record import Centred
from mmes.strategies.shell.protocol import Setup, Vector

POPULATION_SIZE = Option(
    "population_size",
    int,
    "Number of candidates per generation.",
    symbol="lambda",
    default_text="4 + floor(3 ln n)",
    low=2,
)


def mirrored_option(default: bool) -> Option:
    """Return the option of mirrored sampling."""
    return Option(
        "mirrored",
        bool,
        "Sample candidates in mirrored pairs, m + sigma y and m - sigma y.",
        default=default,
    )


def damping_option(text: str = "Damping of the mutation strength") -> Option:
    """Return the option of the damping, a factor with the default 1, which a restart doubles."""
    return Option(
        "damping",
        float,
        f"{text}; doubled with lambda at each restart.",
        default=1.0,
        symbol="d_sigma",
        low=0,
        low_open=True,
    )


def rate_option(
    name: str, text: str, default_text: str, symbol: str = "", below_one: bool = False
) -> Option:
    """Return the option of a learning rate in (0, 1], or (0, 1), whose default is a formula."""
    return Option(
        name,
        float,
        text,
        default_text=default_text,
        symbol=symbol or name,
        low=0,
        high=1,
        low_open=True,
        high_open=below_one,
    )


def value_or(given: Any, formula: Any) -> Any:
    """Return the value of an option, or its default formula."""
    return formula if given is None else given


@dataclass(frozen=True)
class Population:
    """Sizes and weights of a generation.

    =========  ==============  ============================================
    field      paper           meaning
    =========  ==============  ============================================
    size       lambda          candidates per generation
    weights    w_1 .. w_mu     recombination weights, best first, sum 1
    mu_eff     mu_eff          1 / sum w_i^2
    draws                      candidates drawn; the others mirror them
    =========  ==============  ============================================
    """

    size: int
    weights: Vector
    mu_eff: float
    draws: int

    @classmethod
    def from_options(cls, n: int, options: Mapping[str, Any]) -> Population:
        """Return the population of `population_size` and `mirrored`."""
        size = value_or(options["population_size"], default_population_size(n))
        weights = log_weights(size // 2)
        draws = (size + 1) // 2 if options["mirrored"] else size
        return cls(size, weights, effective_size(weights), draws)

    @property
    def mu(self) -> int:
        """Number of parents."""
        return self.weights.size

    def noise_weights(self, ranking: NDArray[np.int64]) -> Vector:
        """Return the weight of each draw's z in <z>_w.

        The mirror image of draw i is candidate draws + i, with noise -z_i.
        """
        by_candidate = np.zeros(self.size)
        by_candidate[ranking[: self.mu]] = self.weights
        drawn, mirrored = by_candidate[: self.draws].copy(), by_candidate[self.draws :]
        drawn[: mirrored.size] -= mirrored
        return drawn


class Sampler:
    """Samples the generations of a search; holds what does not change during a run."""

    def __init__(self, setup: Setup, draws: int):
        self._kernel, self._box, self._seed = setup.kernel, setup.box, setup.seed
        self._draws = draws

    def fill(
        self,
        population: Handle,
        rows: NDArray[np.int64] | None,
        state: Centred,
        generation: int,
        law: StepLaw,
        directions: Handle | None = None,
    ) -> None:
        """Fill the population with candidates m + sigma z, or with those of them in `rows`."""
        call = SampleCall(
            population,
            self._draws,
            state.mean,
            state.sigma,
            directions,
            law,
            self._box,
            self._seed,
            generation,
            rows,
        )
        self._kernel.sample(call)


def directed_law(
    normals: NDArray[np.float32],
    rows: NDArray[np.int64],
    variances: Vector,
    isotropic_variance: float,
    scale: Handle | None,
    scale_rows: bool = False,
) -> StepLaw:
    """Return the distribution N(0, v I + sum_k v_k q_k q_k'), q_k = directions[rows_k].

    Each draw is sqrt(isotropic_variance) z_0 + sum_k sqrt(variances_k) r_k q_k, with its line r of
    `normals`.
    """
    factors = normals * np.sqrt(variances).astype(np.float32)
    every = np.ascontiguousarray(np.broadcast_to(rows, normals.shape))
    return StepLaw(
        math.sqrt(isotropic_variance), every, factors, scale=scale, scale_rows=scale_rows
    )


def powers(base: float, count: int) -> Vector:
    """Return base^0, base^1, ..; numpy's power differs between processors."""
    return np.array([base**k for k in range(count)])


def reducing(kernel: Kernel) -> ReducingKernel:
    """Return the kernel as one with scalar products and weighted sums.

    Raises
    ------
    TypeError
        If it does not have them, as on a manifold.
    """
    if not isinstance(kernel, ReducingKernel):
        raise TypeError(f"the kernel '{kernel.name}' has no scalar products, which are needed here")
    return kernel


def limit_length(kernel: Kernel, vector: Handle, longest: Handle) -> None:
    """Shorten a vector in place to the length of another, if it is longer."""
    length, limit = kernel.dot(vector, vector), kernel.dot(longest, longest)
    if length > limit:
        kernel.blend(vector, math.sqrt(limit / length), 0.0, vector)


def planned_vectors(
    who: str,
    n: int,
    options: dict[str, Any],
    room: int | tuple[int, int],
    doubles: int,
    singles: int,
) -> tuple[dict[str, Any], int]:
    """Return the options and the memory of a search with these numbers of vectors.

    The population and the vectors that every search has (best and start point) are added here.
    `room` is the bytes available, or these and the bytes of one entry of a candidate (8).

    Raises
    ------
    MemoryError
        If that is more than is available.
    """
    candidates = value_or(options["population_size"], default_population_size(n))
    available, entry_bytes = room if isinstance(room, tuple) else (room, 8)
    needed = n * (entry_bytes * candidates + 8 * (doubles + 3) + 4 * singles)
    if needed > available:
        raise MemoryError(
            f"{who} needs {in_words(needed)} for n = {n}: a population of {candidates}, "
            f"{doubles} more vectors in "
            f"double and {singles} in single precision; but {in_words(available)} are usable"
        )
    return options, needed
