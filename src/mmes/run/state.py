"""The state of a run, which changes from generation to generation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.reasons import StopReason
from mmes.errors import FailedEvaluationWarning, warn_user
from mmes.run.noise import CEILING_GENERATIONS, GENERATIONS, MeanAverage, NoiseWatch, Verdict
from mmes.run.observing.history import History
from mmes.run.reevaluation import Reevaluation
from mmes.run.restarts import DOUBLINGS
from mmes.run.settings import RunSettings
from mmes.strategies import Optimizer

if TYPE_CHECKING:
    from mmes.constraints import Constraints, Handling
    from mmes.run.training.validation import Validation


LARGEST_GROWTH = 16
"""How many times its first size a population grows to against a collapse."""


# Reasons from outside, which say nothing about the constraints.
_OUTSIDE = (
    StopReason.TARGET_REACHED,
    StopReason.CALLBACK,
    StopReason.REQUESTED,
    StopReason.INTERRUPTED,
    StopReason.ALL_FAILED,
)


class Code(NamedTuple):
    """What a run was given that a file cannot contain."""

    constraints: Constraints | None = None
    batches: bool = False  # Whether each generation has its own batch.
    validation: Validation | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the history."""
        return () if self.validation is None else ("validation",)


NOTHING = Code()
"""The code of a run with an objective alone."""


def averages(settings: RunSettings, code: Code) -> bool:
    """Return whether the result may be an average of means.

    On a manifold, and of integers, an average is no point; constraints, batches and validation have
    results of their own.
    """
    space, apart = settings.space, code.constraints is None and code.validation is None
    return apart and not code.batches and space.manifold is None and space.integers is None


@dataclass(frozen=True)
class Spent:
    """What a part of a run has spent."""

    evaluations: int = 0
    generations: int = 0
    failed: int = 0  # Evaluations that gave NaN or failed.
    retried: int = 0  # Evaluations that were repeated because a worker was lost.
    seconds: float = 0.0
    # Of points that were evaluated before: to confirm a success, and at the end of a run that was
    # continued later. The search learns nothing from them.
    again: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass
class RunState:
    """The state of a run."""

    es: Optimizer  # The optimizer of the current start, with the state of its strategy.
    # The population size of the first start, from which all doublings count.
    first_population_size: int
    start: int = 0  # Number of the current start, 0 for the first.
    growth: int = 0  # How often population size and damping were doubled since the first start.
    # What finished starts have spent, and what processes before this one have.
    spent: Spent = field(default_factory=Spent)
    # The best value and point of finished starts, or of a point that was evaluated beside the
    # candidates: the start point that was given, the mean when it was asked about noise.
    best: tuple[float, Vector] | None = None
    history: History = field(default_factory=History)
    # Evaluations of a last generation that was not completed. They are not saved: a
    # resumed run repeats them.
    partial: Spent = field(default_factory=Spent)
    # How many those were, when the run ended.
    unfinished: int = 0
    # What is known about the noise of the objective.
    noise: NoiseWatch = field(default_factory=NoiseWatch)
    # Whether the noise was measured after this generation, and what is still to be done.
    question: Verdict = Verdict.CLEAR
    # The average of the means since noise was found.
    average: MeanAverage = field(default_factory=lambda: MeanAverage(False))
    # The values of the reevaluations at the end, if the run has ended.
    again: Reevaluation | None = None
    warned: bool = False  # Whether the user knows of failed evaluations.
    # Notes of the caller, stored in the checkpoint.
    notes: dict[str, Any] = field(default_factory=dict)
    constraints: Handling | None = None
    # On batches: the median value of the last generation. None where there are no batches.
    level: float | None = None
    # Keeps the mean with the best validation loss, if there is validation.
    validation: Validation | None = None
    settled: bool = True  # Whether it may be saved; see `changing`.

    @contextmanager
    def changing(self, *before: type[BaseException]) -> Iterator[None]:
        """Mark what changes the state in several steps; errors of `before` come before any of them.

        A signal handler of the user may raise anywhere, and a partly changed state must not be
        saved.
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
            average=MeanAverage(averages(settings, code)),
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
        """The value that a target is compared with: the best one, or the best validation loss.

        Under noise the best one is luck: it is the median of the newest generations, and with
        constraints nothing reaches the target before the end.
        """
        if self.validation is not None:
            return self.validation.lowest
        if not (self.noise.noisy and self.es.grows) or self.level is not None:
            return self.best_value
        soon = self.constraints is not None or self.evaluations < self.noise.not_before
        return math.inf if soon else self.noise.typical

    @property
    def judged_otherwise(self) -> bool:
        """Whether the target is for a validation loss, or for the level of batches."""
        return self.validation is not None or self.level is not None

    @property
    def ends_on_batch(self) -> bool:
        """Whether the mean is evaluated at the end, on the last batch."""
        return self.level is not None and self.validation is None

    @property
    def best_x(self) -> Vector:
        """The point that would be returned now."""
        return self.returned()[1]

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

    def returned(self) -> tuple[float, Any]:
        """Return the point that the run would return now, and its value."""
        if self.validation is not None and self.validation.count:
            judge = self.validation
            if judge.at_end is not None and judge.at_end < judge.best:
                return judge.at_end, self.es.mean
            return judge.best, judge.x
        if self.level is not None:
            return self.level if self.again is None else self.again.mean.item(), self.es.mean
        if self.constraints is not None and self.constraints.best is not None:
            return self.constraints.best.value, self.es.in_shape(self.constraints.best.x)
        return self.best_seen()

    def best_seen(self) -> tuple[float, Any]:
        """Return the lowest value of the objective, over all starts, and its point."""
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
        """Take note of a generation in the history, and of its mean if there is noise."""
        self.history.record(*self.line())
        if self.noise.noisy:
            self.average.take(self.es.mean, self.es.kernel)

    def line(self) -> tuple[float, ...]:
        """Return the line of the history for this moment."""
        line = self.evaluations, self.best_value, self.es.sigma, self.start
        return line if self.validation is None else (*line, self.validation.last)

    def take_start(self, x: Vector, value: float) -> None:
        """Take note of the value of the start point; the search does not learn from it."""
        failed = math.isnan(value)
        self.spent += Spent(evaluations=1, failed=int(failed))
        if not failed:
            self.offer(x, value)

    def take_measured(self, points: Vector, table: Vector) -> None:
        """Take note of points that are not candidates, evaluated with their constraints."""
        if self.constraints is not None:
            failed = int(np.isnan(self.constraints.take(points, table, self.es.kernel)).sum())
            self.spent += Spent(evaluations=len(table), failed=failed)

    def averaged(self, values: Vector) -> Reevaluation:
        """Return new values of the points at the end as what is known then."""
        if self.constraints is None:
            x, mean, *average = (column.copy() for column in values.T)
            return Reevaluation(x, mean, average=average[0] if average else np.empty(0))
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
        """Take note of the value of a point that is not a candidate, if none is better."""
        if value < self.best_value:
            self.best = value, self.es.kernel.copy(x)

    def warn_of_failures(self, values: Vector, caught: str = "") -> None:
        """Warn the user, once, where evaluations failed; `caught` names an exception, if any."""
        if not self.warned and np.isnan(values).any():
            self.warned = True
            warn_user(
                f"an evaluation {f'failed with {caught}' if caught else 'returned NaN or failed'} "
                f"(generation {self.generations}); failed candidates rank last and are counted in "
                "Result.failed. This warning is issued once per run",
                FailedEvaluationWarning,
            )

    def end_within(self, values: Vector, beside: Spent) -> None:
        """Take note of the values of an incomplete generation, and of what was spent beside it."""
        self.partial = Spent(values.size, failed=int(np.isnan(values).sum())) + beside
        self.unfinished = self.partial.evaluations

    def end_with(self, again: Reevaluation) -> None:
        """Take note of the values taken at the end."""
        self.again = again
        self.noise.noisy = self.noise.noisy or again.noisy

    def go_on(self) -> None:
        """Let a run that had ended continue: the evaluations at its end count as spent."""
        if self.validation is not None:
            self.validation.at_end = None
        if self.again is not None:
            count, failed = self.again.evaluations, self.again.failed
            self.spent += Spent(evaluations=count, failed=failed, again=count)
            self.again = None

    def begin_start(self, settings: RunSettings) -> None:
        """Begin the next start, with a larger population (`DOUBLINGS`).

        Raises MemoryError if that does not fit; nothing has changed then.
        """
        settings.check_memory(self.es, self.growth + DOUBLINGS, self.first_population_size)
        if self.constraints is None:
            value, x = self.best_seen()
            self.best = value, self.es.kernel.copy(x)
        else:
            self.constraints.begin_again()
        self.spent += self.here()
        self.start += 1
        self.growth += DOUBLINGS
        # The memory of the finished search is released before the next one is created.
        del self.es
        self.es = settings.optimizer(self.start, self.growth, self.first_population_size)
        if self.noise.shared and self.es.can_probe:  # known from the starts before
            with suppress(MemoryError):  # it is asked again about its generations then
                self.es.probe(self.es.sigma, self.es.population_size)
        self.noise.begin_again()
        self.average = MeanAverage(self.average.wanted)

    def answer_noise(self) -> None:
        """Return to the sigma before the fall, with twice the population once that is due.

        Where generations cannot be compared, with a rule for sigma that does not compare them.

        Raises MemoryError if that does not fit; nothing has changed then.
        """
        sigma = self.noise.sigma_before()
        if self.noise.shared and self.es.can_probe:
            # A search that progresses has the right sigma.
            if not self.noise.in_vain(self.es.sigma, None):
                sigma = self.es.sigma
            # The growth so far was for another reason.
            self.growth = DOUBLINGS * self.start
            self.es.probe(sigma, self.first_population_size * 2**self.growth)
        elif self._due(GENERATIONS):
            self.es.grow(sigma)
            self.growth += 1
        else:
            self.es.resume_at(sigma)
        self.noise.wait()
        self.question = Verdict.CLEAR

    @property
    def ceiling_due(self) -> bool:
        """Whether most candidates are at a ceiling of a noisy objective, and more are due."""
        return self.noise.noisy and self.noise.ceiling and self._due(CEILING_GENERATIONS)

    def _due(self, generations: int) -> bool:
        """Return whether so many of twice the size fit into what the search has evaluated."""
        searched = self.evaluations - self.spent.again
        return 2 * self.es.population_size * generations <= searched

    def answer_ceiling(self) -> None:
        """Go on with twice the population; MemoryError as below."""
        self.es.grow()
        self.growth += 1
        self.noise.wait()

    def answer_collapse(self, doublings: int, sigma: float) -> None:
        """Go on with a larger population and this sigma.

        Raises MemoryError if that does not fit; nothing has changed then.
        """
        self.es.grow(sigma, doublings, kinked=True)
        self.growth += doublings
        self.noise.wait()

    @property
    def largest_population_size(self) -> int:
        """The size up to which the population of this start grows against a collapse."""
        return LARGEST_GROWTH * self.first_population_size * 2 ** (DOUBLINGS * self.start)

    def here(self) -> Spent:
        """Return what the current start has spent."""
        es = self.es
        return Spent(es.evaluations, es.generation, es.failed_evaluations)
