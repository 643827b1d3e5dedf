"""The parameters of MMES: every default a formula, every value checked against the option table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.options import Option
from mmes.kernels import Noise
from mmes.strategies.mmes.ages import directed_share
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    Population,
    damping_option,
    mirrored_option,
    rate_option,
    value_or,
)

OPTIONS = (
    POPULATION_SIZE,
    Option(
        "archive_size",
        int,
        "Number of stored directions. If the default does not fit into memory, it is reduced with "
        "a warning.",
        symbol="m",
        default_text="2 ceil(sqrt n)",
        low=1,
    ),
    Option(
        "archive_dtype",
        str,
        "Floating-point type of the stored directions. 'bfloat16' (on a device only) halves the "
        "memory.",
        default="float32",
        choices=("float32", "bfloat16"),
    ),
    Option(
        "rows_at_once",
        int,
        "Number of candidates made at a time. If it is smaller than the population, the population "
        "is not stored and parents are recomputed. 'all' always stores it.",
        default_text="all that fit",
        low=1,
        choices=("all",),
    ),
    Option(
        "mixing",
        int,
        "Mixing strength: the number of directions mixed into one step; 'm' is the archive size.",
        default=4,
        symbol="l",
        low=1,
        high=1000,
        choices=("m",),
    ),
    Option(
        "sampling",
        str,
        "'mixture' samples from the mixture P_m in O(n l), 'exact' from its Gaussian target P_a in "
        "O(n m).",
        default="mixture",
        choices=("mixture", "exact"),
    ),
    Option(
        "isotropic",
        str,
        "Distribution of the isotropic part, with unit variance: normal, Student-t with 5 degrees "
        "of freedom (MMES-T), or Rademacher signs (MMES-R).",
        default="normal",
        choices=("normal", "student", "rademacher"),
    ),
    mirrored_option(True),
    rate_option(
        "c_a",
        "Learning rate of the covariance: the weight of the newest direction.",
        "4 / n",
        below_one=True,
    ),
    rate_option("c_c", "Learning rate of the evolution path.", "0.4 / sqrt n"),
    Option(
        "spacing",
        int,
        "Intended distance between stored directions, in generations.",
        symbol="T",
        default_text="ceil(1 / c_c)",
        low=1,
    ),
    Option(
        "c_s",
        float,
        "Learning rate of the averaged success of the paired test.",
        default=0.3,
        symbol="c_sigma",
        low=0,
        high=1,
        low_open=True,
    ),
    damping_option(),
    Option(
        "significance",
        float,
        "Significance level of the paired test: sigma grows when success is significant at this "
        "level.",
        default=0.05,
        symbol="alpha_z",
        low=0,
        high=1,
        low_open=True,
        high_open=True,
    ),
    Option(
        "scaling",
        str,
        "'adaptive' learns one scale per variable during the run (not in the paper).",
        default="fixed",
        choices=("fixed", "adaptive"),
        spelt={"fixed": "off"},
    ),
    rate_option("c_d", "Learning rate of the adaptive scaling.", "1 / n"),
)

_NOISE = {"normal": Noise.NORMAL, "student": Noise.STUDENT, "rademacher": Noise.RADEMACHER}


@dataclass(frozen=True)
class Parameters:
    """The constants of a run, by the paper's symbols in the comments."""

    n: int
    population: Population  # lambda, w_1 .. w_mu, mu_eff
    archive_size: int  # m
    mixing: int  # l
    c_a: float
    gamma: float  # 1 - (1 - c_a)^m
    c_c: float
    spacing: int  # T
    c_s: float  # c_sigma
    damping: float  # d_sigma
    significance: float  # alpha_z
    exact: bool  # sample P_a instead of P_m
    noise: Noise
    c_d: float | None  # None: scales stay as given
    fastest_scaling: float = 0.0  # bounds the rate of `scale_rate`, as a factor of c_d; 0: fixed
    adaptive_mirroring: bool = False
    two_forces: bool = False  # the step size of `forces`, in place of the paired test alone
    two_probes: bool = False  # the step size of `probes`

    @cached_property
    def population_size(self) -> int:
        """Candidates per generation, lambda."""
        return self.population.size

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Recombination weights w_1 .. w_mu."""
        return self.population.weights

    @cached_property
    def mu(self) -> int:
        """Number of parents."""
        return self.population.mu

    @cached_property
    def mu_eff(self) -> float:
        """Effective number of parents, 1 / sum w_i^2."""
        return self.population.mu_eff

    @cached_property
    def signed_weights(self) -> NDArray[np.float64]:
        """Weights by rank, +w_1 .. +w_mu, [0 for odd lambda], -w_mu .. -w_1."""
        by_rank = np.zeros(self.population_size)
        by_rank[: self.mu] = self.weights
        by_rank[self.population_size - self.mu :] -= self.weights[::-1]
        return by_rank

    @classmethod
    def from_options(cls, n: int, options: Mapping[str, Any], archive_size: int) -> Parameters:
        """Return the parameters for n variables; an option that is None takes its formula."""
        # N.B. 4/n exceeds 1 for n <= 4, which the paper does not define.
        c_a = value_or(options["c_a"], min(4.0 / n, 0.5))
        c_c = value_or(options["c_c"], min(0.4 / math.sqrt(n), 1.0))
        return cls(
            n=n,
            population=Population.from_options(n, options),
            archive_size=archive_size,
            mixing=archive_size if options["mixing"] == "m" else options["mixing"],
            c_a=c_a,
            gamma=directed_share(c_a, archive_size),
            c_c=c_c,
            spacing=value_or(options["spacing"], math.ceil(min(1 / c_c, 2.0**53))),
            c_s=options["c_s"],
            damping=options["damping"],
            significance=options["significance"],
            exact=options["sampling"] == "exact",
            noise=_NOISE[options["isotropic"]],
            c_d=value_or(options["c_d"], 1.0 / n) if options["scaling"] == "adaptive" else None,
        )


def default_archive_size(n: int) -> int:
    """Return m = 2 ceil(sqrt n)."""
    return 2 * math.ceil(math.sqrt(n))
