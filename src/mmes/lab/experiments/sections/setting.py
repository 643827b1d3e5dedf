"""What the sections share: the paper's names for strategies and problems, and its protocol."""

from __future__ import annotations

from collections.abc import Iterable

from mmes.lab.experiments.plan import Objective, Options, Strategy, Trial
from mmes.lab.experiments.sections.section import Extent

MMES = Strategy("mmes", "MMES")

STRATEGIES: dict[str, Strategy] = {
    label: Strategy(label.lower(), label)
    for label in ("sep-CMA", "CMA-ES", "LM-MA", "LM-CMA", "Rm-ES", "SDA-ES", "MMES")
}
"""The strategies under the names of the paper's tables."""

_PROBLEMS = {
    "Elli": "ellipsoid",
    "Rosen": "rosenbrock",
    "Discus": "discus",
    "Cigar": "cigar",
    "DiffPow": "different_powers",
}

PROBLEMS: dict[str, Objective] = {
    before + label: Objective(prefix + name, before + label)
    for before, prefix in (("", ""), ("Rot", "rotated_"))
    for label, name in _PROBLEMS.items()
}
"""The basic problems under the names of the paper's tables."""


def variant(label: str, **options: bool | int | float | str) -> Strategy:
    """Return MMES with some options, under a label."""
    return Strategy("mmes", label, tuple(sorted(options.items())))


def strengths(prefix: str, exact: str = "P_a") -> tuple[Strategy, ...]:
    """Return MMES with the paper's mixing strengths; 4 is the default.

    The labels begin with `prefix`; `exact` is that of the law which the mixture approximates.
    """
    return (
        variant(f"{prefix}2", mixing=2),
        variant(f"{prefix}4"),
        *(variant(f"{prefix}{strength}", mixing=strength) for strength in (8, 16, 32)),
        variant(f"{prefix}m", mixing="m"),
        variant(exact, sampling="exact"),
    )


def seeds(count: int) -> range:
    """Return the seeds 1, 2, .., count."""
    return range(1, count + 1)


def basic_runs(
    pairs: Iterable[tuple[Objective, Strategy]],
    *,
    dimension: int,
    count: int,
    max_evaluations: float,
    target: float | None = 1e-8,
) -> list[Trial]:
    """Return runs under the protocol of the basic experiments: x0 in [-5, 5]^n, sigma0 = 3.

    Seeds are outermost, so that every cell has a run before any has two.
    """
    listed = list(pairs)
    return [
        Trial(strategy, objective, dimension, seed, int(max_evaluations), target)
        for seed in seeds(count)
        for objective, strategy in listed
    ]


def with_alpha(alpha: int) -> Objective:
    """Return the ellipsoid of the given conditioning."""
    options: Options = (("alpha", alpha),)
    return Objective("ellipsoid", f"Elli, α = {alpha}", options)


def full(extent: Extent) -> bool:
    """Whether the published protocol was asked for."""
    return extent is Extent.FULL
