"""Graphs on samples: the construction of the paper, its data sets, and the user's data.

The paper says "5-nearest-neighbour graph, Gaussian similarity, normalised Laplacian". What
reproduces its numbers is `neighbour_affinity` on rows of unit norm: the sample itself counts as one
of its five neighbours, and the bandwidth is the median of all selected distances, including the
zeros of the samples to themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.extras import require

Array = NDArray[np.float64]
PAPER_NEIGHBOURS = 5
SYMMETRY_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Graph:
    """A weighted undirected graph on samples, with what is known about their classes."""

    name: str  # Name of the data set.
    # Similarity W of every pair of samples, (N_s, N_s), symmetric.
    affinity: Array = field(repr=False)
    n_clusters: int  # Number of classes N_c.
    labels: NDArray[np.int64] = field(repr=False)  # Class of every sample, 0 .. N_c - 1.

    @property
    def n_samples(self) -> int:
        """Number of samples N_s."""
        return len(self.affinity)

    def laplacian(self) -> Array:
        """Return the normalised Laplacian."""
        return normalized_laplacian(self.affinity)


def dataset_names() -> list[str]:
    """Return the names of the data sets whose graphs are in the package."""
    files = (Path(entry.name) for entry in resources.files("mmes.lab.clustering.data").iterdir())
    return sorted((file.stem for file in files if file.suffix == ".npz"), key=str.lower)


def load_graph(name: str) -> Graph:
    """Load the graph of one of the paper's data sets, named by `dataset_names`.

    For the four sets that are not in the package, and for your own data, see `graph_from_mat`.
    """
    if name not in dataset_names():
        raise ValueError(
            f"there is no graph named {name!r} in the package; it has {', '.join(dataset_names())}"
        )
    with (
        resources.files("mmes.lab.clustering.data").joinpath(f"{name}.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as data,
    ):
        labels = data["labels"].astype(np.int64)
        affinity = np.eye(len(labels))
        i, j = data["edges"].astype(np.intp)
        affinity[i, j] = affinity[j, i] = data["weights"]
        return Graph(name, affinity, int(data["n_classes"]), labels)


def graph_from_mat(path: str | PathLike[str], name: str | None = None) -> Graph:
    """Build the paper's graph from a MATLAB file of the ASU feature-selection collection.

    It has the variables ``X`` (samples by features) and ``Y`` (their classes). The default name is
    that of the file with ``_`` as ``-``, which is how the paper spells the names.
    """
    path, scipy = Path(path), require("scipy.io", "clustering")
    try:
        content = scipy.loadmat(path)
    except NotImplementedError:
        raise ValueError(
            f"{path} is a MATLAB 7.3 file; save it again in MATLAB with the option '-v7'"
        ) from None
    for key in ("X", "Y"):
        if key not in content:
            found = ", ".join(sorted(k for k in content if not k.startswith("__"))) or "nothing"
            raise ValueError(f"{path} has no variable {key!r}; it contains {found}")
    features = np.array(content["X"], dtype=np.float64, order="C")
    classes, labels = np.unique(np.asarray(content["Y"]).ravel(), return_inverse=True)
    if features.ndim != 2 or len(labels) != len(features):
        raise ValueError(
            f"{path}: X has shape {features.shape} and Y {len(labels)} entries; "
            "X must have one row for each entry of Y"
        )
    affinity = paper_affinity(features)
    return Graph(name or path.stem.replace("_", "-"), affinity, len(classes), labels)


def paper_affinity(features: ArrayLike, n_neighbours: int = PAPER_NEIGHBOURS) -> Array:
    """Return the similarity of the paper: `neighbour_affinity` of samples scaled to unit norm."""
    features = np.asarray(features, dtype=np.float64)
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError(
            f"sample {int(np.argmin(norms))} is a row of zeros, which cannot be scaled to unit "
            "norm; remove it or use another affinity than 'paper'"
        )
    return neighbour_affinity(pairwise_distances(features / norms), n_neighbours)


def pairwise_distances(features: Array) -> Array:
    """Return the Euclidean distances between rows, exact also between close ones."""
    # Row by row from differences: the expansion |x|^2 - 2x'y + |y|^2 loses half of the digits.
    return np.stack([np.linalg.norm(features - row, axis=1) for row in features])


def neighbour_affinity(distances: ArrayLike, n_neighbours: int = PAPER_NEIGHBOURS) -> Array:
    """Return the Gaussian similarity of nearest neighbours.

    That is max(W, W') for W_ij = exp(-d_ij^2 / (2 sigma^2)) on the selected pairs and 0 elsewhere,
    where sigma is the median of the selected distances. A sample is one of its own neighbours; ties
    go to the lower index. With so many duplicates that the median is 0, the mean of the positive
    selected distances is used instead.
    """
    distances = np.asarray(distances, dtype=np.float64)
    count = len(distances)
    if not 2 <= n_neighbours <= count:
        raise ValueError(
            f"n_neighbours is {n_neighbours}; for {count} samples it must be 2 .. {count}, "
            "the sample itself counted"
        )
    order = distances.copy()
    np.fill_diagonal(order, -1.0)  # the sample itself comes first, also before its duplicates
    nearest = np.argsort(order, axis=1, kind="stable")[:, :n_neighbours]
    selected = np.take_along_axis(distances, nearest, axis=1)
    sigma = float(np.median(selected))
    if sigma == 0.0:
        positive = selected[selected > 0.0]
        sigma = float(positive.mean()) if len(positive) else 1.0
    affinity = np.zeros((count, count))
    np.put_along_axis(affinity, nearest, np.exp(-0.5 * (selected / sigma) ** 2), axis=1)
    return np.maximum(affinity, affinity.T)


def normalized_laplacian(affinity: ArrayLike) -> Array:
    """Return I - D^(-1/2) W D^(-1/2), where D holds the row sums of W.

    A sample without any similarity, not even to itself, is a separate component: its row is 0.

    Raises
    ------
    ValueError
        If W is not a square, symmetric matrix of finite numbers >= 0.
    """
    affinity = np.asarray(affinity, dtype=np.float64)
    if affinity.ndim != 2 or affinity.shape[0] != affinity.shape[1]:
        raise ValueError(f"an affinity must be a square matrix, not of shape {affinity.shape}")
    if not np.isfinite(affinity).all() or (affinity < 0.0).any():
        raise ValueError("an affinity must have finite entries >= 0")
    if not np.allclose(affinity, affinity.T, rtol=0.0, atol=SYMMETRY_TOLERANCE * affinity.max()):
        raise ValueError("an affinity must be symmetric; (W + W.T) / 2 makes it so")
    degrees = affinity.sum(axis=1)
    alone = degrees == 0.0
    scale = 1.0 / np.sqrt(np.where(alone, 1.0, degrees))
    laplacian = -(scale[:, None] * affinity * scale)
    laplacian[np.diag_indices_from(laplacian)] += np.where(alone, 0.0, 1.0)
    return laplacian
