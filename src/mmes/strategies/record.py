"""States as plain records: numbers and arrays in a dataclass, written and read field by field."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmes.strategies.protocol import Vector


def scalars_of(record: Any, prefix: str = "") -> dict[str, Any]:
    """Return the numbers of a dataclass, those of dataclasses inside it under a prefix."""
    return {name: value for name, value in _flat(record, prefix) if isinstance(value, int | float)}


def arrays_of(record: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return the arrays of a dataclass, not copied; those of dataclasses inside under a prefix."""
    return {name: value for name, value in _flat(record, prefix) if isinstance(value, np.ndarray)}


def restore_into(
    record: Any, scalars: dict[str, Any], arrays: dict[str, NDArray[Any]], prefix: str = ""
) -> None:
    """Give a dataclass the values that `scalars_of` and `arrays_of` returned; arrays are copied."""
    for field in fields(record):
        name, value = prefix + field.name, getattr(record, field.name)
        if is_dataclass(value):
            restore_into(value, scalars, arrays, f"{name}_")
        elif name in arrays:
            setattr(record, field.name, np.array(arrays[name]))
        elif name in scalars:
            setattr(record, field.name, scalars[name])


def _flat(record: Any, prefix: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for field in fields(record):
        name, value = prefix + field.name, getattr(record, field.name)
        found += _flat(value, f"{name}_") if is_dataclass(value) else [(name, value)]
    return found


class Centred(Protocol):
    """The least that a state holds."""

    mean: Vector
    sigma: float


S = TypeVar("S", bound=Centred)


class Recorded(Generic[S]):
    """The part of `Search` that is the same wherever `state` is a dataclass as above."""

    state: S

    @property
    def mean(self) -> Vector:
        """The centre of the search."""
        return self.state.mean

    @property
    def sigma(self) -> float:
        """The mutation strength."""
        return self.state.sigma

    def scalars(self) -> dict[str, Any]:
        """See `Search.scalars`."""
        return scalars_of(self.state)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Search.arrays`."""
        return arrays_of(self.state)

    def restore(self, scalars: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """See `Search.restore`."""
        restore_into(self.state, scalars, arrays)
