"""Support for tensors without importing a package for them."""

from __future__ import annotations

from typing import Any

import numpy as np


def device_of(thing: Any) -> str | None:
    """Return the device of a tensor, for example ``"cuda:0"``; None if it is not a tensor."""
    if hasattr(thing, "detach") and hasattr(thing, "device"):
        return str(thing.device)
    return None


def to_numpy(thing: Any) -> Any:
    """Return a tensor on any device, with or without gradients, as a numpy array.

    Anything else is returned as it is.
    """
    if not (hasattr(thing, "detach") and hasattr(thing, "device")):
        return thing
    tensor = thing.detach().cpu()
    try:
        array = tensor.numpy()
    except TypeError:  # numpy has no bfloat16
        array = tensor.double().numpy()
    return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array
