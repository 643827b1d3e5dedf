"""Checks that runs can be made, before any is started.

Sections of the paper list what this version does not have, and continue; a user's plan is refused
at the first mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any

from mmes import problems
from mmes.base.loading import is_location
from mmes.base.options import suggestion, validated
from mmes.lab.clustering.solve import SearchSettings
from mmes.lab.experiments.objectives import (
    conditions,
    has_clustering_graph,
    is_clustering,
    resolve,
)
from mmes.lab.experiments.plan import PlanError, Trial
from mmes.run.options import LIMITS
from mmes.strategies import Optimizer, automatic, get_strategy, is_auto

RUN_LIMITS = tuple(o for o in LIMITS if o.name not in ("target", "max_evaluations"))
"""Limits that each strategy of a plan may set; target and budget are those of the plan."""

SEARCH_OPTIONS = tuple(f.name for f in fields(SearchSettings) if f.name != "max_evaluations")
METHODS: dict[str, tuple[str, ...]] = {"mmes": SEARCH_OPTIONS, "gsc": (), "smoothed": ()}
"""The options of each method of sparse spectral clustering."""


def strategy_for(name: str, n: int) -> type[Optimizer]:
    """Return the strategy of a name; of ``"auto"`` the one that it takes for n variables."""
    return automatic(n)[0] if is_auto(name) else get_strategy(name)


@cache
def has_strategy(name: str) -> bool:
    """Whether `mmes.minimize` knows a strategy of this name."""
    try:
        strategy_for(name, 1)
    except ValueError:
        return False
    return True


@cache
def problem_names() -> frozenset[str]:
    """Return the names of the built-in problems."""
    return frozenset(problems.names())


def _missing_piece(run: Trial) -> str | None:
    strategy, problem = run.strategy, run.objective
    if is_clustering(problem.name):
        there = strategy.name in METHODS
        known = has_clustering_graph(problem.name)
        name = problem.name  # one sentence per data set, not one per beta
    else:
        there = has_strategy(strategy.name)
        known = is_location(problem.name) or problem.name in problem_names()
        name = f"{problem.name!r} ({problem.label})"
    if not there:
        return f"there is no strategy {strategy.name!r} ({strategy.label}) here"
    return None if known else f"there is no problem {name} here"


def missing_pieces(runs: Iterable[Trial]) -> list[str]:
    """Return one sentence for every strategy and problem of the runs that does not exist."""
    found = (_missing_piece(run) for run in runs)
    return list(dict.fromkeys(sentence for sentence in found if sentence))


def refuse_mistakes(runs: Iterable[Trial]) -> None:
    """Raise PlanError if a strategy, problem or option of the runs is missing or wrong.

    The user's files are imported for this, because a missing function would fail every run.
    """
    listed = list(runs)
    missing = missing_pieces(listed)
    if missing:
        raise PlanError(missing[0])
    for run in {_kind_of_search(run): run for run in listed}.values():
        _checked(f"strategy {run.strategy.label}", lambda run=run: _check_strategy(run))
    for run in {(run.objective, run.dimension): run for run in listed}.values():
        _checked(f"problem {run.objective.label}", lambda run=run: _check_problem(run))


def _kind_of_search(run: Trial) -> tuple[Any, ...]:
    """Return what decides which options a run may have."""
    if is_clustering(run.objective.name):
        return run.strategy, True
    return run.strategy, strategy_for(run.strategy.name, run.dimension)


def _checked(what: str, check: Any) -> None:
    try:
        check()
    except (TypeError, ValueError, MemoryError) as error:
        raise PlanError(f"{what}: {error}") from error


def _check_strategy(run: Trial) -> None:
    options: dict[str, Any] = dict(run.strategy.options)
    if not is_clustering(run.objective.name):
        kind = strategy_for(run.strategy.name, run.dimension)
        table = [option for option in kind.option_table() if option.name != "seed"]
        owner = f"it (here {kind.name})" if is_auto(run.strategy.name) else "it"
        validated([*table, *RUN_LIMITS], options, owner)
        return
    known = METHODS[run.strategy.name]
    for name in options:
        if name not in known:
            raise ValueError(f"it has no option {name!r}{suggestion(name, known)}")
    SearchSettings(**options)


def _check_problem(run: Trial) -> None:
    options = dict(run.objective.options)
    if not is_clustering(run.objective.name):
        resolve(run.objective.name, run.dimension, options, run.seed)
        conditions(run.objective.name, options)
        return
    if set(options) != {"beta"}:
        given = ", ".join(options) or "none"
        raise ValueError(f"it needs the option beta and takes no other, not {given}")
    beta = options["beta"]
    if isinstance(beta, bool | str) or not 0.0 <= beta < float("inf"):
        raise ValueError(f"beta must be a finite number of at least 0, not {beta!r}")
