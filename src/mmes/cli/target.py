"""What is to be minimised: a built-in problem, or a function of the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from mmes.cli.status import Mistake, mistake_of
from mmes.problems import Problem, entries, get, names


@dataclass(frozen=True)
class BuiltIn:
    """A built-in problem by its name: what travels to workers is the name, not the data.

    Attributes
    ----------
    name : str
        The problem's name.
    options : dict
        What the registry takes besides.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def problem(self) -> Problem:
        """The problem itself, made when it is needed."""
        return get(self.name, **self.options)

    def __call__(self, x: Any) -> Any:
        """Return its value, or values."""
        return self.problem(x)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "options": self.options}


def is_user_code(target: str) -> bool:
    """Return whether a target names a function in a file or module, which is code to be run."""
    return ":" in target


def load_target(target: str, problem_options: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the objective that a target names.

    Parameters
    ----------
    target : str
        A built-in problem, ``file.py:function`` or ``package.module:function``.
    problem_options : dict
        Options of a built-in problem.
    """
    if is_user_code(target):
        return _user_function(target)
    if Path(target).suffix == ".py":
        raise Mistake(f"which function of {target}? write it as {target}:name")
    _check_dimension(target, problem_options)
    try:
        objective = BuiltIn(target, problem_options)
        objective.problem  # noqa: B018  # found out now whether it can be made
    except TypeError as error:
        raise Mistake(str(error)) from error
    except ValueError as error:
        if target in names():
            raise Mistake(str(error)) from error
        raise Mistake(
            f"{error}; 'mmes problems' does too; a function of yours is written as "
            "file.py:function or package.module:function"
        ) from error
    return objective


def _check_dimension(target: str, problem_options: dict[str, Any]) -> None:
    fixed = {entry.name: entry.dimension for entry in entries()}.get(target)
    if fixed is not None and problem_options.pop("dimension", fixed) != fixed:
        raise Mistake(f"{target} has {fixed} variables; leave --dim out")


def _user_function(target: str) -> Callable[[Any], Any]:
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise Mistake(f"write the target as file.py:function, not {target!r}")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [word for word in vars(module) if not word.startswith("_")]
            raise mistake_of(name, known, f"function in {place}:")
        found = getattr(found, part)
    if not callable(found):
        raise Mistake(f"{target} is not a function but {found!r}")
    return found


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise Mistake(f"there is no file {path}")
    # By its name and from its folder, as Python runs a script: so workers can import it too.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _from_name(path.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise Mistake(
            f"{path} cannot be imported, because {path.stem!r} is also the name of another module; "
            "rename the file"
        )
    return module


def _from_name(name: str) -> Any:
    here = os.getcwd()  # not "", which would be another folder in a worker
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[0] == error.name.split(".")[0]:
            raise Mistake(f"there is no module {name!r}") from error
        raise Mistake(f"{name} cannot be imported: {error}") from error
    except Exception as error:  # whatever the user's module does when it is imported
        raise Mistake(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
