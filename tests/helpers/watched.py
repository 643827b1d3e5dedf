"""An objective made of layers that records its calls over all processes.

Its value is that of a sphere around a point; each layer changes it or raises. All layers except
`Noise` are pure functions of the point, so that a run can be repeated.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmes.base.tensors import to_numpy

Vector = NDArray[np.float64]

CENTRE = 0.25
"""Each variable at the optimum."""
_RECORD = struct.Struct("<d??2xi")
_NO_BATCH = -1


class Layer:
    """A change of a value."""

    noisy: ClassVar[bool] = False
    """Whether one point has several values."""

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the changed value; may raise."""
        raise NotImplementedError(f"{type(self).__name__} must define value")


class Broken(Exception):
    """What `Breaks` raises."""


def share_of(x: Vector, salt: bytes) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the point."""
    digest = hashlib.blake2b(x.tobytes() + salt, digest_size=8).digest()
    return int.from_bytes(digest) / 2.0**64


@dataclass(frozen=True)
class Fails(Layer):
    """Returns NaN at a fraction of the points."""

    share: float = 0.05

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the value, or NaN."""
        return math.nan if share_of(x, b"fails") < self.share else value


@dataclass(frozen=True)
class Raises(Layer):
    """Raises ArithmeticError at a fraction of the points."""

    share: float = 0.05

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the value, or raise."""
        if share_of(x, b"raises") < self.share:
            raise ArithmeticError("no value here")
        return value


@dataclass(frozen=True)
class Forbidden(Layer):
    """Returns inf if the second variable is large."""

    above: float = 1.4

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the value, or inf."""
        return math.inf if x[1] > self.above else value


@dataclass(frozen=True)
class Ties(Layer):
    """Rounds values down to steps, so that many are equal."""

    step: float = 0.5

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the value, rounded."""
        return self.step * math.floor(value / self.step) if math.isfinite(value) else value


@dataclass(frozen=True)
class Noise(Layer):
    """Adds noise that depends on the number of the call."""

    strength: float = 0.3
    noisy: ClassVar[bool] = True

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return a noisy value."""
        drawn = np.random.Generator(np.random.Philox(call)).standard_normal()
        return value + self.strength * float(drawn)


@dataclass(frozen=True)
class Breaks(Layer):
    """Raises `Broken` from a call on."""

    at: int

    def value(self, x: Vector, value: float, call: int) -> float:
        """Return the value, or raise."""
        if call >= self.at:
            raise Broken(f"call {call}")
        return value


def sphere(x: Any) -> float:
    """Return the squared distance of a point from the optimum."""
    apart = np.asarray(to_numpy(x), dtype=np.float64).reshape(-1) - CENTRE
    return float(np.add.reduce(apart * apart))


@dataclass(frozen=True)
class Seen:
    """The calls of an objective."""

    # calls, failed, outside: calls; those that failed, by NaN or an exception that is to be caught;
    # those outside the box.
    calls: int
    failed: int
    outside: int
    lowest: float  # The lowest value.
    batches: tuple[int, ...] = ()  # The batch of each call, where there are batches.


def level_of(batch: int | None) -> float:
    """Return by how much the values of a batch are above those without batches."""
    return 0.0 if batch is None else float(batch * 7 % 11)


@dataclass(frozen=True)
class Watched:
    """The objective; it can be sent to other processes."""

    file: str  # The file of the recorded calls.
    layers: tuple[Layer, ...] = ()  # The changes of its values, in this order.
    box: tuple[float, float] | None = None  # Lower and upper bound of every variable.
    # The lowest value that can be had; above 0 under constraints, and with integers.
    optimum: float = 0.0

    @property
    def noisy(self) -> bool:
        """Whether one point has several values."""
        return any(layer.noisy for layer in self.layers)

    def __call__(self, x: Any, batch: int | None = None) -> float:
        """Return the value of a point, on a batch where there are any, and record the call."""
        point = np.asarray(to_numpy(x), dtype=np.float64)
        outside = self.box is not None and not (
            (point >= self.box[0]).all() and (point <= self.box[1]).all()
        )
        with open(self.file, "ab", buffering=0) as file:
            call = file.tell() // _RECORD.size
            value, failed = math.nan, True
            try:
                value = self._layered(point, call) + level_of(batch)
                failed = math.isnan(value)
            except Broken:
                failed = False
                raise
            finally:
                number = _NO_BATCH if batch is None else batch
                file.write(_RECORD.pack(value, failed, outside, number))
        return value

    def quiet_value(self, x: Vector, batch: int | None = None) -> float:
        """Return the value without recording the call; NaN if it fails."""
        try:
            return self._layered(np.asarray(x, dtype=np.float64), -1) + level_of(batch)
        except ArithmeticError:
            return math.nan

    def seen(self, skipped: int = 0) -> Seen:
        """Return the recorded calls, without the first `skipped`."""
        path = Path(self.file)
        data = path.read_bytes() if path.exists() else b""
        records = list(_RECORD.iter_unpack(data))[skipped:]
        values = [value for value, _, _, _ in records if not math.isnan(value)]
        return Seen(
            calls=len(records),
            failed=sum(failed for _, failed, _, _ in records),
            outside=sum(outside for _, _, outside, _ in records),
            lowest=min(values, default=math.inf),
            batches=tuple(batch for _, _, _, batch in records if batch != _NO_BATCH),
        )

    def _layered(self, x: Vector, call: int) -> float:
        value = sphere(x)
        for layer in self.layers:
            value = layer.value(x, value, call)
        return value
