"""Sparse spectral clustering: the paper's application of MMES on the Grassmann manifold."""

from mmes.clustering.graphs import (
    Graph,
    dataset_names,
    graph_from_mat,
    load_graph,
    neighbour_affinity,
    normalized_laplacian,
    paper_affinity,
)
from mmes.clustering.objective import SparseSpectralObjective

__all__ = [
    "Graph",
    "SparseSpectralObjective",
    "dataset_names",
    "graph_from_mat",
    "load_graph",
    "neighbour_affinity",
    "normalized_laplacian",
    "paper_affinity",
]
