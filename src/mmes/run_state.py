"""A run as a state of plain entries and arrays, and back: what a checkpoint holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmes.errors import CheckpointCorrupt, CheckpointError
from mmes.manifolds import manifold_from
from mmes.observe import COLUMNS, History
from mmes.options import validated
from mmes.run_options import RUN_OPTIONS
from mmes.start import checked_start
from mmes.strategies import get_strategy, named_strategy
from mmes.strategies.record import checked_scalar

if TYPE_CHECKING:
    from mmes.run import Run

# The options of the search that may differ after resuming, because no result depends on them.
_FREE_OPTIONS = ("kernel", "threads")


def taken(run: Run, copy: bool) -> dict[str, Any]:
    """Return the state of a run after its last completed generation; see `Run.state`."""
    place = run._from
    search = run._es.state(copy)
    arrays = {f"search/{name}": array for name, array in search.pop("arrays").items()}
    arrays["history"] = run._history.table()
    found = {
        "x0": place.x0,
        "scale": place.scale,
        "lower": place.box and place.box[0],
        "upper": place.box and place.box[1],
        "best_x": run._best and run._best[1],
    }
    for name, array in found.items():
        if array is not None:
            arrays[name] = array.copy() if copy else array
    seconds = run._elapsed() if run._began == run._began else 0.0
    return {
        "strategy": run._strategy_type.name,
        "dimension": run._es.dimension,
        "sigma0": place.sigma0,
        "seed": run.seed,
        "options": dict(run._options),
        "limits": dict(run._limits),
        "start": run._start,
        "first_population_size": run._first_population_size,
        "best_value": None if run._best is None else run._best[0],
        "spent": run._spent
        | {
            "seconds": run._spent["seconds"] + seconds,
            "retried": run._spent["retried"] + run._evaluator.retried,
        },
        "evaluations": run._spent["evaluations"] + run._es.evaluations,
        "generations": run.generations,
        "warned": run._warned,
        "history": run._history.scalars(),
        "notes": dict(run.notes),
        "search": search,
        "arrays": arrays,
    }


def restored(
    run_type: type[Run], state: dict[str, Any], fun: Callable[[Any], Any], changes: dict[str, Any]
) -> Run:
    """Return a run that goes on from a state; see `Run.from_state`."""
    free = {option.name for option in RUN_OPTIONS} | set(_FREE_OPTIONS)
    direct = {"callback", "catch", "progress", "workers"}
    chosen = changes.pop("strategy", None)
    for name in changes:
        if name not in free | direct:
            raise TypeError(
                f"{name} cannot change when a run is resumed; {', '.join(sorted(free | direct))} "
                "can"
            )
    # A file must not choose which code runs: only names of ours are taken from it.
    with _understood():
        strategy = named_strategy(state["strategy"]) if chosen is None else get_strategy(chosen)
        arrays, described = state["arrays"], state["search"].get("manifold")
        manifold = None if described is None else manifold_from(described)
        limits = {option.name: state["limits"][option.name] for option in RUN_OPTIONS}
        # The kernel that was chosen may not be on this machine.
        given = state["options"] | limits | {"kernel": "auto", "threads": None, "resume": "never"}
        validated(RUN_OPTIONS + strategy.option_table(), given, "the checkpoint")
        start = {
            "x0": arrays.get("x0"),
            "sigma0": state["sigma0"],
            "bounds": (arrays["lower"], arrays["upper"]) if "lower" in arrays else None,
            "scale": arrays.get("scale"),
            "manifold": manifold,
        }
        checked_start(**start)
    return run_type(
        fun, **start, strategy=strategy, state=state, **given | changes | {"resume": "never"}
    )


def adopt(run: Run, state: dict[str, Any]) -> None:
    """Let a new run go on from a state, after checking that it is the state of this same run.

    Raises
    ------
    CheckpointError
        If the state belongs to another run.
    CheckpointCorrupt
        If its parts do not fit together.
    """
    with _understood():
        _check_same(run, state)
        _take_over(run, state)


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Make what goes wrong with the parts of a state an error that says so."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointCorrupt(
            f"the parts of the checkpoint do not fit together ({type(error).__name__}: {error})"
        ) from error


def _take_over(run: Run, state: dict[str, Any]) -> None:
    arrays = state["arrays"]
    if arrays["history"].shape[1:] != (len(COLUMNS),):
        raise ValueError(f"the history has the shape {arrays['history'].shape}")
    run.seed = run._options["seed"] = state["seed"]
    run.notes = dict(state["notes"])
    run._start = checked_scalar("start", state["start"], 0)
    run._first_population_size = checked_scalar("size", state["first_population_size"], 0)
    run._spent = {
        name: checked_scalar(name, state["spent"][name], fresh)
        for name, fresh in run._spent.items()
    }
    run._warned = state["warned"] is True
    run._history = History.restored(state["history"], np.array(arrays["history"]))
    if state["best_value"] is not None:
        best_x = np.array(arrays["best_x"], dtype=np.float64)
        if best_x.size != arrays["search/best_x"].size or not np.isfinite(best_x).all():
            raise ValueError("best_x must be a point: finite, with one entry per variable")
        run._best = float(state["best_value"]), best_x
    if run._from.x0 is not None and run._from.x0.size != arrays["search/best_x"].size:
        raise ValueError(f"x0 has {run._from.x0.size} entries")
    inner = {name[7:]: array for name, array in arrays.items() if name.startswith("search/")}
    run._es = run._strategy_type.from_state(
        state["search"] | {"arrays": inner},
        kernel=run._options["kernel"],
        threads=run._options["threads"],
    )


def _check_same(run: Run, state: dict[str, Any]) -> None:
    place, arrays = run._from, state["arrays"]
    here: dict[str, Any] = {"strategy": run._strategy_type.name, "sigma0": place.sigma0}
    there: dict[str, Any] = {"strategy": state["strategy"], "sigma0": state["sigma0"]}
    manifold = None if run._manifold is None else run._manifold.description()
    here["manifold"], there["manifold"] = manifold, state["search"].get("manifold")
    for name in set(run._options) & set(state["options"]) - {"seed", *_FREE_OPTIONS}:
        here[name], there[name] = run._options[name], state["options"][name]
    if run._seed_was_given:
        here["seed"], there["seed"] = run.seed, state["seed"]
    box = place.box or (None, None)
    vectors = {"x0": place.x0, "scale": place.scale, "lower": box[0], "upper": box[1]}
    for name, value in here.items():
        if value != there[name]:
            raise CheckpointError(
                f"the checkpoint belongs to another run: {name} is {value!r} here and was "
                f"{there[name]!r}"
            )
    for name, array in vectors.items():
        if not _same(array, arrays.get(name)):
            raise CheckpointError(f"the checkpoint belongs to another run: {name} differs")


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
