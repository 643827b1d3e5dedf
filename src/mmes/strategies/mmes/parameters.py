"""The parameters of MMES: every default a formula, every value checked against the option table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes import mixture
from mmes.kernels import Noise
from mmes.options import Option
from mmes.strategies.recombination import default_population_size, effective_size, log_weights

OPTIONS = (
    Option(
        "population_size",
        int,
        "Candidates a generation.",
        symbol="lambda",
        default_text="4 + floor(3 ln n)",
        low=2,
    ),
    Option(
        "archive_size",
        int,
        "Stored directions; reduced with a warning where the default would not fit into memory.",
        symbol="m",
        default_text="2 ceil(sqrt n)",
        low=1,
    ),
    Option(
        "mixing",
        int,
        "Mixing strength: directions that one step mixes; 'm' takes as many as are stored.",
        default=4,
        symbol="l",
        low=1,
        choices=("m",),
    ),
    Option(
        "sampling",
        str,
        "'mixture' draws from P_m in O(n l); 'exact' from the Gaussian target P_a in O(n m).",
        default="mixture",
        choices=("mixture", "exact"),
    ),
    Option(
        "noise",
        str,
        "Law of the isotropic part: normal, Student-t with 5 degrees of freedom (MMES-T), or "
        "Rademacher signs (MMES-R), all of unit variance.",
        default="normal",
        choices=("normal", "student", "rademacher"),
    ),
    Option(
        "mirrored",
        bool,
        "Mirrored pairs of candidates; False is the literal pseudo-code of the paper.",
        default=True,
    ),
    Option(
        "c_a",
        float,
        "Rate of the covariance: weight of the newest direction.",
        symbol="c_a",
        default_text="4 / n",
        low=0,
        high=1,
        low_open=True,
        high_open=True,
    ),
    Option(
        "c_c",
        float,
        "Rate of the evolution path.",
        symbol="c_c",
        default_text="0.4 / sqrt n",
        low=0,
        high=1,
        low_open=True,
    ),
    Option(
        "spacing",
        int,
        "Generations that stored directions should lie apart.",
        symbol="T",
        default_text="ceil(1 / c_c)",
        low=1,
    ),
    Option(
        "c_s",
        float,
        "Rate of the success average of the paired test.",
        default=0.3,
        symbol="c_sigma",
        low=0,
        high=1,
        low_open=True,
    ),
    Option(
        "damping",
        float,
        "Damping of the mutation strength; doubled together with lambda at a restart.",
        default=1.0,
        symbol="d_sigma",
        low=0,
        low_open=True,
    ),
    Option(
        "significance",
        float,
        "Significance level of the paired test: sigma grows where success is surer than 1 - this.",
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
        "'adaptive' learns one scale a variable during the run (beyond the paper).",
        default="fixed",
        choices=("fixed", "adaptive"),
    ),
    Option(
        "c_d",
        float,
        "Rate of the adaptive scaling.",
        symbol="c_d",
        default_text="1 / n",
        low=0,
        high=1,
        low_open=True,
    ),
)

_NOISE = {"normal": Noise.NORMAL, "student": Noise.STUDENT, "rademacher": Noise.RADEMACHER}


@dataclass(frozen=True)
class Parameters:
    """The constants of a run, by the paper's symbols in the comments."""

    n: int
    population_size: int  # lambda
    weights: NDArray[np.float64]  # w_1 .. w_mu
    mu_eff: float
    archive_size: int  # m
    mixing: int  # l
    c_a: float
    gamma: float  # 1 - (1 - c_a)^m
    c_c: float
    spacing: int  # T
    c_s: float  # c_sigma
    damping: float  # d_sigma
    significance: float  # alpha_z
    mirrored: bool
    exact: bool  # sample P_a instead of P_m
    noise: Noise
    c_d: float | None  # None: scales stay as given

    @property
    def mu(self) -> int:
        """Number of parents."""
        return self.weights.size

    @property
    def draws(self) -> int:
        """Steps drawn in a generation: the others are their mirror images."""
        return (self.population_size + 1) // 2 if self.mirrored else self.population_size

    @classmethod
    def from_options(cls, n: int, options: Mapping[str, Any], archive_size: int) -> Parameters:
        """Return the parameters for n variables; an option that is None takes its formula."""

        def value(name: str, formula: float) -> Any:
            return formula if options[name] is None else options[name]

        population_size = value("population_size", default_population_size(n))
        weights = log_weights(population_size // 2)
        # N.B. 4/n exceeds 1 for n <= 4, which the paper does not define.
        c_a = value("c_a", min(4.0 / n, 0.5))
        c_c = value("c_c", min(0.4 / math.sqrt(n), 1.0))
        return cls(
            n=n,
            population_size=population_size,
            weights=weights,
            mu_eff=effective_size(weights),
            archive_size=archive_size,
            mixing=archive_size if options["mixing"] == "m" else options["mixing"],
            c_a=c_a,
            gamma=mixture.directed_share(c_a, archive_size),
            c_c=c_c,
            spacing=value("spacing", math.ceil(1 / c_c)),
            c_s=options["c_s"],
            damping=options["damping"],
            significance=options["significance"],
            mirrored=options["mirrored"],
            exact=options["sampling"] == "exact",
            noise=_NOISE[options["noise"]],
            c_d=value("c_d", 1.0 / n) if options["scaling"] == "adaptive" else None,
        )


def default_archive_size(n: int) -> int:
    """Return m = 2 ceil(sqrt n)."""
    return 2 * math.ceil(math.sqrt(n))
