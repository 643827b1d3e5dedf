"""What may live on a device, and how a start point that lies there is taken."""

from __future__ import annotations

from typing import Any

from mmes.base.tensors import device_of, hosted
from mmes.kernels import DEVICE_KERNELS
from mmes.spaces.manifolds import Manifold


def started_from(x0: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a start point in the host's memory, and the options with the device it came from."""
    there, kernel, found = device_of(x0), options.get("kernel"), {}
    device = options.get("device")
    if device is None:
        device = "cpu" if there is None and kernel in list(DEVICE_KERNELS) else there
    if device is None:
        return x0, options
    if there is not None and str(x0.dtype) in ("torch.float32", "torch.float64"):
        found["population_dtype"] = str(x0.dtype).removeprefix("torch.")
    named = str(device) if hasattr(device, "type") else device  # a torch.device
    return hosted(x0), found | options | {"device": named}


def check_workers(workers: Any, own: bool, device: str | None) -> None:
    """Raise ValueError if points on a device would have to travel to workers."""
    if device is not None and workers is not None and not own:
        raise ValueError(
            f"workers={workers!r} cannot be combined with device={device!r}: the candidates are "
            "made there and evaluated there; vectorized=True takes them all at once"
        )


def check_able(on_host: bool, strategy: str, manifold: Manifold | None, device: str) -> None:
    """Raise ValueError if a search cannot live on a device."""
    if manifold is not None:
        raise ValueError(f"device={device!r} cannot be combined with a manifold, here {manifold}")
    if on_host:
        raise ValueError(
            f"the strategy {strategy!r} works on numpy arrays and cannot live on a device, here "
            f"device={device!r}"
        )
