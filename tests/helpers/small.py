"""Competitors of a size for tests: populations and phases so short that all parts take turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes.lab.competitors import COMPETITORS, Competitor
from mmes.lab.competitors.parts.draws import Draws
from mmes.lab.competitors.parts.setting import Setting

OPTIONS: dict[str, dict[str, Any]] = {
    "decc-g": {
        "population_size": 8,
        "group_size": 3,
        "group_generations": 30,
        "weighting_generations": 3,
    },
    "decc-dg": {"population_size": 8, "group_generations": 30},
    "ccpso2": {"population_size": 6},
    "ma-sw-chains": {"population_size": 12, "local_evaluations": 20},
    "mos": {"configuration": "tuned", "population_size": 12, "step_evaluations": 90},
    "shade-ils": {"population_size": 10, "shade_evaluations": 45, "local_evaluations": 60},
}


def bounds(n: int = 7) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-5.0, -2.0, n), np.linspace(3.0, 6.0, n)


def start(n: int = 7) -> np.ndarray:
    lower, upper = bounds(n)
    return np.round(0.3 * lower + 0.7 * upper, 1)


def make(name: str, n: int = 7, seed: int = 5, **changes: Any) -> Competitor:
    given = {"bounds": bounds(n), "seed": seed} | OPTIONS[name] | changes
    return COMPETITORS[name](start(n), 1.0, **given)


def setting(n: int = 7, seed: int = 5, simd: str | None = None) -> Setting:
    return Setting(np.full(n, -5.0), np.full(n, 5.0), np.zeros(n), Draws(seed, simd))


def rastrigin(points: np.ndarray) -> np.ndarray:
    apart = points - 1.25
    return (apart**2 - 10 * np.cos(2 * np.pi * apart) + 10).sum(axis=1)


def ellipsoid(points: np.ndarray) -> np.ndarray:
    # No matrix product: its rounding depends on how many points come together.
    return ((points - 0.5) ** 2 * np.logspace(0, 3, points.shape[1])).sum(axis=1)


def walk(es: Competitor, function: Any, evaluations: int) -> list[np.ndarray]:
    seen = []
    while es.evaluations < evaluations:
        points = es.ask()
        seen.append(points.copy())
        es.tell(function(points))
    return seen
