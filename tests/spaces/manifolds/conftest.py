"""Every manifold of the library, in sizes that exercise its corners."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.spaces.manifolds import Euclidean, Grassmann, Manifold, Oblique, Sphere, Stiefel

MANIFOLDS = [
    Euclidean(7),
    Euclidean(4, 3),
    Grassmann(20, 3),
    Grassmann(9, 7),  # more columns than directions to leave the span
    Grassmann(6, 1),
    Stiefel(12, 4),
    Stiefel(5, 5),
    Stiefel(8, 1),
    Sphere(2),
    Sphere(15),
    Oblique(6, 4),
]


@pytest.fixture(params=MANIFOLDS, ids=repr)
def manifold(request: pytest.FixtureRequest) -> Manifold:
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)
