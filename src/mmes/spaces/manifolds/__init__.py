"""Manifolds as search spaces: each defines projection, retraction and transport of directions.

A strategy that uses only the interface of `Manifold` works on all of them; in `Euclidean` space
projection is the identity and retraction is addition.
"""

from mmes.spaces.manifolds.euclidean import Euclidean
from mmes.spaces.manifolds.orthonormal import Grassmann, Stiefel
from mmes.spaces.manifolds.protocol import Manifold, NormalSource, checked_manifold, manifold_from
from mmes.spaces.manifolds.spheres import Oblique, Sphere

__all__ = [
    "Euclidean",
    "Grassmann",
    "Manifold",
    "NormalSource",
    "Oblique",
    "Sphere",
    "Stiefel",
    "checked_manifold",
    "manifold_from",
]
