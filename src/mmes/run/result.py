"""The result of a run, with the names that SciPy uses."""

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
    """The result of `minimize`.

    Attributes
    ----------
    x : ndarray
        The best point found; within the bounds. With a device, `x` and `mean` are tensors on it.
    fun : float
        The value of the objective at `x`. For a noisy objective, the best point and the mean are
        evaluated again; `x` is the better of the two, and `fun` the average of its new values. With
        `batches`, `x` is the mean and `fun` its value on the last batch. With `validation`, `x` is
        the mean with the best validation loss, and `fun` that loss.
    nfev : int
        Number of evaluations of the objective.
    nit : int
        Number of generations.
    success : bool
        Whether the target was reached and `fun` is not above it; without a target, whether the
        search converged.
    status : int
        The number of the stop reason.
    message : str
        The stop reason in words.
    reason : StopReason
        The stop reason itself.
    reasons : tuple of StopReason
        All stop reasons that applied at the end, `reason` first.
    noisy : bool
        Whether the objective returned different values for the same point.
    fun_std : float or None
        The standard error of `fun` if it is an average, otherwise None.
    best_seen : float
        The best single value observed; for a noisy objective usually a lucky one, below `fun`.
    mean : ndarray
        The final centre of the search.
    sigma : float
        The final mutation strength.
    seed : int
        The seed, recorded so that the run can be repeated.
    starts : int
        Number of starts: one more than the restarts that happened.
    failed : int
        Number of evaluations that returned NaN or failed.
    time : float
        Duration of the run in seconds.
    history : dict of ndarray
        Convergence: `evaluations`, `best`, `sigma` and `start`, thinned to at most 2000 entries.
        With `batches`, `best` is the median value of each generation. With `validation` there is
        `validation`, the last validation loss.
    strategy : str
        Name of the strategy, and why it was chosen if ``"auto"`` chose it.
    options : dict
        The options of the strategy, including the defaults that were used.
    kernel : str
        The kernel that was used, and whether it worked without storing the population.
    retried : int
        Number of evaluations repeated because a worker died or was killed; not counted in `nfev`.
    reevaluated : dict of ndarray or None
        With ``reevaluations=k``: k new values of `x` and of `mean`, under these names.
    constraint_violation : float or None
        With constraints: the largest violation at `x`, 0 if there is none. `x` is the best feasible
        point or, if none was found, the one with the smallest violation.
    multipliers : ndarray or None
        The Lagrange multipliers, one per constraint in the order given.
    active : ndarray of bool or None
        Which constraints are active: all equalities, and inequalities with a multiplier.
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
