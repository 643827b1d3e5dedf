"""Which strategies and problems this version has: sections name what is missing, and go on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mmes import problems
from mmes.experiments.objectives import has_clustering_graph, is_clustering
from mmes.experiments.plan import Trial
from mmes.experiments.subspace_runs import METHODS
from mmes.loading import is_location
from mmes.strategies import get_strategy


@cache
def has_strategy(name: str) -> bool:
    """Whether `mmes.minimize` knows a strategy of this name."""
    try:
        get_strategy(name)
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
    """Return one sentence for every strategy and problem of the runs that is not there."""
    found = (_missing_piece(run) for run in runs)
    return list(dict.fromkeys(sentence for sentence in found if sentence))
