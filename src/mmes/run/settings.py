"""What a run was asked to do, checked. It does not change while the run goes on."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.memory import in_words
from mmes.base.options import validated
from mmes.base.randomness import fresh_seed
from mmes.constraints import Constraints, Handling
from mmes.errors import CheckpointCorrupt, CheckpointError, ReducedArchiveWarning, warn_user
from mmes.evaluate.options import EVALUATION
from mmes.kernels import kernel_for
from mmes.kernels.choose import check_device_name
from mmes.kernels.devices import started_from
from mmes.run.options import RUN_OPTIONS, check_together
from mmes.run.restarts import start_point, start_seed
from mmes.spaces.bounds import checked_bounds, checked_box
from mmes.spaces.boxes import with_integers
from mmes.spaces.manifolds import Manifold, checked_manifold, manifold_from
from mmes.spaces.start import Start, checked_start, claimed_size
from mmes.strategies import (
    AnyStrategy,
    AskTell,
    automatic,
    get_strategy,
    is_auto,
    named_strategy,
    strategies_with,
)
from mmes.strategies.parts.growth import grown_options
from mmes.strategies.shell.options import DEVICE_OPTIONS, with_new_names

# The options of the search that may differ after resuming, because no result depends on them.
_FREE_OPTIONS = ("kernel", "threads", "device", *DEVICE_OPTIONS)
# Arguments of `minimize` that are no options, and may differ after resuming.
_FREE_ARGUMENTS = ("args", "callback", "catch", "constraints", "progress", "workers")


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run.

    Attributes
    ----------
    strategy : type
        The strategy that searches.
    place : Start
        Start point, mutation strength, bounds and scale.
    manifold : Manifold or None
        The space to search, if it is not R^n.
    options : dict
        Options of the strategy, the seed among them.
    limits : dict
        Options of the run itself, those of `RUN_OPTIONS`.
    seed_given : bool
        Whether the seed was given, or drawn.
    why : str
        Why ``"auto"`` took this strategy; empty where it was named.
    integers : ndarray of bool or None
        Which variables are integers, if any.
    """

    strategy: type[AnyStrategy]
    place: Start
    manifold: Manifold | None
    options: dict[str, Any]
    limits: dict[str, Any]
    seed_given: bool
    why: str = ""
    integers: NDArray[np.bool_] | None = None

    @classmethod
    def checked(
        cls,
        x0: Any,
        sigma0: Any,
        space: dict[str, Any],
        strategy: Any,
        checkpoint: Any,
        options: dict[str, Any],
    ) -> RunSettings:
        """Return the settings that the arguments of `minimize` ask for.

        Parameters
        ----------
        x0, sigma0, strategy, checkpoint
            As in `minimize`.
        space : dict
            Its arguments `bounds`, `scale`, `manifold` and `integers`; and `elsewhere`, why not every strategy
            can be taken.
        options : dict
            Its options.
        """
        bounds, scale = space["bounds"], space["scale"]
        x0, options = started_from(x0, options)
        why = ""
        if is_auto(strategy):
            on_device = options.get("device") is not None
            elsewhere = "it runs on a device" if on_device else space["elsewhere"]
            n, manifold = _variables(x0, bounds), space["manifold"] is not None
            kind, why = automatic(n, manifold, elsewhere)
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
        manifold = checked_manifold(space["manifold"], kind.name, kind.on_manifolds, bounds, scale)
        if kind.needs_box and bounds is None:
            checked_box(None, None, f"the strategy {kind.name!r}")
        place = checked_start(x0, sigma0, bounds, scale, manifold)
        integers = _checked_integers(space.get("integers"), kind, place, manifold)
        return cls(kind, place, manifold, chosen, limits, seed_given, why, integers)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.options["seed"]

    @property
    def strategy_in_words(self) -> str:
        """The strategy's name, and why it was chosen if ``"auto"`` did."""
        return f"{self.strategy.name} (auto: {self.why})" if self.why else self.strategy.name

    @property
    def evaluation(self) -> dict[str, Any]:
        """The options of the evaluator."""
        return {option.name: self.limits[option.name] for option in EVALUATION}

    def optimizer(self, start: int, doublings: int, population_size: int = 0) -> AnyStrategy:
        """Return the optimizer that a start begins with.

        Parameters
        ----------
        start : int
            Number of the start, 0 for the first.
        doublings : int
            How often population size and damping are doubled.
        population_size : int
            That of the first start, if there are doublings.
        """
        place = self.place
        options = grown_options(self.options, population_size, doublings)
        return self.strategy(
            start_point(place, self.seed, start, self.manifold),
            place.sigma0,
            bounds=place.box,
            scale=place.scale,
            manifold=self.manifold,
            **({} if self.integers is None else {"integers": self.integers}),
            **options | {"seed": start_seed(self.seed, start)},
        )

    def handling(self, constraints: Constraints | None, n: int) -> Handling | None:
        """Return what looks after the constraints, if there are any; `n` counts the variables."""
        if constraints is None:
            return None
        return Handling(constraints, self.limits["constraint_tolerance"], n)

    def smaller_optimizer(self, es: AskTell, usable: int, machine: str) -> AnyStrategy:
        """Return the first optimizer, its archive reduced to what fits elsewhere, with a warning.

        Parameters
        ----------
        es : AskTell
            The one that does not fit.
        usable : int
            The bytes it may take.
        machine : str
            Where that is.

        Raises
        ------
        MemoryError
            If no reduced archive fits.
        """
        own = {option.name: self.options[option.name] for option in es.search_type.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            planned, _ = es.search_type.planned(es.dimension, own, usable)
        changed = {name: value for name, value in planned.items() if value != own[name]}
        warn_user(
            f"the machine with the least memory, {machine}, has {in_words(usable)} usable: "
            f"{', '.join(f'{name} is reduced to {value}' for name, value in changed.items())}",
            ReducedArchiveWarning,
        )
        return replace(self, options=self.options | changed).optimizer(0, 0)

    # What a checkpoint keeps of them

    def entries(self) -> dict[str, Any]:
        """Return what a checkpoint writes as text."""
        return {
            "strategy": self.strategy.name,
            "why": self.why,
            "sigma0": self.place.sigma0,
            "seed": self.seed,
            "options": dict(self.options),
            "limits": dict(self.limits),
        }

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of a checkpoint; those that were not given are left out."""
        lower, upper = self.place.box or (None, None)
        found = {"x0": self.place.x0, "scale": self.place.scale, "lower": lower, "upper": upper}
        if self.integers is not None:
            found["integers"] = self.integers.astype(np.float64)
        return {name: array for name, array in found.items() if array is not None}

    def continued(self, saved: dict[str, Any]) -> RunSettings:
        """Return these settings with the seed of a saved run, which must be the same run.

        Raises
        ------
        CheckpointError
            If the state belongs to another run.
        CheckpointCorrupt
            If it is no state of a run.
        """
        with understood():
            found = self._continued(saved)
        # What this machine lacks is no fault of the file.
        kernel_for(found.options)
        return found

    def _continued(self, saved: dict[str, Any]) -> RunSettings:
        here, there = self.entries(), {name: saved[name] for name in ("strategy", "sigma0")}
        manifold = None if self.manifold is None else self.manifold.description()
        here["manifold"], there["manifold"] = manifold, saved["search"].get("manifold")
        options = with_new_names(saved["options"])
        for name in set(self.options) & set(options) - {"seed", *_FREE_OPTIONS}:
            here[name], there[name] = self.options[name], options[name]
        if self.seed_given:
            there["seed"] = saved["seed"]
        for name, value in there.items():
            if here[name] != value:
                raise CheckpointError(
                    f"the checkpoint belongs to another run: {name} is {here[name]!r} here and was "
                    f"{value!r}"
                )
        ours, theirs = self.arrays(), saved["arrays"]
        for name in ("x0", "scale", "lower", "upper", "integers"):
            if not _same(ours.get(name), theirs.get(name)):
                raise CheckpointError(f"the checkpoint belongs to another run: {name} differs")
        # A checkpoint without it is of an older version, or its strategy was named.
        why = self.why or saved.get("why", "")
        if not isinstance(why, str):
            raise TypeError(f"why must be a text, not {why!r}")
        return replace(self, options=self.options | {"seed": saved["seed"]}, why=why)


def resumed_arguments(saved: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which `Run` goes on from a saved state.

    Parameters
    ----------
    saved : dict
        The state.
    changes : dict
        What `mmes.resume` was given; only what no result depends on, and limits, may change.
    """
    given = dict(changes)
    strategy = given.pop("strategy", None)
    kind = None if strategy is None else get_strategy(strategy)
    free = {option.name for option in RUN_OPTIONS} | {*_FREE_OPTIONS, *_FREE_ARGUMENTS}
    for name in given:
        if name not in free:
            raise TypeError(
                f"{name} cannot change when a run is resumed; {', '.join(sorted(free))} can"
            )
    with understood():
        # A file must not choose which code runs: only names of ours are taken from it.
        kind = kind or _strategy_of_ours(saved["strategy"])
        arrays, described = saved["arrays"], saved["search"].get("manifold")
        # Version 0.1.0 had no word for some of them.
        found = {option.name: option.default for option in RUN_OPTIONS} | saved["limits"]
        limits = {option.name: found[option.name] for option in RUN_OPTIONS}
        # The kernel that was chosen may not be on this machine.
        own = (
            with_new_names(saved["options"])
            | limits
            | {"kernel": "auto", "threads": None, "resume": "never"}
        )
        if given.get("device", own.get("device")) is None:
            own = {name: value for name, value in own.items() if name not in DEVICE_OPTIONS}
        validated(RUN_OPTIONS + kind.option_table(), own, "the checkpoint")
        if own.get("device") is not None:
            check_device_name(own["device"])  # before torch is loaded, which takes 300 MB
        place = {
            "x0": arrays.get("x0"),
            "sigma0": saved["sigma0"],
            "bounds": (arrays["lower"], arrays["upper"]) if "lower" in arrays else None,
            "scale": arrays.get("scale"),
            "manifold": None if described is None else manifold_from(described),
        }
        checked_start(**place)
        integers = None if "integers" not in arrays else np.array(arrays["integers"]) > 0
    return own | given | place | {"strategy": kind, "resume": "never", "integers": integers}


def _strategy_of_ours(name: Any) -> type[AnyStrategy]:
    try:
        return named_strategy(name)
    except ValueError as error:
        raise CheckpointCorrupt(
            f"the checkpoint cannot be used as it is: {error}; if it is one of your own, name it "
            "again, as strategy="
        ) from error


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Make what goes wrong with the parts of a saved state an error that says so."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointCorrupt(
            f"the parts of the checkpoint do not fit together ({type(error).__name__}: {error})"
        ) from error


def _variables(x0: Any, bounds: Any) -> int:
    """Return how many variables a call seems to have, before it is checked."""
    if x0 is not None:
        return claimed_size(x0)
    with contextlib.suppress(TypeError, ValueError):
        sides = checked_bounds(bounds, None)
        return 1 if sides is None else sides[0].size
    return 1


def _refuse_options_of_others(options: dict[str, Any], table: Any, choice: str) -> None:
    """Say which strategy to name where ``"auto"`` took one that does not know an option."""
    known = {option.name for option in table}
    for name in options:
        others = [] if name in known else strategies_with(name)
        if others:
            raise TypeError(
                f"{name} is an option of the strategies {', '.join(others)}, but strategy='auto' "
                f"took {choice}: name one of them, as in strategy={others[0]!r}"
            )


def _checked_integers(
    given: Any, kind: type[AnyStrategy], place: Start, manifold: Manifold | None
) -> NDArray[np.bool_] | None:
    """Return which variables are integers; None where none is."""
    if given is None or given is False:
        return None
    if manifold is not None:
        raise ValueError(f"integers cannot be combined with a manifold, here {manifold}")
    if not issubclass(kind, AskTell):
        raise ValueError(f"integers cannot be combined with the strategy {kind.name!r}")
    n = place.x0.size if place.x0 is not None else place.box[0].size  # type: ignore[index]
    return with_integers(place.box, given, n).integers


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
