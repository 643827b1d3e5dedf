"""The laws a manifold must keep, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from mmes.spaces.manifolds import Euclidean, Grassmann, Manifold, Oblique, Sphere, Stiefel


def tangents(manifold: Manifold, point: np.ndarray, rng: np.random.Generator, count: int = 6):
    return manifold.proj(point, rng.standard_normal((count, *manifold.shape)))


def constraint(manifold: Manifold, point: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """What vanishes exactly for tangents, written down independently of the projection."""
    match manifold:
        case Grassmann():
            return point.T @ tangent
        case Stiefel():
            return point.T @ tangent + tangent.T @ point
        case Sphere():
            return np.atleast_1d(point @ tangent)
        case Oblique():
            return np.einsum("nk,nk->k", point, tangent)
        case _:
            return np.zeros(1)


def exponential(manifold: Manifold, point: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """The geodesic from `point` with the initial velocity `tangent`, at time 1."""
    match manifold:
        case Euclidean():
            return point + tangent
        case Grassmann():
            w, s, vt = np.linalg.svd(tangent, full_matrices=False)
            return point @ vt.T @ np.diag(np.cos(s)) @ vt + w @ np.diag(np.sin(s)) @ vt
        case Stiefel():
            a, k = point.T @ tangent, manifold.k
            block = np.block([[a, -tangent.T @ tangent], [np.eye(k), a]])
            flow = scipy.linalg.expm(block)[:, :k] @ scipy.linalg.expm(-a)
            return np.hstack([point, tangent]) @ flow
        case Sphere() | Oblique():
            length = np.linalg.norm(tangent, axis=0)
            return point * np.cos(length) + tangent * np.sinc(length / np.pi)
    raise AssertionError(f"no exponential map for {manifold}")


def test_random_points_and_retracted_points_are_feasible(manifold, rng):
    point = manifold.random_point(rng)
    assert point.shape == manifold.shape
    assert manifold.distance_from(point) < 1e-13
    for length in (1e-8, 1e-2, 1.0, 1e3, 1e6):
        steps = length * tangents(manifold, point, rng)
        for retracted in (*manifold.retract(point, steps), *manifold.retract_mean(point, steps)):
            assert manifold.distance_from(retracted) < 1e-13


def test_projected_arrays_are_tangent(manifold, rng):
    point = manifold.random_point(rng)
    for tangent in tangents(manifold, point, rng):
        assert np.abs(constraint(manifold, point, tangent)).max() < 1e-12


def test_projection_is_the_orthogonal_projector_of_rank_dim(manifold, rng):
    # Orthogonal and of this rank: the projected ambient Gaussian is the isotropic Gaussian of the
    # tangent space, which is what sampling relies on.
    point, size = manifold.random_point(rng), manifold.ambient_dim
    units = np.eye(size).reshape(size, *manifold.shape)
    projector = manifold.proj(point, units).reshape(size, size)
    np.testing.assert_allclose(projector, projector.T, atol=1e-13)
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-13)
    assert np.trace(projector) == pytest.approx(manifold.dim, abs=1e-11)


def test_retractions_follow_the_geodesic_to_second_order(manifold, rng):
    point = manifold.random_point(rng)
    tangent = tangents(manifold, point, rng, 1)[0]
    tangent /= np.linalg.norm(tangent)

    def errors(time: float) -> np.ndarray:
        there = exponential(manifold, point, time * tangent)
        near = manifold.retract(point, time * tangent)
        aligned = manifold.retract_mean(point, time * tangent)
        if isinstance(manifold, Grassmann):  # a basis for evaluation need not be the aligned one
            projectors = near @ near.T - there @ there.T
            return np.array([np.linalg.norm(projectors), np.linalg.norm(aligned - there)])
        return np.array([np.linalg.norm(near - there), np.linalg.norm(aligned - there)])

    coarse, fine = errors(0.04), errors(0.02)
    # Third-order error: halving the step divides it by 8. A first-order retraction gives 4.
    assert (coarse < 0.04**3).all()
    assert (fine <= coarse / 7.5 + 1e-14).all()


def test_exponential_maps_stay_on_the_manifold(manifold, rng):
    point = manifold.random_point(rng)
    there = exponential(manifold, point, tangents(manifold, point, rng, 1)[0])
    assert manifold.distance_from(there) < 1e-12


def test_transport_gives_tangents_and_never_lengthens(manifold, rng):
    old = manifold.random_point(rng)
    step, *rest = tangents(manifold, old, rng)
    carried = np.array(rest)
    lengths = np.linalg.norm(carried.reshape(len(rest), -1), axis=1)
    losses = []
    for time in (0.02, 0.01):
        new = manifold.retract_mean(old, time * step / np.linalg.norm(step))
        moved = manifold.transport(old, new, carried)
        for tangent in moved:
            assert np.abs(constraint(manifold, new, tangent)).max() < 1e-12
        after = np.linalg.norm(moved.reshape(len(rest), -1), axis=1)
        assert (after <= lengths * (1.0 + 1e-14)).all()
        losses.append((lengths - after) / lengths)
    assert (losses[0] < 0.02**2).all()
    # The loss of length is of second order in the step: a quarter for half of it.
    np.testing.assert_allclose(losses[1], losses[0] / 4.0, rtol=0.02, atol=1e-13)


def test_transport_to_the_same_point_changes_nothing(manifold, rng):
    point = manifold.random_point(rng)
    carried = tangents(manifold, point, rng)
    np.testing.assert_allclose(manifold.transport(point, point, carried), carried, atol=1e-14)


def test_thousands_of_steps_do_not_drift_off(manifold, rng):
    point = manifold.random_point(rng)
    for _ in range(3000):
        step = manifold.proj(point, 0.3 * rng.standard_normal(manifold.shape))
        point = manifold.retract_mean(point, step)
    assert manifold.distance_from(point) < 1e-12


@pytest.mark.parametrize("length", [0.01, 1.0])
def test_a_member_of_a_batch_does_not_depend_on_the_others(manifold, rng, length):
    point = manifold.random_point(rng)
    ambient = length * rng.standard_normal((5, *manifold.shape))
    ambient[3] *= 100.0  # a long step beside short ones takes another route
    for method in (manifold.proj, manifold.retract, manifold.retract_mean):
        steps = ambient if method == manifold.proj else manifold.proj(point, ambient)
        together = method(point, steps)
        alone = np.stack([method(point, step[None])[0] for step in steps])
        single = np.stack([method(point, step) for step in steps])
        np.testing.assert_array_equal(together, alone)
        np.testing.assert_allclose(together, single, rtol=0, atol=1e-13 * max(1.0, length * 100))


def test_aligned_retraction_is_the_closest_basis(rng):
    manifold = Grassmann(12, 3)
    point = manifold.random_point(rng)
    step = tangents(manifold, point, rng, 1)[0]
    aligned = manifold.retract_mean(point, step)
    closest = np.linalg.norm(aligned - point)
    for _ in range(50):
        turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        assert np.linalg.norm(aligned @ turn - point) >= closest


def test_random_points_are_uniform(rng):
    # E[UU'] = (k/n) I on the Grassmann manifold. The entries of the mean of 4000 projectors have a
    # standard deviation below 0.0025; 6 sigma on 36 entries: false alarm below 1e-7.
    manifold = Grassmann(6, 2)
    bases = np.stack([manifold.random_point(rng) for _ in range(4000)])
    mean = np.einsum("snk,smk->nm", bases, bases) / len(bases)
    np.testing.assert_allclose(mean, np.eye(6) * 2 / 6, atol=6 * 0.0025 * np.sqrt(1.2))
    # Frames: every entry of a uniform Stiefel point has mean 0 and variance 1/n.
    frames = np.stack([Stiefel(4, 4).random_point(rng) for _ in range(4000)])
    np.testing.assert_allclose(frames.mean(axis=0), 0.0, atol=6 * 0.5 / np.sqrt(4000))
