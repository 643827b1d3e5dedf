"""Time of MMES on the clustering objective: 300 000 evaluations of a 100 x 10 problem, one core.

Usage: OMP_NUM_THREADS=1 python benchmarks/clustering.py
"""

from __future__ import annotations

import time

import numpy as np

from mmes.lab.clustering import SearchSettings, SparseSpectralObjective, load_graph, sparse_basis
from mmes.spaces.manifolds import Grassmann

EVALUATIONS = 300_000


def main() -> None:
    graph = load_graph("orlraws10P")
    laplacian, manifold = graph.laplacian(), Grassmann(graph.n_samples, graph.n_clusters)
    settings = SearchSettings(max_evaluations=EVALUATIONS, restarts="budget")
    wall, processor = time.perf_counter(), time.process_time()
    solution = sparse_basis(laplacian, graph.n_clusters, 0.01, seed=1, settings=settings)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    each = 1e6 * processor / solution.evaluations
    print(f"{graph.name} on {manifold}: f = {solution.value:.6g}")
    print(
        f"{solution.evaluations} evaluations in {wall:.1f} s ({processor:.1f} s of processor time)"
    )
    print(f"{each:.1f} us per evaluation, of which the objective takes {objective_time():.1f} us")


def objective_time() -> float:
    """Return the microseconds that the objective alone takes for one candidate of a population."""
    graph = load_graph("orlraws10P")
    manifold, rng = Grassmann(graph.n_samples, graph.n_clusters), np.random.default_rng(1)
    objective = SparseSpectralObjective(graph.laplacian(), 0.01)
    population = np.stack([manifold.random_point(rng) for _ in range(24)])
    objective(population)
    began = time.process_time()
    for _ in range(200):
        objective(population)
    return 1e6 * (time.process_time() - began) / (200 * len(population))


if __name__ == "__main__":
    main()
