"""A warning for models in low precision: below some step size, x no longer changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes.errors import MMESWarning, warn_user

# With steps of eight units in the last place about 3 % of the variables do not move; at one unit a
# quarter of them.
_UNITS = 8.0
_LOOKED_AT = 1000  # variables: a median needs no more


class LowPrecisionWarning(MMESWarning):
    """Many steps of the search are too small for the model's floating-point type."""


class SmallSteps:
    """Warns once when the candidates of a generation differ too little for a floating-point type.

    `resolution` is the relative resolution of the type, for example 1.2e-7 for float32; `way_out`
    says what the user can do.
    """

    def __init__(self, resolution: float, format_name: str, way_out: str):
        self._resolution = resolution
        self._format_name = format_name
        self._way_out = way_out
        self._said = False

    def look(self, points: Any) -> None:
        """Check a generation, an array or a tensor with one candidate per row."""
        if self._said or points.shape[0] < 2:
            return
        pair = points[-2:, :: max(1, points.shape[1] // _LOOKED_AT)]
        if not isinstance(pair, np.ndarray):
            pair = pair.detach().double().cpu().numpy()
        second, first = pair
        size = float(np.median(np.abs(first)))
        step = float(np.median(np.abs(first - second)))  # 0 where both lie on a bound
        if 0 < step < _UNITS * self._resolution * size:
            self._said = True
            warn_user(
                f"candidates differ by {step:.1e} and variables have the size {size:.1e}: many "
                f"such steps are lost in {self._format_name}. {self._way_out}",
                LowPrecisionWarning,
            )
