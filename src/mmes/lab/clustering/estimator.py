"""Sparse spectral clustering as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from mmes.base.extras import missing

try:
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.cluster import KMeans
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import validate_data
except ImportError as error:
    raise missing("scikit-learn", "clustering") from error

from mmes.lab.clustering.graphs import (
    neighbour_affinity,
    normalized_laplacian,
    pairwise_distances,
    paper_affinity,
)
from mmes.lab.clustering.objective import Array
from mmes.lab.clustering.solve import SearchSettings, sparse_basis

AFFINITIES = ("nearest_neighbors", "paper", "rbf", "precomputed")


class SparseSpectralClustering(ClusterMixin, BaseEstimator):
    """Spectral clustering with a sparse projector, minimised by MMES on the Grassmann manifold.

    The embedding is an orthonormal U that minimises Tr(U' L U) + beta * sum_ij |(U U')_ij|, where L
    is the normalised Laplacian of a similarity graph. k-means on its rows gives the clusters. For
    beta = 0 this is spectral clustering; a positive beta makes the similarities U U' sparse.

    One evaluation of the objective costs n_samples^2 * n_clusters operations and a fit takes
    thousands: this is a method for hundreds of samples, not for many thousands.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of clusters, and of columns of the embedding.
    beta : float, default 0.001
        Weight of the sparsity, at least 0. Values from 0.001 to 0.01 make a difference; much
        smaller ones reproduce spectral clustering.
    affinity : {"nearest_neighbors", "paper", "rbf", "precomputed"}, default "nearest_neighbors"
        How the similarity graph is built: Gaussian similarity of nearest neighbours with the median
        of their distances as bandwidth; the same on samples scaled to unit norm, which is the
        paper's construction; Gaussian similarity of all pairs; or `X` is the similarity matrix
        itself.
    n_neighbors : int, default 10
        Neighbours of a sample, including itself, for "nearest_neighbors" and "paper" (5 in the
        paper). At most the number of samples.
    gamma : float, default 1.0
        Width of the Gaussian exp(-gamma d^2) for "rbf".
    init : {"spectral", "random"}, default "spectral"
        Where the search starts: at the solution for beta = 0, with short steps, or at a random
        subspace, with long ones, as in the paper. A random start may find a lower objective;
        that need not be a better partition.
    restarts : int or "budget", default 0
        Number of further independent searches, of which the best counts, or as many as
        `max_evaluations` allows. With a number, each search has `max_evaluations`.
    max_evaluations : int, default 100_000
        Limit of evaluations of the objective. The paper allows 300_000.
    min_sigma : float, default 1e-6
        Step size at which a search ends.
    n_init : int, default 20
        Starts of k-means.
    random_state : int, RandomState or None, default None
        Seed of the search, of random starts and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The basis U. Its rows are what k-means clusters; they are defined up to a rotation.
    affinity_matrix_ : ndarray of shape (n_samples, n_samples)
        Similarity of every pair of samples.
    objective_ : float
        Value of the objective at `embedding_`.
    n_evaluations_ : int
        Number of evaluations of the objective.
    n_features_in_ : int
        Number of columns of `X` in `fit`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mmes.lab.clustering import SparseSpectralClustering
    >>> X, _ = make_moons(100, noise=0.05, random_state=0)
    >>> labels = SparseSpectralClustering(n_clusters=2, random_state=0).fit_predict(X)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        beta: float = 0.001,
        affinity: str = "nearest_neighbors",
        n_neighbors: int = 10,
        gamma: float = 1.0,
        init: str = "spectral",
        restarts: int | str = 0,
        max_evaluations: int = 100_000,
        min_sigma: float = 1e-6,
        n_init: int = 20,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.init = init
        self.restarts = restarts
        self.max_evaluations = max_evaluations
        self.min_sigma = min_sigma
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SparseSpectralClustering:
        """Cluster the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples; for ``affinity="precomputed"`` their similarities, (n_samples, n_samples),
            symmetric and not negative.
        y : Ignored
            Present for scikit-learn's interface.

        Returns
        -------
        SparseSpectralClustering
            The estimator itself.
        """
        del y
        self._check_parameters()
        if self.affinity == "precomputed" and issparse(X):
            X = X.toarray()
        samples: Any = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if len(samples) <= self.n_clusters:
            raise ValueError(
                f"n_clusters is {self.n_clusters}; with n_samples={len(samples)} it must be less "
                "than the number of samples"
            )
        self.affinity_matrix_ = self._similarities(samples)
        random = check_random_state(self.random_state)
        solution = sparse_basis(
            normalized_laplacian(self.affinity_matrix_),
            self.n_clusters,
            self.beta,
            seed=int(random.randint(np.iinfo(np.int32).max)),
            settings=SearchSettings(
                init=self.init,
                restarts=self.restarts,
                max_evaluations=self.max_evaluations,
                min_sigma=self.min_sigma,
            ),
        )
        self.embedding_ = solution.basis
        self.objective_ = solution.value
        self.n_evaluations_ = solution.evaluations
        starts: Any = self.n_init
        k_means = KMeans(self.n_clusters, n_init=starts, random_state=random)
        self.labels_ = k_means.fit(self.embedding_).labels_
        return self

    def _similarities(self, samples: Array) -> Array:
        neighbours = min(self.n_neighbors, len(samples))
        match self.affinity:
            case "paper":
                return paper_affinity(samples, neighbours)
            case "nearest_neighbors":
                return neighbour_affinity(pairwise_distances(samples), neighbours)
            case "rbf":
                return rbf_kernel(samples, gamma=self.gamma)
            case _:
                if samples.shape[0] != samples.shape[1]:
                    raise ValueError(
                        "affinity='precomputed' takes a square matrix of similarities, "
                        f"not one of shape {samples.shape}"
                    )
                return samples.copy()

    def _check_parameters(self) -> None:
        """Refuse an invalid parameter; `SearchSettings` checks those of the search."""
        if self.affinity not in AFFINITIES:
            raise ValueError(f"affinity is {self.affinity!r}; it must be one of {AFFINITIES}")
        for name, kind, low, text in (
            ("n_clusters", Integral, 1, "an integer >= 1"),
            ("n_neighbors", Integral, 2, "an integer >= 2"),
            ("n_init", Integral, 1, "an integer >= 1"),
            ("beta", Real, 0, "a number >= 0"),
            ("gamma", Real, 0, "a number >= 0"),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value < np.inf:  # type: ignore[operator]
                raise ValueError(f"{name} is {value!r}; it must be {text}")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a precomputed affinity is pairwise, and may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = self.affinity == "precomputed"
        return tags
