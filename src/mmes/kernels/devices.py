"""Where a search is computed: kernel, threads, device, floating-point types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from mmes.base.tensors import device_of, to_numpy
from mmes.kernels.choose import DEVICE_KERNELS, Precision, choose_kernel
from mmes.spaces.manifolds import Manifold

if TYPE_CHECKING:
    from mmes.kernels.protocol import Kernel


@dataclass(frozen=True)
class Place:
    """Where a search is computed."""

    kernel: str = "auto"  # The kernel's name, or ``"auto"``.
    # Threads of a kernel on the host; None chooses their number by the size.
    threads: int | None = None
    device: str | None = None  # Where the vectors are, as torch names it; None means numpy arrays.
    # population_dtype, mean_dtype, archive_dtype: floating-point types on a device; None
    # means the default.
    population_dtype: str | None = None
    mean_dtype: str | None = None
    archive_dtype: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the place in the options of a strategy; missing options get their defaults."""
        return cls(**{f.name: options[f.name] for f in fields(cls) if f.name in options})

    @classmethod
    def apply(cls, options: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with another place; without a device, no floating-point types are set."""
        moved = options | dict(changes)
        if moved.get("device") is not None:
            return moved
        return {name: value for name, value in moved.items() if name not in PRECISIONS}

    def open(self) -> Kernel:
        """Return the kernel; see `choose_kernel`."""
        precision = Precision(self.population_dtype, self.mean_dtype)
        return choose_kernel(self.kernel or "auto", self.threads, self.device, precision)


PLACE_OPTIONS = tuple(f.name for f in fields(Place))
"""The options for where a search is computed; they change results only by rounding."""
PRECISIONS = PLACE_OPTIONS[3:]
"""Options that mean nothing where the vectors are numpy arrays."""


def started_from(x0: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a start point in host memory, and the options with its device."""
    there, kernel, found = device_of(x0), options.get("kernel"), {}
    device = options.get("device")
    if device is None:
        device = "cpu" if there is None and kernel in list(DEVICE_KERNELS) else there
    if device is None:
        return x0, options
    if there is not None and str(x0.dtype) in ("torch.float32", "torch.float64"):
        found["population_dtype"] = str(x0.dtype).removeprefix("torch.")
    named = str(device) if hasattr(device, "type") else device  # a torch.device
    return to_numpy(x0), found | options | {"device": named}


def check_workers(workers: Any, able: bool, device: str | None) -> None:
    """Raise ValueError if points on a device would have to be sent to workers."""
    if device is not None and workers is not None and not able:
        raise ValueError(
            f"workers={workers!r} cannot be combined with device={device!r}: candidates are "
            "generated and evaluated on the device; vectorized=True evaluates all of them in "
            "one call"
        )


def check_able(on_host: bool, strategy: str, manifold: Manifold | None, device: str) -> None:
    """Raise ValueError if a search cannot use a device."""
    if manifold is not None:
        raise ValueError(f"device={device!r} cannot be combined with a manifold, here {manifold}")
    if on_host:
        raise ValueError(
            f"the strategy {strategy!r} works on numpy arrays and cannot use a device, here "
            f"device={device!r}"
        )
