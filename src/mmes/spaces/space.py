"""Where a search takes place: start point, step size, bounds, scales, manifold; checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.spaces.bounds import LARGEST, checked_bounds, checked_inside
from mmes.spaces.boxes.rounded import integer_box, integer_mask
from mmes.spaces.manifolds import Manifold
from mmes.spaces.start import checked_point, checked_sigma, checked_steps, size_of_box


class Extent(NamedTuple):
    """What determines the memory of a search, besides its options."""

    n: int
    boxed: bool
    manifold: Manifold | None


@dataclass(frozen=True)
class Space:
    """Where a search takes place. All entries are checked; `checked` creates it from arguments."""

    x0: Vector | None  # The start point; None to draw it from the box, or on the manifold.
    sigma0: float  # The initial mutation strength.
    # The bounds (lower, upper), one entry per variable each.
    box: tuple[Vector, Vector] | None = None
    scale: Vector | None = None  # The typical size of each variable.
    manifold: Manifold | None = None  # The manifold that is searched, if it is not R^n.
    # Which variables are integers, if any. There is a box then, infinite without bounds.
    integers: NDArray[np.bool_] | None = None

    @classmethod
    def checked(
        cls,
        x0: Any,
        sigma0: Any,
        bounds: Any,
        scale: Any,
        manifold: Manifold | None = None,
        integers: Any = None,
    ) -> Self:
        """Return the requested space; finite bounds determine what was omitted.

        Raises TypeError or ValueError if an argument is wrong, or one that is needed is missing.
        """
        if integers is not None and integers is not False:
            return cls._of_integers(x0, sigma0, bounds, scale, manifold, integers)
        if manifold is not None:
            if sigma0 is None:
                raise ValueError("sigma0 is needed; on most manifolds 1 is a good choice")
            point = None if x0 is None else manifold.point(x0, "x0")
            return cls(point, checked_sigma(sigma0), manifold=manifold)
        point = None if x0 is None else checked_point(x0)
        box = checked_bounds(bounds, None if point is None else point.size)
        finite = box is not None and all(np.isfinite(side).all() for side in box)
        if point is not None and box is not None:
            checked_inside(point, *box)
        if point is None and not finite:
            raise ValueError(
                "x0 is needed, unless all variables have lower and upper bounds within "
                f"±{LARGEST:g}; a bound beyond that is none"
            )
        n = point.size if point is not None else box[0].size  # type: ignore[index]
        if sigma0 is not None:
            sigma, sizes = checked_steps(sigma0, scale, n)
            return cls(point, sigma, box, sizes)
        if box is None or not finite or scale is not None:
            raise ValueError(
                f"sigma0 is needed, unless all bounds lie within ±{LARGEST:g} and no scale is "
                "given; choose about a third of the distance from x0, along a typical variable, "
                "within which the optimum is expected"
            )
        sigma, sizes = size_of_box(*box)
        return cls(point, sigma, box, sizes)

    @classmethod
    def _of_integers(
        cls, x0: Any, sigma0: Any, bounds: Any, scale: Any, manifold: Manifold | None, integers: Any
    ) -> Self:
        """Return a space with integer variables and integer bounds for them."""
        if manifold is not None:
            raise ValueError(f"integers cannot be combined with a manifold, here {manifold}")
        space = cls.checked(x0, sigma0, bounds, scale)
        mask = integer_mask(integers, space.n)
        return replace(space, box=integer_box(space.box, mask), integers=mask)

    def starting_at(self, x0: Vector) -> Self:
        """Return the same space with another start point."""
        return replace(self, x0=x0)

    @property
    def n(self) -> int:
        """Number of variables; on a manifold, of the entries of a point."""
        if self.x0 is not None:
            return self.x0.size
        if self.manifold is not None:
            return int(np.prod(self.manifold.shape))
        return self.box[0].size  # type: ignore[index]

    @property
    def extent(self) -> Extent:
        """What determines the memory of a search."""
        return Extent(self.n, self.box is not None, self.manifold)

    @property
    def reach(self) -> Vector | float:
        """The standard deviation of the first step, by variable."""
        return self.sigma0 if self.scale is None else self.sigma0 * self.scale

    def arrays(self) -> dict[str, Vector]:
        """Return the arrays of a checkpoint; those that were not given are left out."""
        lower, upper = self.box or (None, None)
        found = {"x0": self.x0, "scale": self.scale, "lower": lower, "upper": upper}
        if self.integers is not None:
            found["integers"] = self.integers.astype(np.float64)
        return {name: array for name, array in found.items() if array is not None}
