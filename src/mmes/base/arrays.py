"""Names for the types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""An array of float64 of any shape: a point, a population, values."""
Indices = NDArray[np.int64]
"""Rows of an array, for example from best to worst."""
Arrays = dict[str, NDArray[Any]]
"""The arrays of a state, by name."""
