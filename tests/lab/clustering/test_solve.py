"""The acceptance values of the search: the paper's table where it can be hit quickly."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from mmes.lab.clustering import SearchSettings, SparseSpectralObjective, load_graph, sparse_basis
from mmes.lab.clustering.solve import PAPER_SETTINGS
from mmes.lab.experiments import execute
from mmes.lab.experiments.analysis.paper import load
from mmes.lab.experiments.plan import Objective, Strategy, Trial


def search(name: str, beta: float, seed: int, settings: SearchSettings = PAPER_SETTINGS):
    graph = load_graph(name)
    return sparse_basis(graph.laplacian(), graph.n_clusters, beta, seed=seed, settings=settings)


@pytest.mark.parametrize(
    ("name", "paper", "most"), [("colon", 0.0315915, 16_000), ("GLIOMA", 0.214111, 26_000)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_small_beta_reaches_the_paper_s_value_from_any_start(name, paper, most, seed):
    solution = search(name, 1e-4, seed)
    assert solution.value == pytest.approx(paper, rel=5e-6)
    assert solution.evaluations < most
    assert solution.searches == 1
    objective = SparseSpectralObjective(load_graph(name).laplacian(), 1e-4)
    assert solution.value == objective(solution.basis)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [("colon", 0.085932), ("GLIOMA", 0.267244), ("leukemia", 0.101505), ("ALLAML", 0.110831)],
)
def test_medians_of_five_at_a_thousandth(name, value):
    ends = [search(name, 1e-3, seed).value for seed in range(1, 6)]
    assert np.median(ends) == pytest.approx(value, rel=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["colon", "GLIOMA", "leukemia", "ALLAML", "Prostate-GE"])
def test_where_beta_is_large_mmes_beats_the_subgradient_method(name):
    # Multimodal: over 50 seeds of leukemia the overall median is 2.5 % below the paper's, and a
    # median of seven has a standard deviation of about 7 %. The seeds are fixed.
    (paper,) = [row for row in load("ssc")["data_sets"][name] if row["beta"] == 0.01]
    median = np.median([search(name, 0.01, seed).value for seed in range(1, 8)])
    assert median < paper["GSC"]
    assert median < 1.15 * paper["MMES"]


def test_restarts_keep_the_best_and_the_budget():
    one, three = (
        search("colon", 0.01, 3, SearchSettings(max_evaluations=3_000, restarts=r)) for r in (0, 2)
    )
    assert (one.searches, three.searches) == (1, 3)
    assert three.value <= one.value
    assert three.evaluations == 9_000
    spent = search(
        "colon", 0.01, 3, SearchSettings(min_sigma=0.1, max_evaluations=3_000, restarts="budget")
    )
    assert spent.searches > 1
    assert spent.evaluations == 3_000


def test_the_spectral_start_stays_near_with_short_steps():
    graph = load_graph("GLIOMA")
    basis = np.linalg.eigh(graph.laplacian())[1][:, :4]
    solution = search("GLIOMA", 0.0, 1, SearchSettings(init="spectral", max_evaluations=200))
    expected = np.linalg.eigvalsh(graph.laplacian())[:4].sum()
    assert solution.value == pytest.approx(expected, rel=1e-12)  # the start is the optimum
    overlap = np.linalg.svd(basis.T @ solution.basis, compute_uv=False)
    assert overlap.min() > 1 - 1e-6


def test_starts_come_from_our_streams(monkeypatch):
    """Failed before: numpy's Generator drew them, whose stream may change."""
    starts = []

    def noted(self, laplacian, beta, start):
        starts.append(start)
        raise StopIteration

    monkeypatch.setattr(np.random, "default_rng", None)
    monkeypatch.setattr(execute, "subgradient_trust_region", functools.partial(noted, None))
    problem = Objective("clustering/colon", options=(("beta", 0.01),))
    with pytest.raises(StopIteration):
        execute.perform(Trial(Strategy("gsc"), problem, 1, 1, 100))
    solution = search("colon", 1e-4, 1, SearchSettings(max_evaluations=1))
    np.testing.assert_allclose(solution.basis, starts[0], rtol=1e-12, atol=1e-15)
