"""Spaces to search in: each says how to step, how to come back and how to carry directions along.

A strategy that talks to a `Manifold` and to nothing else works on all of them; `Euclidean` is the
case in which projecting changes nothing and retracting is addition.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "Euclidean": "euclidean",
    "Grassmann": "orthonormal",
    "Oblique": "spheres",
    "Sphere": "spheres",
    "Stiefel": "orthonormal",
}


def __getattr__(name: str) -> Any:
    # Few runs search a manifold: each is imported when it is used.
    if name in _MODULES:
        return getattr(import_module(f"mmes.spaces.manifolds.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'mmes.spaces.manifolds' has no attribute {name!r}")
