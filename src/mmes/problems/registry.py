"""All problems by name: `get`, `names` and a listing."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmes.problems import functions, lsgo2010, lsgo2013
from mmes.problems.problem import Problem
from mmes.problems.suite import TREATMENT


@dataclass(frozen=True)
class Entry:
    """One line of the listing."""

    name: str  # The name for `get`.
    description: str  # One sentence.
    dimension: int | None  # The number of variables if it is fixed, None if the caller chooses it.
    make: Callable[..., Problem]  # Builds the problem from the name and the options.
    treatment: str = "none"  # As of `Problem`.

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `get` for this kind of problem."""
        return tuple(inspect.signature(self.make).parameters)[1:]


def entries() -> list[Entry]:
    """Return the listing: one entry per problem, in the order of the suites."""
    return list(_table().values())


def names() -> list[str]:
    """Return the names of all problems, in the order of the suites."""
    return list(_table())


def get(name: str, **options: Any) -> Problem:
    """Return the problem of the given name.

    Parameters
    ----------
    name : str
        One of `names()`; upper and lower case, spaces, hyphens and underscores are not
        distinguished.
    **options
        ``dimension`` (default 1000) for the basic problems, ``alpha`` for the ellipsoids, ``seed``
        for the rotated problems, ``strict`` for the CEC functions (NaN outside the box).

    Examples
    --------
    >>> from mmes.problems import get
    >>> get("rotated_cigar", dimension=1000, seed=3).dimension
    1000
    """
    if not isinstance(name, str):
        raise TypeError(f"a problem's name is a string, not {name!r}")
    entry = find(name)
    if entry is None:
        table = _spellings()
        near = difflib.get_close_matches(_plain(name), table, n=3, cutoff=0.5)
        hint = ", ".join(repr(table[plain].name) for plain in near)
        advice = f"did you mean {hint}?" if near else "mmes.problems.names() lists them all"
        raise ValueError(f"there is no problem named {name!r}; {advice}")
    unknown = [option for option in options if option not in entry.options]
    if unknown:
        raise TypeError(
            f"{entry.name} has no option {unknown[0]!r}; it takes {', '.join(entry.options)}"
        )
    return entry.make(entry.name, **options)


def find(name: str) -> Entry | None:
    """Return the entry of a problem by name, spelt as for `get`; None if there is none."""
    return _spellings().get(_plain(name))


def _spellings() -> dict[str, Entry]:
    return {_plain(known): entry for known, entry in _table().items()}


def _table() -> dict[str, Entry]:
    listed = [
        *(Entry(name, text, None, functions.make) for name, text in functions.DESCRIPTIONS.items()),
        *(
            Entry(name, text, lsgo2010.DIMENSION, lsgo2010.make, TREATMENT)
            for name, text in lsgo2010.DESCRIPTIONS.items()
        ),
        *(
            Entry(name, text, lsgo2013.dimension(name), lsgo2013.make, TREATMENT)
            for name, text in lsgo2013.DESCRIPTIONS.items()
        ),
    ]
    return {entry.name: entry for entry in listed}


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
