"""States as dataclasses of numbers and arrays, written and read field by field.

A field is a number, a small numpy array, a vector of the kernel, or another record, which may write
and read itself (`SavesItself`, such as an `Archive`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Arrays
from mmes.base.saved_numbers import checked_scalar
from mmes.kernels import Handle, Kernel


@runtime_checkable
class SavesItself(Protocol):
    """A record that saves and restores itself."""

    def saved(self, kernel: Kernel) -> Arrays:
        """Return the arrays of the state, not copied."""
        ...

    def restore(self, kernel: Kernel, arrays: Arrays) -> None:
        """Restore what `saved` returned."""
        ...


def scalars_of(record: Any) -> dict[str, Any]:
    """Return the numbers of a dataclass, those of dataclasses inside it under a prefix."""
    return {name: value for name, value, _ in _flat(record) if isinstance(value, int | float)}


def arrays_of(record: Any, kernel: Kernel) -> Arrays:
    """Return the arrays of a dataclass, not copied; those of dataclasses inside under a prefix."""
    found: Arrays = {}
    for name, value, _ in _flat(record):
        if isinstance(value, SavesItself):
            found |= {f"{name}_{part}": array for part, array in value.saved(kernel).items()}
        elif isinstance(value, np.ndarray):
            found[name] = value
        elif value is not None and not isinstance(value, int | float):
            found[name] = kernel.to_host(value)
    return found


def restore_into(record: Any, kernel: Kernel, scalars: dict[str, Any], arrays: Arrays) -> None:
    """Set the fields of a new dataclass to what `scalars_of` and `arrays_of` returned; copied.

    Raises KeyError, TypeError or ValueError if a value is missing, has another type or another
    shape, or is not finite.
    """
    for name, value, put in _flat(record):
        if isinstance(value, SavesItself):
            prefix = f"{name}_"
            parts = {n[len(prefix) :]: a for n, a in arrays.items() if n.startswith(prefix)}
            for part, array in parts.items():
                _check_numbers(f"{prefix}{part}", array)
            value.restore(kernel, parts)
        elif isinstance(value, int | float):
            put(checked_scalar(name, scalars[name], value))
        elif value is not None:
            put(_checked_array(name, arrays[name], value, kernel))
        elif name in arrays:  # a vector that the options do not ask for: scales given by the user
            put(_checked_array(name, arrays[name], kernel.copy(record.mean), kernel))


def _flat(record: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and value of every field, and a function that sets it."""
    for field in fields(record):
        name, value = prefix + field.name, getattr(record, field.name)
        if is_dataclass(value) and not isinstance(value, SavesItself):
            yield from _flat(value, f"{name}_")
        else:
            yield name, value, lambda new, name=field.name: setattr(record, name, new)


def _checked_array(name: str, stored: NDArray[Any], fresh: Any, kernel: Kernel) -> Any:
    shape = tuple(fresh.shape)
    # What a search has not met yet is empty: values of a generation before the first, say.
    grows = shape[0] == 0
    if stored.shape != shape and not (grows and stored.shape[1:] == shape[1:]):
        raise ValueError(f"{name} must have the shape {shape}, not {stored.shape}")
    _check_numbers(name, stored)
    if isinstance(fresh, np.ndarray):
        return np.array(stored, dtype=fresh.dtype)
    kernel.assign(fresh, stored)
    return fresh


def _check_numbers(name: str, stored: NDArray[Any]) -> None:
    # +inf is a value that ranks last; nothing else that is stored may be infinite.
    if stored.dtype.kind != "f":
        return
    bad = np.isnan(stored) if "previous" in name else ~np.isfinite(stored)
    if bad.any():
        raise ValueError(f"{name} must be finite")


def forget_values(record: Any) -> None:
    """Delete the values of the previous generation, here and in nested dataclasses."""
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name == "previous":
            setattr(record, field.name, np.empty(0))
        elif is_dataclass(value):
            forget_values(value)


def revalue(record: Any, values: NDArray[np.float64]) -> None:
    """Set the values of the previous generation, best first, here and in nested dataclasses."""
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name == "previous":
            setattr(record, field.name, values[: value.size].copy())
        elif is_dataclass(value):
            revalue(value, values)


class Centred(Protocol):
    """The fields that every state has."""

    mean: Handle
    sigma: float


@runtime_checkable
class Scaled(Protocol):
    """A state with a scale for each variable; None means ones."""

    scale: Handle | None


S = TypeVar("S", bound=Centred)


class Recorded(Generic[S]):
    """The part of `Search` that is the same for every state that is a dataclass as above."""

    state: S
    _kernel: Any  # a Kernel, or as much more as the search needs

    @property
    def mean(self) -> Handle:
        """The centre of the search."""
        return self.state.mean

    @property
    def sigma(self) -> float:
        """The mutation strength."""
        return self.state.sigma

    @sigma.setter
    def sigma(self, sigma: float) -> None:
        self.state.sigma = sigma

    def spread(self) -> float:
        """See `Search.spread`."""
        scale = self.state.scale if isinstance(self.state, Scaled) else None
        return 1.0 if scale is None else self._kernel.largest(scale)

    def take_over(self, other: Self) -> None:
        """See `Search.take_over`."""
        self.state = other.state
        forget_values(self.state)

    def revalue(self, values: NDArray[np.float64]) -> None:
        """See `Revalues.revalue`."""
        revalue(self.state, values)

    def scalars(self) -> dict[str, Any]:
        """See `Search.scalars`."""
        return scalars_of(self.state)

    def arrays(self) -> Arrays:
        """See `Search.arrays`."""
        return arrays_of(self.state, self._kernel)

    def restore(self, scalars: dict[str, Any], arrays: Arrays) -> None:
        """See `Search.restore`."""
        restore_into(self.state, self._kernel, scalars, arrays)
        if not self.state.sigma > 0:
            raise ValueError(f"sigma must be > 0, not {self.state.sigma}")
