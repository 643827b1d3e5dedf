"""What to run: strategies x problems x dimensions x seeds under one budget.

A `Plan` is the grid that the user writes, in Python or TOML; a `Trial` is one cell of it with one
seed, and its `key` says what the run is, so that a store can tell finished runs from missing ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from mmes.base.options import is_real
from mmes.lab.experiments.objectives import (
    fingerprint,
    fixed_dimension,
    named_file,
    recommended_treatment,
)
from mmes.problems.suite import TREATMENT
from mmes.spaces.boxes import BOXES

Option = bool | int | float | str
Options = tuple[tuple[str, Option], ...]
"""Named settings as sorted pairs: hashable, picklable, with one spelling only."""

KEY_LENGTH = 16
LARGEST = 2**63 - 1
"""The largest integer that the files of finished runs can hold."""
MOST_SEEDS = 10**6
MOST_BYTES = 10**7
"""Limits of a plan."""


class PlanError(ValueError):
    """A plan that cannot be run, with a sentence that names the field and what is allowed."""


def checked_key(key: Any) -> str:
    """Return the key of a run after checking it, because it becomes the name of a file."""
    if not isinstance(key, str) or not re.fullmatch(f"[0-9a-f]{{{KEY_LENGTH}}}", key):
        raise ValueError(f"key must be {KEY_LENGTH} hexadecimal digits, not {key!r}")
    return key


def freeze(options: Mapping[str, Any], where: str) -> Options:
    """Return options as sorted pairs, refusing values that a file cannot contain."""
    for name, value in options.items():
        if not isinstance(value, bool | int | float | str):
            raise PlanError(
                f"{where}: option {name} must be a number, a string or true/false, not {value!r}"
            )
    return tuple(sorted(options.items()))


def _checked_label(label: str) -> str:
    """Return a label; one that a spreadsheet would read as a formula is refused."""
    if label[:1] in ("=", "+", "-", "@") or not label.isprintable():
        raise PlanError(
            f"a label must be printable and not begin with =, +, - or @, since spreadsheets read "
            f"that as a formula, not {label!r}"
        )
    return label


@dataclass(frozen=True)
class _Labelled:
    name: str
    label: str = ""
    options: Options = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", _checked_label(self.label or named_file(self.name)[1]))


@dataclass(frozen=True)
class Strategy(_Labelled):
    """A column of the comparison: a strategy with its options, under a label.

    Attributes
    ----------
    name : str
        A name that `mmes.minimize` knows, ``file.py:Class`` or ``package.module:Class``.
    label : str
        How tables call it; the name where empty.
    options : Options
        Options of the strategy, and ``restarts``, ``reevaluations``, ``max_generations`` and
        ``time_limit`` of the run.
    """


@dataclass(frozen=True)
class Objective(_Labelled):
    """A row of the comparison: a built-in problem or a user's function, under a label.

    Attributes
    ----------
    name : str
        A name that `mmes.problems` knows, ``file.py:function``, ``package.module:function``, or
        ``clustering/NAME``.
    label : str
        How tables call it; the name where empty.
    options : Options
        Settings of the problem, such as ``alpha`` of the ellipsoid; for a function ``vectorized``
        (it takes a (k, n) batch), ``lower`` and ``upper`` (its box), ``constraints`` (a function of
        the same file, feasible where it is <= 0) and ``integers`` (``"all"``, or ``"0,1,2"``).
    dimension : int or None
        If it differs from the plan's; not needed for a problem with a fixed dimension.
    """

    dimension: int | None = None


@dataclass(frozen=True)
class Trial:
    """One run: everything that affects its result, and its labels."""

    strategy: Strategy
    objective: Objective
    dimension: int
    seed: int  # Of the start point and the strategy.
    max_evaluations: int
    target: float | None = 1e-8  # Value at which the run has succeeded and stops.
    # The start point is uniform in this interval to the n; None stands for the problem's box.
    start: tuple[float, float] | None = (-5.0, 5.0)
    sigma0: float | None = 3.0  # Initial step size; None stands for 0.3 of the width of the box.
    # ``"none"``, or how candidates are kept in the box: a choice of the strategies' option
    # ``bounds_handling``.
    bounds: str = "none"
    # Evaluations at which the best value is recorded exactly; no part of the key.
    record_at: tuple[int, ...] = field(default=(), compare=False)
    # The key of a stored run, whose function may no longer be available.
    stored_key: str = field(default="", compare=False)

    @cached_property
    def key(self) -> str:
        """A short hash of everything that affects the result; labels are not part of it.

        A function or strategy in a file counts by the file's name and content, not its folder, so
        results can be merged from several machines and an edited function is run again.
        """
        if self.stored_key:
            return self.stored_key
        what = {
            "strategy": fingerprint(self.strategy.name),
            "options": self.strategy.options,
            "problem": fingerprint(self.objective.name),
            "problem_options": self.objective.options,
            "dimension": self.dimension,
            "seed": self.seed,
            "max_evaluations": self.max_evaluations,
            "target": None if self.target is None else float(self.target),
            "start": None if self.start is None else [float(x) for x in self.start],
            "sigma0": None if self.sigma0 is None else float(self.sigma0),
            "bounds": self.bounds,
        }
        text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    @property
    def cell(self) -> tuple[str, int, str]:
        """The cell of a table it belongs to: (problem label, dimension, strategy label)."""
        return self.objective.label, self.dimension, self.strategy.label

    def __str__(self) -> str:
        problem, dimension, strategy = self.cell
        return f"{strategy} on {problem}, n = {dimension}, seed {self.seed}"


def suite_trial(
    strategy: Strategy, objective: Objective, seed: int, budget: int, **more: Any
) -> Trial:
    """Return a run under the rules of the CEC suites: no target, started and clipped in the box."""
    rules = {"target": None, "start": None, "sigma0": None, "bounds": TREATMENT}
    return Trial(strategy, objective, objective.dimension or 1000, seed, budget, **rules, **more)


@dataclass(frozen=True)
class Plan:
    """A grid of runs.

    Examples
    --------
    >>> plan = Plan(
    ...     strategies=(Strategy("mmes"),),
    ...     objectives=(Objective("cigar"),),
    ...     dimensions=(100,),
    ...     seeds=(1, 2, 3),
    ...     max_evaluations=100_000,
    ... )
    >>> len(plan.runs())
    3
    """

    strategies: tuple[Strategy, ...]  # The columns.
    objectives: tuple[Objective, ...]  # The rows.
    # dimensions, seeds: numbers of variables, and seeds: every combination is one run.
    dimensions: tuple[int, ...]
    seeds: tuple[int, ...]
    max_evaluations: int  # Budget of each run.
    name: str = "comparison"  # Title of the report.
    # As in `Trial`; without one, runs use their budget and cannot succeed or fail.
    target: float | None = None
    # start, sigma0: as in `Trial`.
    start: tuple[float, float] | None = (-5.0, 5.0)
    sigma0: float | None = 3.0
    # As in `Trial`, or ``"recommended"``: each problem's own treatment, that is clipping for the
    # CEC suites and none for the others.
    bounds: str = "recommended"
    # Label of the strategy the others are tested against; the first one where empty.
    chosen: str = ""
    notes: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("strategies", "objectives", "dimensions", "seeds"):
            values = getattr(self, name)
            if not values:
                raise PlanError(f"{name} is empty; give at least one")
            if len(set(values)) < len(values):
                raise PlanError(f"{name} contains a value twice: {values}")
        labels = [s.label for s in self.strategies]
        _refuse_repeats("strategies", labels)
        _refuse_repeats("problems", [o.label for o in self.objectives])
        for n in self.dimensions:
            _at_least("dimensions", n, 1)
        for seed in self.seeds:
            _at_least("seeds", seed, 0)
        _at_least("max_evaluations", self.max_evaluations, 1)
        if self.target is not None and not math.isfinite(self.target):
            raise PlanError(f"target must be a finite number, not {self.target!r}")
        if self.start is not None and not -math.inf < self.start[0] < self.start[1] < math.inf:
            raise PlanError(f"start must be an interval [low, high], not {self.start!r}")
        if self.sigma0 is not None and not (0.0 < self.sigma0 < math.inf):
            raise PlanError(f"sigma0 must be positive and finite, not {self.sigma0!r}")
        if self.bounds not in ("recommended", "none", *BOXES):
            known = ", ".join(["recommended", "none", *BOXES])
            raise PlanError(f"bounds must be one of {known}, not {self.bounds!r}")
        if self.chosen and self.chosen not in labels:
            raise PlanError(f"chosen must be one of {', '.join(labels)}, not {self.chosen!r}")
        object.__setattr__(self, "chosen", self.chosen or labels[0])

    def runs(self) -> tuple[Trial, ...]:
        """Return every run of the grid, seeds innermost."""
        settings = (self.max_evaluations, self.target, self.start, self.sigma0)
        return unique(
            Trial(strategy, objective, dimension, seed, *settings, self.treatment_of(objective))
            for objective in self.objectives
            for dimension in self.dimensions_of(objective)
            for strategy in self.strategies
            for seed in self.seeds
        )

    def treatment_of(self, objective: Objective) -> str:
        """Return how candidates are kept in the box of a problem."""
        named = self.bounds != "recommended"
        return self.bounds if named else recommended_treatment(objective.name)

    def dimensions_of(self, objective: Objective) -> tuple[int, ...]:
        """Return the dimensions of a problem: its own, where it has one, or the plan's."""
        own = objective.dimension or fixed_dimension(objective.name)
        return (own,) if own else self.dimensions


def _refuse_repeats(field_name: str, labels: Sequence[str]) -> None:
    repeated = sorted({x for x in labels if labels.count(x) > 1})
    if repeated:
        raise PlanError(f"{field_name}: two entries are called {repeated[0]!r}; give them labels")


def _at_least(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise PlanError(f"{name} must be an integer of at least {low}, not {value!r}")
    if value > LARGEST:
        raise PlanError(f"{name} must be at most 2^63 - 1 = {LARGEST}, not {value}")


KNOWN = {f.name for f in fields(Plan)} - {"strategies", "objectives"} | {"strategy", "problems"}
"""Keys of a plan in TOML."""


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file; functions in files are found relative to that file."""
    path = Path(path)
    if not path.is_file():  # also refuses pipes and devices, which may have no end
        raise PlanError(f"there is no plan file {path}")
    if path.stat().st_size > MOST_BYTES:
        raise PlanError(f"{path} is too large for a plan: more than {MOST_BYTES:,} bytes")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} is not valid TOML: {error}") from None
    try:
        return plan_from(data, folder=path.parent)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def plan_from(data: Mapping[str, Any], folder: Path | None = None) -> Plan:
    """Make a plan of the tables of a TOML file (or an equal dictionary)."""
    unknown = sorted(set(data) - KNOWN)
    if unknown:
        raise PlanError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(KNOWN))}")
    for needed in ("problems", "max_evaluations"):
        if needed not in data:
            raise PlanError(f"{needed} is missing")
    folder = folder or Path()
    problems = data["problems"]
    if not isinstance(problems, list):
        raise PlanError(f"problems must be a list, not {problems!r}")
    strategies = data.get("strategy", [{"name": "mmes", "label": "MMES"}])
    if not isinstance(strategies, list):
        raise PlanError("write each strategy as a separate table: [[strategy]]")
    defaults = {key: data[key] for key in ("name", "bounds", "chosen", "notes") if key in data}
    for key, value in defaults.items():
        if not isinstance(value, str):
            raise PlanError(f"{key} must be a string, not {value!r}")
    return Plan(
        strategies=tuple(_strategy(s, folder) for s in strategies),
        objectives=tuple(_objective(p, folder) for p in problems),
        dimensions=_integers("dimensions", data.get("dimensions", 1000)),
        seeds=_seeds(data.get("seeds", 10)),
        max_evaluations=_integer("max_evaluations", data["max_evaluations"]),
        target=_optional_number("target", data.get("target", "none"), "none"),
        start=_interval(data.get("start", [-5.0, 5.0])),
        sigma0=_optional_number("sigma0", data.get("sigma0", 3.0), "box"),
        **defaults,
    )


def _entry(entry: Any, what: str) -> tuple[str, str, dict[str, Any]]:
    """Return name, label and options of an entry written as a string or as a table."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise PlanError(f"{what} needs a name, a string; got {entry!r}")
    label = table.get("label", "")
    if not isinstance(label, str):
        raise PlanError(f"{what} {table['name']}: label must be a string, not {label!r}")
    return table["name"], label, {k: v for k, v in table.items() if k not in ("name", "label")}


def _strategy(entry: Any, folder: Path) -> Strategy:
    name, label, options = _entry(entry, "strategy")
    return Strategy(_located(name, folder, "strategy"), label, freeze(options, f"strategy {name}"))


def _located(name: str, folder: Path, what: str) -> str:
    """Return a name with the file in it, if there is one, found next to the plan."""
    file, short = named_file(name)
    if file is None:
        return name
    found = (folder / file).resolve()
    if not found.is_file():
        raise PlanError(f"{what} {name}: there is no file {file} next to the plan")
    return short.replace(file.name, str(found), 1)


def _objective(entry: Any, folder: Path) -> Objective:
    name, label, options = _entry(entry, "problem")
    dimension = options.pop("dimension", None)
    if dimension is not None:
        _at_least(f"problem {name}: dimension", dimension, 1)
    name = _located(name, folder, "problem")
    return Objective(name, label, freeze(options, f"problem {name}"), dimension)


def _integer(name: str, value: Any) -> int:
    # So that a budget can be written as 1e6.
    if isinstance(value, float) and value.is_integer():
        return _integer(name, int(value))
    _at_least(name, value, 1)
    return int(value)


def _integers(name: str, value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(_integer(name, v) for v in values)


def _seeds(value: Any) -> tuple[int, ...]:
    """Return the seeds: a list of them, or how many (10 stands for 1, 2, .., 10)."""
    if isinstance(value, list):
        for seed in value:
            _at_least("seeds", seed, 0)
        return tuple(value)
    return tuple(range(1, checked_count(_integer("seeds", value)) + 1))


def checked_count(count: int) -> int:
    """Return a number of seeds after checking it."""
    if count > MOST_SEEDS:
        raise PlanError(f"seeds must be at most {MOST_SEEDS:,} in number, not {count:,}")
    return count


def _optional_number(name: str, value: Any, word: str) -> float | None:
    if value == word:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"{name} must be a number or {word!r}, not {value!r}")
    return float(value)


def _interval(value: Any) -> tuple[float, float] | None:
    if value == "box":
        return None
    pair = isinstance(value, list) and len(value) == 2
    if not pair or not all(is_real(v) for v in value):
        raise PlanError(f"start must be [low, high] or 'box', not {value!r}")
    return float(value[0]), float(value[1])


def unique(runs: Iterable[Trial]) -> tuple[Trial, ...]:
    """Return the runs with each key once, the first of each, in order."""
    found: dict[str, Trial] = {}
    for run in runs:
        found.setdefault(run.key, run)
    return tuple(found.values())
