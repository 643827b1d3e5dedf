"""Resuming a saved run: check that it is the same run, and return its arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.options import validated
from mmes.errors import CheckpointCorrupt, CheckpointError, KernelWarning, warn_user
from mmes.kernels import Place
from mmes.kernels.choose import DEVICE_KERNELS, check_device_name, native_problem
from mmes.kernels.devices import PLACE_OPTIONS
from mmes.run.options import RUN_OPTIONS
from mmes.run.settings import RunSettings
from mmes.spaces.manifolds import manifold_from
from mmes.spaces.space import Space
from mmes.strategies import Optimizer, get_strategy, named_strategy

# The options of the search that may differ after resuming, because no result depends on them.
_FREE_OPTIONS = (*PLACE_OPTIONS, "rows_at_once")
# Arguments of `minimize` that are not options, and may differ after resuming.
_FREE_ARGUMENTS = (
    *("args", "batches", "callback", "catch", "constraints", "progress", "validation", "workers"),
)


def continued(settings: RunSettings, saved: dict[str, Any]) -> RunSettings:
    """Return these settings with the seed of a saved run, which must be the same run.

    Raises CheckpointError if it is another run, CheckpointCorrupt if it is not the state of a run.
    """
    with understood():
        found = _continued(settings, saved)
    # If something is missing on this machine, the file is not at fault.
    Place.of(found.options).open()
    return found


def _continued(settings: RunSettings, saved: dict[str, Any]) -> RunSettings:
    here, there = settings.entries(), {name: saved[name] for name in ("strategy", "sigma0")}
    manifold = None if settings.space.manifold is None else settings.space.manifold.description()
    here["manifold"], there["manifold"] = manifold, saved["search"].get("manifold")
    options = saved["options"]
    for name in set(settings.options) & set(options) - {"seed", *_FREE_OPTIONS}:
        here[name], there[name] = settings.options[name], options[name]
    if settings.seed_given:
        there["seed"] = saved["seed"]
    for name, value in there.items():
        if here[name] != value:
            raise CheckpointError(
                f"the checkpoint belongs to another run: {name} is {here[name]!r} here and was "
                f"{value!r}"
            )
    ours, theirs = settings.space.arrays(), saved["arrays"]
    for name in ("x0", "scale", "lower", "upper", "integers"):
        if not _same(ours.get(name), theirs.get(name)):
            raise CheckpointError(f"the checkpoint belongs to another run: {name} differs")
    # A checkpoint without it is of an older version, or its strategy was named.
    why = settings.why or saved.get("why", "")
    if not isinstance(why, str):
        raise TypeError(f"why must be a text, not {why!r}")
    return replace(settings, options=settings.options | {"seed": saved["seed"]}, why=why)


def resumed_arguments(saved: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which `Run` continues from a saved state.

    Changes are the arguments of `mmes.resume`: limits, and what does not affect the result.
    """
    given = dict(changes)
    strategy = given.pop("strategy", None)
    kind = None if strategy is None else get_strategy(strategy)
    free = {option.name for option in RUN_OPTIONS} | {*_FREE_OPTIONS, *_FREE_ARGUMENTS}
    for name in given:
        if name not in free:
            raise TypeError(
                f"{name} cannot change when a run is resumed; {', '.join(sorted(free))} can"
            )
    with understood():
        # A file must not choose which code runs: only names of ours are taken from it.
        kind = kind or _strategy_of_ours(saved["strategy"])
        arrays, described = saved["arrays"], saved["search"].get("manifold")
        # Older checkpoints have no word for some of them.
        fresh = {"validation_every": 10, "patience": None}
        fresh |= {"constraint_tolerance": 1e-6, "returns_constraints": False}
        known = fresh | saved["limits"]
        limits = {option.name: known[option.name] for option in RUN_OPTIONS}
        own = saved["options"] | limits | {"threads": None, "resume": "never"}
        if "kernel" not in given:
            given["kernel"] = _kernel_here(own.get("kernel", "auto"), given.get("device", "same"))
        # Not every strategy knows devices.
        own = Place.apply(
            own, {name: given[name] for name in ("kernel", "device") if name in given}
        )
        validated(RUN_OPTIONS + kind.option_table(), own, "the checkpoint")
        if own.get("device") is not None:
            check_device_name(own["device"])  # before torch is loaded, which takes 300 MB
        where = {
            "x0": arrays.get("x0"),
            "sigma0": saved["sigma0"],
            "bounds": (arrays["lower"], arrays["upper"]) if "lower" in arrays else None,
            "scale": arrays.get("scale"),
            "manifold": None if described is None else manifold_from(described),
            "integers": np.array(arrays["integers"]) > 0 if "integers" in arrays else None,
        }
        Space.checked(**where)
    if (own | given)["patience"] is not None and given.get("validation") is None:
        raise CheckpointError(
            f"the checkpoint belongs to a run with validation= and patience={own['patience']!r}; "
            "give validation= as then, or patience=None"
        )
    return own | given | where | {"strategy": kind, "resume": "never"}


def _kernel_here(name: Any, device: Any) -> Any:
    """Return the kernel of a run if it is available here; otherwise warn that it changes.

    `device` is the new device, if it was given.
    """
    if name == "auto":
        return name
    moved = device != "same" and (device is None) == (name in DEVICE_KERNELS)
    problem = native_problem() if name == "native" else None
    if not moved and problem is None:
        return name
    why = f"device is {device!r} now" if moved else problem
    warn_user(
        f"the run was started with kernel={name!r}, which cannot be used here ({why}); it "
        "continues with kernel='auto', and the result may differ by rounding",
        KernelWarning,
    )
    return "auto"


def _strategy_of_ours(name: Any) -> type[Optimizer]:
    try:
        return named_strategy(name)
    except ValueError as error:
        raise CheckpointCorrupt(
            f"the checkpoint cannot be used as it is: {error}; if it is your own strategy, pass "
            "it again as strategy="
        ) from error


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Turn errors about the parts of a saved state into CheckpointCorrupt."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointCorrupt(
            f"the parts of the checkpoint do not fit together ({type(error).__name__}: {error})"
        ) from error


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
