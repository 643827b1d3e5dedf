from __future__ import annotations

import numpy as np
import pytest

from mmes.lab.clustering import SparseSpectralObjective, load_graph
from mmes.lab.clustering import objective as module
from mmes.spaces.manifolds import Grassmann


def by_definition(laplacian: np.ndarray, beta: float, basis: np.ndarray) -> float:
    return np.trace(basis.T @ laplacian @ basis) + beta * np.abs(basis @ basis.T).sum()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture(scope="module")
def laplacian() -> np.ndarray:
    return load_graph("GLIOMA").laplacian()


def bases(rng: np.random.Generator, count: int = 9) -> np.ndarray:
    return np.stack([Grassmann(50, 4).random_point(rng) for _ in range(count)])


def test_values_follow_the_definition(laplacian, rng):
    batch = bases(rng)
    expected = [by_definition(laplacian, 0.02, basis) for basis in batch]
    np.testing.assert_allclose(
        SparseSpectralObjective(laplacian, 0.02)(batch), expected, rtol=1e-13
    )


@pytest.mark.parametrize("entries", [1, 60, 2500, 7000, 10**7])
def test_values_do_not_depend_on_the_blocks(laplacian, rng, monkeypatch, entries):
    batch = bases(rng)
    objective = SparseSpectralObjective(laplacian, 0.02)
    expected = objective(batch)
    monkeypatch.setattr(module, "BLOCK_ENTRIES", entries)
    np.testing.assert_allclose(objective(batch), expected, rtol=1e-14)


def test_a_value_does_not_depend_on_the_batch(laplacian, rng):
    batch = bases(rng)
    objective = SparseSpectralObjective(laplacian, 0.02)
    np.testing.assert_array_equal(objective(batch), [objective(basis) for basis in batch])
    np.testing.assert_array_equal(
        objective(batch.reshape(3, 3, 50, 4)), objective(batch).reshape(3, 3)
    )


def test_only_the_span_matters(laplacian, rng):
    objective = SparseSpectralObjective(laplacian, 0.02)
    basis = bases(rng, 1)[0]
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert objective(basis @ turn) == pytest.approx(objective(basis), rel=1e-13)


def test_without_sparsity_the_smallest_eigenvalues_are_the_minimum(laplacian, rng):
    values, vectors = np.linalg.eigh(laplacian)
    objective = SparseSpectralObjective(laplacian, 0.0)
    assert objective(vectors[:, :4]) == pytest.approx(values[:4].sum(), rel=1e-12)
    assert (np.asarray(objective(bases(rng))) > values[:4].sum()).all()


@pytest.mark.parametrize(
    ("laplacian", "beta", "message"),
    [
        (np.eye(3)[:2], 0.1, r"square matrix, not of shape \(2, 3\)"),
        (np.full((2, 2), np.nan), 0.1, "laplacian has an entry that is not finite"),
        (np.eye(3), -1.0, "beta is -1.0; it must be a finite number >= 0"),
        (np.eye(3), np.inf, "beta is inf"),
    ],
)
def test_bad_problems_are_named(laplacian, beta, message):
    with pytest.raises(ValueError, match=message):
        SparseSpectralObjective(laplacian, beta)


def test_bases_of_another_size_are_named(laplacian):
    with pytest.raises(ValueError, match=r"must have 50 rows.*\(3, 2\)"):
        SparseSpectralObjective(laplacian, 0.1)(np.zeros((3, 2)))
