"""Population size, growth, options and sampling that strategies share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.options import Option
from mmes.kernels import Handle, Kernel, ReducingKernel, StepLaw
from mmes.strategies.parts.recombination import effective_size, log_weights
from mmes.strategies.shell.protocol import Vector

POPULATION_SIZE = Option(
    "population_size",
    int,
    "Number of candidates per generation.",
    symbol="lambda",
    default_text="4 + floor(3 ln n)",
    low=2,
)


def default_population_size(n: int) -> int:
    """Return lambda = 4 + floor(3 ln n)."""
    return 4 + math.floor(3 * math.log(n))


def grown_options(options: dict[str, Any], population_size: int, doublings: int) -> dict[str, Any]:
    """Return options with lambda and the damping, where there is one, doubled so many times.

    `population_size` is what is doubled: by default an option does not say it.
    """
    if doublings == 0:
        return options
    grown = options | {"population_size": population_size * 2**doublings}
    if "damping" in options:
        grown["damping"] = options["damping"] * 2**doublings
    return grown


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
        draws = (size + 1) // 2 if options.get("mirrored", False) else size
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

    Raises TypeError if it does not have them, as on a manifold.
    """
    if not isinstance(kernel, ReducingKernel):
        raise TypeError(f"the kernel '{kernel.name}' has no scalar products, which are needed here")
    return kernel


def limit_length(kernel: Kernel, vector: Handle, longest: Handle) -> None:
    """Shorten a vector in place to the length of another, if it is longer."""
    length, limit = kernel.dot(vector, vector), kernel.dot(longest, longest)
    if length > limit:
        kernel.blend(vector, math.sqrt(limit / length), 0.0, vector)
