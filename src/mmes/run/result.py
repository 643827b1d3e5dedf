"""The result of a run, with the names that SciPy uses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Arrays, Vector
from mmes.base.reasons import StopReason
from mmes.base.tensors import to_numpy
from mmes.run.reevaluation import Reevaluation
from mmes.run.settings import RunSettings
from mmes.run.state import RunState, Spent
from mmes.strategies import Optimizer

# Said of an INFEASIBLE end if another point than the last one is feasible.
_ONLY_X = (
    "The search ended with its centre at a point that violates constraints. x does not: it is the "
    "best feasible point that was found."
)
# Said of a target that single values have reached.
_NOT_SURELY = (
    "Single values reached the target, but the average of new values at the returned point is not "
    "clearly below it: f is noisy, or has changed. Allow more evaluations, or average several in f."
)
_NOT_VALIDATED = " Every validation failed: it returned NaN or inf."


@dataclass(frozen=True)
class Result:
    """The result of `minimize`.

    Attributes
    ----------
    x : ndarray
        The best point found; within the bounds. With a device, `x` and `mean` are tensors on it.
    fun : float
        The value of the objective at `x`. For a noisy objective, the best point, the mean and the
        average of the means are evaluated again; `x` is one of these, and `fun` the average of its
        new values. With `batches`, `x` is the mean and `fun` its value on the last batch. With
        `validation`, `x` is the mean with the best validation loss, and `fun` that loss.
    nfev : int
        Number of evaluations of the objective.
    nit : int
        Number of generations.
    success : bool
        Whether the target was reached and `fun` is not above it (for a noisy objective, `fun` and
        two standard errors, or more if it is the average of few values: 3.2 for three);
        without a target, whether the search converged.
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
        With ``reevaluations=k``: k new values of the best point and of the mean, under the names
        `x` and `mean`; for a noisy objective also of the average of the means, `average`.
    constraint_violation : float or None
        With constraints: the largest violation at `x`, 0 if there is none. `x` is the best feasible
        point or, if none was found, the one with the smallest violation.
    multipliers : ndarray or None
        The Lagrange multipliers, one per constraint in the order given.
    active : ndarray of bool or None
        Which constraints are active: all equalities, and inequalities with a multiplier.
    """

    x: Vector
    fun: float
    nfev: int
    nit: int
    success: bool
    status: int
    message: str
    reason: StopReason
    mean: Vector
    sigma: float
    seed: int
    starts: int
    failed: int
    time: float
    history: Arrays = field(repr=False)
    strategy: str = "mmes"
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    kernel: str = ""
    retried: int = 0
    reevaluated: dict[str, Vector] | None = None
    reasons: tuple[StopReason, ...] = ()
    noisy: bool = False
    fun_std: float | None = None
    best_seen: float = math.nan
    constraint_violation: float | None = None
    multipliers: Vector | None = None
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


def result_of(
    state: RunState,
    settings: RunSettings,
    now: Spent,
    reasons: tuple[StopReason, ...],
) -> Result:
    """Return what the run leaves behind; parameters as in `saved_state`."""
    es, reason = state.es, reasons[0]
    again = state.again or Reevaluation(np.empty(0), np.empty(0))
    beside = again.failed + state.partial.failed + state.noise.failed
    total = state.spent + state.here() + now + Spent(failed=beside)
    mean = es.kernel.copy(es.mean)
    name, average, error = again.better()
    # Who says that it is noisy gets averages in any case, but for a loss of its own.
    averaged = state.noise.noisy or settings.limits["noise"] == "yes"
    averaged = averaged and state.validation is None
    found = state.returned()
    if not averaged or average == math.inf:
        name, average, error = "x", found[0], math.nan
    constrained, feasible = _constrained(state, name, averaged and average < math.inf)
    # A mean that fails, on the last batch or where it is validated, is no success.
    success, target = reason.converged and average < math.inf, settings.limits["target"]
    if target is not None:
        # By what is returned: one lucky value of a noisy objective is no success.
        judged = state.noise.noisy and not state.judged_otherwise and state.again is not None
        surely = again.surely() if judged else average
        success = reason is StopReason.TARGET_REACHED and surely <= target
    judge = state.validation
    unvalidated = judge is not None and judge.count > 0 and average == math.inf
    # An unfinished generation has no line yet; nor has a point that was no candidate.
    written = state.history.last_best
    unwritten = state.partial.evaluations or (state.evaluations and written != state.best_value)
    return Result(
        x=es.kernel.copy({"mean": mean, "average": state.average.point}.get(name, found[1])),
        fun=average,
        nfev=state.evaluations + again.evaluations,
        nit=state.generations,
        success=success and feasible,
        status=reason.status,
        message=_in_words(reasons, target, success, feasible)
        + (_NOT_VALIDATED if unvalidated else ""),
        reason=reason,
        reasons=reasons,
        noisy=state.noise.noisy,
        fun_std=None if math.isnan(error) else error,
        best_seen=state.best_value if state.level is None else es.best_value,
        mean=mean,
        sigma=es.sigma,
        seed=settings.seed,
        starts=state.start + 1,
        failed=total.failed,
        time=total.seconds,
        history=state.history.columns(state.line() if unwritten else None),
        strategy=settings.strategy_in_words,
        options=dict(es.options) | {"seed": settings.seed},
        kernel=_kernel_in_words(es),
        retried=total.retried,
        reevaluated=None if state.again is None or state.ends_on_batch else state.again.values(),
        **constrained,
    )


def _constrained(state: RunState, name: str, averaged: bool) -> tuple[dict[str, Any], bool]:
    """Return what a result says of the constraints, and whether its point fulfils them.

    `name` says which point it is, "x" or "mean", and `averaged` whether by new evaluations.
    """
    handled, again = state.constraints, state.again
    if handled is None:
        return {}, True
    violation = math.inf if handled.best is None else handled.best.violation
    feasible = handled.feasible
    if averaged and again is not None:
        index = ("x", "mean").index(name)
        violation = float(again.violations[index])
        feasible = bool(again.excess[index] == 0.0)
    said = {"constraint_violation": violation, "multipliers": handled.multipliers}
    return said | {"active": handled.active}, feasible


def _in_words(
    reasons: tuple[StopReason, ...], target: float | None, success: bool, feasible: bool
) -> str:
    reason, *others = reasons
    if reason is StopReason.TARGET_REACHED and not success:
        return _NOT_SURELY
    if reason is StopReason.INFEASIBLE:
        said = _ONLY_X if feasible else reason.sentence
        # A spent budget may be all that is wrong.
        return f"{others[0].sentence} {said}" if others and not others[0].converged else said
    if target is not None and reason in (StopReason.CONVERGED_X, StopReason.CONVERGED_F):
        return f"{reason.sentence} The target was not reached."
    return reason.sentence


def _kernel_in_words(es: Optimizer) -> str:
    """Return the kernel, and whether it worked without a population."""
    if es.rows_at_once == es.rows:
        return es.kernel.name
    return f"{es.kernel.name}, without a population: {es.rows_at_once} candidates at a time"
