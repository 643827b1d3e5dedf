"""What the checks of strategies share: objectives, trajectories, requirements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.strategies.shell.ask_tell import AskTell

Strategy = type[AskTell]
Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]

SMALL = (1, 2, 3, 17)


def sphere(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of squares of each row."""
    return np.einsum("ij,ij->i", points, points)


def ellipsoid(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a sum of squares with weights from 1 to 1000."""
    return points**2 @ np.logspace(0, 3, points.shape[1])


def trajectory(
    strategy: Strategy,
    n: int,
    generations: int,
    objective: Objective = ellipsoid,
    **options: Any,
) -> list[NDArray[np.float64]]:
    """Return the candidates of the first generations of a run."""
    es = strategy(np.linspace(1.0, 2.0, n), 0.5, **options)
    seen = []
    for _ in range(generations):
        points = es.ask()
        seen.append(points.copy())
        es.tell(objective(points))
    return seen


def finite(es: AskTell) -> None:
    """Require a finite mean, and a sigma that is finite and above 0."""
    require(
        math.isfinite(es.sigma) and es.sigma > 0, f"sigma must stay finite and > 0, not {es.sigma}"
    )
    require(bool(np.isfinite(es.mean).all()), "the mean must stay finite")


def same(a: NDArray[Any], b: NDArray[Any], sentence: str) -> None:
    """Require that two arrays are equal to the bit."""
    require(np.array_equal(a, b), sentence)


def restored(strategy: Strategy, state: dict[str, Any]) -> AskTell:
    """Return the strategy that goes on from a state."""
    try:
        return strategy.from_state(state)
    except (KeyError, ValueError) as error:
        raise AssertionError(
            f"a state must be complete, but restoring it failed: {error}"
        ) from error


def require(holds: Any, sentence: str) -> None:
    """Raise AssertionError with a sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)
