"""Spaces to search in: each says how to step, how to come back and how to carry directions along.

A strategy that talks to a `Manifold` and to nothing else works on all of them; `Euclidean` is the
case in which projecting changes nothing and retracting is addition.
"""

from typing import TYPE_CHECKING

from mmes.base.loading import late_names
from mmes.spaces.manifolds.protocol import Manifold, NormalSource, checked_manifold, manifold_from

if TYPE_CHECKING:
    from mmes.spaces.manifolds.euclidean import Euclidean
    from mmes.spaces.manifolds.orthonormal import Grassmann, Stiefel
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

# Few runs search a manifold: each is imported when it is used.
__getattr__ = late_names(
    "mmes.spaces.manifolds",
    {
        "Euclidean": "euclidean",
        "Grassmann": "orthonormal",
        "Oblique": "spheres",
        "Sphere": "spheres",
        "Stiefel": "orthonormal",
    },
)
