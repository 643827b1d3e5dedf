"""An independent implementation of the same geometry as an oracle."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mmes.spaces.manifolds import Grassmann, Manifold, Oblique, Sphere, Stiefel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    oracles = pytest.importorskip("pymanopt.manifolds")

PAIRS = [
    (Grassmann(11, 3), lambda: oracles.Grassmann(11, 3)),
    (Stiefel(11, 3), lambda: oracles.Stiefel(11, 3, retraction="polar")),
    (Sphere(11), lambda: oracles.Sphere(11)),
    (Oblique(7, 3), lambda: oracles.Oblique(7, 3)),
]


@pytest.fixture(params=PAIRS, ids=lambda pair: repr(pair[0]))
def pair(request) -> tuple[Manifold, object]:
    ours, theirs = request.param
    return ours, theirs()


def same(ours: Manifold, a: np.ndarray, b: np.ndarray) -> None:
    if isinstance(ours, Grassmann):  # equal as subspaces
        a, b = a @ a.T, b @ b.T
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_dimension(pair):
    ours, theirs = pair
    assert ours.dim == theirs.dim


def test_projection_transport_and_retraction(pair):
    ours, theirs = pair
    rng = np.random.default_rng(5)
    for _ in range(5):
        point = ours.random_point(rng)
        ambient, other = rng.standard_normal((2, *ours.shape))
        step = ours.proj(point, 0.3 * ambient)
        np.testing.assert_allclose(step, theirs.projection(point, 0.3 * ambient), atol=1e-13)
        same(ours, ours.retract(point, step), theirs.retraction(point, step))
        same(ours, ours.retract_mean(point, step), theirs.retraction(point, step))
        new = ours.retract_mean(point, step)
        carried = ours.proj(point, other)
        np.testing.assert_allclose(
            ours.transport(point, new, carried),
            theirs.transport(point, new, carried),
            atol=1e-12,
        )


def test_their_exponential_map_agrees_to_second_order(pair):
    ours, theirs = pair
    rng = np.random.default_rng(6)
    point = ours.random_point(rng)
    step = ours.proj(point, rng.standard_normal(ours.shape))
    step *= 1e-3 / np.linalg.norm(step)
    near, there = ours.retract(point, step), theirs.exp(point, step)
    if isinstance(ours, Grassmann):
        near, there = near @ near.T, there @ there.T
    assert np.linalg.norm(near - there) < 1e-9
