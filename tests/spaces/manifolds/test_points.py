"""Sizes and start points that users give."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.spaces.manifolds import Euclidean, Grassmann, Oblique, Sphere, Stiefel


@pytest.mark.parametrize(
    ("manifold", "dim"),
    [
        (Euclidean(3, 4), 12),
        (Grassmann(100, 10), 900),
        (Stiefel(10, 3), 24),
        (Stiefel(4, 4), 6),
        (Sphere(5), 4),
        (Oblique(5, 3), 12),
    ],
)
def test_dimension(manifold, dim):
    assert manifold.dim == dim


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Grassmann(3, 4), "k of Grassmann is 4; 3 rows have at most 3"),
        (lambda: Grassmann(3, 3), "single point"),
        (lambda: Stiefel(0, 0), "size of Stiefel is 0"),
        (lambda: Stiefel(3, 4), "k of Stiefel is 4"),
        (lambda: Sphere(1), "n of Sphere is 1"),
        (lambda: Oblique(1, 3), "n of Oblique is 1"),
        (lambda: Euclidean(), "at least one size"),
        (lambda: Euclidean(2.5), "size of Euclidean is 2.5"),
        (lambda: Euclidean(True), "size of Euclidean is True"),
    ],
)
def test_impossible_sizes_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_start_point_is_checked_and_copied(manifold, rng):
    given = manifold.random_point(rng)
    point = manifold.point(given.tolist())
    np.testing.assert_allclose(point, given, atol=1e-14)
    given += 1.0
    assert manifold.distance_from(point) < 1e-14


def test_a_start_point_with_printed_digits_is_made_exact(manifold, rng):
    rough = np.round(manifold.random_point(rng), 7)
    point = manifold.point(rough)
    assert manifold.distance_from(point) < 1e-14
    np.testing.assert_allclose(point, rough, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.eye(4, 3), r"U0 has shape \(4, 3\); a point of Grassmann\(4, 2\) has shape \(4, 2\)"),
        (2.0 * np.eye(4, 2), "U0 is not on .*: U'U = I fails by 3"),
        (np.full((4, 2), np.nan), "U0 has an entry that is not finite"),
        ([["a", "b"]], "U0 must be an array of numbers"),
    ],
)
def test_bad_start_points_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        Grassmann(4, 2).point(value, "U0")


def test_manifolds_compare_by_kind_and_size():
    assert Grassmann(4, 2) == Grassmann(4, 2)
    assert Grassmann(4, 2) != Stiefel(4, 2)
    assert len({Grassmann(4, 2), Grassmann(4, 2), Grassmann(4, 1)}) == 2
    assert repr(Grassmann(4, 2)) == "Grassmann(4, 2)"
