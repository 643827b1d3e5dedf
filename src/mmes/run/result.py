"""What a run leaves behind, in SciPy's words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.reasons import StopReason
from mmes.base.tensors import to_numpy


@dataclass(frozen=True)
class Result:
    """The outcome of `minimize`.

    Attributes
    ----------
    x : ndarray
        The best point observed; inside the bounds. With a device, a tensor there, as is `mean`.
    fun : float
        Its value, as it was observed. For a noisy objective `x` is the better of the best point and
        the mean by new evaluations, and this their average.
    nfev : int
        Evaluations of the objective.
    nit : int
        Generations.
    success : bool
        Whether the run ended because it could not, or need not, do better: the target was reached,
        and `fun` is not above it; or, where no target was set, the search converged.
    status : int
        The number of the stop reason.
    message : str
        The stop reason in words.
    reason : StopReason
        The stop reason itself.
    reasons : tuple of StopReason
        All reasons that held at the end, `reason` first.
    noisy : bool
        Whether one point gave different values.
    fun_std : float or None
        The standard error of `fun`, where it is an average.
    best_seen : float
        The best single value that was observed; for a noisy objective the luckiest.
    mean : ndarray
        The final centre of the search.
    sigma : float
        The final mutation strength.
    seed : int
        The seed, recorded so that the run can be repeated.
    starts : int
        Number of starts: one more than the restarts that happened.
    failed : int
        Evaluations that gave NaN or failed.
    time : float
        Seconds.
    history : dict of ndarray
        Convergence: `evaluations`, `best`, `sigma`, `start`, thinned to at most 2000 lines.
    strategy : str
        Name of the strategy.
    options : dict
        Its options, with those filled in that were left to their defaults.
    kernel : str
        The kernel that did the work, and whether it did so without a population.
    retried : int
        Evaluations that were repeated because a worker died or was killed; not part of `nfev`.
    reevaluated : dict of ndarray or None
        With ``reevaluations=k``: k new values of `x` and of `mean`, under these names.
    constraint_violation : float or None
        With constraints: the largest violation at `x`, 0 where all are fulfilled. `x` is the best
        feasible point, or the one with the smallest violation where none was found.
    multipliers : ndarray or None
        The Lagrange multipliers, one per constraint in the order given.
    active : ndarray of bool or None
        Which constraints hold the search back: all equalities, and inequalities with a multiplier.
    """

    x: NDArray[np.float64]
    fun: float
    nfev: int
    nit: int
    success: bool
    status: int
    message: str
    reason: StopReason
    mean: NDArray[np.float64]
    sigma: float
    seed: int
    starts: int
    failed: int
    time: float
    history: dict[str, NDArray[Any]] = field(repr=False)
    strategy: str = "mmes"
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    kernel: str = ""
    retried: int = 0
    reevaluated: dict[str, NDArray[np.float64]] | None = None
    reasons: tuple[StopReason, ...] = ()
    noisy: bool = False
    fun_std: float | None = None
    best_seen: float = math.nan
    constraint_violation: float | None = None
    multipliers: NDArray[np.float64] | None = None
    active: NDArray[np.bool_] | None = None

    def keys(self) -> tuple[str, ...]:
        """Return the names of the entries, so that ``dict(result)`` works."""
        return tuple(f.name for f in fields(self))

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __str__(self) -> str:
        width = max(len(f.name) for f in fields(self))
        lines = []
        for f in fields(self):
            if f.name in ("history", "options", "reason"):
                continue
            value = to_numpy(getattr(self, f.name))
            if value is None:
                continue
            if isinstance(value, np.ndarray):
                value = np.array2string(value, threshold=6, edgeitems=2, precision=6)
            lines.append(f"{f.name:>{width}}: {value}")
        return "\n".join(lines)
