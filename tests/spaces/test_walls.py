"""An optimum on every wall of the box is found with the default treatment of bounds."""

from __future__ import annotations

import numpy as np
import pytest

import mmes


@pytest.mark.parametrize("strategy", ["mmes", "adaptive", "auto"])
@pytest.mark.parametrize(("n", "budget"), [(20, 7_000), (200, 30_000)])
def test_an_optimum_on_the_walls_is_found(n: int, budget: int, strategy: str) -> None:
    """Clipping, the treatment of 0.1.0, ended far away."""
    r = mmes.minimize(
        lambda points: ((points - 2) ** 2).sum(1),
        bounds=(np.full(n, -1.0), 1.0),
        vectorized=True,
        seed=1,
        strategy=strategy,
        target=n + 1e-6,
        max_evaluations=budget,
    )
    assert r.success
    assert (np.abs(r.x) <= 1).all()


@pytest.mark.parametrize(
    ("kind", "n"),
    [(kind, n) for kind in ("half", "sum", "weighted") for n in (10, 30, 150)][:-1],
)
def test_some_variables_on_a_wall(kind: str, n: int) -> None:
    """Half of the optimum on the walls, a linear objective, half of them with weights to 1e3."""
    weights = np.logspace(0, 3, n) if kind == "weighted" else np.ones(n)
    centre = np.where(np.arange(n) % 2, 0.3, 2.0)
    least = 0.0 if kind == "sum" else float(weights[::2].sum())
    r = mmes.minimize(
        lambda p: p.sum(1) if kind == "sum" else (p - centre) ** 2 @ weights,
        bounds=(np.full(n, 0.0 if kind == "sum" else -1.0), 1.0),
        vectorized=True,
        seed=2,
        target=least + 1e-6,
        max_evaluations=(600 if kind == "weighted" else 200) * n,
    )
    assert r.success
