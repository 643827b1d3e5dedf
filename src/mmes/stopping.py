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


# If the typical value of a generation moves by this share between the quarters of a window, the
# search is under way.
MOVEMENT = 1e-3


class Stagnation:
    """Tells when the best value improved too little over a window of generations.

    With b the best value now and b_old the one `window` generations ago, the run stagnates when
    b_old - b is 0 or less than `tolerance` * window * abs(b): a mean relative improvement below the
    tolerance a generation. That is the paper's rule. One thing is asked besides: the values of the
    generations must stand still too. After a lucky start the best value may stand for thousands of
    generations while a strategy learns the problem's scales, and those of its generations move.

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
        # The best value within each generation of the window.
        self._recent: deque[float] = deque(maxlen=window)
        self._generation = 0

    def observe(self, generation: int, best: float, generation_best: float) -> None:
        """Take note of the best value so far, and of that of the generation that ends."""
        self._generation = generation
        self._recent.append(generation_best)
        if not self._improvements or best < self._improvements[-1][1]:
            self._improvements.append((generation, best))
        limit = generation - self.window
        while len(self._improvements) > 1 and self._improvements[1][0] <= limit:
            self._improvements.popleft()

    @property
    def stagnated(self) -> bool:
        """Whether the window is full, and the best value and the generations stand still."""
        if not self._improvements:
            return False
        since, old = self._improvements[0]
        if self._generation - since < self.window or not np.isfinite(old):
            return False
        best = self._improvements[-1][1]
        still = old == best or old - best < self.tolerance * self.window * abs(best)
        return still and not self._generations_move()

    def _generations_move(self) -> bool:
        recent = np.array(self._recent)
        if recent.size < 4 or not np.isfinite(recent).all():
            return False
        typical = [float(np.median(part)) for part in np.array_split(recent, 4)]
        share = max(MOVEMENT, self.tolerance * self.window)
        return max(typical) - min(typical) > share * abs(typical[-1])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state: lines (generation, best), and the best of the recent generations."""
        lines = np.array(self._improvements, dtype=np.float64).reshape(-1, 2)
        return {"improvements": lines, "recent": np.array(self._recent, dtype=np.float64)}

    def restore(self, generation: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the state that `arrays` returned."""
        self._generation = generation
        self._improvements = deque((int(g), float(best)) for g, best in arrays["improvements"])
        self._recent = deque(map(float, arrays.get("recent", ())), maxlen=self.window)
