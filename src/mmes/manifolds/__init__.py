"""Spaces to search in: each says how to step, how to come back and how to carry directions along.

A strategy that talks to a `Manifold` and to nothing else works on all of them; `Euclidean` is the
case in which projecting changes nothing and retracting is addition.
"""

from mmes.manifolds.euclidean import Euclidean
from mmes.manifolds.orthonormal import Grassmann, Stiefel
from mmes.manifolds.protocol import Manifold, NormalSource, manifold_from
from mmes.manifolds.spheres import Oblique, Sphere

__all__ = [
    "Euclidean",
    "Grassmann",
    "Manifold",
    "NormalSource",
    "Oblique",
    "Sphere",
    "Stiefel",
    "manifold_from",
]
