"""Fast evaluation of the problems; `functions` and `composition` are the readable version."""

import numpy as np
from numpy.typing import NDArray

class Composition:
    def __init__(
        self,
        parts: NDArray[np.int64],
        weights: NDArray[np.float64],
        variables: NDArray[np.int32],
        coefficients: NDArray[np.float64],
        matrices: NDArray[np.float64],
    ) -> None: ...
    def evaluate(self, points: NDArray[np.float64], level: str = "") -> NDArray[np.float64]: ...

def evaluate_rows(
    points: NDArray[np.float64], kind: int, coefficients: NDArray[np.float64], level: str = ""
) -> NDArray[np.float64]: ...
def levels() -> list[str]: ...
