"""Batches of data: the batch of each generation, and how a run on batches differs from others.

Each generation has another batch, the same for all its candidates and probes. Its values can be
compared with each other, but not with those of another generation. So probes adapt the step size,
no test compares values of different generations, and the result is the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mmes.errors import CheckpointWarning, warn_user
from mmes.evaluate.adapter import is_evaluator
from mmes.evaluate.arguments import OnBatch
from mmes.evaluate.protocol import MakesEvaluator
from mmes.run.options import RUN_OPTIONS
from mmes.strategies import get_strategy, is_auto

WHY = "its step size needs one batch alone"
"""Why ``"auto"`` takes a strategy with probes."""

# What compares values of different generations is off: options, and their values here.
_SETTLED = {
    "noise": "no",
    "evaluate_x0": False,
    "restarts": 0,
    "reevaluations": None,
    "stagnation_window": "off",
    "stagnation_tolerance": None,
}
_DEFAULTS = {option.name: option.default for option in RUN_OPTIONS}


class Batches:
    """Provides the batch of each generation for the objective that receives it."""

    def __init__(self, given: Any, objective: OnBatch):
        self._given, self._objective = given, objective
        self._reader: Iterator[Any] | None = None
        # Not by iter(given), which draws random numbers where a DataLoader shuffles.
        self._once = isinstance(given, Iterator)
        self._read = 0  # batches so far, those skipped included
        self.seen = -1
        """The generation whose batch was taken last; -1 before the first."""

    @classmethod
    def checked(cls, given: Any, objective: Any, workers: Any) -> Batches:
        """Return the batches of a run.

        Raises TypeError or ValueError if they are not batches, or cannot be used with these
        workers.
        """
        usable = callable(given) or (
            isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
        )
        if not usable:
            raise TypeError(
                "batches must be an iterable of batches, such as a DataLoader, or a function of "
                f"the generation's number, not {given!r} (a {type(given).__name__})"
            )
        if is_evaluator(workers):
            raise ValueError(
                "batches cannot be combined with a custom evaluator, which can choose the batch "
                "by the number of the generation"
            )
        if isinstance(workers, MakesEvaluator) and not callable(given):
            raise ValueError(
                "with replicas, batches must be a function of the generation's number, which "
                f"each replica calls, not {type(given).__name__}"
            )
        if not isinstance(objective, OnBatch):
            raise TypeError(f"fun must be callable, not {objective!r}")
        return cls(given, objective)

    def see(self, generation: int) -> None:
        """Give the batch of a generation to the objective."""
        if generation == self.seen:
            return
        try:
            elsewhere = self._objective.numbered is not None
            self._objective.take(generation if elsewhere else self._batch_of(generation))
        except Exception as error:
            error.add_note(f"mmes: this was batches=, for generation {generation}")
            raise
        self.seen = generation

    def _batch_of(self, generation: int) -> Any:
        if callable(self._given):
            return self._given(generation)
        if self._once:
            if self._read == 0 and generation > 0:
                warn_user(
                    f"batches is an iterator and cannot be advanced to generation {generation}: "
                    "the resumed run continues with its next batch, and differs from an "
                    "uninterrupted run",
                    CheckpointWarning,
                )
            return self._next()
        if generation < self._read:
            self._reader, self._read = None, 0
        while self._read < generation:
            self._next()
        return self._next()

    def _next(self) -> Any:
        for _ in range(2):
            begun = self._reader is not None
            # Not by its truth: that asks some iterators for their length, and not all have one.
            self._reader = iter(self._given) if self._reader is None else self._reader
            for batch in self._reader:
                self._read += 1
                return batch
            if self._once or not begun:
                break
            self._reader = None  # the next epoch
        if self._read == 0:
            raise ValueError("batches is empty: at least one batch is needed")
        raise ValueError(
            f"batches ended after {self._read} and cannot be read again: use an iterable that "
            "can, such as a list or a DataLoader, or a function of the generation's number"
        )


def options_for_batches(strategy: Any, where: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return the options of a run on batches, including those that batches imply.

    `where` has the arguments `manifold` and `constraints` of `mmes.minimize`.

    Raises ValueError if something cannot be combined with batches.
    """
    for name, value in where.items():
        if value is not None:
            raise ValueError(f"{name} cannot be combined with batches")
    options = dict(given)
    for name, value in _SETTLED.items():
        found = options.get(name)
        words = {"no": "off"}
        if found not in (None, _DEFAULTS.get(name), value, words.get(str(value), value)):
            raise ValueError(
                f"{name}={found!r} cannot be combined with batches: values of different batches "
                "cannot be compared"
            )
        options[name] = value
    if not is_auto(strategy):
        kind = get_strategy(strategy)
        rules = {o.name: o.choices for o in kind.option_table()}.get("step_size", ())
        if "probes" not in rules:
            raise ValueError(
                f"batches need a strategy with step_size='probes', such as 'adaptive'; "
                f"{kind.name!r} has none"
            )
    return {"step_size": "probes"} | options
