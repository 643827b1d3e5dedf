"""How far a run has come: what changes from generation to generation, saved and restored."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.noise import GENERATIONS, NoiseWatch
from mmes.observe import COLUMNS, History
from mmes.result import Result
from mmes.run_settings import RunSettings, understood
from mmes.stopping import StopReason
from mmes.strategies import AnyStrategy, AskTell
from mmes.strategies.record import checked_scalar
from mmes.tensors import hosted

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Spent:
    """What a part of a run has spent.

    Attributes
    ----------
    evaluations, generations, failed : int
        Evaluations and generations; evaluations that gave NaN or failed.
    retried : int
        Evaluations that were repeated because a worker was lost.
    seconds : float
        Time.
    """

    evaluations: int = 0
    generations: int = 0
    failed: int = 0
    retried: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass
class RunState:
    """The state of a run.

    Attributes
    ----------
    es : AnyStrategy
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
        The best value and point of finished starts, or of the start point that was given.
    history : History
        The convergence.
    partial : int
        Evaluations of a last generation that was not completed. They are not saved: whoever goes
        on repeats them.
    noise : NoiseWatch
        What is known about the noise of the objective.
    warned : bool
        Whether the user knows of failed evaluations.
    notes : dict
        Words and numbers of the caller's own, kept in the checkpoint.
    """

    es: AnyStrategy
    first_population_size: int
    start: int = 0
    growth: int = 0
    spent: Spent = field(default_factory=Spent)
    best: tuple[float, Vector] | None = None
    history: History = field(default_factory=History)
    partial: int = 0
    noise: NoiseWatch = field(default_factory=NoiseWatch)
    warned: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begun(cls, settings: RunSettings) -> RunState:
        """Return the state before the first generation."""
        es = settings.optimizer(0, 0)
        return cls(es, es.population_size)

    @property
    def evaluations(self) -> int:
        """Evaluations so far, over all starts."""
        return self.spent.evaluations + self.es.evaluations + self.partial + self.noise.evaluations

    @property
    def generations(self) -> int:
        """Completed generations so far, over all starts."""
        return self.spent.generations + self.es.generation

    @property
    def best_value(self) -> float:
        """The best value so far."""
        here = self.es.best_value
        return here if self.best is None or here < self.best[0] else self.best[0]

    @property
    def best_x(self) -> Vector:
        """The best point so far."""
        return self._better_start()[1]

    def _better_start(self) -> tuple[float, Any]:
        here = self.es.best_value
        if self.best is not None and not here < self.best[0]:
            return self.best
        return here, self.es.best_x

    def record(self) -> None:
        """Take note of a generation in the history."""
        self.history.record(*self._line())

    def _line(self) -> tuple[int, float, float, int]:
        return self.evaluations, self.best_value, self.es.sigma, self.start

    def take_start(self, x: Vector, value: float) -> None:
        """Take note of the value of the start point; the search does not learn from it."""
        failed = math.isnan(value)
        self.spent += Spent(evaluations=1, failed=int(failed))
        if not failed:
            self.best = value, self.es.kernel.copy(x)

    def restarted(self, settings: RunSettings) -> AnyStrategy:
        """Return the optimizer of the next start; this state stays as it is."""
        return settings.optimizer(self.start + 1, self.growth + 1, self.first_population_size)

    def go_on_with(self, es: AnyStrategy) -> None:
        """Let the next start begin."""
        value, x = self._better_start()
        self.best = value, self.es.kernel.copy(x)
        self.spent += self._here()
        self.start += 1
        self.growth += 1
        self.es = es
        self.noise.begin_again()

    def answer_noise(self) -> None:
        """Return to the sigma before the fall, with twice the population once that is due.

        Raises
        ------
        MemoryError
            If that does not fit; nothing has changed then.
        """
        if not isinstance(self.es, AskTell):
            raise TypeError(f"the strategy {self.es.name!r} has no population to grow")
        sigma = self.noise.sigma_before()
        if 2 * self.es.population_size * GENERATIONS <= self.evaluations:
            self.es.grow(sigma)
            self.growth += 1
        else:
            self.es.resume_at(sigma)
        self.noise.wait()

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
        own = settings.arrays() | ({} if self.best is None else {"best_x": hosted(self.best[1])})
        arrays |= {name: array.copy() if copy else array for name, array in own.items()}
        arrays["history"] = self.history.table()
        return settings.entries() | {
            "dimension": self.es.dimension,
            "start": self.start,
            "growth": self.growth,
            "first_population_size": self.first_population_size,
            "best_value": None if self.best is None else self.best[0],
            "spent": asdict(self.spent + now),
            "evaluations": self.evaluations - self.partial,
            "noise": self.noise.entries(),
            "generations": self.generations,
            "warned": self.warned,
            "history": self.history.scalars(),
            "notes": dict(self.notes),
            "search": search,
            "arrays": arrays,
        }

    @classmethod
    def restored(cls, settings: RunSettings, saved: dict[str, Any]) -> RunState:
        """Return the state that was saved.

        Raises
        ------
        CheckpointCorrupt
            If its parts do not fit together.
        """
        with understood():
            return cls._restored(settings, saved)

    @classmethod
    def _restored(cls, settings: RunSettings, saved: dict[str, Any]) -> RunState:
        arrays, x0 = saved["arrays"], settings.place.x0
        if arrays["history"].shape[1:] != (len(COLUMNS),):
            raise ValueError(f"the history has the shape {arrays['history'].shape}")
        if x0 is not None and x0.size != arrays["search/best_x"].size:
            raise ValueError(f"x0 has {x0.size} entries")
        best = None
        if saved["best_value"] is not None:
            best = float(saved["best_value"]), np.array(arrays["best_x"], np.float64)
            if best[1].size != arrays["search/best_x"].size or not np.isfinite(best[1]).all():
                raise ValueError("best_x must be a point: finite, with one entry per variable")
        inner = {name[7:]: array for name, array in arrays.items() if name.startswith("search/")}
        places = ("kernel", "threads", "device")
        where = {name: value for name, value in settings.options.items() if name in places}
        es = settings.strategy.from_state(saved["search"] | {"arrays": inner}, **where)
        return cls(
            es=es,
            first_population_size=checked_scalar("size", saved["first_population_size"], 0),
            start=checked_scalar("start", saved["start"], 0),
            # Version 0.1.0 doubled at restarts alone.
            growth=checked_scalar("growth", saved.get("growth", saved["start"]), 0),
            spent=Spent(
                **{
                    name: checked_scalar(name, saved["spent"][name], fresh)
                    for name, fresh in asdict(Spent()).items()
                }
            ),
            best=best and (best[0], es.kernel.from_host(best[1])),
            history=History.restored(saved["history"], np.array(arrays["history"])),
            noise=NoiseWatch.restored(saved["noise"]) if "noise" in saved else NoiseWatch(),
            warned=saved["warned"] is True,
            notes=dict(saved["notes"]),
        )

    # The end

    def result(
        self,
        settings: RunSettings,
        now: Spent,
        reasons: tuple[StopReason, ...],
        reevaluated: dict[str, Vector] | None = None,
    ) -> Result:
        """Return what the run leaves behind; parameters as in `saved`."""
        es, total, reason = self.es, self.spent + self._here() + now, reasons[0]
        again = 0 if reevaluated is None else sum(map(len, reevaluated.values()))
        reached = reason is StopReason.TARGET_REACHED
        x, fun, error = es.kernel.copy(self.best_x), self.best_value, None
        mean = es.kernel.copy(es.mean)
        # An unfinished generation has no line yet; nor has a start point that needs no search.
        unwritten = self.partial or (self.evaluations and not self.generations)
        if self.noise.noisy and reevaluated is not None:
            x, fun, error = _better_of_two(x, mean, reevaluated)
        return Result(
            x=x,
            fun=fun,
            nfev=self.evaluations + again,
            nit=self.generations,
            success=reached or (settings.limits["target"] is None and reason.converged),
            status=reason.status,
            message=reason.sentence,
            reason=reason,
            reasons=reasons,
            noisy=self.noise.noisy,
            fun_std=error,
            best_seen=self.best_value,
            mean=mean,
            sigma=es.sigma,
            seed=settings.seed,
            starts=self.start + 1,
            failed=total.failed,
            time=total.seconds,
            history=self.history.columns(self._line() if unwritten else None),
            strategy=settings.strategy_in_words,
            options=dict(es.options) | {"seed": settings.seed},
            kernel=es.kernel.name,
            retried=total.retried,
            reevaluated=reevaluated,
        )


def _better_of_two(
    x: Vector, mean: Vector, again: dict[str, Vector]
) -> tuple[Vector, float, float | None]:
    """Return the better of the best point and the mean by new values, the average, its error."""
    name = "x" if np.nanmean(again["x"]) <= np.nanmean(again["mean"]) else "mean"
    values = again[name][np.isfinite(again[name])]
    error = float(np.std(values, ddof=1)) / math.sqrt(values.size) if values.size > 1 else None
    return (x if name == "x" else mean), float(np.mean(values)), error
