"""Why a run ends: the reasons, each with its sentence, and the test for stagnation."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class StopReason(Enum):
    """Why a run ended. Each member carries a status number and a sentence.

    Attributes
    ----------
    status : int
        A stable number for scripts.
    sentence : str
        The reason in words.
    """

    TARGET_REACHED = 0, "The target value was reached."
    STAGNATED = 1, "The best value no longer improves (stagnation)."
    SIGMA_TOO_SMALL = 2, "The mutation strength sigma became too small to make progress."
    MAX_EVALUATIONS = 3, "The budget of evaluations is spent."
    MAX_GENERATIONS = 4, "The limit of generations is reached."
    TIME_LIMIT = 5, "The time limit is reached."
    CALLBACK = 6, "The callback asked to stop."
    REQUESTED = 7, "A stop was requested."
    SIGMA_TOO_LARGE = (
        8,
        "The search ran away to huge steps: is the objective unbounded below?",
    )
    UNBOUNDED = 9, "The objective returned -inf: it is unbounded below."
    ALL_FAILED = 10, "No candidate of ten generations in a row gave a finite value."
    INTERRUPTED = 11, "The run was interrupted."

    def __init__(self, status: int, sentence: str):
        self.status = status
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence

    @property
    def converged(self) -> bool:
        """Whether the search ended because it could not, or need not, do better."""
        return self in (StopReason.TARGET_REACHED, StopReason.STAGNATED, StopReason.SIGMA_TOO_SMALL)


class Stagnation:
    """Tells when the best value improved too little over a window of generations.

    With b the best value now and b_old the one `window` generations ago, the run stagnates when
    b_old - b is 0 or less than `tolerance` * window * abs(b): a mean relative improvement below the
    tolerance a generation.

    Parameters
    ----------
    window : int
        Generations looked back on; the library's default is the number of variables.
    tolerance : float
        Relative improvement a generation below which a run counts as stagnated.
    """

    def __init__(self, window: int, tolerance: float):
        self.window = window
        self.tolerance = tolerance
        # Only improvements are kept: (generation, best value from that generation on).
        self._improvements: deque[tuple[int, float]] = deque()
        self._generation = 0

    def observe(self, generation: int, best: float) -> None:
        """Take note of the best value so far at the end of a generation."""
        self._generation = generation
        if not self._improvements or best < self._improvements[-1][1]:
            self._improvements.append((generation, best))
        limit = generation - self.window
        while len(self._improvements) > 1 and self._improvements[1][0] <= limit:
            self._improvements.popleft()

    @property
    def stagnated(self) -> bool:
        """Whether the window is full and the improvement over it too small."""
        if not self._improvements:
            return False
        since, old = self._improvements[0]
        if self._generation - since < self.window or not np.isfinite(old):
            return False
        best = self._improvements[-1][1]
        return old == best or old - best < self.tolerance * self.window * abs(best)

    def array(self) -> NDArray[Any]:
        """Return the state as an array of lines (generation, best)."""
        return np.array(self._improvements, dtype=np.float64).reshape(-1, 2)

    def restore(self, generation: int, lines: NDArray[Any]) -> None:
        """Take over the state that `array` returned."""
        self._generation = generation
        self._improvements = deque((int(g), float(best)) for g, best in lines)
