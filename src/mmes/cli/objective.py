"""What to minimise: a built-in problem or the user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mmes.base.loading import is_location, load_objective
from mmes.cli.status import Mistake
from mmes.problems import Problem, get
from mmes.problems.registry import find


@dataclass(frozen=True)
class BuiltIn:
    """A built-in problem by name: workers are sent the name, not the data."""

    name: str  # The problem's name.
    options: dict[str, Any] = field(default_factory=dict)  # Options of the registry.

    @cached_property
    def problem(self) -> Problem:
        """The problem, created when it is first needed."""
        return get(self.name, **self.options)

    def __call__(self, x: Any) -> Any:
        """Return the value or values of the problem."""
        return self.problem(x)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "options": self.options}


def load_target(target: str, problem_options: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the objective that a target names.

    It is a built-in problem, ``file.py:function`` or ``package.module:function``.
    """
    if is_location(target):
        try:
            return load_objective(target)
        except ValueError as error:
            raise Mistake(str(error)) from error
    if Path(target).suffix == ".py":
        raise Mistake(f"the name of the function is needed: {target}:name")
    _check_dimension(target, problem_options)
    try:
        objective = BuiltIn(target, problem_options)
        objective.problem  # noqa: B018  # found out now whether it can be made
    except (TypeError, MemoryError) as error:
        raise Mistake(str(error)) from error
    except ValueError as error:
        if find(target) is not None:
            raise Mistake(str(error)) from error
        sentence = str(error).replace("mmes.problems.names()", "'mmes problems'")
        raise Mistake(
            f"{sentence} (name your own function as file.py:function or package.module:function)"
        ) from error
    return objective


def chosen_dimension(target: str, n: int) -> dict[str, Any]:
    """Return the option that gives a built-in problem n variables; none for a user's function.

    Raises Mistake if the problem has another number of variables.
    """
    entry = None if is_location(target) else find(target)
    if entry is None:
        return {}
    if entry.dimension not in (None, n):
        raise Mistake(
            f"{entry.name} has {entry.dimension} variables, but the checkpoint is of a run with {n}"
        )
    return {"dimension": n} if entry.dimension is None else {}


def _check_dimension(target: str, problem_options: dict[str, Any]) -> None:
    entry = find(target)
    fixed = None if entry is None else entry.dimension
    if fixed is not None and problem_options.pop("dimension", fixed) != fixed:
        raise Mistake(f"{target} has {fixed} variables; omit --dim")
