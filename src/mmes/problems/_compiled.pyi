"""Fast evaluation of the problems; `functions` and `composition` are the readable version."""

import numpy as np
from numpy.typing import NDArray

def evaluate(
    points: NDArray[np.float64],
    parts: NDArray[np.int64],
    weights: NDArray[np.float64],
    variables: NDArray[np.int32],
    coefficients: NDArray[np.float64],
    matrices: NDArray[np.float64],
    level: str = "",
) -> NDArray[np.float64]: ...
def evaluate_rows(
    points: NDArray[np.float64], kind: int, coefficients: NDArray[np.float64], level: str = ""
) -> NDArray[np.float64]: ...
def levels() -> list[str]: ...
