"""The settings of a run, checked. They do not change during the run."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mmes.base.memory import in_words
from mmes.base.options import validated
from mmes.base.randomness import fresh_seed
from mmes.errors import ReducedArchiveWarning, warn_user
from mmes.evaluate.options import EVALUATION
from mmes.kernels.devices import started_from
from mmes.run.options import RUN_OPTIONS, check_together
from mmes.run.restarts import start_point, start_seed
from mmes.spaces.bounds import checked_bounds, checked_box
from mmes.spaces.manifolds import checked_manifold
from mmes.spaces.space import Space
from mmes.spaces.start import claimed_size
from mmes.strategies import (
    AskTell,
    Optimizer,
    automatic,
    get_strategy,
    is_auto,
    strategies_with,
)
from mmes.strategies.parts.population import grown_options

if TYPE_CHECKING:
    from mmes.constraints import Constraints, Handling


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run."""

    strategy: type[Optimizer]
    space: Space  # Where the search takes place.
    options: dict[str, Any]  # Options of the strategy, the seed among them.
    limits: dict[str, Any]  # Options of the run itself, those of `RUN_OPTIONS`.
    seed_given: bool  # Whether the seed was given, or drawn.
    why: str = ""  # Why ``"auto"`` chose this strategy; empty if it was named.

    @classmethod
    def checked(
        cls,
        where: dict[str, Any],
        strategy: Any,
        checkpoint: Any,
        options: dict[str, Any],
        elsewhere: str = "",
    ) -> RunSettings:
        """Return the settings for the arguments of `minimize`.

        `where` are `x0`, `sigma0`, `bounds`, `scale`, `manifold` and `integers`, which become a
        `Space`; `elsewhere` says why ``"auto"`` must choose a strategy that replicas can follow, if
        it must.
        """
        x0, options = started_from(where["x0"], options)
        bounds, manifold = where["bounds"], where["manifold"]
        why = ""
        if is_auto(strategy):
            if options.get("device") is not None:
                elsewhere = "it runs on a device"
            kind, why = automatic(_variables(x0, bounds), manifold is not None, elsewhere)
        else:
            kind = get_strategy(strategy)
        table = RUN_OPTIONS + kind.option_table()
        if why:
            _refuse_options_of_others(options, table, f"{kind.name!r} because {why}")
        chosen = validated(table, options, f"minimize with strategy {kind.name!r}")
        limits = {option.name: chosen.pop(option.name) for option in RUN_OPTIONS}
        check_together(limits, checkpoint)
        seed_given = chosen["seed"] is not None
        if not seed_given:
            chosen["seed"] = fresh_seed()
        checked_manifold(manifold, kind.name, kind.on_manifolds, bounds, where["scale"])
        if kind.needs_box and bounds is None:
            checked_box(None, None, f"the strategy {kind.name!r}")
        space = Space.checked(**where | {"x0": x0})
        if space.integers is not None and not issubclass(kind, AskTell):
            raise ValueError(f"integers cannot be combined with the strategy {kind.name!r}")
        return cls(kind, space, chosen, limits, seed_given, why)

    def check_limits(self, batches: bool, validation: bool) -> None:
        """Refuse limits that only a validation loss can tell, where there is none."""
        if validation:
            return
        if self.limits["patience"] is not None:
            raise ValueError("patience needs validation=, the loss that it checks")
        target = self.limits["target"]
        if batches and target is not None:
            raise ValueError(
                f"target={target:g} needs validation= where batches= is given: a value of one "
                "batch does not tell whether it is reached"
            )

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.options["seed"]

    @property
    def strategy_in_words(self) -> str:
        """The strategy's name, and why ``"auto"`` chose it."""
        return f"{self.strategy.name} (auto: {self.why})" if self.why else self.strategy.name

    @property
    def evaluation(self) -> dict[str, Any]:
        """The options of the evaluator."""
        return {option.name: self.limits[option.name] for option in EVALUATION}

    def optimizer(self, start: int, doublings: int, population_size: int = 0) -> Optimizer:
        """Return the optimizer of a start, 0 for the first.

        Population size and damping are doubled so many times, from the population size of the first
        start.
        """
        space = self.space.starting_at(start_point(self.space, self.seed, start))
        return self.strategy.within(space, self._options_of(start, doublings, population_size))

    def check_memory(self, es: Optimizer, doublings: int, population_size: int) -> None:
        """Raise MemoryError if the next start would not fit into memory instead of this one."""
        options = self._options_of(1, doublings, population_size)
        self.strategy.check_memory(self.space, options, es.planned_bytes)

    def _options_of(self, start: int, doublings: int, population_size: int) -> dict[str, Any]:
        grown = grown_options(self.options, population_size, doublings)
        return grown | {"seed": start_seed(self.seed, start)}

    def constraints(self, given: Any, workers: Any) -> Constraints | None:
        """Return the constraints that were given, checked; None where there are none."""
        returned = self.limits["returns_constraints"]
        if given is None and not returned:
            return None
        from mmes.constraints import Constraints, check_usable  # here: few runs need them

        held = Constraints.checked(given, returned)
        if held is not None:
            check_usable(held, self, workers)
        return held

    def handling(self, constraints: Constraints | None, n: int) -> Handling | None:
        """Return the handling of constraints, if there are any; `n` is the number of variables."""
        if constraints is None:
            return None
        from mmes.constraints import Handling

        mask, box, integers, alone = self.space.integers, self.space.box, 0, False
        if mask is not None and box is not None:
            free = box[0] < box[1]
            integers, alone = int((free & mask).sum()), not (free & ~mask).any()
        return Handling(constraints, self.limits["constraint_tolerance"], n, integers, alone)

    def smaller_optimizer(self, es: Optimizer, usable: int, machine: str) -> Optimizer:
        """Return the first optimizer with an archive that fits on all machines, with a warning.

        `es` does not fit into the `usable` bytes of `machine`, the one with the least memory.

        Raises MemoryError if no reduced archive fits.
        """
        changed = es.reduced_options(self.options, usable)
        warn_user(
            f"the machine with the least memory, {machine}, has {in_words(usable)} usable: "
            f"{', '.join(f'{name} is reduced to {value}' for name, value in changed.items())}",
            ReducedArchiveWarning,
        )
        return replace(self, options=self.options | changed).optimizer(0, 0)

    # What a checkpoint keeps of them

    def entries(self) -> dict[str, Any]:
        """Return the entries that a checkpoint stores as text."""
        return {
            "strategy": self.strategy.name,
            "why": self.why,
            "sigma0": self.space.sigma0,
            "seed": self.seed,
            "options": dict(self.options),
            "limits": dict(self.limits),
        }


def _variables(x0: Any, bounds: Any) -> int:
    """Return the number of variables of a call before it is checked."""
    if x0 is not None:
        return claimed_size(x0)
    with contextlib.suppress(TypeError, ValueError):
        sides = checked_bounds(bounds, None)
        return 1 if sides is None else sides[0].size
    return 1


def _refuse_options_of_others(options: dict[str, Any], table: Any, choice: str) -> None:
    """Suggest a strategy if ``"auto"`` chose one that does not have an option."""
    known = {option.name for option in table}
    for name in options:
        others = [] if name in known else strategies_with(name)
        if others:
            raise TypeError(
                f"{name} is an option of the strategies {', '.join(others)}, but strategy='auto' "
                f"chose {choice}: name one of them, as in strategy={others[0]!r}"
            )
