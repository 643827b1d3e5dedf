"""The graphs against the values that the paper's numbers imply."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.spatial.distance

from mmes.lab.clustering import (
    dataset_names,
    graph_from_mat,
    load_graph,
    neighbour_affinity,
    normalized_laplacian,
    paper_affinity,
)
from mmes.lab.clustering.graphs import pairwise_distances

# Sum of the N_c smallest eigenvalues of the Laplacian; the limit of the objective for beta -> 0.
SMALLEST_EIGENVALUES = {
    "colon": 0.0253614,
    "GLIOMA": 0.208036,
    "leukemia": 0.0296863,
    "ALLAML": 0.0380771,
    "lymphoma": 0.722494,
    "nci9": 1.99087,
    "Yale": 1.85755,
    "orlraws10P": 0.209493,
    "pixraw10P": 0.0199424,
    "TOX-171": 0.0925322,
    "Prostate-GE": 0.0107339,
    "warpAR10P": 0.874403,
    "warpPIE10P": 0.0533663,
    "arcene": 0.0,
}
SPECTRAL_SPARSITY = {"colon": 62.5029, "GLIOMA": 60.9303, "lymphoma": 146.483}
SIZES = {  # samples, classes, edges
    "orlraws10P": (100, 10, 257),
    "pixraw10P": (100, 10, 258),
    "Prostate-GE": (102, 2, 302),
    "TOX-171": (171, 4, 465),
    "warpAR10P": (130, 10, 362),
    "Yale": (165, 15, 489),
    "ALLAML": (72, 2, 216),
    "warpPIE10P": (210, 10, 543),
    "GLIOMA": (50, 4, 145),
    "leukemia": (72, 2, 213),
    "lymphoma": (96, 9, 269),
    "nci9": (60, 9, 194),
    "arcene": (200, 2, 563),
    "colon": (62, 2, 206),
}


def stored_distances(name: str) -> np.ndarray:
    with np.load(Path(__file__).parent / "data" / "distances.npz") as distances:
        return scipy.spatial.distance.squareform(distances[name])


def test_all_fourteen_sets_are_there():
    assert set(dataset_names()) == set(SIZES) == set(SMALLEST_EIGENVALUES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_sizes(name):
    graph = load_graph(name)
    samples, classes, edges = SIZES[name]
    assert (graph.n_samples, graph.n_clusters) == (samples, classes)
    assert np.count_nonzero(np.triu(graph.affinity, 1)) == edges
    assert sorted(set(graph.labels)) == list(range(classes))


@pytest.mark.parametrize("name", sorted(SIZES))
def test_the_construction_rebuilds_the_graph_from_distances(name):
    rebuilt = neighbour_affinity(stored_distances(name))
    np.testing.assert_allclose(rebuilt, load_graph(name).affinity, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_spectral_values(name):
    graph = load_graph(name)
    values, vectors = np.linalg.eigh(graph.laplacian())
    total = values[: graph.n_clusters].sum()
    assert total == pytest.approx(SMALLEST_EIGENVALUES[name], rel=3e-6, abs=1e-12)
    assert values[-1] <= 2.0
    if name in SPECTRAL_SPARSITY:
        basis = vectors[:, : graph.n_clusters]
        assert np.abs(basis @ basis.T).sum() == pytest.approx(SPECTRAL_SPARSITY[name], rel=1e-5)


def test_arcene_has_three_components_for_two_classes():
    values = np.linalg.eigvalsh(load_graph("arcene").laplacian())
    assert (np.abs(values[:3]) < 1e-12).all()
    assert values[3] > 1e-4


def test_construction_by_hand():
    # Four points on a line, three neighbours each with the point itself.
    distances = np.abs(np.subtract.outer([0.0, 1.0, 3.0, 7.0], [0.0, 1.0, 3.0, 7.0]))
    # Selected: 0,1,3 | 0,1,2 | 0,2,3 | 0,4,6; their median is 1.5.
    expected = np.exp(-(distances**2) / (2 * 1.5**2))
    expected[0, 3] = expected[3, 0] = 0.0
    np.testing.assert_allclose(neighbour_affinity(distances, 3), expected, rtol=1e-15)


def test_a_sample_is_its_own_neighbour_also_among_duplicates():
    affinity = neighbour_affinity(np.zeros((6, 6)), 3)
    assert (np.diag(affinity) == 1.0).all()


def test_mostly_duplicates_still_give_finite_weights():
    points = np.array([0.0, 0, 0, 0, 0, 1, 1, 2])[:, None]
    affinity = neighbour_affinity(pairwise_distances(points), 3)
    assert np.isfinite(affinity).all()
    assert 0.0 < affinity[7, 5] < 1.0


def test_distances_of_close_samples_keep_their_digits():
    points = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])
    gap = (1.0 + 1e-12) - 1.0
    assert pairwise_distances(points)[0, 1] == gap


def test_the_scale_of_a_sample_does_not_matter_to_the_paper_s_affinity():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((20, 5))
    scaled = features * rng.uniform(0.5, 2.0, (20, 1))
    np.testing.assert_allclose(paper_affinity(scaled), paper_affinity(features), atol=1e-12)


def test_laplacian_laws():
    rng = np.random.default_rng(1)
    affinity = rng.random((8, 8))
    affinity += affinity.T
    affinity[5], affinity[:, 5] = 0.0, 0.0
    laplacian = normalized_laplacian(affinity)
    degrees = np.sqrt(affinity.sum(axis=1))
    np.testing.assert_allclose(laplacian @ degrees, 0.0, atol=1e-14)
    assert (laplacian[5] == 0.0).all()
    assert np.linalg.eigvalsh(laplacian)[0] > -1e-14


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (np.ones((2, 3)), r"square matrix, not of shape \(2, 3\)"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "must be symmetric"),
        (np.array([[1.0, -0.5], [-0.5, 1.0]]), "finite entries >= 0"),
        (np.full((2, 2), np.inf), "finite entries >= 0"),
    ],
)
def test_bad_affinities_are_named(affinity, message):
    with pytest.raises(ValueError, match=message):
        normalized_laplacian(affinity)


def test_bad_neighbour_counts_and_rows_are_named():
    with pytest.raises(ValueError, match=r"n_neighbours is 5; for 4 samples it must be 2 \.\. 4"):
        neighbour_affinity(np.zeros((4, 4)))
    with pytest.raises(ValueError, match="sample 2 is a row of zeros"):
        paper_affinity(np.eye(6)[[0, 1, 2, 3, 4, 5]] * np.array([1, 1, 0, 1, 1, 1.0]))
    with pytest.raises(ValueError, match=r"no graph named 'Carcinom'.*colon"):
        load_graph("Carcinom")


class TestMatFiles:
    def test_a_file_of_the_collection(self, tmp_path):
        rng = np.random.default_rng(2)
        features = rng.integers(0, 200, (12, 30)).astype(np.uint8)
        classes = np.repeat([3, 1, 2], 4)[:, None]
        scipy.io.savemat(tmp_path / "GLI_85.mat", {"X": features, "Y": classes})
        graph = graph_from_mat(tmp_path / "GLI_85.mat")
        assert (graph.name, graph.n_samples, graph.n_clusters) == ("GLI-85", 12, 3)
        np.testing.assert_array_equal(graph.labels, np.repeat([2, 0, 1], 4))
        np.testing.assert_array_equal(graph.affinity, paper_affinity(features))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"X": np.eye(4)}, "no variable 'Y'; it contains X"),
            ({"Y": np.eye(4)}, "no variable 'X'; it contains Y"),
            ({"X": np.eye(4), "Y": np.arange(3)}, "X must have one row for each entry of Y"),
        ],
    )
    def test_other_files_are_named(self, tmp_path, content, message):
        scipy.io.savemat(tmp_path / "some.mat", content)
        with pytest.raises(ValueError, match=message):
            graph_from_mat(tmp_path / "some.mat")
