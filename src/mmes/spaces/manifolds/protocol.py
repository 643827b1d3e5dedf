"""What a strategy needs to know about the space it searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.spaces.bounds import short_repr

Array = NDArray[np.float64]

# A start point this close to the manifold is rounding or printed digits; farther off is a mistake.
START_TOLERANCE = 1e-6


class NormalSource(Protocol):
    """A source of independent standard normals, such as `numpy.random.Generator`."""

    def standard_normal(self, size: Any = None, /) -> Any:
        """Return an array of the shape `size`."""
        ...


class Manifold(ABC):
    """A submanifold of a space of arrays, with the Euclidean inner product on its tangents.

    Points and tangents are arrays of the shape `shape`. A method that takes tangents also takes a
    batch of them, stacked along leading axes. Every member of a batch is computed separately, so
    that a candidate does not depend on the others, to the last bit.

    Parameters
    ----------
    *shape : int
        The shape of a point.

    Attributes
    ----------
    shape : tuple of int
        The shape of a point.
    """

    def __init__(self, *shape: int) -> None:
        for size in shape:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(
                    f"a size of {type(self).__name__} is {size!r}; it must be an integer >= 1"
                )
        if not shape:
            raise ValueError(f"{type(self).__name__} needs at least one size")
        self.shape: tuple[int, ...] = tuple(int(size) for size in shape)

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of degrees of freedom of a tangent, the n of the parameter defaults."""

    @property
    def ambient_dim(self) -> int:
        """Number of entries of a point."""
        return int(np.prod(self.shape))

    @abstractmethod
    def random_point(self, rng: NormalSource) -> Array:
        """Return a point drawn uniformly (Euclidean space: a standard normal one)."""

    @abstractmethod
    def proj(self, point: Array, ambient: Array) -> Array:
        """Return the tangents at `point` nearest to `ambient`, an array or a batch of arrays."""

    @abstractmethod
    def retract(self, point: Array, tangent: Array) -> Array:
        """Return the points to evaluate after the steps `tangent` from `point`."""

    def retract_mean(self, point: Array, tangent: Array) -> Array:
        """Return the point after a step, in the representation closest to `point`.

        Stored directions stay meaningful only if the representation does not rotate. If a point has
        only one representation, this is `retract`.
        """
        return self.retract(point, tangent)

    def transport(self, old: Array, new: Array, tangent: Array) -> Array:
        """Transport tangents from `old` to `new` by projection, which never lengthens them."""
        del old
        return self.proj(new, tangent)

    @abstractmethod
    def distance_from(self, array: Array) -> float:
        """Return by how much an array of the right shape violates the constraint."""

    @abstractmethod
    def nearest_point(self, array: Array) -> Array:
        """Return the point nearest to an array that is close to the manifold."""

    def point(self, value: ArrayLike, name: str = "the start point") -> Array:
        """Check a point of the user and return an exactly feasible copy.

        Raises
        ------
        ValueError
            If the shape is wrong, an entry is not finite, or the constraint fails by more than
            1e-6.
        """
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be an array of numbers of shape {self.shape}") from None
        if array.shape != self.shape:
            raise ValueError(
                f"{name} has shape {array.shape}; a point of {self} has shape {self.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has an entry that is not finite")
        distance = self.distance_from(array)
        if distance > START_TOLERANCE:
            raise ValueError(
                f"{name} is not on {self}: {self._constraint()} fails by {distance:.3g}, "
                f"at most {START_TOLERANCE:g} is allowed"
            )
        return self.nearest_point(array)

    def description(self) -> dict[str, Any]:
        """Return a JSON description, from which `manifold_from` makes an equal manifold."""
        return {"kind": type(self).__name__, "shape": list(self.shape)}

    def _constraint(self) -> str:
        """Return the constraint in a few words."""
        return "its constraint"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(str(size) for size in self.shape)})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Manifold) and type(self) is type(other) and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.shape))


def manifold_from(description: Mapping[str, Any]) -> Manifold:
    """Return the manifold of a `Manifold.description`; a custom class must have been imported."""
    kinds = {kind.__name__: kind for kind in _descendants(Manifold)}
    try:
        kind, shape = kinds[description["kind"]], description["shape"]
    except KeyError as missing:
        raise ValueError(
            f"{dict(description)!r} does not describe a manifold: {missing} is not known; "
            f"kinds are {', '.join(sorted(kinds))}"
        ) from None
    return kind(*shape)


def _descendants(kind: type[Manifold]) -> Iterator[type[Manifold]]:
    for child in kind.__subclasses__():
        if not child.__name__.startswith("_"):
            yield child
        yield from _descendants(child)


def checked_manifold(
    manifold: Manifold | None, strategy: str, able: bool, bounds: Any, scale: Any
) -> Manifold | None:
    """Return the manifold after checking that the strategy supports it."""
    if manifold is None:
        return None
    if not isinstance(manifold, Manifold):
        raise TypeError(
            f"manifold must be one of mmes.spaces.manifolds, not {short_repr(manifold)}"
        )
    if not able:
        raise ValueError(f"the strategy {strategy!r} does not search manifolds; 'mmes' does")
    for name, value in (("bounds", bounds), ("scale", scale)):
        if value is not None:
            raise ValueError(f"{name} cannot be combined with a manifold, here {manifold}")
    return manifold
