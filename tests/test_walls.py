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
