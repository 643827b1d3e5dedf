"""Saving the state of a strategy, and restoring it to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmes.base.saved_numbers import LARGEST_COUNT, checked_scalar
from mmes.errors import KernelWarning, warn_user
from mmes.kernels import Place
from mmes.spaces.manifolds import manifold_from
from mmes.strategies.shell.protocol import Search

if TYPE_CHECKING:
    from mmes.strategies.shell.optimizer import Optimizer

COUNTS = ("generation", "evaluations", "failed_evaluations")


def arguments_of(state: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an optimizer that can restore a state.

    `here` holds kernel, threads and device of this machine.
    """
    arrays = state["arrays"]
    bounds = (arrays["lower"], arrays["upper"]) if "lower" in arrays else None
    options = Place.apply(state["options"], here)
    manifold = None if state.get("manifold") is None else manifold_from(state["manifold"])
    # The best point is a point of the space and of the box; the mean need not be.
    start = arrays["best_x"].reshape(-1 if manifold is None else manifold.shape)
    given = {"x0": start, "sigma0": state["sigma0"], "bounds": bounds, "manifold": manifold}
    if "integers" in arrays:
        given["integers"] = arrays["integers"] > 0
    return given | options


def check_sizes(search_type: type[Search], state: dict[str, Any]) -> None:
    """Refuse sizes that do not match the rest of a state, before memory is allocated for them.

    The population size must match the number of evaluations, stored directions the arrays.
    """
    generation, evaluations, _ = (checked_scalar(name, state[name], 0) for name in COUNTS)
    shown = max((max(a.shape, default=0) for a in state["arrays"].values()), default=0)
    for option in search_type.options:
        value, most = state["options"].get(option.name), shown
        if option.name == "population_size":
            # A search that has just grown asks for more than it was told in a generation.
            grown = checked_scalar("doublings", state["doublings"], 0)
            most = evaluations * 2 ** min(grown, 16) if generation else LARGEST_COUNT
        elif option.name not in ("archive_size", "directions"):
            continue
        if isinstance(value, int) and value > most:
            raise ValueError(f"{option.name} is {value}, but the arrays are those of {most}")


def rebuilt(kind: type[Optimizer], state: dict[str, Any], asked: bool, pending: Any) -> Optimizer:
    """Return an optimizer as it was when it was copied or pickled, even within a generation."""
    place = {name: state["options"].get(name) for name in ("kernel", "threads", "device")}
    try:
        made = kind.from_state(state, **place)
    except (ImportError, RuntimeError, AssertionError) as error:  # torch's, about a missing device
        if place["device"] is None:
            raise
        warn_user(
            f"the optimizer was on device={place['device']!r}, which cannot be used here "
            f"({error}); this copy uses host memory",
            KernelWarning,
        )
        made = kind.from_state(state)
    if asked:
        made.ask(rows=())
    if pending is not None:
        rows, values = pending
        made.tell(values, rows)
    return made
