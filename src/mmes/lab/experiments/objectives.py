"""From a name in a plan to a problem that can be run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mmes import problems
from mmes.base.loading import is_location, load_objective
from mmes.evaluate.values import as_value, as_vector
from mmes.lab.clustering.graphs import Graph, dataset_names, graph_from_mat, load_graph
from mmes.problems.problem import Problem, Vector

CLUSTERING = "clustering/"
"""``clustering/NAME`` is sparse spectral clustering of a data set, ``clustering/FILE.mat`` of a
MATLAB file of the collection that the data sets come from."""


def is_clustering(name: str) -> bool:
    """Whether the name stands for sparse spectral clustering, a problem over subspaces."""
    return name.startswith(CLUSTERING)


def has_clustering_graph(name: str) -> bool:
    """Whether the data of a clustering problem are there."""
    data = name.removeprefix(CLUSTERING)
    return Path(data).is_file() if data.endswith(".mat") else data in dataset_names()


def load_clustering_graph(name: str) -> Graph:
    """Return the graph of a clustering problem."""
    data = name.removeprefix(CLUSTERING)
    return graph_from_mat(data) if data.endswith(".mat") else load_graph(data)


@cache
def fixed_dimension(name: str) -> int | None:
    """Return the number of variables of a problem that has its own, None where n is free."""
    if is_clustering(name):
        if not has_clustering_graph(name):
            return None
        graph = load_clustering_graph(name)
        return graph.n_samples * graph.n_clusters
    known = {entry.name: entry.dimension for entry in problems.entries()}
    return known.get(name)


def recommended_treatment(name: str) -> str:
    """Return how candidates are kept in the box of a problem if the plan does not say so."""
    known = {entry.name: entry.treatment for entry in problems.entries()}
    return known.get(name, "none")


@cache
def _digest(path: Path, _stamp: tuple[int, int]) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def fingerprint(name: str) -> str:
    """Return what identifies a problem or strategy: its name, and the content of a file in it.

    The folder of the file is left out, so that the same file on another machine counts as the same.
    """
    file, short = named_file(name)
    if file is None:
        return name
    if not file.is_file():
        raise ValueError(f"{name}: there is no file {file}")
    status = file.stat()
    return f"{short}#{_digest(file, (status.st_mtime_ns, status.st_size))}"


def named_file(name: str) -> tuple[Path | None, str]:
    """Return the file in the name of a problem or strategy, and the name without its folder."""
    where, _, function = name.rpartition(":")
    if where.endswith(".py"):
        return Path(where), f"{Path(where).name}:{function}"
    if is_clustering(name) and name.endswith(".mat"):
        path = Path(name.removeprefix(CLUSTERING))
        return path, f"{CLUSTERING}{path.name}"
    return None, name


def _rowwise(function: Callable[[Vector], Any]) -> Callable[[Vector], Vector]:
    """Return the function of a batch; its values are checked like those of all objectives."""
    return lambda points: np.array([as_value(function(x)) for x in points])


def conditions(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constraints and integers of a problem, as arguments of `mmes.minimize`.

    Only functions have any. Among their settings, ``constraints`` names a function of the same
    file, whose content identifies the runs; ``integers`` is ``"all"`` or indices, as in
    ``"0,1,2"``.
    """
    found: dict[str, Any] = {}
    if not is_location(name):
        return found
    if "constraints" in options:
        given = options["constraints"]
        if not isinstance(given, str) or not given.isidentifier():
            raise ValueError(
                f"problem {name}: constraints must name a function of the same file, not {given!r}"
            )
        g = load_objective(f"{name.rpartition(':')[0]}:{given}")
        found["constraints"] = g if options.get("vectorized", False) else _vectors(g, given)
    if "integers" in options:
        found["integers"] = _indices(name, options["integers"])
    return found


def _vectors(function: Callable[[Vector], Any], name: str) -> Callable[[Vector], Vector]:
    return lambda points: np.array([as_vector(function(x), name) for x in points])


def _indices(name: str, given: Any) -> Any:
    if given in ("all", True):
        return True
    try:
        return [int(index) for index in str(given).split(",")]
    except ValueError:
        raise ValueError(
            f"problem {name}: integers must be 'all' or indices such as '0,1,2', not {given!r}"
        ) from None


def _from_function(name: str, dimension: int, options: Mapping[str, Any]) -> Problem:
    known = {"vectorized", "lower", "upper", "constraints", "integers"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ValueError(
            f"problem {name}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )
    function = load_objective(name)
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
    """Return the problem of that name, built-in or a function, in that dimension.

    `options` are those of `mmes.lab.experiments.plan.Objective`. The seed draws the rotation of a
    rotated problem, unless its options give one: as in the paper every run has another rotation.
    """
    if is_location(name):
        return _from_function(name, dimension, options or {})
    settings = dict(options or {})
    if fixed_dimension(name) is None:
        settings["dimension"] = dimension
    if name.startswith("rotated_"):
        settings.setdefault("seed", seed)
    problem = problems.get(name, **settings)
    if problem.dimension != dimension:
        raise ValueError(f"{name} has {problem.dimension} variables, not {dimension}")
    return problem
