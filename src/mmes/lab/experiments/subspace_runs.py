"""Runs over subspaces: sparse spectral clustering by MMES, and by two methods with derivatives.

The problem is ``clustering/NAME`` with ``beta`` as its option (see
`mmes.lab.experiments.objectives`).
The strategy is ``mmes`` (on the Grassmann manifold, with the options of `SearchSettings`), ``gsc``
(trust region with subgradients) or ``smoothed`` (trust region on a smoothed objective). Start
points depend on the seed alone, so all three start alike.
"""

from __future__ import annotations

import time
from dataclasses import fields
from datetime import UTC, datetime

import numpy as np

from mmes.lab.clustering.competitors import smoothed_trust_region, subgradient_trust_region
from mmes.lab.clustering.graphs import Graph
from mmes.lab.clustering.solve import SearchSettings, sparse_basis
from mmes.lab.experiments.objectives import load_clustering_graph
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult
from mmes.run.restarts import random_point
from mmes.spaces.manifolds import Grassmann

SEARCH_OPTIONS = tuple(f.name for f in fields(SearchSettings) if f.name != "max_evaluations")
METHODS: dict[str, tuple[str, ...]] = {"mmes": SEARCH_OPTIONS, "gsc": (), "smoothed": ()}
"""The options of each method."""


def perform_over_subspaces(run: Trial, versions: dict[str, str]) -> TrialResult:
    """Carry out one run of sparse spectral clustering."""
    graph = load_clustering_graph(run.objective.name)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    value, evaluations = _search(run, graph)
    return TrialResult(
        best=value,
        evaluations=evaluations,
        generations=0,
        restarts=0,
        reached=run.target is not None and value <= run.target,
        status="FINISHED",
        message="The search on the manifold ended.",
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        objective_seconds=0.0,
        started=started,
        versions=versions,
        trace_evaluations=np.array([float(evaluations)]),
        trace_best=np.array([value]),
        trace_sigma=np.array([np.nan]),
    )


def _search(run: Trial, graph: Graph) -> tuple[float, int]:
    """Return the best value and the evaluations spent."""
    laplacian, beta = graph.laplacian(), float(dict(run.objective.options)["beta"])
    if run.strategy.name == "mmes":
        options: dict[str, object] = dict(run.strategy.options)
        settings = SearchSettings(max_evaluations=run.max_evaluations, **options)  # pyright: ignore[reportArgumentType]
        solution = sparse_basis(laplacian, graph.n_clusters, beta, seed=run.seed, settings=settings)
        return solution.value, solution.evaluations
    solver = {"gsc": subgradient_trust_region, "smoothed": smoothed_trust_region}[run.strategy.name]
    manifold = Grassmann(graph.n_samples, graph.n_clusters)
    start = random_point(manifold, run.seed)
    result = solver(laplacian, beta, start)
    return result.fun, result.nfev
