"""A strategy as a state that can be kept, and back from it to the bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mmes.spaces.boxes import IntegerBounds
from mmes.spaces.manifolds import manifold_from
from mmes.strategies.parts.record import LARGEST_COUNT, checked_scalar
from mmes.strategies.shell.candidates import as_candidate
from mmes.strategies.shell.options import DEVICE_OPTIONS, with_new_names
from mmes.strategies.shell.protocol import Search
from mmes.strategies.shell.setup import apart

if TYPE_CHECKING:
    from mmes.strategies.shell.ask_tell import AskTell

S = TypeVar("S", bound="AskTell")

_COUNTS = ("generation", "evaluations", "failed_evaluations")


def state_of(es: AskTell, copy: bool) -> dict[str, Any]:
    """Return what `AskTell.state` does."""
    arrays = {f"search/{name}": array for name, array in es._search.arrays().items()}
    arrays["best_x"] = es.kernel.to_host(es._best_x)
    if es.box is not None:
        arrays |= es.box.arrays()
    arrays |= es._ends.arrays()
    return {
        "strategy": es.name,
        "manifold": None if es.manifold is None else es.manifold.description(),
        "options": dict(es.options),
        "sigma0": es.sigma0,
        "generation": es.generation,
        "evaluations": es.evaluations,
        "failed_evaluations": es.failed_evaluations,
        **es._ends.entries(),
        "best_value": es._best_value,
        "search": es._search.scalars(),
        "arrays": {name: a.copy() if copy else a for name, a in arrays.items()},
    }


def restored(kind: type[S], state: dict[str, Any], here: dict[str, Any]) -> S:
    """Return what `AskTell.from_state` does; `here` holds kernel, threads and device."""
    if state["strategy"] != kind.name:
        raise ValueError(
            f"this is a state of the strategy {state['strategy']!r}, not of {kind.name!r}"
        )
    _check_sizes(kind.search_type, state)
    arrays = state["arrays"]
    made = kind(**_arguments_of(state, here))
    if made.box is not None:
        made.box = type(made.box).from_arrays(arrays)
        made._candidates.apart = apart(made.box)
    inner = {name[7:]: array for name, array in arrays.items() if name.startswith("search/")}
    told = any(a.size for name, a in inner.items() if name.endswith("previous"))
    if told and made._search.needs_start_value:
        made._search.start(0.0)  # makes room for the values that are restored
    made._search.restore(state["search"], inner)
    # As it was told: the constructor checks it, but brings a point of a manifold closer to it.
    made._best_x = as_candidate(made.kernel, arrays["best_x"].ravel(), made._n, None)
    for name in _COUNTS:
        setattr(made, name, checked_scalar(name, state[name], 0))
    made._best_value = float(state["best_value"])
    if math.isnan(made._best_value):
        raise ValueError("best_value must be a number, not nan")
    made._ends.restore(made.generation, state)
    return made


def _arguments_of(state: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an optimizer that can take over a state.

    `here` holds kernel, threads and device of this machine.
    """
    arrays = state["arrays"]
    bounds = (arrays["lower"], arrays["upper"]) if "lower" in arrays else None
    if bounds is not None and "integers" in arrays:
        bounds = IntegerBounds(*map(np.array, bounds), np.array(arrays["integers"]) > 0)
    # States of version 0.1.0 have no word for it.
    handling = {} if bounds is None else {"bounds_handling": "clip"}
    options = handling | with_new_names(state["options"]) | here
    if here["device"] is None:
        options = {name: value for name, value in options.items() if name not in DEVICE_OPTIONS}
    manifold = None if state.get("manifold") is None else manifold_from(state["manifold"])
    # The best point is a point of the space and of the box; the mean need not be.
    start = arrays["best_x"].reshape(-1 if manifold is None else manifold.shape)
    given = {"x0": start, "sigma0": state["sigma0"], "bounds": bounds, "manifold": manifold}
    return given | options


def _check_sizes(search_type: type[Search], state: dict[str, Any]) -> None:
    """Refuse sizes that the rest of a state does not bear out, before memory is taken for them.

    Candidates per generation show in the number of evaluations, stored directions in arrays.
    """
    generation, evaluations, _ = (checked_scalar(name, state[name], 0) for name in _COUNTS)
    shown = max((max(a.shape, default=0) for a in state["arrays"].values()), default=0)
    for option in search_type.options:
        value, most = state["options"].get(option.name), shown
        if option.name == "population_size":
            # A search that has just grown asks for twice what it was told in a generation.
            most = 2 * evaluations if generation else LARGEST_COUNT
        elif option.name not in ("archive_size", "directions"):
            continue
        if isinstance(value, int) and value > most:
            raise ValueError(f"{option.name} is {value}, but the arrays are those of {most}")
