"""Cluster two moons and handwritten digits, and draw the picture of docs/clustering.md.

Usage: python examples/sparse_spectral_clustering.py [picture.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score

from mmes.lab.clustering import SparseSpectralClustering

BUDGET = 20_000


def fitted(samples: np.ndarray, n_clusters: int, beta: float) -> SparseSpectralClustering:
    model = SparseSpectralClustering(n_clusters, beta=beta, max_evaluations=BUDGET, random_state=0)
    return model.fit(samples)


def draw_moons(axis: plt.Axes, count: int, beta: float) -> None:
    samples, truth = make_moons(count, noise=0.06, random_state=1)
    model = fitted(samples, 2, beta)
    colours = np.array(["#1f77b4", "#d95f02"])[model.labels_]
    axis.scatter(*samples.T, c=colours, s=14)
    score = adjusted_rand_score(truth, model.labels_)
    axis.set_title(f"two moons, {count} samples, beta = {beta:g}\nadjusted Rand index {score:.2f}")
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])


def draw_projector(axis: plt.Axes, beta: float, digits: np.ndarray, truth: np.ndarray) -> None:
    model = fitted(digits, 5, beta)
    order = np.argsort(truth, kind="stable")
    projector = np.abs(model.embedding_ @ model.embedding_.T)[np.ix_(order, order)]
    axis.imshow(projector, cmap="Greys", vmax=np.quantile(projector, 0.99))
    edges = np.cumsum(np.bincount(truth))
    axis.set_xticks(edges - np.bincount(truth) / 2, [str(kind) for kind in range(5)])
    axis.set_yticks(edges - np.bincount(truth) / 2, [str(kind) for kind in range(5)])
    for edge in edges[:-1]:
        axis.axhline(edge - 0.5, color="#d95f02", linewidth=0.6)
        axis.axvline(edge - 0.5, color="#d95f02", linewidth=0.6)
    small = np.mean(projector < 1e-4)
    score = adjusted_rand_score(truth, model.labels_)
    axis.set_title(
        f"|U U'| of 200 digits by kind, beta = {beta:g}\n"
        f"{small:.0%} of entries below 1e-4, adjusted Rand index {score:.2f}"
    )


def draw(path: Path) -> None:
    samples, kinds = load_digits(n_class=5, return_X_y=True)
    chosen = np.random.default_rng(1).choice(len(samples), 200, replace=False)
    digits, truth = samples[chosen], kinds[chosen]
    figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
    for axis, count in zip(axes[0], (200, 80), strict=True):
        draw_moons(axis, count, beta=0.001)
    for axis, beta in zip(axes[1], (0.0, 0.01), strict=True):
        draw_projector(axis, beta, digits, truth)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "sparse_spectral_clustering.png")
    draw(target)
    print(f"wrote {target}")
