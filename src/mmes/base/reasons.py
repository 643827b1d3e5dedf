"""Why a run ended.

What is said here is tested in `strategies/shell/stopping.py` (of the search), `run/limits.py`,
`run/loop.py`, and `run/growth.py` (noise, and generations that cannot be compared). A new reason
may also belong to `RESTARTABLE` (`run/restarts.py`), and needs a row in the table of
`docs/ends.md`: its advice stands in `tools/pages.py`, which writes that table.
"""

from __future__ import annotations

from enum import Enum


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
    STAGNATED = 1, "The values no longer improve: allow restarts, or try another strategy."
    SIGMA_TOO_SMALL = 2, "The mutation strength sigma fell to sigma_min."
    MAX_EVALUATIONS = 3, "The maximum number of evaluations was reached."
    MAX_GENERATIONS = 4, "The maximum number of generations was reached."
    TIME_LIMIT = 5, "The time limit was reached."
    CALLBACK = 6, "The callback stopped the run."
    REQUESTED = 7, "A stop was requested."
    SIGMA_TOO_LARGE = (
        8,
        "The steps became huge: is the objective unbounded below?",
    )
    UNBOUNDED = 9, "The objective returned -inf: it is unbounded below."
    ALL_FAILED = 10, "No candidate had a finite value in ten generations in a row."
    INTERRUPTED = 11, "The run was interrupted."
    CONVERGED_X = 12, "The search converged: steps are shorter than xtol times the first ones."
    CONVERGED_F = 13, "The search converged: values differ by no more than ftol or rounding."
    FLAT = 14, "The objective is flat: every value was the same."
    NOISY = (
        15,
        "Noise prevents further progress, and a larger population does not fit: allow more "
        "evaluations or memory, or average several evaluations in the objective.",
    )
    INFEASIBLE = (
        16,
        "The search ended at a point that violates constraints; g is satisfied if g(x) <= 0.",
    )
    VALIDATION = 17, "The validation loss no longer improves (patience)."

    def __init__(self, status: int, sentence: str):
        self.status = status
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence

    @property
    def converged(self) -> bool:
        """Whether the search converged or reached its target."""
        return self in (
            StopReason.TARGET_REACHED,
            StopReason.CONVERGED_X,
            StopReason.CONVERGED_F,
        )
