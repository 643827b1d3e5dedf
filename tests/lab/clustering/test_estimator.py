from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.exceptions import SkipTestWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

import mmes.lab.clustering
from mmes.lab.clustering import SparseSpectralClustering, load_graph, normalized_laplacian
from mmes.lab.clustering.objective import SparseSpectralObjective


def moons(count: int) -> tuple[np.ndarray, np.ndarray]:
    return make_moons(count, noise=0.06, random_state=1)


@pytest.mark.slow
def test_scikit_learn_s_own_checks():
    # Few evaluations: the checks are about the interface, and the spectral start is good already.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(SparseSpectralClustering(n_clusters=3, max_evaluations=200))
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    assert not failed
    assert sum(result["status"] == "passed" for result in results) > 30


@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.001])
def test_two_moons(beta):
    # With fewer samples or a larger beta the moons fall into pieces; see docs/clustering.md.
    X, y = moons(200)
    model = SparseSpectralClustering(2, beta=beta, random_state=0, max_evaluations=6_000).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_three_kinds_of_digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:150], y[:150]
    model = SparseSpectralClustering(3, random_state=0, max_evaluations=5_000).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_attributes():
    X, _ = moons(60)
    model = SparseSpectralClustering(2, beta=0.01, random_state=0, max_evaluations=3_000).fit(X)
    assert model.labels_.shape == (60,)
    assert set(model.labels_) == {0, 1}
    assert model.n_features_in_ == 2
    np.testing.assert_allclose(model.embedding_.T @ model.embedding_, np.eye(2), atol=1e-12)
    objective = SparseSpectralObjective(normalized_laplacian(model.affinity_matrix_), 0.01)
    assert model.objective_ == objective(model.embedding_)
    assert 0 < model.n_evaluations_ <= 3_000
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)


def test_the_search_improves_on_the_spectral_start():
    graph = load_graph("GLIOMA")
    options = {"affinity": "precomputed", "beta": 0.01, "random_state": 0}
    begun, done = (
        SparseSpectralClustering(4, max_evaluations=limit, **options).fit(graph.affinity)
        for limit in (1, 5_000)
    )
    assert done.objective_ < begun.objective_ - 0.05


def test_affinities():
    X, y = make_blobs(60, centers=3, cluster_std=0.4, random_state=2)
    options = {"random_state": 0, "max_evaluations": 2_000}
    for affinity in ("nearest_neighbors", "paper", "rbf"):
        model = SparseSpectralClustering(3, affinity=affinity, **options).fit(X)
        again = SparseSpectralClustering(3, affinity="precomputed", **options)
        again.fit(model.affinity_matrix_)
        np.testing.assert_array_equal(again.labels_, model.labels_)
        if affinity != "paper":  # which scales samples to unit norm and merges blobs in a line
            assert adjusted_rand_score(y, model.labels_) == 1.0
    sparse = scipy.sparse.csr_array(model.affinity_matrix_)
    np.testing.assert_array_equal(again.fit_predict(sparse), model.labels_)


def test_random_start_and_restarts():
    X, _ = moons(40)
    options = {"init": "random", "random_state": 0, "beta": 0.005, "max_evaluations": 6_000}
    single = SparseSpectralClustering(2, **options).fit(X)
    several = SparseSpectralClustering(2, restarts=2, **options).fit(X)
    budget = SparseSpectralClustering(2, restarts="budget", **options).fit(X)
    assert several.objective_ <= single.objective_
    assert several.n_evaluations_ > single.n_evaluations_
    assert budget.n_evaluations_ == 6_000


def test_random_state_decides_everything():
    X, _ = moons(60)
    options = {"init": "random", "beta": 0.01, "max_evaluations": 500}
    first, again, other = (
        SparseSpectralClustering(2, random_state=seed, **options).fit(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    assert np.abs(first.embedding_ - other.embedding_).max() > 1e-3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters is 0; it must be an integer >= 1"),
        ({"n_clusters": 2.5}, "n_clusters is 2.5"),
        ({"n_clusters": 60}, "n_clusters is 60; with n_samples=60"),
        ({"beta": -0.1}, "beta is -0.1; it must be a number >= 0"),
        ({"beta": np.nan}, "beta is nan"),
        ({"beta": "much"}, "beta is 'much'"),
        ({"affinity": "cosine"}, "affinity is 'cosine'; it must be one of"),
        ({"affinity": "precomputed"}, "takes a square matrix of similarities"),
        ({"n_neighbors": 1}, "n_neighbors is 1; it must be an integer >= 2"),
        ({"gamma": -1.0}, "gamma is -1.0"),
        ({"init": "zero"}, "init is 'zero'; it must be 'random' or 'spectral'"),
        ({"restarts": -1}, "restarts is -1; it must be an integer >= 0 or 'budget'"),
        ({"restarts": "many"}, "restarts is 'many'"),
        ({"max_evaluations": 0}, "max_evaluations is 0; it must be an integer >= 1"),
        ({"min_sigma": 0.0}, "min_sigma is 0.0; it must be a number > 0"),
        ({"n_init": 0}, "n_init is 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, _ = moons(60)
    with pytest.raises(ValueError, match=message):
        SparseSpectralClustering(**({"n_clusters": 2} | parameters)).fit(X)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (np.triu(np.ones((5, 5))), "must be symmetric"),
        (-np.ones((5, 5)), "finite entries >= 0"),
        (np.full((5, 5), np.nan), "NaN"),
    ],
)
def test_bad_similarities_are_named(affinity, message):
    with pytest.raises(ValueError, match=message):
        SparseSpectralClustering(2, affinity="precomputed").fit(affinity)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "mmes.lab.clustering.estimator")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"pip install 'mmes\[clustering\]'"):
        _ = mmes.lab.clustering.SparseSpectralClustering
