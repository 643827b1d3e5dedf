"""Sparse spectral clustering: the paper's application of MMES on the Grassmann manifold.

`SparseSpectralClustering` is the scikit-learn style estimator; it needs the extra
``mmes[clustering]``. The rest works with numpy alone.
"""

from typing import TYPE_CHECKING

from mmes.base.loading import late_names
from mmes.lab.clustering.graphs import (
    Graph,
    dataset_names,
    graph_from_mat,
    load_graph,
    neighbour_affinity,
    normalized_laplacian,
    paper_affinity,
)
from mmes.lab.clustering.objective import SparseSpectralObjective
from mmes.lab.clustering.solve import SearchSettings, Solution, sparse_basis

if TYPE_CHECKING:
    from mmes.lab.clustering.estimator import SparseSpectralClustering

__all__ = [
    "Graph",
    "SearchSettings",
    "Solution",
    "SparseSpectralClustering",
    "SparseSpectralObjective",
    "dataset_names",
    "graph_from_mat",
    "load_graph",
    "neighbour_affinity",
    "normalized_laplacian",
    "paper_affinity",
    "sparse_basis",
]

# On first use, because scikit-learn is optional.
__getattr__ = late_names("mmes.lab.clustering", {"SparseSpectralClustering": "estimator"})
