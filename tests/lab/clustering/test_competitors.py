from __future__ import annotations

import numpy as np
import pytest

from mmes.lab.clustering import SparseSpectralObjective, load_graph
from mmes.lab.clustering.competitors import (
    SmoothedModel,
    smoothed_trust_region,
    spectral_basis,
    subgradient_trust_region,
    trust_region,
)
from mmes.spaces.manifolds import Grassmann, Sphere


def random_start(name: str, seed: int) -> np.ndarray:
    graph = load_graph(name)
    rng = np.random.default_rng(seed)
    return Grassmann(graph.n_samples, graph.n_clusters).random_point(rng)


@pytest.mark.parametrize("smoothing", [0.0, 0.05])
def test_derivatives_are_those_of_the_value(smoothing):
    graph, manifold = load_graph("GLIOMA"), Grassmann(50, 4)
    rng = np.random.default_rng(1)
    point = manifold.random_point(rng)
    model = SmoothedModel(SparseSpectralObjective(graph.laplacian(), 0.02), manifold, smoothing)
    gradient, hessian = model.derivatives(point)
    tangent, other = manifold.proj(point, rng.standard_normal((2, 50, 4)))
    tangent /= np.linalg.norm(tangent)

    def along(time: float) -> float:
        return model.value(manifold.retract(point, time * tangent))

    step = 1e-5  # short enough that no entry of U U' changes its sign
    slope = (along(step) - along(-step)) / (2 * step)
    assert slope == pytest.approx(np.vdot(gradient, tangent), rel=1e-6)
    step = 1e-4 if smoothing else 1e-5
    bend = (along(step) - 2 * along(0.0) + along(-step)) / step**2
    assert bend == pytest.approx(np.vdot(tangent, hessian(tangent)), rel=1e-4)
    assert np.vdot(other, hessian(tangent)) == pytest.approx(np.vdot(tangent, hessian(other)))
    np.testing.assert_allclose(point.T @ gradient, 0.0, atol=1e-14)
    np.testing.assert_allclose(point.T @ hessian(tangent), 0.0, atol=1e-14)


def test_the_trust_region_finds_an_eigenvector():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((12, 12))
    matrix += matrix.T
    sphere = Sphere(12)

    class Rayleigh:
        def value(self, point):
            return float(point @ matrix @ point)

        def derivatives(self, point):
            bent = 2 * matrix @ point
            return sphere.proj(point, bent), lambda tangent: sphere.proj(
                point, 2 * matrix @ tangent - (point @ bent) * tangent
            )

    result = trust_region(Rayleigh(), sphere, sphere.random_point(rng), 1.0, tolerance=1e-9)
    assert result.converged
    assert result.fun == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=1e-12)
    assert result.nfev == result.nit + 1


@pytest.mark.parametrize("solver", [subgradient_trust_region, smoothed_trust_region])
def test_without_sparsity_both_find_the_smallest_eigenvalues(solver):
    laplacian = load_graph("colon").laplacian()
    result = solver(laplacian, 0.0, random_start("colon", 3))
    assert result.converged
    assert result.fun == pytest.approx(np.linalg.eigvalsh(laplacian)[:2].sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "beta", "best"),
    [
        ("colon", 0.001, 0.0859320),
        ("colon", 0.01, 0.498262),
        ("GLIOMA", 0.01, 0.683837),
        ("leukemia", 0.001, 0.101505),
        ("nci9", 0.0001, 2.00196),
    ],
)
def test_the_smoothed_solver_reaches_the_recorded_values(name, beta, best):
    graph = load_graph(name)
    start = spectral_basis(graph.laplacian(), graph.n_clusters)
    result = smoothed_trust_region(graph.laplacian(), beta, start)
    assert result.fun == pytest.approx(best, rel=5e-6)
    assert Grassmann(*result.x.shape).distance_from(result.x) < 1e-12
    value = SparseSpectralObjective(graph.laplacian(), beta)(result.x)
    assert result.fun == value


@pytest.mark.parametrize(("name", "paper"), [("colon", 0.0315915), ("GLIOMA", 0.214111)])
def test_the_subgradient_method_reaches_the_paper_s_value_where_beta_is_small(name, paper):
    laplacian = load_graph(name).laplacian()
    for seed in range(3):
        result = subgradient_trust_region(laplacian, 1e-4, random_start(name, seed))
        assert result.fun == pytest.approx(paper, rel=5e-6)


def test_the_subgradient_method_stays_behind_where_beta_is_large():
    # GLIOMA at 0.01: smoothed 0.683837; the paper's GSC ends at 0.767 in the median.
    laplacian = load_graph("GLIOMA").laplacian()
    ends = [
        subgradient_trust_region(laplacian, 0.01, random_start("GLIOMA", seed)).fun
        for seed in range(5)
    ]
    assert min(ends) > 0.684
    assert np.median(ends) > 0.69


def test_bad_starts_are_named():
    laplacian = load_graph("colon").laplacian()
    with pytest.raises(ValueError, match="U'U = I fails"):
        subgradient_trust_region(laplacian, 0.01, np.ones((62, 2)))
    with pytest.raises(ValueError, match="shape"):
        smoothed_trust_region(laplacian, 0.01, np.eye(5, 2))
