"""Which strategies and problems this version has: sections name what is missing, and go on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mmes import problems
from mmes.experiments.objectives import is_function
from mmes.experiments.plan import Run
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


def missing_pieces(runs: Iterable[Run]) -> list[str]:
    """Return one sentence for every strategy and problem of the runs that is not there."""
    found: dict[str, None] = {}
    for run in runs:
        if not has_strategy(run.strategy.name):
            found[f"there is no strategy {run.strategy.name!r} ({run.strategy.label}) yet"] = None
        name = run.objective.name
        if not is_function(name) and name not in problem_names():
            found[f"there is no problem {name!r} ({run.objective.label}) yet"] = None
    return list(found)
