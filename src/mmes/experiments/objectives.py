"""From a name in a plan to a problem that can be run."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mmes import problems
from mmes.problems.problem import Problem, Vector


def is_function(name: str) -> bool:
    """Whether the name stands for a user's function: ``file.py:f`` or ``package.module:f``."""
    return ":" in name


@cache
def _digest(path: Path, _stamp: tuple[int, int]) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def fingerprint(name: str) -> str:
    """Return what identifies a problem: its name; for a function in a file, also its content.

    The folder of the file is left out, so that the same file on another machine counts as the same.
    """
    where, _, function = name.rpartition(":")
    if not where.endswith(".py"):
        return name
    path = Path(where)
    if not path.is_file():
        raise ValueError(f"problem {name}: there is no file {where}")
    status = path.stat()
    return f"{path.name}:{function}#{_digest(path, (status.st_mtime_ns, status.st_size))}"


def load_function(name: str) -> Callable[..., Any]:
    """Return the function that ``file.py:f`` or ``package.module:f`` names."""
    where, _, function = name.rpartition(":")
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise ValueError(f"problem {name}: there is no file {where}")
        spec = importlib.util.spec_from_file_location(f"mmes_user_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ValueError(f"problem {name}: {where} cannot be loaded as Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses and pickling look the module up by name
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise ValueError(f"problem {name}: {error}") from None
    found = getattr(module, function, None)
    if not callable(found):
        raise ValueError(f"problem {name}: {where} has no function called {function!r}")
    return found


def _rowwise(function: Callable[[Vector], Any]) -> Callable[[Vector], Vector]:
    return lambda points: np.array([function(x) for x in points], dtype=np.float64)


def _from_function(name: str, dimension: int, options: Mapping[str, Any]) -> Problem:
    known = {"vectorized", "lower", "upper"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ValueError(
            f"problem {name}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )
    function = load_function(name)
    lower, upper = float(options.get("lower", -5.0)), float(options.get("upper", 5.0))
    if not lower < upper:
        raise ValueError(f"problem {name}: lower {lower} must be smaller than upper {upper}")
    return Problem(
        name=name,
        dimension=dimension,
        batch=function if options.get("vectorized", False) else _rowwise(function),
        lower=np.full(dimension, lower),
        upper=np.full(dimension, upper),
        minimum=None,
        description=(function.__doc__ or "").strip().partition("\n")[0],
    )


def resolve(
    name: str, dimension: int, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Problem:
    """Return the problem of that name in that dimension.

    Parameters
    ----------
    name : str
        A built-in problem or a function.
    dimension : int
        Number of variables n.
    options : mapping, optional
        Settings of the problem; see `mmes.experiments.plan.Objective`.
    seed : int
        Draws the rotation of a rotated problem, unless its options give a seed: as in the paper
        every run has a rotation of its own.
    """
    if is_function(name):
        return _from_function(name, dimension, options or {})
    settings = dict(options or {})
    fixed = {entry.name for entry in problems.entries() if entry.dimension is not None}
    if name not in fixed:
        settings["dimension"] = dimension
    if name.startswith("rotated_"):
        settings.setdefault("seed", seed)
    problem = problems.get(name, **settings)
    if problem.dimension != dimension:
        raise ValueError(f"{name} has {problem.dimension} variables, not {dimension}")
    return problem
