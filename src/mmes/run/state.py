"""How far a run has come: what changes from generation to generation, saved and restored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.reasons import StopReason
from mmes.base.tensors import to_numpy
from mmes.constraints import Constraints, Handling
from mmes.errors import CheckpointError, FailedEvaluationWarning, warn_user
from mmes.run.history import History
from mmes.run.noise import GENERATIONS, NoiseWatch, Reevaluation, Verdict
from mmes.run.result import Result
from mmes.run.resuming import understood
from mmes.run.settings import RunSettings
from mmes.run.training.validation import Validation
from mmes.strategies import Optimizer
from mmes.strategies.parts.record import checked_scalar, checked_value

Vector = NDArray[np.float64]

LARGEST_GROWTH = 16
"""How many times its first size a population grows to against a collapse."""


# Ends that come from outside say nothing of the constraints.
_OUTSIDE = (
    StopReason.TARGET_REACHED,
    StopReason.CALLBACK,
    StopReason.REQUESTED,
    StopReason.INTERRUPTED,
    StopReason.ALL_FAILED,
)


@dataclass(frozen=True)
class Code:
    """What a run was given that no file holds.

    Attributes
    ----------
    constraints : Constraints or None
    batches : bool
        Whether each generation has a batch of its own.
    validation : Validation or None
    """

    constraints: Constraints | None = None
    batches: bool = False
    validation: Validation | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the history."""
        return () if self.validation is None else ("validation",)


NOTHING = Code()
"""The code of a run with an objective alone."""


@dataclass(frozen=True)
class Spent:
    """What a part of a run has spent.

    Attributes
    ----------
    evaluations, generations, failed : int
        Evaluations and generations; evaluations that gave NaN or failed.
    retried : int
        Evaluations that were repeated because a worker was lost.
    again : int
        Those of the evaluations that were made at an end from which the run went on: an
        uninterrupted run does not make them.
    seconds : float
        Time.
    """

    evaluations: int = 0
    generations: int = 0
    failed: int = 0
    retried: int = 0
    seconds: float = 0.0
    again: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass
class RunState:
    """The state of a run.

    Attributes
    ----------
    es : Optimizer
        The optimizer of the current start, with the state of its strategy.
    first_population_size : int
        The population size of the first start, from which all doublings count.
    start : int
        Number of the current start, 0 for the first.
    growth : int
        How often population size and damping were doubled since the first start.
    spent : Spent
        What finished starts have spent, and what processes before this one have.
    best : tuple or None
        The best value and point of finished starts, or of a point that was evaluated beside the
        candidates: the start point that was given, the mean when it was asked about noise.
    history : History
        The convergence.
    partial : Spent
        Evaluations of a last generation that was not completed. They are not saved: whoever goes
        on repeats them.
    noise : NoiseWatch
        What is known about the noise of the objective.
    question : Verdict
        Whether noise was asked for after this generation, and what has not been done about it.
    again : Reevaluation or None
        The values taken at the end, where the run has ended and such were wanted.
    warned : bool
        Whether the user knows of failed evaluations.
    notes : dict
        Words and numbers of the caller's own, kept in the checkpoint.
    constraints : Handling or None
        The constraints, if there are any.
    settled : bool
        Whether it may be saved; see `changing`.
    level : float or None
        On batches: the median value of the last generation. None where there are no batches.
    validation : Validation or None
        What keeps the best mean by a loss of its own, if that is wanted.
    """

    es: Optimizer
    first_population_size: int
    start: int = 0
    growth: int = 0
    spent: Spent = field(default_factory=Spent)
    best: tuple[float, Vector] | None = None
    history: History = field(default_factory=History)
    partial: Spent = field(default_factory=Spent)
    noise: NoiseWatch = field(default_factory=NoiseWatch)
    question: Verdict = Verdict.CLEAR
    again: Reevaluation | None = None
    warned: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    constraints: Handling | None = None
    level: float | None = None
    validation: Validation | None = None
    settled: bool = True

    @contextmanager
    def changing(self, *before: type[BaseException]) -> Iterator[None]:
        """Mark what changes the state in several steps; errors of `before` come before any of them.

        A signal handler of the user's own may raise anywhere, and a state that is half changed must
        not be saved.
        """
        self.settled = False
        try:
            yield
        except before:
            self.settled = True
            raise
        self.settled = True

    @classmethod
    def begun(cls, settings: RunSettings, code: Code = NOTHING) -> RunState:
        """Return the state before the first generation."""
        es = settings.optimizer(0, 0)
        return cls(
            es,
            es.population_size,
            constraints=settings.handling(code.constraints, es.dimension),
            level=math.inf if code.batches else None,
            validation=code.validation,
            history=History(further=code.columns),
        )

    @property
    def evaluations(self) -> int:
        """Evaluations so far, over all starts."""
        beside = self.partial.evaluations + self.noise.evaluations
        return self.spent.evaluations + self.es.evaluations + beside

    @property
    def generations(self) -> int:
        """Completed generations so far, over all starts."""
        return self.spent.generations + self.es.generation

    @property
    def best_value(self) -> float:
        """The best value so far; with constraints, of a feasible point; on batches, the level."""
        if self.level is not None:
            return self.level
        if self.constraints is not None:
            return self.constraints.best_value
        here = self.es.best_value
        return here if self.best is None or here < self.best[0] else self.best[0]

    @property
    def judged_value(self) -> float:
        """The value that a target is compared with: the best one, or the best validation loss."""
        return self.best_value if self.validation is None else self.validation.lowest

    @property
    def ends_on_batch(self) -> bool:
        """Whether the mean is evaluated at the end, on the last batch."""
        return self.level is not None and self.validation is None

    @property
    def best_x(self) -> Vector:
        """The best point so far."""
        return self._better_start()[1]

    def validate(self) -> None:
        """Take the validation loss of the mean, if that is due."""
        judge, generation = self.validation, self.generations
        if judge is not None and judge.due(generation):
            value = judge.value(self.es.mean, generation)
            judge.take(value, generation, lambda: self.es.kernel.copy(self.es.mean))
            self.history.amend(value)

    def validate_end(self) -> None:
        """Take the validation loss of the last mean, if it was not taken."""
        judge, generation = self.validation, self.generations
        if judge is not None and judge.generation != generation and judge.at_end is None:
            judge.at_end = judge.value(self.es.mean, generation)

    def _better_start(self) -> tuple[float, Any]:
        if self.validation is not None and self.validation.count:
            judge = self.validation
            if judge.at_end is not None and judge.at_end < judge.best:
                return judge.at_end, self.es.mean
            return judge.best, judge.x
        if self.level is not None:
            return self.level if self.again is None else self.again.mean.item(), self.es.mean
        if self.constraints is not None and self.constraints.best is not None:
            return self.constraints.best.value, self.es.in_shape(self.constraints.best.x)
        here = self.es.best_value
        if self.best is not None and not here < self.best[0]:
            return self.best
        return here, self.es.best_x

    def see_level(self, values: Vector) -> None:
        """On batches, take note of the median value of a generation; failures left out."""
        if self.level is not None:
            finite = values[np.isfinite(values)]
            self.level = float(np.median(finite)) if finite.size else math.inf

    def record(self) -> None:
        """Take note of a generation in the history."""
        self.history.record(*self._line())

    def _line(self) -> tuple[float, ...]:
        line = self.evaluations, self.best_value, self.es.sigma, self.start
        return line if self.validation is None else (*line, self.validation.last)

    def take_start(self, x: Vector, value: float) -> None:
        """Take note of the value of the start point; the search does not learn from it."""
        failed = math.isnan(value)
        self.spent += Spent(evaluations=1, failed=int(failed))
        if not failed:
            self.offer(x, value)

    def take_measured(self, points: Vector, table: Vector) -> None:
        """Take note of points that are no candidates, evaluated with their constraints."""
        if self.constraints is not None:
            failed = int(np.isnan(self.constraints.take(points, table, self.es.kernel)).sum())
            self.spent += Spent(evaluations=len(table), failed=failed)

    def averaged(self, values: Vector) -> Reevaluation:
        """Return new values of the best point and of the mean as what is known at the end."""
        if self.constraints is None:
            return Reevaluation(values[:, 0].copy(), values[:, 1].copy())
        both = [self.constraints.averaged(values[:, column]) for column in (0, 1)]
        judged = (column.copy() for column in np.array(both).T)
        return Reevaluation(values[:, 0, 0].copy(), values[:, 1, 0].copy(), *judged)

    def violates(self, reason: StopReason) -> bool:
        """Return whether a run that ends for this reason ends where constraints are violated."""
        handled = self.constraints
        if handled is None or reason in _OUTSIDE:
            return False
        if self.again is not None and self.noise.noisy:
            return bool(self.again.excess.min() > 0.0)
        return not handled.feasible or (reason.converged and not handled.settled)

    def offer(self, x: Vector, value: float) -> None:
        """Take note of the value of a point that is no candidate, if none is better."""
        if value < self.best_value:
            self.best = value, self.es.kernel.copy(x)

    def warn_of_failures(self, values: Vector) -> None:
        """Warn the user, once, where evaluations failed."""
        if not self.warned and np.isnan(values).any():
            self.warned = True
            warn_user(
                f"an evaluation returned NaN or failed (generation {self.generations}); failed "
                "candidates rank last and are counted in Result.failed. This warning is issued "
                "once per run",
                FailedEvaluationWarning,
            )

    def end_with(self, again: Reevaluation) -> None:
        """Take note of the values taken at the end."""
        self.again = again
        self.noise.noisy = self.noise.noisy or again.noisy

    def go_on(self) -> None:
        """Let a run that had ended go on: the values taken at its end count as spent."""
        if self.validation is not None:
            self.validation.at_end = None
        if self.again is not None:
            count, failed = self.again.evaluations, self.again.failed
            self.spent += Spent(evaluations=count, failed=failed, again=count)
            self.again = None

    def begin_start(self, settings: RunSettings) -> None:
        """Let the next start begin, with twice the population.

        Raises
        ------
        MemoryError
            If that does not fit; nothing has changed then.
        """
        settings.check_memory(self.es, self.growth + 1, self.first_population_size)
        if self.constraints is None:
            value, x = self._better_start()
            self.best = value, self.es.kernel.copy(x)
        else:
            self.constraints.begin_again()
        self.spent += self._here()
        self.start += 1
        self.growth += 1
        # The finished search gives back its memory before the next one takes any.
        del self.es
        self.es = settings.optimizer(self.start, self.growth, self.first_population_size)
        self.noise.begin_again()

    def answer_noise(self) -> None:
        """Return to the sigma before the fall, with twice the population once that is due.

        Where generations cannot be compared, with a rule for sigma that does not compare them.

        Raises
        ------
        MemoryError
            If that does not fit; nothing has changed then.
        """
        sigma = self.noise.sigma_before()
        searched = self.evaluations - self.spent.again
        if self.noise.shared and self.es.can_probe:
            # What it grew by was no answer to this.
            self.growth = self.start
            self.es.probe(sigma, self.first_population_size * 2**self.growth)
        elif 2 * self.es.population_size * GENERATIONS <= searched:
            self.es.grow(sigma)
            self.growth += 1
        else:
            self.es.resume_at(sigma)
        self.noise.wait()

    def answer_collapse(self, doublings: int, sigma: float) -> None:
        """Go on with a larger population and this sigma.

        Raises
        ------
        MemoryError
            If that does not fit; nothing has changed then.
        """
        self.es.grow(sigma, doublings)
        self.growth += doublings
        self.noise.wait()

    @property
    def largest_population_size(self) -> int:
        """The size up to which the population of this start grows against a collapse."""
        return LARGEST_GROWTH * self.first_population_size * 2**self.start

    def _here(self) -> Spent:
        es = self.es
        return Spent(es.evaluations, es.generation, es.failed_evaluations)

    # Saving and restoring

    def saved(self, settings: RunSettings, now: Spent, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed generation: JSON-able entries and "arrays".

        Parameters
        ----------
        settings : RunSettings
            The settings, which are kept with it.
        now : Spent
            The seconds and the repeated evaluations of this process.
        copy : bool
            Whether the arrays are copied; without, they change as the run goes on.
        """
        search = self.es.state(copy)
        arrays = {f"search/{name}": array for name, array in search.pop("arrays").items()}
        own = settings.space.arrays() | (
            {} if self.best is None else {"best_x": to_numpy(self.best[1])}
        )
        arrays |= {name: array.copy() if copy else array for name, array in own.items()}
        arrays["history"] = self.history.table()
        arrays |= {f"noise/{name}": array for name, array in self.noise.arrays().items()}
        if self.again is not None:
            arrays |= {f"again/{name}": array for name, array in self.again.arrays().items()}
        handled = self.constraints
        if handled is not None:
            own = {f"constraints/{name}": array for name, array in handled.arrays().items()}
            arrays |= {name: array.copy() if copy else array for name, array in own.items()}
        judge = self.validation
        if judge is not None:
            arrays |= {f"validation/{name}": array for name, array in judge.arrays().items()}
        return settings.entries() | {
            "constraints": None if handled is None else handled.entries(),
            "level": self.level,
            "validation": None if judge is None else judge.entries(),
            "dimension": self.es.dimension,
            "start": self.start,
            "growth": self.growth,
            "first_population_size": self.first_population_size,
            "best_value": None if self.best is None else self.best[0],
            "spent": asdict(self.spent + now),
            "evaluations": self.evaluations - self.partial.evaluations,
            "noise": self.noise.entries(),
            "question": self.question.value,
            "generations": self.generations,
            "warned": self.warned,
            "history": self.history.scalars(),
            "notes": dict(self.notes),
            "search": search,
            "arrays": arrays,
        }

    @classmethod
    def restored(
        cls, settings: RunSettings, saved: dict[str, Any], code: Code = NOTHING
    ) -> RunState:
        """Return the state that was saved; a file holds no code.

        Raises
        ------
        CheckpointError
            If the run had constraints and none are given, or the other way round; or batches, or
            validation.
        CheckpointCorrupt
            If its parts do not fit together.
        """
        given = {"constraints": code.constraints is not None, "batches": code.batches}
        given["validation"] = code.validation is not None
        for name, entry in (("constraints",) * 2, ("batches", "level"), ("validation",) * 2):
            had = saved.get(entry) is not None
            if had != given[name]:
                raise CheckpointError(
                    f"the checkpoint belongs to another run: it had {'' if had else 'no '}{name}; "
                    f"give {name}= as then"
                )
        with understood():
            return cls._restored(settings, saved, code)

    @classmethod
    def _restored(cls, settings: RunSettings, saved: dict[str, Any], code: Code) -> RunState:
        arrays, x0 = saved["arrays"], settings.space.x0
        if x0 is not None and x0.size != arrays["search/best_x"].size:
            raise ValueError(f"x0 has {x0.size} entries")
        best = None
        if saved["best_value"] is not None:
            value = checked_value("best_value", saved["best_value"])
            best = value, np.array(arrays["best_x"], np.float64)
            if best[1].size != arrays["search/best_x"].size or not np.isfinite(best[1]).all():
                raise ValueError("best_x must be a point: finite, with one entry per variable")

        def below(folder: str) -> dict[str, Any]:
            return {n.removeprefix(folder): a for n, a in arrays.items() if n.startswith(folder)}

        again = {name: np.array(a, np.float64).ravel() for name, a in below("again/").items()}
        places = ("kernel", "threads", "device")
        where = {name: value for name, value in settings.options.items() if name in places}
        search = saved["search"] | {"arrays": below("search/")}
        if "rows_at_once" in settings.options:
            here = {"rows_at_once": settings.options["rows_at_once"]}
            search["options"] = search["options"] | here
        es = settings.strategy.from_state(search, **where)
        handling = settings.handling(code.constraints, es.dimension)
        if handling is not None:
            handling.restore(saved["constraints"], below("constraints/"), es.kernel)
        if code.validation is not None:
            code.validation.restore(saved["validation"], below("validation/"), es)
        made = cls(
            es=es,
            first_population_size=checked_scalar("size", saved["first_population_size"], 0),
            start=checked_scalar("start", saved["start"], 0),
            growth=checked_scalar("growth", saved["growth"], 0),
            spent=Spent(
                **{
                    name: checked_scalar(name, saved["spent"].get(name, fresh), fresh, low=0)
                    for name, fresh in asdict(Spent()).items()
                }
            ),
            best=best and (best[0], es.kernel.from_host(best[1])),
            history=History.restored(saved["history"], np.array(arrays["history"]), code.columns),
            noise=NoiseWatch.restored(saved["noise"], below("noise/"))
            if "noise" in saved
            else NoiseWatch(),
            # Older checkpoints have no word for it.
            question=Verdict(saved.get("question", "")),
            again=Reevaluation(**again) if again else None,
            warned=saved["warned"] is True,
            notes=dict(saved["notes"]),
            constraints=handling,
            level=checked_value("level", saved["level"]) if code.batches else None,
            validation=code.validation,
        )
        if saved.get("evaluations", made.evaluations) != made.evaluations:
            raise ValueError(
                f"evaluations are {saved['evaluations']!r}, but those of the parts add up to "
                f"{made.evaluations}"
            )
        return made

    # The end

    def result(
        self,
        settings: RunSettings,
        now: Spent,
        reasons: tuple[StopReason, ...],
    ) -> Result:
        """Return what the run leaves behind; parameters as in `saved`."""
        es, reason = self.es, reasons[0]
        again = self.again or Reevaluation(np.empty(0), np.empty(0))
        beside = again.failed + self.partial.failed + self.noise.failed
        total = self.spent + self._here() + now + Spent(failed=beside)
        mean = es.kernel.copy(es.mean)
        name, average, error = again.better()
        # Who says that it is noisy gets averages in any case, but for a loss of its own.
        averaged = self.noise.noisy or settings.limits["noise"] == "yes"
        averaged = averaged and self.validation is None
        found = self._better_start()
        if not averaged or average == math.inf:
            name, average, error = "x", found[0], math.nan
        constrained, feasible = self._constrained(name, averaged and average < math.inf)
        success, target = reason.converged, settings.limits["target"]
        if target is not None:
            # By what is returned: one lucky value of a noisy objective is no success.
            success = reason is StopReason.TARGET_REACHED and average <= target
        # An unfinished generation has no line yet; nor has a point that was no candidate.
        written = self.history.last_best
        unwritten = self.partial.evaluations or (self.evaluations and written != self.best_value)
        return Result(
            x=es.kernel.copy(mean if name == "mean" else found[1]),
            fun=average,
            nfev=self.evaluations + again.evaluations,
            nit=self.generations,
            success=success and feasible,
            status=reason.status,
            message=reason.sentence,
            reason=reason,
            reasons=reasons,
            noisy=self.noise.noisy,
            fun_std=None if math.isnan(error) else error,
            best_seen=self.best_value if self.level is None else es.best_value,
            mean=mean,
            sigma=es.sigma,
            seed=settings.seed,
            starts=self.start + 1,
            failed=total.failed,
            time=total.seconds,
            history=self.history.columns(self._line() if unwritten else None),
            strategy=settings.strategy_in_words,
            options=dict(es.options) | {"seed": settings.seed},
            kernel=_kernel_in_words(es),
            retried=total.retried,
            reevaluated=None if self.again is None or self.ends_on_batch else self.again.values(),
            **constrained,
        )

    def _constrained(self, name: str, averaged: bool) -> tuple[dict[str, Any], bool]:
        """Return what a result says of the constraints, and whether its point fulfils them.

        `name` says which point it is, "x" or "mean", and `averaged` whether by new evaluations.
        """
        handled, again = self.constraints, self.again
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


def _kernel_in_words(es: Optimizer) -> str:
    """Return the kernel, and whether it worked without a population."""
    if es.rows_at_once == es.rows:
        return es.kernel.name
    return f"{es.kernel.name}, without a population: {es.rows_at_once} candidates at a time"
