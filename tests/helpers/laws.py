"""Laws that must hold for every run with any combination of features.

A `Trial` contains the arguments of a run, its result and what was observed from outside; `LAWS` are
the laws that must hold for it. `features` makes trials.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmes.base.reasons import StopReason
from mmes.base.tensors import to_numpy
from mmes.errors import FailedEvaluationWarning
from mmes.testing.checking import require
from watched import Seen, Watched, level_of

# How close to the optimum a run must be that says it converged, relative to the start value.
_CONVERGED = 1e-2
_COMPARED = ("fun", "nfev", "nit", "sigma", "failed", "reason", "success", "noisy", "starts")


@dataclass(frozen=True)
class Trial:
    """A run to check."""

    result: Any
    seen: Seen  # The evaluations as the objective saw them.
    objective: Watched
    # The options of the run: limits, and the box.
    options: dict[str, Any] = field(default_factory=dict)
    warned: tuple[type[Warning], ...] = ()  # The categories of its warnings.
    twin: Any = None  # The run without an interruption, or in a simpler way: it must be equal.
    # Where it might have left files; `kept` names those that are allowed.
    folder: Path | None = None
    kept: tuple[str, ...] = ()
    before: frozenset[int] = frozenset()  # The processes that others had started before it.

    @property
    def batch(self) -> int | None:
        """The last batch, if the value that is returned is one of a batch."""
        if "batches" not in self.options or "validation" in self.options:
            return None
        return self.seen.batches[-1]

    def value_of(self, x: Any) -> float:
        """Return what the run should call the value of a point."""
        point = np.asarray(to_numpy(x))
        if "validation" in self.options:
            return float(self.options["validation"](point))
        return self.objective.quiet_value(point, self.batch)


def success_is_true(trial: Trial) -> None:
    """Check that success means what the reason says."""
    result, target = trial.result, trial.options.get("target")
    if result.reason is StopReason.TARGET_REACHED:
        reached = result.fun if "validation" in trial.options else result.best_seen
        require(target is not None and reached <= target, "no value reached the target")
    if not result.success:
        return
    require(result.reason.converged, f"success, though it ended as {result.reason.name}")
    if target is not None:
        require(result.fun <= target, f"success, though {result.fun} is above {target}")
        return
    if not trial.objective.noisy:
        start = trial.value_of(trial.options["x0"])
        optimum = trial.objective.optimum + level_of(trial.batch)
        require(
            result.fun - optimum <= _CONVERGED * start,
            f"success ({result.reason.name}), though {result.fun} is far from {optimum}",
        )


def constraints_hold(trial: Trial) -> None:
    """Check that a point is called feasible if it is, and that success needs it."""
    result, tolerance = trial.result, trial.options.get("constraint_tolerance", 1e-6)
    if "constraints" not in trial.options or trial.objective.noisy:
        return
    point = np.asarray(to_numpy(result.x))
    violation = max(0.0, *(float(part(point)) for part in trial.options["constraints"]))
    if math.isfinite(result.fun):
        said = result.constraint_violation
        require(said == violation, f"a violation of {violation} is said to be {said}")
    feasible = violation <= tolerance
    require(feasible or not result.success, f"success, with a violation of {violation}")


def the_value_is_that_of_the_point(trial: Trial) -> None:
    """Check that fun = f(x), to the bit, for a deterministic objective.

    With batches this is the value on the last batch, and with validation it is the validation loss.
    """
    result = trial.result
    noisy = trial.objective.noisy and "validation" not in trial.options
    if noisy or not np.isfinite(result.fun):
        return
    value = trial.value_of(result.x)
    require(value == result.fun, f"fun is {result.fun}, but f(x) is {value}")


def nothing_better_was_seen(trial: Trial) -> None:
    """Check that the best value is the lowest that the objective returned.

    Points of a noisy objective that are evaluated again, to ask or to average, do not count, nor
    does the mean on the last batch; and with constraints only feasible points do.
    """
    lowest, best = trial.seen.lowest, trial.result.best_seen
    some = trial.objective.noisy or {"constraints", "batches"} & set(trial.options)
    holds = best >= lowest if some else best == lowest
    require(holds, f"the best value is {best}, but {lowest} was returned")


def evaluations_are_counted(trial: Trial) -> None:
    """Check that nfev and failed match the calls, and are within the budget."""
    result, seen, budget = trial.result, trial.seen, trial.options.get("max_evaluations")
    require(result.nfev == seen.calls, f"nfev is {result.nfev}, but there were {seen.calls} calls")
    require(
        result.failed == seen.failed, f"failed is {result.failed}, but {seen.failed} calls failed"
    )
    if budget is not None:
        require(result.nfev <= budget, f"{result.nfev} evaluations are above {budget}")


def nothing_is_outside_the_box(trial: Trial) -> None:
    """Check that no point outside the bounds was evaluated or returned."""
    box = trial.options.get("bounds")
    if box is None:
        return
    require(trial.seen.outside == 0, f"{trial.seen.outside} points lay outside the box")
    for name in ("x", "mean"):
        point = np.asarray(to_numpy(getattr(trial.result, name)))
        inside = ((point >= box[0]) & (point <= box[1])).all()
        require(inside, f"{name} lies outside the box")


def a_run_equals_its_twin(trial: Trial) -> None:
    """Check that it equals its twin to the bit, including the counts."""
    one, other = trial.result, trial.twin
    if other is None:
        return
    for name in _COMPARED:
        here, there = getattr(one, name, None), getattr(other, name, None)
        same = here == there or (here != here and there != there)  # NaN: the point failed
        require(same, f"{name} is {here}, but {there} in its twin")
    for name in ("x", "mean"):
        here, there = (np.asarray(to_numpy(getattr(r, name))) for r in (one, other))
        require(here.tobytes() == there.tobytes(), f"{name} differs from that of its twin")
    for name, column in getattr(one, "history", {}).items():
        same = np.array_equal(column, other.history[name], equal_nan=True)
        require(same, f"the history's {name} differs from that of its twin")


def only_noise_is_called_noise(trial: Trial) -> None:
    """Check that a deterministic objective is not called noisy."""
    said = getattr(trial.result, "noisy", False)
    require(trial.objective.noisy or not said, "a deterministic objective is called noisy")


def every_generation_has_its_batch(trial: Trial) -> None:
    """Check that all calls of a generation see the same batch, and the next one the next."""
    if "batches" not in trial.options:
        return
    seen = trial.seen.batches
    steps = {after - before for before, after in itertools.pairwise(seen)}
    require(steps <= {0, 1}, f"batches were not seen in order: {seen}")
    require(bool(seen), "no batch was seen")
    # A last generation that is not complete has its batch too.
    require(seen[-1] - trial.result.nit in (-1, 0), f"the last batch is {seen[-1]}")


def only_failures_are_warned_of(trial: Trial) -> None:
    """Check that there is no warning except the one about failures."""
    allowed = (FailedEvaluationWarning,) if trial.seen.failed else ()
    others = [kind.__name__ for kind in trial.warned if kind not in allowed]
    require(not others, f"there were warnings: {', '.join(others)}")


def nothing_is_left_behind(trial: Trial) -> None:
    """Check that no file and no process is left."""
    if trial.folder is not None:
        names = {path.name for path in trial.folder.iterdir()}
        left = sorted(names - set(trial.kept))
        require(not left, f"files are left: {', '.join(left)}")
    workers = living() - trial.before
    require(not workers, f"processes are left: {sorted(workers)}")


def living() -> frozenset[int]:
    """Return the processes that `multiprocessing` has started here and that have not ended."""
    return frozenset(p.pid for p in multiprocessing.active_children() if p.pid is not None)


LAWS: tuple[Callable[[Trial], None], ...] = (
    success_is_true,
    constraints_hold,
    the_value_is_that_of_the_point,
    nothing_better_was_seen,
    evaluations_are_counted,
    nothing_is_outside_the_box,
    a_run_equals_its_twin,
    only_noise_is_called_noise,
    every_generation_has_its_batch,
    only_failures_are_warned_of,
    nothing_is_left_behind,
)


def broken_laws(trial: Trial) -> list[str]:
    """Return a sentence for each law that a trial violates."""
    found = []
    for law in LAWS:
        try:
            law(trial)
        except AssertionError as error:
            found.append(f"{law.__name__}: {error}")
    return found
